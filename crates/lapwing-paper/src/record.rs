//! Records: what a finished cell leaves behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cell::{Cell, Form, folder};
use crate::error::PaperError;
use crate::recipe::Version;

/// The version of the file.
const FORMAT: u32 = 1;
/// Longest record that is read; the longest written are a few hundred kilobytes.
const LONGEST: u64 = 64 << 20;

/// What is known of a cell after its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the file.
    format: u32,
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// Whom was followed: `code` or `paper`.
    pub version: String,
    /// How it was reduced, if it was.
    pub form: Form,
    /// Everything that was set; a record with other settings is no record of this cell.
    pub settings: Value,
    /// Samples to train on and to test on.
    pub rows: [usize; 2],
    /// The sources that were made noisy.
    pub noisy_sources: Vec<u32>,
    /// Seconds it took.
    pub seconds: f64,
    /// Why there are no numbers, if there are none.
    pub failure: Option<String>,
    /// What was measured after each epoch that counts.
    pub series: BTreeMap<String, Vec<f64>>,
    /// What was measured once.
    pub values: BTreeMap<String, f64>,
    /// Unreliability after every step, source by source, where the figure shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreliability: Vec<Vec<u64>>,
    /// Counts of losses, source by source; or samples of each source, and how many classes it has: where the figure shows
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<Vec<u32>>,
}

impl Record {
    /// A record without numbers.
    pub(crate) fn new(cell: Cell, version: Version, form: Form, settings: Value) -> Self {
        Self {
            format: FORMAT,
            cell,
            version: version.word().to_owned(),
            form,
            settings,
            rows: [0, 0],
            noisy_sources: Vec::new(),
            seconds: 0.0,
            failure: None,
            series: BTreeMap::new(),
            values: BTreeMap::new(),
            unreliability: Vec::new(),
            histogram: Vec::new(),
        }
    }

    /// Whether it was made with these settings, all of them and no others: a setting that did not exist when it was made
    /// is one that nobody knows of it. (A new setting is left out of what is written while it stands at its default, where
    /// it is known that the old runs had that.)
    pub(crate) fn agrees(&self, settings: &Value) -> bool {
        self.settings == *settings
    }

    /// A number by its name: one that was measured once, or the greatest (`max-…`), least (`min-…`) or last
    /// (`final-…`) of a series, or what one series is where another is greatest for the first time (`…-by-…`).
    pub fn metric(&self, name: &str) -> Option<f64> {
        if self.failure.is_some() {
            return None;
        }
        if let Some(value) = self.values.get(name) {
            return Some(*value);
        }
        if let Some((series, chooser)) = name.split_once("-by-") {
            let best = self.metric(&format!("max-{chooser}"))?;
            let chosen = self.series.get(chooser)?.iter().position(|value| *value == best)?;
            return self.series.get(series)?.get(chosen).copied();
        }
        let (which, series) = name.split_once('-')?;
        let numbers = self.series.get(series)?.iter().copied();
        match which {
            "max" => numbers.reduce(f64::max),
            "min" => numbers.reduce(f64::min),
            "final" => numbers.last(),
            // Of the last ten epochs.
            "late" => {
                let late: Vec<f64> = numbers.rev().take(10).collect();
                (!late.is_empty()).then(|| late.iter().sum::<f64>() / late.len() as f64)
            }
            _ => None,
        }
    }
}

/// A directory of records.
#[derive(Clone, Debug)]
pub struct Records {
    root: PathBuf,
}

impl Records {
    /// The records below a directory of results.
    pub fn new(out: &Path) -> Self {
        Self { root: out.join("records") }
    }

    fn path(&self, cell: &Cell, form: Form, version: Version) -> PathBuf {
        let Cell { experiment, condition, method, run } = cell;
        let file = format!("{condition}.{method}.{run}.json");
        self.root.join(experiment).join(folder(form, version)).join(file)
    }

    /// Writes the record of a cell, whole or not at all.
    pub(crate) fn write(&self, record: &Record, version: Version) -> Result<(), PaperError> {
        let path = self.path(&record.cell, record.form, version);
        let failed = |error| PaperError::File { path: path.clone(), error };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut text = serde_json::to_vec(record).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        Ok(lapwing_store::replace(&path, &[&text])?)
    }

    /// The record of a cell, if it was run with these settings.
    pub(crate) fn of(
        &self,
        cell: &Cell,
        form: Form,
        version: Version,
        settings: &Value,
    ) -> Result<Option<Record>, PaperError> {
        let path = self.path(cell, form, version);
        if !path.exists() {
            return Ok(None);
        }
        let record = read(&path)?;
        let same = record.cell == *cell
            && record.form == form
            && record.version == version.word()
            && record.agrees(settings);
        Ok(same.then_some(record))
    }

    /// All records of an experiment in one form.
    pub(crate) fn all(
        &self,
        experiment: &str,
        form: Form,
        version: Version,
    ) -> Result<Vec<Record>, PaperError> {
        let records = files(&self.root.join(experiment).join(folder(form, version)))?;
        records.iter().map(|path| read(path)).collect()
    }

    /// The forms in which an experiment was run, full first.
    pub fn forms(&self, experiment: &str, version: Version) -> Result<Vec<Form>, PaperError> {
        let folder_path = self.root.join(experiment);
        if !folder_path.is_dir() {
            return Ok(Vec::new());
        }
        let failed = |error| PaperError::File { path: folder_path.clone(), error };
        let mut forms = Vec::new();
        for entry in std::fs::read_dir(&folder_path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            // The name of a folder follows from what is in it; any record of it says what that is.
            let records = files(&path)?;
            if let Some(first) = records.first() {
                let record = read(first)?;
                if path.file_name() == Some(folder(record.form, version).as_ref()) {
                    forms.push(record.form);
                }
            }
        }
        forms.sort();
        Ok(forms)
    }
}

impl Version {
    /// Its name in records and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Version::Code => "code",
            Version::Paper => "paper",
        }
    }
}

pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, PaperError> {
    let failed = |error| PaperError::File { path: folder.to_owned(), error };
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub(crate) fn read(path: &Path) -> Result<Record, PaperError> {
    let refuse = |problem: String| PaperError::Record { path: path.to_owned(), problem };
    let bytes = lapwing_store::read(path, LONGEST)?;
    let record: Record =
        serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
    if record.format != FORMAT {
        return Err(refuse(format!("format {}, expected {FORMAT}", record.format)));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Selection;
    use crate::recipe::recipes;
    use crate::run::settings;

    fn record(form: Form) -> Record {
        let cell = Cell {
            experiment: "toy".to_owned(),
            condition: "base".to_owned(),
            method: "lap".to_owned(),
            run: 0,
        };
        let mut record = Record::new(cell, Version::Code, form, "settings".into());
        record.series.insert("loss".to_owned(), vec![0.5, 0.7, 0.1]);
        record.values.insert("unreliability-0".to_owned(), 3.0);
        record
    }

    #[test]
    fn metrics_are_found_by_name() {
        let mut record = record(Form::FULL);
        let names = ["max-loss", "min-loss", "final-loss", "unreliability-0"];
        assert_eq!(names.map(|name| record.metric(name)), [0.7, 0.1, 0.1, 3.0].map(Some));
        assert_eq!(record.metric("max-top-1"), None);
        record.series.insert("valid-top-1".to_owned(), vec![20.0, 40.0, 40.0]);
        assert_eq!(record.metric("loss-by-valid-top-1"), Some(0.7));
        assert_eq!(record.metric("valid-top-1-by-loss"), Some(40.0));
        assert_eq!(record.metric("loss-by-top-1"), None);
        assert_eq!(record.metric("mean-loss"), None);
        record.failure = Some("diverged".to_owned());
        assert_eq!(record.metric("max-loss"), None);
    }

    #[test]
    fn a_record_is_read_back_for_its_cell_form_and_settings_only() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path());
        let (full, small) = (Form::FULL, Form { limit_train: Some(10), ..Form::FULL });
        let mut written = record(full);
        written.unreliability = vec![vec![0, 1], vec![1, 2]];
        records.write(&written, Version::Code).unwrap();
        let found = |form, settings: &str| {
            records.of(&written.cell, form, Version::Code, &settings.into()).unwrap()
        };
        assert_eq!(found(full, "settings"), Some(written.clone()));
        assert_eq!(found(full, "others"), None);
        assert_eq!(found(small, "settings"), None);
        records.write(&record(small), Version::Code).unwrap();
        assert_eq!(found(small, "settings"), Some(record(small)));
        assert_eq!(records.forms("toy", Version::Code).unwrap(), [full, small]);
        assert!(records.forms("toy", Version::Paper).unwrap().is_empty());
        assert!(records.forms("california", Version::Code).unwrap().is_empty());
    }

    #[test]
    fn a_setting_that_is_new_or_missing_or_other_makes_it_another_run() {
        let mut record = record(Form::FULL);
        record.settings = serde_json::json!({"epochs": 40, "method": {"kind": "lap", "H": 25}});
        let with = |text: &str| record.agrees(&serde_json::from_str(text).unwrap());
        assert!(with(r#"{"method": {"H": 25, "kind": "lap"}, "epochs": 40}"#));
        assert!(!with(r#"{"epochs": 40, "method": {"kind": "lap", "H": 25, "init": "keras"}}"#));
        assert!(!with(r#"{"epochs": 41, "method": {"kind": "lap", "H": 25}}"#));
        assert!(!with(r#"{"epochs": 40, "method": {"kind": "lap"}}"#));
        assert!(!with(r#"{"epochs": 40, "method": null}"#));
    }

    #[test]
    fn settings_of_every_cell_are_the_same_after_writing_and_reading() {
        for recipe in recipes(Version::Code).unwrap() {
            for cell in Selection::default().cells(&recipe).unwrap() {
                let settings = settings(&recipe, &cell, Form::FULL).unwrap();
                let text = serde_json::to_string(&settings).unwrap();
                assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), settings, "{cell}");
            }
        }
    }

    #[test]
    fn a_damaged_record_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path());
        let record = record(Form::FULL);
        records.write(&record, Version::Code).unwrap();
        let path = records.path(&record.cell, Form::FULL, Version::Code);
        let text = std::fs::read_to_string(&path).unwrap();
        for damaged in
            [&text[..text.len() / 2], "", "[]", &text.replace("\"format\":1", "\"format\":9")]
        {
            std::fs::write(&path, damaged).unwrap();
            let said = records
                .of(&record.cell, Form::FULL, Version::Code, &"settings".into())
                .unwrap_err()
                .to_string();
            assert!(said.contains("base.lap.0.json") && said.contains("remove the file"), "{said}");
        }
    }
}
