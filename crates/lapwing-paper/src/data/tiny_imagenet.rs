//! Tiny-Imagenet: pictures of 64 × 64 pixels in 200 classes, a JPEG file for each.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lapwing_data::read_pictures;

use super::files::DataDir;
use super::images::{Images, Pixels};
use crate::error::PaperError;

const SET: &str = "Tiny-Imagenet";
const FILE: &str = "tiny-imagenet-200.zip";
const PAGE: &str = "http://cs231n.stanford.edu/tiny-imagenet-200.zip, unpacked";
const FOLDERS: &[&str] = &["tiny-imagenet-200", "tiny-imagenet", "."];
/// Pixels of a side.
const SIDE: usize = 64;
/// Classes, training pictures of each, and pictures to test on.
const OFFICIAL: [usize; 3] = [200, 500, 10_000];

/// Pictures to train on, pictures to test on (those of the official validation part, which have labels), and the number of
/// classes, which are in the order of their names.
pub(crate) fn tiny_imagenet(data: &DataDir) -> Result<((Images, Images), u32), PaperError> {
    let root = data.folder(SET, "train", FOLDERS, PAGE)?;
    let classes = folders(&root.join("train"))?;
    let number: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    for (name, &class) in &number {
        let folder = format!("train/{name}/images");
        let found = jpegs(&root.join(&folder))?;
        if data.is_official() && found.len() != OFFICIAL[1] {
            let problem = format!("{} pictures, expected {}", found.len(), OFFICIAL[1]);
            return Err(refused(&root.join(&folder), problem));
        }
        files.extend(found.into_iter().map(|file| (class, format!("{folder}/{file}"))));
    }
    files.sort();
    labels.extend(files.iter().map(|(class, _)| *class));
    let files = files.into_iter().map(|(_, file)| file).collect();
    let train = images(&root, files, labels)?;

    let list = root.join("val/val_annotations.txt");
    let text = String::from_utf8_lossy(&lapwing_store::read(&list, 1 << 24)?).into_owned();
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    for (line, row) in (1..).zip(text.lines()) {
        let mut cells = row.split('\t');
        let (Some(file), Some(class)) = (cells.next(), cells.next()) else {
            return Err(refused(&list, format!("line {line}: expected FILE, CLASS and a box")));
        };
        let class = number.get(class).ok_or_else(|| {
            refused(&list, format!("line {line}: the class {class} has no folder in train"))
        })?;
        files.push(format!("val/images/{file}"));
        labels.push(*class);
    }
    if files.is_empty() {
        return Err(refused(&list, "it names no picture".to_owned()));
    }
    if data.is_official() && (classes.len(), files.len()) != (OFFICIAL[0], OFFICIAL[2]) {
        let found = format!("{} classes and {} pictures to test on", classes.len(), files.len());
        let problem = format!("{found}, expected {} and {}", OFFICIAL[0], OFFICIAL[2]);
        return Err(refused(&root, problem));
    }
    let test = images(&root, files, labels)?;
    Ok(((train, test), classes.len() as u32))
}

/// The names of the folders in a folder, in order.
fn folders(folder: &Path) -> Result<Vec<String>, PaperError> {
    let mut names = entries(folder)?;
    names.retain(|path| path.is_dir());
    let names: Vec<String> = names.iter().filter_map(|path| name(path)).collect();
    if names.len() < 2 {
        return Err(refused(folder, format!("{} folders of classes", names.len())));
    }
    Ok(names)
}

/// The names of the pictures in a folder, in order.
fn jpegs(folder: &Path) -> Result<Vec<String>, PaperError> {
    let mut files = entries(folder)?;
    files.retain(|path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("jpeg")));
    if files.is_empty() {
        return Err(refused(folder, "it holds no .JPEG file".to_owned()));
    }
    Ok(files.iter().filter_map(|path| name(path)).collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, PaperError> {
    let failed = |error| PaperError::File { path: folder.to_owned(), error };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

fn images(root: &Path, files: Vec<String>, labels: Vec<u32>) -> Result<Images, PaperError> {
    let pixels =
        read_pictures(root, &files, SIDE).map_err(|error| refused(root, error.to_string()))?;
    Ok(Images { pixels: Pixels::Bytes(pixels), labels, shape: [SIDE, SIDE, 3] })
}

fn refused(path: &Path, problem: String) -> PaperError {
    PaperError::WrongFile { path: path.to_owned(), problem, set: SET, file: FILE, page: PAGE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_read_from_their_folders_and_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("tiny-imagenet-200");
        // Told by content: what is called JPEG may be PNG.
        let png = |grey: u8| lapwing_sample::png(64, 64, &vec![grey; 64 * 64 * 3]).unwrap();
        let write = |place: &str, bytes: &[u8]| {
            let path = root.join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        for (class, name) in [(20, "n01"), (10, "n00")] {
            for at in 0..3 {
                write(&format!("train/{name}/images/{name}_{at}.JPEG"), &png(class + at));
            }
            write(&format!("train/{name}/{name}_boxes.txt"), b"");
        }
        write("val/images/val_0.JPEG", &png(99));
        let data = DataDir::of_other_files(dir.path().to_owned());
        assert!(tiny_imagenet(&data).is_err(), "no list");
        write("val/val_annotations.txt", b"val_0.JPEG\tn01\t0\t0\t9\t9\n");
        let ((train, test), classes) = tiny_imagenet(&data).unwrap();
        assert_eq!((train.labels, test.labels, classes), (vec![0, 0, 0, 1, 1, 1], vec![1], 2));
        let Pixels::Bytes(bytes) = train.pixels else { panic!() };
        let first: Vec<u8> = bytes.iter().step_by(64 * 64 * 3).copied().collect();
        assert_eq!(first, [10, 11, 12, 20, 21, 22]);
        let official = DataDir::new(Some(dir.path().to_owned()));
        let said = tiny_imagenet(&official).unwrap_err().to_string();
        assert!(
            said.contains("3 pictures, expected 500") && said.contains("tiny-imagenet-200.zip"),
            "{said}"
        );
        write("val/val_annotations.txt", b"val_0.JPEG\tn07\t0\n");
        let said = tiny_imagenet(&data).unwrap_err().to_string();
        assert!(said.contains("line 1") && said.contains("n07"), "{said}");
        write("train/n01/images/n01_1.JPEG", b"<html>");
        let said = tiny_imagenet(&data).unwrap_err().to_string();
        assert!(said.contains("n01_1.JPEG") && said.contains("not a PNG, JPEG"), "{said}");
    }
}
