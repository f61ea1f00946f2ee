//! A picture as PNG.

use std::io::{self, Write};

/// The PNG of a picture without transparent parts: red, green and blue of each pixel, a byte each, line by line.
///
/// ```
/// let png = lapwing_sample::png(2, 1, &[255, 0, 0, 0, 0, 255])?;
/// assert!(png.starts_with(b"\x89PNG"));
/// assert!(lapwing_sample::png(2, 2, &[0; 6]).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn png(width: u32, height: u32, rgb: &[u8]) -> io::Result<Vec<u8>> {
    let line = 3 * width as usize;
    if line == 0 || rgb.is_empty() || Some(rgb.len()) != line.checked_mul(height as usize) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} bytes for a picture of {width} × {height} pixels", rgb.len()),
        ));
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8; 4], content: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(content);
        png.extend((content.len() as u32).to_be_bytes());
        png.extend(kind);
        png.extend(content);
        png.extend(crc.sum().to_be_bytes());
    };
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 2, 0, 0, 0]);
    chunk(b"IHDR", &header);
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    for line in rgb.chunks_exact(line) {
        // Every line says how it was filtered: not at all.
        packed.write_all(&[0])?;
        packed.write_all(line)?;
    }
    chunk(b"IDAT", &packed.finish()?);
    chunk(b"IEND", &[]);
    Ok(png)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_pixels_of_a_png_are_those_of_the_picture() {
        let rgb: Vec<u8> = (0..24).collect();
        let png = png(4, 2, &rgb).unwrap();
        assert_eq!(&png[16..24], [0, 0, 0, 4, 0, 0, 0, 2]);
        let start = png.windows(4).position(|word| word == b"IDAT").unwrap() + 4;
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(&png[start..]).read_to_end(&mut lines).unwrap();
        assert_eq!(lines, [&[0], &rgb[..12], &[0], &rgb[12..]].concat());
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (width, height, bytes) in [(2, 2, 11), (0, 0, 0), (0, 3, 0), (u32::MAX, u32::MAX, 3)] {
            assert!(png(width, height, &vec![0; bytes]).is_err(), "{width} × {height}: {bytes}");
        }
    }
}
