//! Imagenet64: Imagenet made small, 64 × 64 pixels, as its official batches of NumPy arrays.

use super::files::{DataDir, Found, Official, Size};
use super::images::{Images, Pixels};
use super::npz::{Numbers, array};
use crate::error::PaperError;

const SET: &str = "Imagenet64";
const PAGE: &str = "https://image-net.org/download-images.php (Imagenet64_train_part1_npz.zip, Imagenet64_train_part2_npz.zip and \
     Imagenet64_val_npz.zip, unpacked; it takes an account)";
const FOLDERS: &[&str] = &["imagenet64", "Imagenet64", "Imagenet64_train_npz", "."];
/// Pixels of a side.
const SIDE: usize = 64;
const CLASSES: u32 = 1000;
/// Pictures to train on and to test on.
const OFFICIAL: [usize; 2] = [1_281_167, 50_000];
/// Most bytes of a batch, packed or not.
const MOST: u64 = 3 << 30;

const fn batch(file: &'static str) -> Official {
    let bytes = Size::AtMost(MOST);
    Official { set: SET, file, folders: FOLDERS, page: PAGE, bytes, sha256: None }
}

static TRAIN: [Official; 10] = [
    batch("train_data_batch_1.npz"),
    batch("train_data_batch_2.npz"),
    batch("train_data_batch_3.npz"),
    batch("train_data_batch_4.npz"),
    batch("train_data_batch_5.npz"),
    batch("train_data_batch_6.npz"),
    batch("train_data_batch_7.npz"),
    batch("train_data_batch_8.npz"),
    batch("train_data_batch_9.npz"),
    batch("train_data_batch_10.npz"),
];
static TEST: [Official; 1] = [batch("val_data.npz")];

/// Pictures to train on and to test on, which are those of the official validation part.
pub(crate) fn imagenet64(data: &DataDir) -> Result<(Images, Images), PaperError> {
    Ok((part(data, &TRAIN, OFFICIAL[0])?, part(data, &TEST, OFFICIAL[1])?))
}

fn part(
    data: &DataDir,
    batches: &'static [Official],
    expected: usize,
) -> Result<Images, PaperError> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for official in batches {
        let found = data.read(official)?;
        add(&found, &mut pixels, &mut labels)?;
        let last = std::ptr::eq(official, &batches[batches.len() - 1]);
        if data.is_official() && last && labels.len() != expected {
            let problem =
                format!("{} pictures with those before it, expected {expected}", labels.len());
            return Err(found.refused(problem));
        }
    }
    Ok(Images { pixels: Pixels::Bytes(pixels), labels, shape: [SIDE, SIDE, 3] })
}

/// Adds the pictures of a batch: all red pixels of one, then all green, then all blue; labels count from 1.
fn add(found: &Found, pixels: &mut Vec<u8>, labels: &mut Vec<u32>) -> Result<(), PaperError> {
    let read = |name| array(&found.bytes, name, MOST).map_err(|problem| found.refused(problem));
    let (plane, width) = (SIDE * SIDE, 3 * SIDE * SIDE);
    let ((shape, data), (_, classes)) = (read("data")?, read("labels")?);
    let Numbers::Bytes(data) = data else { return Err(found.refused("its pixels are no bytes")) };
    let classes: Vec<i64> = match classes {
        Numbers::Whole(classes) => classes,
        Numbers::Bytes(classes) => classes.into_iter().map(i64::from).collect(),
    };
    if data.len() != width * classes.len() || shape.first() != Some(&classes.len()) {
        let problem = format!("an array of {shape:?} bytes for {} labels", classes.len());
        return Err(found.refused(problem));
    }
    for class in classes {
        let label = u32::try_from(class - 1).ok().filter(|label| *label < CLASSES);
        labels.push(
            label.ok_or_else(|| found.refused(format!("the class {class}, expected 1 to 1000")))?,
        );
    }
    for picture in data.chunks_exact(width) {
        pixels.extend(
            (0..plane).flat_map(|at| [0, 1, 2].map(|channel| picture[channel * plane + at])),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::npz::tests::{archive, written};
    use super::*;

    #[test]
    fn batches_are_read_in_order_with_the_channels_of_a_pixel_together() {
        let dir = tempfile::tempdir().unwrap();
        let batch = |name: &str, classes: &[i64], first: u8| {
            let width = 3 * 64 * 64;
            let mut data = vec![0; width * classes.len()];
            (data[0], data[64 * 64], data[2 * 64 * 64]) = (first, first + 1, first + 2);
            let labels: Vec<u8> = classes.iter().flat_map(|class| class.to_le_bytes()).collect();
            let count = classes.len();
            let members = [
                ("data.npy", written("|u1", &format!("{count}, {width}"), &data)),
                ("labels.npy", written("<i8", &format!("{count},"), &labels)),
            ];
            std::fs::write(dir.path().join(name), archive(&members, true)).unwrap();
        };
        for at in 1..=10 {
            batch(&format!("train_data_batch_{at}.npz"), &[at, 1000], 10 * at as u8);
        }
        let data = DataDir::of_other_files(dir.path().to_owned());
        assert!(imagenet64(&data).unwrap_err().to_string().contains("val_data.npz"));
        batch("val_data.npz", &[7], 1);
        let (train, test) = imagenet64(&data).unwrap();
        assert_eq!(
            (train.len(), &train.labels[..4], &test.labels[..]),
            (20, &[0, 999, 1, 999][..], &[6][..])
        );
        let Pixels::Bytes(bytes) = &train.pixels else { panic!() };
        assert_eq!(bytes[2 * 3 * 64 * 64..][..4], [20, 21, 22, 0]);
        let official = DataDir::new(Some(dir.path().to_owned()));
        let said = imagenet64(&official).unwrap_err().to_string();
        assert!(said.contains("20 pictures") && said.contains("1281167"), "{said}");
        batch("val_data.npz", &[1001], 1);
        assert!(imagenet64(&data).unwrap_err().to_string().contains("class 1001"));
        std::fs::write(dir.path().join("val_data.npz"), b"not an archive").unwrap();
        let said = imagenet64(&data).unwrap_err().to_string();
        assert!(said.contains("zip") && said.contains("val_data.npz"), "{said}");
    }
}
