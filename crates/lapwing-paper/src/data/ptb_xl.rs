//! PTB-XL: electrocardiograms of ten seconds, with the nurse who took each.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use lapwing_sample::{InputSpec, Values};
use rayon::prelude::*;

use super::files::DataDir;
use super::sequences::Sequences;
use super::wfdb;
use crate::error::PaperError;

const SET: &str = "PTB-XL";
const PAGE: &str = "https://physionet.org/content/ptb-xl/1.0.2/ (ptbxl_database.csv, scp_statements.csv, records100)";
const FOLDERS: &[&str] = &[
    "ptb-xl",
    "ptbxl",
    "PTB-XL",
    "ptb-xl-a-large-publicly-available-electrocardiography-dataset-1.0.2",
    ".",
];
const DATABASE: &str = "ptbxl_database.csv";
const STATEMENTS: &str = "scp_statements.csv";
/// Signals, samples a second and samples of a record.
const SHAPE: [usize; 3] = [12, 100, 1000];
/// Nurses, and records that have one.
const NURSES: u32 = 12;
const OFFICIAL: usize = 20_326;
/// The part of the records that is tested on.
const TEST_FOLD: u32 = 10;
const MOST_BYTES: u64 = 64 << 20;

/// A record of the database that has a nurse.
struct Row {
    file: String,
    nurse: u32,
    abnormal: bool,
    fold: u32,
}

/// Records to train on and to test on; class 1 is abnormal, sources are nurses.
pub(crate) fn ptb_xl(data: &DataDir) -> Result<(Sequences, Sequences), PaperError> {
    let root = data.folder(SET, DATABASE, FOLDERS, PAGE)?;
    let normal = normal_codes(&root)?;
    let rows = rows(&root, &normal)?;
    let database = root.join(DATABASE);
    if data.is_official() && rows.len() != OFFICIAL {
        let problem = format!("{} records with a nurse, expected {OFFICIAL}", rows.len());
        return Err(refused(&database, DATABASE, problem));
    }
    let part = |test: bool| {
        let rows: Vec<&Row> = rows.iter().filter(|row| (row.fold == TEST_FOLD) == test).collect();
        if rows.is_empty() {
            let what = if test { "fold 10" } else { "folds 1 to 9" };
            return Err(refused(&database, DATABASE, format!("no record with a nurse in {what}")));
        }
        let signals: Vec<Vec<f32>> =
            rows.par_iter().map(|row| record(&root, &row.file)).collect::<Result<_, _>>()?;
        Ok(Sequences {
            values: Values::Floats(signals.concat()),
            spec: InputSpec::Series { longest: SHAPE[2], channels: SHAPE[0] },
            labels: rows.iter().map(|row| u32::from(row.abnormal)).collect(),
            sources: Some(rows.iter().map(|row| row.nurse).collect()),
        })
    };
    Ok((part(false)?, part(true)?))
}

/// A table, and where its columns are.
struct Table<'a> {
    path: &'a Path,
    file: &'static str,
    columns: HashMap<String, usize>,
    records: Vec<csv::StringRecord>,
}

impl<'a> Table<'a> {
    fn read(path: &'a Path, file: &'static str) -> Result<Self, PaperError> {
        if !path.is_file() {
            let looked = path.parent().map(Path::to_owned).into_iter().collect();
            return Err(PaperError::MissingFile { set: SET, file, looked, page: PAGE });
        }
        let bytes = lapwing_store::read(path, MOST_BYTES)?;
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let wrong = |error: csv::Error| refused(path, file, error.to_string());
        let header = reader.headers().map_err(wrong)?.clone();
        let columns = header.iter().map(str::to_owned).zip(0..).collect();
        let records = reader.records().collect::<Result<_, _>>().map_err(wrong)?;
        Ok(Self { path, file, columns, records })
    }

    fn column(&self, name: &str) -> Result<usize, PaperError> {
        let place = self.columns.get(name).copied();
        place.ok_or_else(|| refused(self.path, self.file, format!("it has no column {name:?}")))
    }
}

/// The codes that stand for a normal electrocardiogram: diagnostic statements of the class NORM.
fn normal_codes(root: &Path) -> Result<HashSet<String>, PaperError> {
    let path = root.join(STATEMENTS);
    let table = Table::read(&path, STATEMENTS)?;
    let (diagnostic, class) = (table.column("diagnostic")?, table.column("diagnostic_class")?);
    let cell = |record: &csv::StringRecord, at| record.get(at).unwrap_or_default().to_owned();
    let normal = |record: &&csv::StringRecord| {
        cell(record, diagnostic).parse() == Ok(1.0_f64) && cell(record, class) == "NORM"
    };
    let codes: HashSet<String> =
        table.records.iter().filter(normal).map(|record| cell(record, 0)).collect();
    match codes.is_empty() {
        true => Err(refused(&path, STATEMENTS, "no diagnostic statement of class NORM".to_owned())),
        false => Ok(codes),
    }
}

/// The records that have a nurse, in the order of the database.
fn rows(root: &Path, normal: &HashSet<String>) -> Result<Vec<Row>, PaperError> {
    let path = root.join(DATABASE);
    let table = Table::read(&path, DATABASE)?;
    let [nurse, codes, fold, file] = [
        table.column("nurse")?,
        table.column("scp_codes")?,
        table.column("strat_fold")?,
        table.column("filename_lr")?,
    ];
    let mut rows = Vec::new();
    for record in &table.records {
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        if cell(nurse).is_empty() {
            continue;
        }
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |what: &str, found: &str| {
            refused(&path, DATABASE, format!("line {line}: {found:?} is no {what}"))
        };
        let who = cell(nurse).parse::<f64>().ok().filter(|who| who.fract() == 0.0 && *who >= 0.0);
        let who = who.map(|who| who as u32).filter(|who| *who < NURSES);
        let number = cell(fold).parse::<u32>().ok().filter(|fold| (1..=TEST_FOLD).contains(fold));
        let place = cell(file);
        if place.split('/').any(|part| part == "..") || Path::new(place).is_absolute() {
            return Err(wrong("path of a record below the folder", place));
        }
        let said =
            codes_of(cell(codes)).ok_or_else(|| wrong("dictionary of codes", cell(codes)))?;
        rows.push(Row {
            file: place.to_owned(),
            nurse: who.ok_or_else(|| wrong("nurse from 0 to 11", cell(nurse)))?,
            abnormal: !said.iter().any(|code| normal.contains(*code)),
            fold: number.ok_or_else(|| wrong("fold from 1 to 10", cell(fold)))?,
        });
    }
    Ok(rows)
}

/// The keys of `{'NORM': 100.0, 'SR': 0.0}`.
fn codes_of(text: &str) -> Option<Vec<&str>> {
    let inside = text.strip_prefix('{')?.strip_suffix('}')?.trim();
    if inside.is_empty() {
        return Some(Vec::new());
    }
    inside.split(',').map(code_of).collect()
}

/// The key of `'NORM': 100.0`.
fn code_of(pair: &str) -> Option<&str> {
    let (code, likelihood) = pair.split_once(':')?;
    likelihood.trim().parse::<f64>().ok()?;
    let quoted = |mark: char| code.trim().strip_prefix(mark)?.strip_suffix(mark);
    quoted('\'').or_else(|| quoted('"'))
}

/// The signals of a record.
fn record(root: &Path, file: &str) -> Result<Vec<f32>, PaperError> {
    let path = |ending: &str| root.join(format!("{file}.{ending}"));
    let read = |ending: &'static str| {
        let path = path(ending);
        lapwing_store::read(&path, 1 << 20).map_err(|error| match error.is_missing() {
            true => refused(&path, "records100", "it is not there".to_owned()),
            false => error.into(),
        })
    };
    let header = String::from_utf8_lossy(&read("hea")?).into_owned();
    wfdb::signals(&header, &read("dat")?, SHAPE)
        .map_err(|problem| refused(&path("hea"), "records100", problem))
}

fn refused(path: &Path, file: &'static str, problem: String) -> PaperError {
    PaperError::WrongFile { path: path.to_owned(), problem, set: SET, file, page: PAGE }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "ecg_id,patient_id,nurse,scp_codes,strat_fold,filename_lr\n";

    /// Four records, one without a nurse.
    fn written() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("records100/00000")).unwrap();
        let mut table = HEADER.to_owned();
        for (at, nurse, codes, fold) in [
            (1, "2.0", "{'NORM': 100.0, 'SR': 0.0}", 1),
            (2, "", "{'NORM': 100.0}", 1),
            (3, "0.0", "{'IMI': 35.0, 'ABQRS': 0.0}", 9),
            (4, "11.0", "{}", 10),
        ] {
            let file = format!("records100/00000/0000{at}_lr");
            table += &format!("{at},9.0,{nurse},\"{codes}\",{fold},{file}\n");
            let samples: Vec<i16> = (0..12_000).map(|i| (i % 500) * at).collect();
            let (header, data) = wfdb::tests::written(&format!("0000{at}_lr"), 100, 12, &samples);
            std::fs::write(root.join(format!("{file}.hea")), header).unwrap();
            std::fs::write(root.join(format!("{file}.dat")), data).unwrap();
        }
        std::fs::write(root.join(DATABASE), table).unwrap();
        let statements = ",description,diagnostic,form,rhythm,diagnostic_class\n\
            NORM,normal ECG,1.0,,,NORM\nIMI,inferior infarction,1.0,,,MI\nABQRS,abnormal QRS,,1.0,,\nSR,sinus rhythm,,,1.0,\n";
        std::fs::write(root.join(STATEMENTS), statements).unwrap();
        dir
    }

    #[test]
    fn records_have_nurses_classes_and_folds() {
        let dir = written();
        let data = DataDir::of_other_files(dir.path().to_owned());
        let (train, test) = ptb_xl(&data).unwrap();
        assert_eq!(train.spec, InputSpec::Series { longest: 1000, channels: 12 });
        assert_eq!((&train.labels[..], train.sources.as_deref()), (&[0, 1][..], Some(&[2, 0][..])));
        assert_eq!((&test.labels[..], test.sources.as_deref()), (&[1][..], Some(&[11][..])));
        let Values::Floats(values) = &train.values else { panic!() };
        assert_eq!(values.len(), 2 * 12_000);
        assert_eq!((values[3], values[12_003]), (0.003, 0.009));
        let official = DataDir::new(Some(dir.path().to_owned()));
        let said = ptb_xl(&official).unwrap_err().to_string();
        assert!(said.contains("3 records with a nurse, expected 20326"), "{said}");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let dir = written();
        let data = DataDir::of_other_files(dir.path().to_owned());
        let said = || ptb_xl(&data).unwrap_err().to_string();
        let record = dir.path().join("records100/00000/00003_lr.dat");
        std::fs::remove_file(&record).unwrap();
        assert!(said().contains("00003_lr.dat") && said().contains("physionet"), "{}", said());
        std::fs::write(&record, [0; 100]).unwrap();
        assert!(said().contains("100 bytes of samples, expected 24000"), "{}", said());
        let table = dir.path().join(DATABASE);
        for (row, what) in [
            ("1,9,13.0,{},1,records100/x", "nurse"),
            ("1,9,1.0,{},11,records100/x", "fold"),
            ("1,9,1.0,NORM,1,records100/x", "dictionary"),
            ("1,9,1.0,{},1,../x", "path"),
        ] {
            std::fs::write(&table, format!("{HEADER}{row}\n")).unwrap();
            assert!(said().contains("line 2") && said().contains(what), "{}", said());
        }
        std::fs::write(&table, "ecg_id\n1\n").unwrap();
        assert!(said().contains("nurse"), "{}", said());
        std::fs::remove_file(dir.path().join(STATEMENTS)).unwrap();
        assert!(said().contains("scp_statements.csv"), "{}", said());
        std::fs::remove_file(&table).unwrap();
        assert!(said().contains("ptbxl_database.csv"), "{}", said());
    }
}
