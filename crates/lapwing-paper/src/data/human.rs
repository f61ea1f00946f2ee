//! CIFAR-10N: the labels that people gave to the training images of CIFAR-10.

use super::files::{DataDir, Found, Official, Size};
use super::{pickle, zip};
use crate::error::PaperError;

const SET: &str = "CIFAR-10N";
const PAGE: &str = "https://github.com/UCSC-REAL/cifar-10-100n (data/CIFAR-10_human.pt)";
const FOLDERS: &[&str] = &["cifar10n", "cifar-10-100n/data", "CIFAR-N"];

static TORCH: Official = Official {
    set: SET,
    file: "CIFAR-10_human.pt",
    folders: FOLDERS,
    page: PAGE,
    bytes: Size::Exactly(2_401_007),
    sha256: Some("873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310"),
};

static TABLE: Official = Official {
    set: SET,
    file: "cifar10n_labels.csv",
    folders: FOLDERS,
    page: PAGE,
    bytes: Size::AtMost(8 << 20),
    sha256: None,
};

/// The label that is wrong most often where an image has one that is wrong, for each image in the order of CIFAR-10's
/// files; `truth` are the labels of CIFAR-10, which must be the clean ones here.
pub(crate) fn worse_labels(data: &DataDir, truth: &[u32]) -> Result<Vec<u32>, PaperError> {
    let (found, arrays) = if data.has(&TORCH) || !data.has(&TABLE) {
        let found = data.read(&TORCH)?;
        let arrays = zip::member(&found.bytes, "data.pkl")
            .and_then(pickle::arrays)
            .map_err(|problem| found.refused(problem))?;
        (found, arrays)
    } else {
        let found = data.read(&TABLE)?;
        let arrays = columns(&found.bytes).map_err(|problem| found.refused(problem))?;
        (found, arrays)
    };
    let column = |name: &str| labels(&found, &arrays, name, truth.len());
    if column("clean_label")? != truth {
        return Err(found.refused("its clean labels are not those of CIFAR-10, in order"));
    }
    let worse = column("worse_label")?;
    data.verify(&found)?;
    Ok(worse)
}

fn labels(
    found: &Found,
    arrays: &pickle::Arrays,
    name: &str,
    count: usize,
) -> Result<Vec<u32>, PaperError> {
    let (_, numbers) = arrays
        .iter()
        .find(|(key, _)| key == name)
        .ok_or_else(|| found.refused(format!("it holds no {name}")))?;
    if numbers.len() != count {
        return Err(found.refused(format!("{} labels for {count} images", numbers.len())));
    }
    let label = |&number: &i64| u32::try_from(number).ok().filter(|&label| label < 10);
    numbers
        .iter()
        .map(label)
        .collect::<Option<_>>()
        .ok_or_else(|| found.refused(format!("a {name} is not one of 0 to 9")))
}

/// The same from a table with a column for each name.
fn columns(bytes: &[u8]) -> Result<pickle::Arrays, String> {
    let mut reader = csv::Reader::from_reader(bytes);
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut arrays: pickle::Arrays =
        header.iter().map(|name| (name.to_owned(), Vec::new())).collect();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        for ((name, numbers), cell) in arrays.iter_mut().zip(&record) {
            let number = cell.parse().map_err(|_| format!("{name} holds {cell:?}"))?;
            numbers.push(number);
        }
    }
    Ok(arrays)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str, bytes: &[u8]) -> (tempfile::TempDir, DataDir) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("cifar10n")).unwrap();
        std::fs::write(dir.path().join("cifar10n").join(name), bytes).unwrap();
        let data = DataDir::of_other_files(dir.path().to_owned());
        (dir, data)
    }

    #[test]
    fn the_worse_labels_come_from_either_form() {
        let arrays: [(&str, &[i64]); 2] =
            [("clean_label", &[6, 9, 9]), ("worse_label", &[4, 9, 1])];
        let pickle = pickle::tests::dictionary(&arrays);
        let archive =
            zip::tests::archive(&[("archive/data.pkl", &pickle), ("archive/version", b"3")]);
        let table = b"index,clean_label,worse_label\n0,6,4\n1,9,9\n2,9,1\n";
        for (name, bytes) in [("CIFAR-10_human.pt", &archive[..]), ("cifar10n_labels.csv", table)] {
            let (_dir, data) = directory(name, bytes);
            assert_eq!(worse_labels(&data, &[6, 9, 9]).unwrap(), [4, 9, 1]);
            let said = worse_labels(&data, &[6, 9, 8]).unwrap_err().to_string();
            assert!(said.contains("clean labels") && said.contains("UCSC-REAL"), "{said}");
            assert!(worse_labels(&data, &[6, 9]).is_err());
        }
    }

    #[test]
    fn other_contents_are_refused() {
        for (name, bytes) in [
            ("CIFAR-10_human.pt", &b"no archive"[..]),
            ("cifar10n_labels.csv", b"clean_label,worse_label\n6,x\n"),
            ("cifar10n_labels.csv", b"clean_label,worse_label\n6,11\n"),
            ("cifar10n_labels.csv", b"clean_label\n6\n"),
            ("cifar10n_labels.csv", b"clean_label,worse_label\n6\n"),
        ] {
            let (_dir, data) = directory(name, bytes);
            let said = worse_labels(&data, &[6]).unwrap_err().to_string();
            assert!(
                said.contains(name) && said.contains("CIFAR-10_human.pt") || said.contains("csv"),
                "{said}"
            );
        }
    }
}
