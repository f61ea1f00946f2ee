//! One member of a zip archive, stored as PyTorch writes its files, or packed as NumPy may.
//!
//! Only what that needs is understood. Every length and place is checked against the archive before it is used, and
//! the checksum of the member is compared.

use std::io::Read;

use flate2::read::DeflateDecoder;

/// The end of the directory: signature, 18 bytes, and a comment of at most 65,535 bytes.
const END: [u8; 4] = *b"PK\x05\x06";
const END_LENGTH: usize = 22;
/// An entry of the directory.
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const ENTRY_LENGTH: usize = 46;
/// The header before a member.
const LOCAL: [u8; 4] = *b"PK\x03\x04";
const LOCAL_LENGTH: usize = 30;
/// The ways in which members are packed.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The bytes of the one member whose name ends in `/name`, which is stored.
pub(super) fn member<'a>(archive: &'a [u8], name: &str) -> Result<&'a [u8], String> {
    let entry = entry(archive, name)?;
    if u16_at(entry, 10) != STORED {
        return Err(format!("{name} is packed or encrypted, expected it stored"));
    }
    let bytes = bytes_of(archive, entry, name)?;
    check_sum(entry, bytes, name)?;
    Ok(bytes)
}

/// The same for one that may be packed, of at most so many bytes.
pub(super) fn unpacked_member(archive: &[u8], name: &str, most: u64) -> Result<Vec<u8>, String> {
    let entry = entry(archive, name)?;
    let bytes = bytes_of(archive, entry, name)?;
    let mut unpacked = Vec::new();
    let read = match u16_at(entry, 10) {
        STORED => bytes.take(most + 1).read_to_end(&mut unpacked),
        DEFLATED => DeflateDecoder::new(bytes).take(most + 1).read_to_end(&mut unpacked),
        method => return Err(format!("{name} is packed in a way that is not known ({method})")),
    };
    read.map_err(|error| format!("{name} cannot be unpacked: {error}"))?;
    if unpacked.len() as u64 > most {
        return Err(format!("{name} has more than the {most} bytes expected"));
    }
    check_sum(entry, &unpacked, name)?;
    Ok(unpacked)
}

/// The entry of the directory for the one member whose name ends in `/name`.
fn entry<'a>(archive: &'a [u8], name: &str) -> Result<&'a [u8], String> {
    let end = end_of_directory(archive).ok_or("it is no zip archive, as PyTorch's files are")?;
    let count = u16_at(archive, end + 10);
    let (size, start) = (u32_at(archive, end + 12), u32_at(archive, end + 16));
    if count == u16::MAX || size == u32::MAX || start == u32::MAX {
        return Err("a zip archive of the 64-bit kind, which is not read".to_owned());
    }
    let directory = slice(archive, start as usize, size as usize)
        .filter(|_| start as usize + size as usize <= end)
        .ok_or("its directory lies outside the archive")?;

    let (mut at, mut found) = (0, None);
    for _ in 0..count {
        let entry = slice(directory, at, ENTRY_LENGTH)
            .filter(|entry| entry[..4] == ENTRY)
            .ok_or("its directory is damaged")?;
        let lengths = [28, 30, 32].map(|field| usize::from(u16_at(entry, field)));
        let entry_name =
            slice(directory, at + ENTRY_LENGTH, lengths[0]).ok_or("its directory is damaged")?;
        let is_it = entry_name
            .strip_suffix(name.as_bytes())
            .is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"));
        if is_it && found.replace(entry).is_some() {
            return Err(format!("it holds {name} more than once"));
        }
        at += ENTRY_LENGTH + lengths.iter().sum::<usize>();
    }
    found.ok_or_else(|| format!("it holds no {name}"))
}

/// The bytes of a member as they lie there.
fn bytes_of<'a>(archive: &'a [u8], entry: &[u8], name: &str) -> Result<&'a [u8], String> {
    if u16_at(entry, 8) & 1 != 0 {
        return Err(format!("{name} is packed or encrypted, expected it stored"));
    }
    let stored = u16_at(entry, 10) == STORED;
    let [packed, size, place] = [20, 24, 42].map(|field| u32_at(entry, field) as usize);
    slice(archive, place, LOCAL_LENGTH)
        .filter(|local| local[..4] == LOCAL)
        .map(|local| [26, 28].map(|field| usize::from(u16_at(local, field))))
        .and_then(|[name, extra]| slice(archive, place + LOCAL_LENGTH + name + extra, packed))
        .filter(|_| !stored || packed == size)
        .ok_or_else(|| format!("{name} lies outside the archive"))
}

fn check_sum(entry: &[u8], bytes: &[u8], name: &str) -> Result<(), String> {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    match crc.sum() == u32_at(entry, 16) {
        true => Ok(()),
        false => Err(format!("the checksum of {name} is wrong")),
    }
}

fn end_of_directory(archive: &[u8]) -> Option<usize> {
    let last = archive.len().checked_sub(END_LENGTH)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last).rev().find(|&at| archive[at..at + 4] == END)
}

fn slice(bytes: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(length)?)
}

/// For places that were checked to be there.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | (u32::from(u16_at(bytes, at + 2)) << 16)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An archive of stored members.
    pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in members {
            let place = bytes.len() as u32;
            let mut crc = flate2::Crc::new();
            crc.update(content);
            let sizes = [crc.sum(), content.len() as u32, content.len() as u32];
            let sizes: Vec<u8> = sizes.iter().flat_map(|number| number.to_le_bytes()).collect();
            let name_length = (name.len() as u16).to_le_bytes();
            bytes.extend(LOCAL);
            bytes.extend([0; 10]);
            bytes.extend(&sizes);
            bytes.extend(name_length);
            bytes.extend([0, 0]);
            bytes.extend(name.as_bytes());
            bytes.extend(*content);
            directory.extend(ENTRY);
            directory.extend([0; 12]);
            directory.extend(&sizes);
            directory.extend(name_length);
            directory.extend([0; 12]);
            directory.extend(place.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let (start, count) = (bytes.len() as u32, members.len() as u16);
        bytes.extend(&directory);
        bytes.extend(END);
        bytes.extend([0; 4]);
        bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
        bytes.extend((directory.len() as u32).to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn the_member_is_found_by_the_end_of_its_name() {
        let bytes = archive(&[("a/version", b"3"), ("a/data.pkl", b"hello"), ("a/xdata.pkl", b"")]);
        assert_eq!(member(&bytes, "data.pkl"), Ok(&b"hello"[..]));
        assert!(member(&bytes, "other").unwrap_err().contains("no other"));
        let twice = archive(&[("a/data.pkl", b"1"), ("b/data.pkl", b"2")]);
        assert!(member(&twice, "data.pkl").unwrap_err().contains("more than once"));
    }

    #[test]
    fn no_damage_is_followed() {
        let whole = archive(&[("data.pkl", b"hello, world")]);
        assert!(member(&whole, "data.pkl").is_ok());
        for length in 0..whole.len() {
            assert!(member(&whole[..length], "data.pkl").is_err(), "{length} bytes");
        }
        // Whatever a single byte is changed to: the same bytes, or an error; never anything else.
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                if let Ok(bytes) = member(&changed, "data.pkl") {
                    assert_eq!(bytes, b"hello, world", "byte {at}");
                }
            }
        }
    }
}
