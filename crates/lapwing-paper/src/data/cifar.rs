//! CIFAR-10 and CIFAR-100: the binary version.

use super::files::{DataDir, Official, Size};
use super::images::{Images, Pixels};
use crate::error::PaperError;

const PAGE: &str = "https://www.cs.toronto.edu/~kriz/cifar.html (binary version)";
const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;

const fn ten(file: &'static str, sha256: &'static str) -> Official {
    Official {
        set: "CIFAR-10",
        file,
        folders: &["cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"],
        page: PAGE,
        bytes: Size::Exactly(10_000 * (1 + 3 * PLANE as u64)),
        sha256: Some(sha256),
    }
}

static TEN_TRAIN: [Official; 5] = [
    ten("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
    ten("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
    ten("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
    ten("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
    ten("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
];
static TEN_TEST: [Official; 1] =
    [ten("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b")];

const fn hundred(file: &'static str, images: u64) -> Official {
    Official {
        set: "CIFAR-100",
        file,
        folders: &["cifar-100-binary", "cifar100/cifar-100-binary"],
        page: PAGE,
        bytes: Size::Exactly(images * (2 + 3 * PLANE as u64)),
        sha256: None,
    }
}

static HUNDRED_TRAIN: [Official; 1] = [hundred("train.bin", 50_000)];
static HUNDRED_TEST: [Official; 1] = [hundred("test.bin", 10_000)];

/// CIFAR-10: 50,000 and 10,000 images of ten classes.
pub(crate) fn cifar_10(data: &DataDir) -> Result<(Images, Images), PaperError> {
    Ok((read(data, &TEN_TRAIN, 1, 10)?, read(data, &TEN_TEST, 1, 10)?))
}

/// CIFAR-100: 50,000 and 10,000 images of a hundred classes; the fine labels.
pub(crate) fn cifar_100(data: &DataDir) -> Result<(Images, Images), PaperError> {
    Ok((read(data, &HUNDRED_TRAIN, 2, 100)?, read(data, &HUNDRED_TEST, 2, 100)?))
}

/// Records of `labels` bytes, of which the last is the class, and three planes of colour.
fn read(
    data: &DataDir,
    files: &'static [Official],
    labels: usize,
    classes: u8,
) -> Result<Images, PaperError> {
    let mut images =
        Images { pixels: Pixels::Bytes(Vec::new()), labels: Vec::new(), shape: [SIDE, SIDE, 3] };
    let mut pixels = Vec::new();
    for file in files {
        let found = data.read(file)?;
        let record = labels + 3 * PLANE;
        let length = found.bytes.len();
        if length == 0 || !length.is_multiple_of(record) {
            return Err(found.refused(format!("{length} bytes are no records of {record}")));
        }
        for (at, record) in found.bytes.chunks_exact(record).enumerate() {
            let (label, planes) = record.split_at(labels);
            let class = label[labels - 1];
            if class >= classes {
                return Err(found.refused(format!(
                    "record {at} has class {class}, expected one below {classes}"
                )));
            }
            images.labels.push(u32::from(class));
            // Channels of a pixel together, as the networks want them.
            pixels.extend((0..PLANE).flat_map(|at| [0, 1, 2].map(|c| planes[c * PLANE + at])));
        }
        data.verify(&found)?;
    }
    images.pixels = Pixels::Bytes(pixels);
    Ok(images)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;

    /// A record of a class: red is its number, green the column, blue the row.
    fn record(labels: &[u8]) -> Vec<u8> {
        let class = labels[labels.len() - 1];
        let mut bytes = labels.to_vec();
        bytes.extend([class; PLANE]);
        bytes.extend((0..PLANE).map(|at| (at % SIDE) as u8));
        bytes.extend((0..PLANE).map(|at| (at / SIDE) as u8));
        bytes
    }

    /// Writes a small CIFAR-10: `count` images in each of six files.
    pub(crate) fn write(root: &Path, count: u8) {
        let folder = root.join("cifar-10-batches-bin");
        std::fs::create_dir_all(&folder).unwrap();
        for file in TEN_TRAIN.iter().chain(&TEN_TEST) {
            let bytes: Vec<u8> = (0..count).flat_map(|at| record(&[at % 10])).collect();
            std::fs::write(folder.join(file.file), bytes).unwrap();
        }
    }

    #[test]
    fn planes_become_pixels_and_files_follow_each_other() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 4);
        let data = DataDir::of_other_files(dir.path().to_owned());
        let (train, test) = cifar_10(&data).unwrap();
        assert_eq!((train.len(), test.len(), train.shape), (20, 4, [32, 32, 3]));
        assert_eq!(train.labels[5], 1);
        let mut image = vec![0.0; train.width()];
        train.copy(5, &mut image);
        let pixel = &image[(7 * 32 + 9) * 3..][..3];
        assert_eq!(pixel, [1.0 / 255.0, 9.0 / 255.0, 7.0 / 255.0]);
    }

    #[test]
    fn the_fine_label_of_cifar_100_is_the_second() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("cifar-100-binary");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("train.bin"), [record(&[3, 99]), record(&[2, 0])].concat())
            .unwrap();
        std::fs::write(folder.join("test.bin"), record(&[1, 50])).unwrap();
        let data = DataDir::of_other_files(dir.path().to_owned());
        assert_eq!(cifar_100(&data).unwrap().0.labels, [99, 0]);
        std::fs::write(folder.join("test.bin"), record(&[1, 100])).unwrap();
        let said = cifar_100(&data).unwrap_err().to_string();
        assert!(said.contains("class 100") && said.contains("test.bin"), "{said}");
        std::fs::write(folder.join("test.bin"), &record(&[1, 5])[..3000]).unwrap();
        assert!(cifar_100(&data).unwrap_err().to_string().contains("3000 bytes"));
        std::fs::write(folder.join("test.bin"), []).unwrap();
        assert!(cifar_100(&data).is_err());
    }
}
