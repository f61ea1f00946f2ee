//! One array of whole numbers out of a `.npz` file of NumPy: a zip archive of `.npy` files.

use super::zip;

/// The numbers of an array, of one of the types that labels and pixels have.
#[derive(Debug, PartialEq)]
pub(super) enum Numbers {
    Bytes(Vec<u8>),
    Whole(Vec<i64>),
}

/// Shape and numbers of the array `name` of an archive, which is at most `most` bytes long.
pub(super) fn array(
    archive: &[u8],
    name: &str,
    most: u64,
) -> Result<(Vec<usize>, Numbers), String> {
    let unpacked = zip::unpacked_member(archive, &format!("{name}.npy"), most)?;
    npy(&unpacked).map_err(|problem| format!("{name}: {problem}"))
}

fn npy(bytes: &[u8]) -> Result<(Vec<usize>, Numbers), String> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("it does not start with NumPy's mark")?;
    let (&[major, _], rest) = rest.split_first_chunk::<2>().ok_or("it is cut short")?;
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or("it is cut short")?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or("it is cut short")?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        other => return Err(format!("version {other} of the format")),
    };
    let (header, values) = rest.split_at_checked(length).ok_or("it is cut short")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    let after = |key: &str| {
        let at = header.find(&format!("'{key}':")).ok_or(format!("its header has no {key}"))?;
        Ok::<&str, String>(header[at + key.len() + 3..].trim_start())
    };
    if after("fortran_order")?.starts_with("True") {
        return Err("its numbers go column by column".to_owned());
    }
    let inside = after("shape")?.strip_prefix('(').and_then(|text| text.split(')').next());
    let sides = inside.ok_or("its shape is no tuple")?.split(',').map(str::trim);
    let shape: Vec<usize> = sides
        .filter(|side| !side.is_empty())
        .map(|side| side.parse().map_err(|_| format!("its shape holds {side:?}")))
        .collect::<Result<_, _>>()?;
    let count = shape.iter().try_fold(1_usize, |count, &side| count.checked_mul(side));
    let count = count.ok_or("its shape is too large")?;
    let kind = after("descr")?.split(['\'', '"']).nth(1).unwrap_or_default();
    let width = match kind {
        "|u1" | "u1" => 1,
        "<i2" | "<u2" => 2,
        "<i4" | "<u4" => 4,
        "<i8" => 8,
        other => return Err(format!("its numbers are of type {other:?}")),
    };
    if count.checked_mul(width) != Some(values.len()) {
        return Err(format!("{} bytes for {count} numbers of {width}", values.len()));
    }
    let whole = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(bytes);
        let unused = 8 * (8 - width) as u32;
        let number = i64::from_le_bytes(wide);
        if kind.contains('i') { number << unused >> unused } else { number }
    };
    Ok((
        shape,
        match width {
            1 => Numbers::Bytes(values.to_vec()),
            _ => Numbers::Whole(values.chunks_exact(width).map(whole).collect()),
        },
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    /// A `.npy` file, as NumPy writes it.
    pub(in crate::data) fn written(kind: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
        let mut header =
            format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        file.extend(bytes);
        file
    }

    /// An archive of members, packed or not, as `numpy.savez` and `savez_compressed` write it.
    pub(in crate::data) fn archive(members: &[(&str, Vec<u8>)], packed: bool) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for (name, bytes) in members {
            let mut crc = flate2::Crc::new();
            crc.update(bytes);
            let stored = match packed {
                false => bytes.clone(),
                true => {
                    let mut out =
                        flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                    out.write_all(bytes).unwrap();
                    out.finish().unwrap()
                }
            };
            let mut common = vec![20, 0, 0, 0];
            common.extend(if packed { 8_u16 } else { 0 }.to_le_bytes());
            common.extend([0; 4]);
            common.extend(crc.sum().to_le_bytes());
            common.extend((stored.len() as u32).to_le_bytes());
            common.extend((bytes.len() as u32).to_le_bytes());
            common.extend((name.len() as u16).to_le_bytes());
            common.extend(0_u16.to_le_bytes());
            let place = file.len() as u32;
            file.extend(b"PK\x03\x04");
            file.extend(&common);
            file.extend(name.bytes());
            file.extend(&stored);
            directory.extend(b"PK\x01\x02\x14\0");
            directory.extend(&common);
            directory.extend([0; 10]);
            directory.extend(place.to_le_bytes());
            directory.extend(name.bytes());
        }
        let start = file.len() as u32;
        file.extend(&directory);
        file.extend(b"PK\x05\x06\0\0\0\0");
        file.extend((members.len() as u16).to_le_bytes());
        file.extend((members.len() as u16).to_le_bytes());
        file.extend((directory.len() as u32).to_le_bytes());
        file.extend(start.to_le_bytes());
        file.extend([0, 0]);
        file
    }

    #[test]
    fn arrays_are_read_stored_or_packed_and_what_is_none_is_refused() {
        let labels: Vec<u8> = [1_i64, 1000, -7].iter().flat_map(|n| n.to_le_bytes()).collect();
        let members = [
            ("data.npy", written("|u1", "2, 3", &[1, 2, 3, 4, 5, 255])),
            ("labels.npy", written("<i8", "3,", &labels)),
        ];
        for packed in [false, true] {
            let file = archive(&members, packed);
            let (shape, data) = array(&file, "data", 1 << 20).unwrap();
            assert_eq!((shape, data), (vec![2, 3], Numbers::Bytes(vec![1, 2, 3, 4, 5, 255])));
            let (shape, labels) = array(&file, "labels", 1 << 20).unwrap();
            assert_eq!((shape, labels), (vec![3], Numbers::Whole(vec![1, 1000, -7])));
            assert!(array(&file, "data", 20).is_err());
            assert!(array(&file, "mean", 1 << 20).unwrap_err().contains("mean.npy"));
            assert!(array(&file[..file.len() / 2], "data", 1 << 20).is_err());
        }
        for (kind, shape, bytes) in
            [("<f4", "1,", &[0; 4][..]), ("|u1", "3,", &[0; 2]), ("|u1", "x,", &[])]
        {
            let file = archive(&[("data.npy", written(kind, shape, bytes))], false);
            assert!(array(&file, "data", 1 << 20).is_err(), "{kind} {shape}");
        }
    }
}
