//! Files of pictures, read into squares of equal size.
//!
//! PNG, JPEG, GIF (its first frame) and WebP are told by what is in a file, not by its name. A picture is turned as its
//! camera held it (EXIF), laid on white where it is transparent, and stretched to a square, whole: nothing is cut off.
//! Greyscale pictures have three equal channels.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::thread;

use image::imageops::{FilterType, resize};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgb, RgbImage};

use crate::shelter::sheltered;

/// Sides of squares that are chosen for a table by itself, the least first. Twice the side is four times the work.
pub(crate) const SIDES: [usize; 2] = [32, 64];
/// Sides that can be asked for.
pub(crate) const ALLOWED: std::ops::RangeInclusive<usize> = 8..=512;
/// Numbers of a pixel: red, green and blue.
pub(crate) const CHANNELS: usize = 3;
/// Most pixels of a side of a file: a picture of 60,000 × 60,000 takes 14 GB, and a few bytes to forge.
const MOST_PIXELS: u32 = 16_384;
/// Most bytes that a decoder may ask for.
const MOST_BYTES: u64 = 1 << 30;
/// Most pixels for which a JPEG can have a byte: of a block of 8 × 8 pixels of one colour a bit has to be there.
const MOST_PIXELS_PER_BYTE: u64 = 1024;

/// Numbers of a picture of that side.
pub(crate) const fn numbers(side: usize) -> usize {
    CHANNELS * side * side
}

/// Why a picture cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// No path.
    #[error("there is no path")]
    Missing,
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Open {
        /// The path as it stands in the table.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A directory, a pipe or a device.
    #[error("{path} is not a file")]
    NoFile {
        /// The path as it stands in the table.
        path: String,
    },
    /// Something else than a picture.
    #[error("{path} is not a PNG, JPEG, GIF or WebP picture")]
    Foreign {
        /// The path as it stands in the table.
        path: String,
    },
    /// More pixels than are read.
    #[error("{path} has {width} × {height} pixels; at most {MOST_PIXELS} × {MOST_PIXELS} are read")]
    Large {
        /// The path as it stands in the table.
        path: String,
        /// Pixels from left to right.
        width: u32,
        /// Pixels from top to bottom.
        height: u32,
    },
    /// Another picture than the one that was read before.
    #[error("{path} is not the picture that was there before: it has been replaced since")]
    Replaced {
        /// The path as it stands in the table.
        path: String,
    },
    /// A picture that is damaged or cut short.
    #[error("{path} is damaged: {message}")]
    Damaged {
        /// The path as it stands in the table.
        path: String,
        /// What the decoder said.
        message: String,
    },
}

/// Reads pictures, several at a time, into `pixels`, in the order of their paths, which are relative to `folder`. Those
/// that cannot be read are returned with their place; their pixels are zero.
pub(crate) fn read_all(
    folder: &Path,
    paths: &[Option<&str>],
    side: usize,
    pixels: &mut [u8],
) -> Vec<(usize, PictureError)> {
    let size = numbers(side);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(paths.len().max(1));
    let share = paths.len().div_ceil(workers).max(1);
    let read = |from: usize, paths: &[Option<&str>], pixels: &mut [u8]| {
        let mut failed = Vec::new();
        for (at, (path, pixels)) in paths.iter().zip(pixels.chunks_exact_mut(size)).enumerate() {
            match path.ok_or(PictureError::Missing).and_then(|path| read(folder, path, side)) {
                Ok(picture) => pixels.copy_from_slice(&picture),
                Err(error) => {
                    pixels.fill(0);
                    failed.push((from + at, error));
                }
            }
        }
        failed
    };
    let read = &read;
    thread::scope(|scope| {
        let parts = paths.chunks(share).zip(pixels.chunks_mut(size * share)).enumerate();
        let running: Vec<_> = parts
            .map(|(part, (paths, pixels))| {
                (part * share, scope.spawn(move || read(part * share, paths, pixels)))
            })
            .collect();
        let panicked = |from| vec![(from, damaged("a picture", "its decoder failed"))];
        let join = running.into_iter();
        join.flat_map(|(from, part)| part.join().unwrap_or_else(|_| panicked(from))).collect()
    })
}

/// Reads pictures, several at a time, as squares of `side` pixels, one after another, red, green and blue of each pixel. Paths
/// are relative to `folder`.
///
/// # Errors
/// The first that cannot be read, by its path.
pub fn read_pictures(
    folder: &Path,
    paths: &[String],
    side: usize,
) -> Result<Vec<u8>, PictureError> {
    let mut pixels = vec![0; numbers(side) * paths.len()];
    let paths: Vec<Option<&str>> = paths.iter().map(|path| Some(path.as_str())).collect();
    match read_all(folder, &paths, side, &mut pixels).into_iter().next() {
        None => Ok(pixels),
        Some((_, error)) => Err(error),
    }
}

/// Width and height of a picture, from its first bytes; nothing where it cannot be read.
pub(crate) fn dimensions(folder: &Path, path: &str) -> Option<(u32, u32)> {
    let reader = open(folder, path).ok()?;
    sheltered(|| reader.into_dimensions().ok()).ok().flatten()
}

/// Reads one picture.
fn read(folder: &Path, path: &str, side: usize) -> Result<Vec<u8>, PictureError> {
    let reader = open(folder, path)?;
    let decoded = sheltered(|| match reader.format() {
        Some(ImageFormat::Jpeg) => decode(path, whole_jpeg(path, reader)?, side),
        _ => decode(path, reader, side),
    });
    decoded.unwrap_or_else(|panic| Err(damaged(path, &panic)))
}

/// A JPEG from its first byte to the mark of its end: decoders make up what a file lacks that was cut short.
fn whole_jpeg(
    path: &str,
    reader: ImageReader<BufReader<File>>,
) -> Result<ImageReader<Cursor<Vec<u8>>>, PictureError> {
    let mut bytes = Vec::new();
    let read = reader.into_inner().take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(|source| PictureError::Open { path: path.to_owned(), source })?;
    if !has_end(&bytes) {
        return Err(damaged(path, "the file is cut short"));
    }
    let most = MOST_PIXELS_PER_BYTE * bytes.len() as u64;
    let reader = || ImageReader::with_format(Cursor::new(&bytes), ImageFormat::Jpeg);
    let size = reader().into_dimensions().map_err(|error| damaged(path, &error.to_string()))?;
    if u64::from(size.0) * u64::from(size.1) > most {
        let message = format!("{} bytes cannot be {} × {} pixels", bytes.len(), size.0, size.1);
        return Err(damaged(path, &message));
    }
    Ok(ImageReader::with_format(Cursor::new(bytes), ImageFormat::Jpeg))
}

/// Whether a JPEG has the mark of its end, which other marks come before. That of a small picture within a mark's segment
/// does not count.
fn has_end(jpeg: &[u8]) -> bool {
    let mut at = 2;
    while let Some(rest) = jpeg.get(at..) {
        let is_mark = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff);
        let Some(found) = rest.windows(2).position(is_mark) else { return false };
        at += found + 2;
        match jpeg[at - 1] {
            0xd9 => return true,
            // Alone, with nothing behind them.
            0x01 | 0xd0..=0xd8 => {}
            _ => match jpeg.get(at..at + 2) {
                Some(&[high, low]) => at += usize::from(u16::from_be_bytes([high, low])).max(2),
                _ => return false,
            },
        }
    }
    false
}

/// Opens a file that begins as a picture does.
fn open(folder: &Path, path: &str) -> Result<ImageReader<BufReader<File>>, PictureError> {
    let open = |source| PictureError::Open { path: path.to_owned(), source };
    let place = folder.join(path);
    // Asked before it is opened: opening a pipe waits for whoever writes.
    if !place.metadata().map_err(open)?.is_file() {
        return Err(PictureError::NoFile { path: path.to_owned() });
    }
    let file = BufReader::new(File::open(&place).map_err(open)?);
    let reader = ImageReader::new(file).with_guessed_format().map_err(open)?;
    let known = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
    if !reader.format().is_some_and(|format| known.contains(&format)) {
        return Err(PictureError::Foreign { path: path.to_owned() });
    }
    Ok(reader)
}

fn decode(
    path: &str,
    mut reader: ImageReader<impl BufRead + Seek>,
    side: usize,
) -> Result<Vec<u8>, PictureError> {
    let refused = |error: image::ImageError| damaged(path, &error.to_string());
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(refused)?;
    let (width, height) = decoder.dimensions();
    if width.max(height) > MOST_PIXELS {
        return Err(PictureError::Large { path: path.to_owned(), width, height });
    }
    if width.min(height) == 0 {
        return Err(damaged(path, "it has no pixels"));
    }
    let orientation = decoder.orientation().map_err(refused)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(refused)?;
    picture.apply_orientation(orientation);
    let opaque = if picture.color().has_alpha() { on_white(&picture) } else { picture.to_rgb8() };
    let side = side as u32;
    Ok(resize(&opaque, side, side, FilterType::Triangle).into_raw())
}

fn on_white(picture: &DynamicImage) -> RgbImage {
    let picture = picture.to_rgba8();
    let mut opaque = RgbImage::new(picture.width(), picture.height());
    for (from, to) in picture.pixels().zip(opaque.pixels_mut()) {
        let [red, green, blue, alpha] = from.0.map(u32::from);
        let laid = |colour: u32| ((colour * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        *to = Rgb([laid(red), laid(green), laid(blue)]);
    }
    opaque
}

fn damaged(path: &str, message: &str) -> PictureError {
    PictureError::Damaged { path: path.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayImage, Luma, Rgba, RgbaImage};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    const SIDE: usize = 32;

    fn pixel(pixels: &[u8], row: usize, column: usize) -> [u8; 3] {
        pixels[3 * (row * SIDE + column)..][..3].try_into().unwrap()
    }

    fn one(folder: &Path, name: &str) -> Result<Vec<u8>, PictureError> {
        let mut pixels = vec![0; numbers(SIDE)];
        match read_all(folder, &[Some(name)], SIDE, &mut pixels).pop() {
            None => Ok(pixels),
            Some((_, error)) => Err(error),
        }
    }

    #[test]
    fn every_format_is_told_by_its_content_and_stretched_to_a_square() {
        let folder = folder();
        // Left half red, right half blue; twice as wide as high.
        let picture = RgbImage::from_fn(128, 64, |x, _| match x < 64 {
            true => Rgb([255, 0, 0]),
            false => Rgb([0, 0, 255]),
        });
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
            let path = folder.path().join("picture.dat");
            picture.save_with_format(&path, format).unwrap();
            let pixels = one(folder.path(), "picture.dat").unwrap();
            for row in [0, 31] {
                let ([red, _, _], [_, _, blue]) = (pixel(&pixels, row, 2), pixel(&pixels, row, 29));
                assert!(red > 240 && blue > 240, "{format:?}");
            }
        }
    }

    #[test]
    fn grey_has_three_equal_channels_and_what_is_transparent_is_white() {
        let folder = folder();
        GrayImage::from_pixel(5, 9, Luma([77])).save(folder.path().join("grey.png")).unwrap();
        assert_eq!(pixel(&one(folder.path(), "grey.png").unwrap(), 16, 16), [77; 3]);
        let glass = RgbaImage::from_pixel(4, 4, Rgba([0, 0, 0, 0]));
        glass.save(folder.path().join("glass.png")).unwrap();
        assert_eq!(pixel(&one(folder.path(), "glass.png").unwrap(), 1, 1), [255; 3]);
        let half = RgbaImage::from_pixel(4, 4, Rgba([100, 0, 0, 128]));
        half.save(folder.path().join("half.png")).unwrap();
        assert_eq!(pixel(&one(folder.path(), "half.png").unwrap(), 1, 1), [177, 127, 127]);
    }

    /// A JPEG with an EXIF block that says how the camera was held.
    fn held(folder: &Path, orientation: u8) {
        let picture = RgbImage::from_fn(64, 64, |x, y| match (x < 32, y < 32) {
            (true, true) => Rgb([255, 255, 255]),
            _ => Rgb([0, 0, 0]),
        });
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
        let bytes = bytes.into_inner();
        let mut exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
        let mut file = bytes[..2].to_vec();
        file.extend([0xff, 0xe1]);
        file.extend((exif.len() as u16 + 2).to_be_bytes());
        file.extend(exif);
        file.extend(&bytes[2..]);
        std::fs::write(folder.join("held.jpg"), file).unwrap();
    }

    #[test]
    fn a_picture_is_turned_as_its_camera_held_it() {
        let folder = folder();
        for (orientation, (row, column)) in [(1, (8, 8)), (3, (24, 24)), (6, (8, 24)), (8, (24, 8))]
        {
            held(folder.path(), orientation);
            let pixels = one(folder.path(), "held.jpg").unwrap();
            assert!(pixel(&pixels, row, column)[0] > 200, "{orientation}");
            assert!(pixel(&pixels, 31 - row, 31 - column)[0] < 60, "{orientation}");
        }
    }

    #[test]
    fn what_is_no_picture_is_refused_by_what_it_is() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        RgbImage::new(40, 40).save(at("whole.png")).unwrap();
        let whole = std::fs::read(at("whole.png")).unwrap();
        std::fs::write(at("cut.png"), &whole[..whole.len() / 2]).unwrap();
        std::fs::write(at("page.jpg"), "<html>").unwrap();
        std::fs::write(at("empty.png"), "").unwrap();
        // A PNG whose header tells of 60,000 × 60,000 pixels, with a right checksum.
        let mut header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        header.extend([60_000_u32.to_be_bytes(), 60_000_u32.to_be_bytes()].concat());
        header.extend([8, 2, 0, 0, 0]);
        let mut sum = flate2::Crc::new();
        sum.update(&header[12..]);
        header.extend(sum.sum().to_be_bytes());
        header.extend(&whole[33..]);
        std::fs::write(at("huge.png"), header).unwrap();
        let said = |name: &str| one(folder.path(), name).unwrap_err();
        assert!(matches!(said("cut.png"), PictureError::Damaged { .. }), "{:?}", said("cut.png"));
        assert!(matches!(said("page.jpg"), PictureError::Foreign { .. }));
        assert!(matches!(said("empty.png"), PictureError::Foreign { .. }));
        assert!(matches!(said("gone.png"), PictureError::Open { .. }));
        assert!(matches!(said("."), PictureError::NoFile { .. }));
        assert!(matches!(said("huge.png"), PictureError::Large { width: 60_000, .. }));
        let paths = [Some("whole.png"), None, Some("whole.png"), Some("gone.png")];
        let mut pixels = vec![7; 4 * numbers(8)];
        let failed = read_all(folder.path(), &paths, 8, &mut pixels);
        let places: Vec<usize> = failed.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [1, 3]);
        assert!(matches!(failed[0].1, PictureError::Missing));
        assert!(pixels.iter().all(|&pixel| pixel == 0), "black, or not there");
        assert_eq!(dimensions(folder.path(), "huge.png"), Some((60_000, 60_000)));
        assert_eq!(dimensions(folder.path(), "page.jpg"), None);
    }

    #[test]
    fn a_jpeg_that_is_cut_or_too_short_for_its_pixels_is_refused() {
        let folder = folder();
        // With a small picture in its EXIF block, which has an end of its own.
        held(folder.path(), 1);
        let whole = std::fs::read(folder.path().join("held.jpg")).unwrap();
        let thumbnail = [&[0xff, 0xe2, 0, 6][..], &[0xff, 0xd8, 0xff, 0xd9]].concat();
        let whole = [&whole[..2], &thumbnail, &whole[2..]].concat();
        let said = |bytes: &[u8]| {
            std::fs::write(folder.path().join("cut.jpg"), bytes).unwrap();
            one(folder.path(), "cut.jpg").map_err(|error| error.to_string())
        };
        let picture = said(&whole).unwrap();
        // What stands behind the end is nobody's concern.
        assert_eq!(said(&[&whole[..], b"more"].concat()).unwrap(), picture);
        for length in [3, 30, whole.len() / 2, whole.len() - 40, whole.len() - 1] {
            let said = said(&whole[..length]).unwrap_err();
            assert!(said.contains("cut short"), "{length}: {said}");
        }
        // The size stands in the frame's header, the height first.
        let frame = whole.windows(4).position(|four| four == [0xff, 0xc0, 0, 17]).unwrap();
        let mut forged = whole;
        forged[frame + 5..frame + 9].copy_from_slice(&[0x3e, 0x80, 0x3e, 0x80]);
        let said = said(&forged).unwrap_err();
        assert!(said.contains("cannot be 16000 × 16000 pixels"), "{said}");
    }

    #[test]
    fn a_picture_has_the_size_that_is_asked_for() {
        let folder = folder();
        let wide = RgbImage::from_fn(90, 30, |x, _| Rgb([if x < 45 { 0 } else { 200 }, 9, 9]));
        wide.save(folder.path().join("wide.png")).unwrap();
        for side in [8, 48, 64] {
            let mut pixels = vec![0; numbers(side)];
            assert!(read_all(folder.path(), &[Some("wide.png")], side, &mut pixels).is_empty());
            let reds: Vec<u8> = pixels.chunks(3).take(side).map(|pixel| pixel[0]).collect();
            assert_eq!((reds[0], reds[side - 1]), (0, 200), "{side}");
        }
        assert_eq!(dimensions(folder.path(), "wide.png"), Some((90, 30)));
    }
}
