//! MNIST and Fashion-MNIST: the idx format.

use super::files::{DataDir, Found, Official, Size};
use super::images::{Images, Pixels};
use crate::error::PaperError;

/// The four files of a data set.
pub(crate) struct IdxFiles {
    train: [Official; 2],
    test: [Official; 2],
}

const fn idx(
    [set, page, file, sha256]: [&'static str; 4],
    folders: &'static [&'static str],
    bytes: u64,
) -> Official {
    Official { set, file, folders, page, bytes: Size::Exactly(bytes), sha256: Some(sha256) }
}

const TRAIN_IMAGES: u64 = 16 + 60_000 * 784;
const TRAIN_LABELS: u64 = 8 + 60_000;
const TEST_IMAGES: u64 = 16 + 10_000 * 784;
const TEST_LABELS: u64 = 8 + 10_000;

const FASHION: [&str; 2] = ["Fashion-MNIST", "https://github.com/zalandoresearch/fashion-mnist"];
const FASHION_FOLDERS: &[&str] =
    &["fashion_mnist", "fashion-mnist", "FashionMNIST/raw", "data/fashion"];

/// Fashion-MNIST.
pub(crate) static FASHION_MNIST: IdxFiles = IdxFiles {
    train: [
        idx(
            [
                FASHION[0],
                FASHION[1],
                "train-images-idx3-ubyte",
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            ],
            FASHION_FOLDERS,
            TRAIN_IMAGES,
        ),
        idx(
            [
                FASHION[0],
                FASHION[1],
                "train-labels-idx1-ubyte",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            ],
            FASHION_FOLDERS,
            TRAIN_LABELS,
        ),
    ],
    test: [
        idx(
            [
                FASHION[0],
                FASHION[1],
                "t10k-images-idx3-ubyte",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            ],
            FASHION_FOLDERS,
            TEST_IMAGES,
        ),
        idx(
            [
                FASHION[0],
                FASHION[1],
                "t10k-labels-idx1-ubyte",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ],
            FASHION_FOLDERS,
            TEST_LABELS,
        ),
    ],
};

const DIGITS: [&str; 2] = ["MNIST", "http://yann.lecun.com/exdb/mnist/"];
const DIGITS_FOLDERS: &[&str] = &["mnist", "MNIST/raw", "MNIST"];

/// MNIST.
pub(crate) static MNIST: IdxFiles = IdxFiles {
    train: [
        idx(
            [
                DIGITS[0],
                DIGITS[1],
                "train-images-idx3-ubyte",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ],
            DIGITS_FOLDERS,
            TRAIN_IMAGES,
        ),
        idx(
            [
                DIGITS[0],
                DIGITS[1],
                "train-labels-idx1-ubyte",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ],
            DIGITS_FOLDERS,
            TRAIN_LABELS,
        ),
    ],
    test: [
        idx(
            [
                DIGITS[0],
                DIGITS[1],
                "t10k-images-idx3-ubyte",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ],
            DIGITS_FOLDERS,
            TEST_IMAGES,
        ),
        idx(
            [
                DIGITS[0],
                DIGITS[1],
                "t10k-labels-idx1-ubyte",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ],
            DIGITS_FOLDERS,
            TEST_LABELS,
        ),
    ],
};

impl IdxFiles {
    /// The training images.
    pub(crate) fn train(&'static self, data: &DataDir) -> Result<Images, PaperError> {
        read(data, &self.train)
    }

    /// The test images.
    pub(crate) fn test(&'static self, data: &DataDir) -> Result<Images, PaperError> {
        read(data, &self.test)
    }
}

fn read(data: &DataDir, [images, labels]: &'static [Official; 2]) -> Result<Images, PaperError> {
    let (images, labels) = (data.read(images)?, data.read(labels)?);
    let ([count, height, width], pixels) = array(&images.bytes).map_err(|p| images.refused(p))?;
    let ([labelled], classes) = array(&labels.bytes).map_err(|p| labels.refused(p))?;
    if labelled != count {
        return Err(labels.refused(format!("{labelled} labels for {count} images")));
    }
    if let Some(class) = classes.iter().find(|&&class| class > 9) {
        return Err(labels.refused(format!("a label is {class}, expected 0 to 9")));
    }
    for found in [&images, &labels] as [&Found; 2] {
        data.verify(found)?;
    }
    Ok(Images {
        pixels: Pixels::Bytes(pixels.to_vec()),
        labels: classes.iter().map(|&class| u32::from(class)).collect(),
        shape: [height, width, 1],
    })
}

/// Reads an array of unsigned bytes with `D` axes: two zero bytes, 8 for the type, `D`, the lengths as big-endian
/// numbers of 32 bits, then the values.
fn array<const D: usize>(bytes: &[u8]) -> Result<([usize; D], &[u8]), String> {
    let header = 4 + 4 * D;
    let Some((head, values)) = bytes.split_at_checked(header) else {
        return Err(format!("{} bytes are too few for an idx file", bytes.len()));
    };
    if head[..4] != [0, 0, 8, D as u8] {
        let found: Vec<String> = head[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(format!(
            "it begins with {}, an idx file of {D} axes with 0000080{D}",
            found.concat()
        ));
    }
    let lengths: [usize; D] = std::array::from_fn(|axis| {
        let at = 4 + 4 * axis;
        u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
    });
    let count = lengths.iter().try_fold(1_usize, |product, &length| product.checked_mul(length));
    if count != Some(values.len()) {
        return Err(format!(
            "it says that it holds {} values and holds {}",
            lengths.map(|length| length.to_string()).join(" × "),
            values.len()
        ));
    }
    if count == Some(0) {
        return Err("it holds nothing".to_owned());
    }
    Ok((lengths, values))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;

    /// An idx file.
    pub(crate) fn file(lengths: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, lengths.len() as u8];
        bytes.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    /// Writes a data set of 28 × 28 images in which a bright row tells the class.
    pub(crate) fn write(folder: &Path, train: u32, test: u32) {
        std::fs::create_dir_all(folder).unwrap();
        for (part, count) in [("train", train), ("t10k", test)] {
            let labels: Vec<u8> = (0..count).map(|at| (at % 10) as u8).collect();
            let images: Vec<u8> = labels
                .iter()
                .flat_map(|&class| {
                    (0..784).map(move |at| if at / 78 == u32::from(class) { 200 } else { 10 })
                })
                .collect();
            let images = file(&[count, 28, 28], &images);
            std::fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
            let labels = file(&[count], &labels);
            std::fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), labels).unwrap();
        }
    }

    #[test]
    fn images_and_labels_are_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("FashionMNIST/raw"), 20, 10);
        let data = DataDir::of_other_files(dir.path().to_owned());
        let images = FASHION_MNIST.train(&data).unwrap();
        assert_eq!((images.labels.len(), images.shape), (20, [28, 28, 1]));
        assert_eq!(images.labels[13], 3);
        let Pixels::Bytes(pixels) = &images.pixels else { unreachable!() };
        assert_eq!((pixels[13 * 784 + 3 * 78], pixels[13 * 784]), (200, 10));
        assert_eq!(FASHION_MNIST.test(&data).unwrap().labels.len(), 10);
        let official = DataDir::new(Some(dir.path().to_owned()));
        let said = FASHION_MNIST.train(&official).unwrap_err().to_string();
        assert!(said.contains("expected 47040016") && said.contains("zalandoresearch"), "{said}");
    }

    #[test]
    fn files_that_lie_are_refused() {
        assert_eq!(array::<1>(&file(&[3], b"abc")), Ok(([3], &b"abc"[..])));
        for (bytes, said) in [
            (file(&[3], b"ab"), "holds 3 values and holds 2"),
            (file(&[3], b"abcd"), "holds 3 values and holds 4"),
            (file(&[0], b""), "nothing"),
            (file(&[u32::MAX], b"abc"), "4294967295"),
            (vec![0, 0, 8], "too few"),
            (vec![0, 0, 0x0d, 1, 0, 0, 0, 0], "begins with 00000d01"),
            (b"\x1f\x8b\x08\x08abcd".to_vec(), "begins with 1f8b0808"),
        ] {
            let refused = array::<1>(&bytes).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
        // The product of the lengths is beyond what a machine can count.
        let huge = file(&[u32::MAX, u32::MAX, u32::MAX], b"abc");
        assert!(array::<3>(&huge).is_err());
        let labels = file(&[3], b"abc");
        assert!(array::<3>(&labels).is_err(), "labels are no images");
    }
}
