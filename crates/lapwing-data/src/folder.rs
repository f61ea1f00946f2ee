//! A folder of pictures as a table: a folder per class, and a list that says where pictures came from.
//!
//! The table has the columns `file` (the path within the folder) and `class` (the folder in which it lies, nothing for those
//! that lie outside of any), in the order of the paths. Where the folder holds a `sources.csv`, whose column `file` names
//! pictures, its other columns stand beside them, empty for pictures that it does not name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use crate::error::{DataError, Place};
use crate::file::TableFile;
use crate::value::write_raw;

type Result<T> = std::result::Result<T, DataError>;

/// The list of sources in a folder of pictures.
pub(crate) const LIST: &str = "sources.csv";
/// The column of paths.
pub(crate) const FILE: &str = "file";
/// The column of folders.
pub(crate) const CLASS: &str = "class";
/// Folders within folders that are looked into.
const DEPTH: usize = 8;
/// How names of pictures end.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Columns and records of a folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) columns: Vec<String>,
    pub(crate) records: Vec<StringRecord>,
}

impl Folder {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut found = Vec::new();
        collect(folder, "", DEPTH, &mut found)?;
        if found.is_empty() {
            return Err(DataError::EmptyFolder { path: folder.to_owned() });
        }
        found.sort_unstable();
        let mut columns = vec![FILE.to_owned(), CLASS.to_owned()];
        let list = folder.join(LIST);
        let mut listed =
            if list.is_file() { listed(&list, &mut columns)? } else { BTreeMap::new() };
        let blank = vec![String::new(); columns.len() - 2];
        let record = |file: &String| {
            let class = file.split_once('/').map_or("", |(class, _)| class);
            let beside = listed.remove(file).map_or_else(|| blank.clone(), |(_, values)| values);
            let cells = [file.clone(), class.to_owned()].into_iter().chain(beside);
            cells.collect::<Vec<String>>().into()
        };
        let records = found.iter().map(record).collect();
        match listed.into_iter().next() {
            None => Ok(Self { columns, records }),
            Some((file, (place, _))) => {
                Err(DataError::NotInFolder { place, file, folder: folder.to_owned() })
            }
        }
    }
}

/// Where each picture of a list is named, and what stands beside it; the names of these columns are added.
fn listed(
    list: &Path,
    columns: &mut Vec<String>,
) -> Result<BTreeMap<String, (Place, Vec<String>)>> {
    let table = TableFile::open(list)?;
    let at = table.position(FILE)?;
    let others = || (0..table.columns().len()).filter(|&column| column != at);
    // What the list says of a picture's class is what its folder says, or would have to be argued about.
    let others: Vec<usize> = others().filter(|&column| table.columns()[column] != CLASS).collect();
    columns.extend(others.iter().map(|&column| table.columns()[column].clone()));
    let mut found = BTreeMap::new();
    table.scan(|record| {
        let text = |column: usize| {
            let mut text = String::new();
            write_raw(record.value(column), &mut text);
            text
        };
        let file = text(at).trim().replace('\\', "/");
        let file = file.strip_prefix("./").unwrap_or(&file).to_owned();
        let values = others.iter().map(|&column| text(column)).collect();
        match found.insert(file.clone(), (record.place(), values)) {
            None => Ok(()),
            Some(_) => Err(DataError::ListedTwice { place: record.place(), file }),
        }
    })?;
    Ok(found)
}

/// Adds the pictures in a folder and those below it, by their paths with slashes. What begins with a dot is hidden.
fn collect(folder: &Path, within: &str, depth: usize, found: &mut Vec<String>) -> Result<()> {
    let fail = |source| DataError::Open { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path: PathBuf = entry.map_err(fail)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with('.') {
            continue;
        }
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
        let is_picture =
            |ending: &str| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending));
        if path.is_dir() {
            if depth > 0 {
                collect(&path, &format!("{within}{name}/"), depth - 1, found)?;
            }
        } else if ending.is_some_and(is_picture) {
            found.push(format!("{within}{name}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn cells(folder: &Folder) -> Vec<Vec<&str>> {
        folder.records.iter().map(|record| record.iter().collect()).collect()
    }

    #[test]
    fn a_folder_of_class_folders_is_a_table_with_what_its_list_says() {
        let place = folder(&["b/2.PNG", "a/x/1.jpeg", "a/notes.txt", "a/.hidden.png", "c.webp"]);
        let plain = Folder::read(place.path()).unwrap();
        assert_eq!(plain.columns, ["file", "class"]);
        assert_eq!(cells(&plain), [["a/x/1.jpeg", "a"], ["b/2.PNG", "b"], ["c.webp", ""]]);
        fs::write(place.path().join(LIST), "source,file\nnorth,./b/2.PNG\nsouth,a/x/1.jpeg\n")
            .unwrap();
        let listed = Folder::read(place.path()).unwrap();
        assert_eq!(listed.columns, ["file", "class", "source"]);
        assert_eq!(cells(&listed)[0], ["a/x/1.jpeg", "a", "south"]);
        assert_eq!(cells(&listed)[2], ["c.webp", "", ""]);
        let table = TableFile::open(place.path()).unwrap();
        assert_eq!(table.columns(), ["file", "class", "source"]);
        assert_eq!(table.rows(&[2]).unwrap()[&2], ["b/2.PNG", "b", "north"]);
    }

    #[test]
    fn a_list_must_name_what_is_there_and_once() {
        let place = folder(&["a/1.png"]);
        let list = place.path().join(LIST);
        fs::write(&list, "file,source\na/1.png,n\na/2.png,n\n").unwrap();
        let said = Folder::read(place.path()).unwrap_err().to_string();
        assert!(said.contains("line 3") && said.contains("a/2.png"), "{said}");
        fs::write(&list, "file,source\na/1.png,n\na/1.png,n\n").unwrap();
        assert!(matches!(Folder::read(place.path()), Err(DataError::ListedTwice { .. })));
        fs::write(&list, "path,source\na/1.png,n\n").unwrap();
        assert!(matches!(Folder::read(place.path()), Err(DataError::MissingColumn { .. })));
        assert!(matches!(
            Folder::read(folder(&["a/1.txt"]).path()),
            Err(DataError::EmptyFolder { .. })
        ));
    }
}
