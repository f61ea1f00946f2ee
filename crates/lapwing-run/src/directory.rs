//! The directory of a run.
//!
//! ```text
//! config.toml          settings, defaults included
//! checkpoint/          for going on after a crash
//! model.safetensors    parameters
//! model.json           network, preprocessing, classes
//! metrics.csv          epoch, split, metric, value
//! sources.csv          one row per source, with its verdict
//! trajectory.parquet   loss, unreliability and weight per step and source
//! report.json          what the report shows, so that it can be written again without the data
//! report.html          the report
//! ```
//!
//! Every file is whole or not there: it is written under another name and renamed. Nothing holds a time, so equal runs
//! give equal bytes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing_judge::SourceRow;
use lapwing_report::Report;
use lapwing_train::{CheckpointDir, replace_file};

use crate::results::MetricLine;
use crate::{
    Checkpoints, Fit, Job, Results, RunError, Settings, model_file, sources_file, trajectory_file,
};

const CONFIG: &str = "config.toml";
const CHECKPOINT: &str = "checkpoint";
const METRICS: &str = "metrics.csv";
const SOURCES: &str = "sources.csv";
const TRAJECTORY: &str = "trajectory.parquet";
const REPORT_DATA: &str = "report.json";
const REPORT: &str = "report.html";
/// How names of files begin that are not yet complete.
const TEMPORARY: &str = ".lapwing-";
/// What a run leaves; nothing else in a directory is ever touched.
const RESULTS: [&str; 7] = [
    model_file::DESCRIPTION,
    model_file::WEIGHTS,
    METRICS,
    SOURCES,
    TRAJECTORY,
    REPORT_DATA,
    REPORT,
];
/// Largest report read back.
const LARGEST_REPORT: u64 = 1 << 29;

/// The directory of a run.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Whether it was made here, and may go again if nothing comes of the run.
    made: bool,
}

impl RunDirectory {
    /// Fails where [`create`](Self::create) would, without touching anything.
    pub fn check(path: &Path, force: bool) -> Result<(), RunError> {
        let file = |source| RunError::File { path: path.to_owned(), source };
        match std::fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(file(error)),
            Ok(mut entries) if !force => {
                // A process that was killed while it wrote its first file leaves that under another name.
                let counts =
                    |name: std::ffi::OsString| !name.to_string_lossy().starts_with(TEMPORARY);
                match entries.any(|entry| entry.is_ok_and(|entry| counts(entry.file_name()))) {
                    true => Err(RunError::NotEmpty(path.to_owned())),
                    false => Ok(()),
                }
            }
            Ok(_) => Ok(()),
        }
    }

    /// Makes a directory for a new run. One that is not empty is refused unless `force` is given; then the files of an
    /// earlier run go, and nothing else.
    pub fn create(path: &Path, force: bool) -> Result<Self, RunError> {
        Self::check(path, force)?;
        let made = !path.exists();
        let directory = Self { path: path.to_owned(), made };
        std::fs::create_dir_all(path).map_err(|source| directory.failed("", source))?;
        directory.remove_run()?;
        Ok(directory)
    }

    /// An existing run.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(Self { path: path.to_owned(), made: false }),
            Ok(_) => Err(RunError::Damaged {
                path: path.to_owned(),
                reason: "expected the directory of a run, found a file".to_owned(),
            }),
            Err(source) => Err(RunError::File { path: path.to_owned(), source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the report is.
    pub fn report_path(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// The settings it was started with, if it was started.
    pub fn settings(&self) -> Result<Option<Settings>, RunError> {
        let path = self.path.join(CONFIG);
        match path.try_exists() {
            Ok(true) => Settings::read(&path).map(Some),
            Ok(false) => Ok(None),
            Err(source) => Err(self.failed(CONFIG, source)),
        }
    }

    /// Writes the settings down, before the first step.
    pub fn write_settings(&self, settings: &Settings) -> Result<(), RunError> {
        self.write_file(CONFIG, settings.to_toml()?.as_bytes())
    }

    /// Where checkpoints go.
    pub fn checkpoints(&self, interval: Duration, resume: bool) -> Checkpoints {
        let directory = CheckpointDir::new(self.path.join(CHECKPOINT));
        Checkpoints { directory, interval, resume }
    }

    /// Writes everything a finished run leaves.
    pub fn write(&self, job: &Job<'_>, fit: &Fit, results: &Results) -> Result<(), RunError> {
        let damaged =
            |name: &str, reason: String| RunError::Damaged { path: self.path.join(name), reason };
        let page = lapwing_report::render(&results.report)?;
        let sources = sources_file::encode(&results.sources)
            .map_err(|error| damaged(SOURCES, error.to_string()))?;
        let trajectory = trajectory_file::encode(&fit.trajectory, &job.dataset().sources.names)
            .map_err(|error| damaged(TRAJECTORY, error.to_string()))?;
        let data = serde_json::to_vec(&results.report)
            .map_err(|error| damaged(REPORT_DATA, error.to_string()))?;
        self.write_file(METRICS, metrics_csv(&results.metrics).as_bytes())?;
        self.write_file(TRAJECTORY, &trajectory)?;
        self.write_file(SOURCES, &sources)?;
        self.write_file(REPORT_DATA, &data)?;
        self.write_file(REPORT, page.as_bytes())?;
        model_file::write(&self.path, &fit.model, &job.input)?;
        self.sweep();
        Ok(())
    }

    /// The sources of a finished run with their verdicts and findings, worst first.
    pub fn sources(&self) -> Result<Vec<SourceRow>, RunError> {
        let mut sources = self.report()?.sources;
        sources.sort_by(SourceRow::worst_first);
        Ok(sources)
    }

    /// Writes the report again, and says where.
    pub fn rewrite_report(&self) -> Result<PathBuf, RunError> {
        let page = lapwing_report::render(&self.report()?)?;
        self.write_file(REPORT, page.as_bytes())?;
        Ok(self.report_path())
    }

    /// What the report of a finished run shows.
    pub fn report(&self) -> Result<Report, RunError> {
        let path = self.need(REPORT_DATA)?;
        let file = |source| RunError::File { path: path.clone(), source };
        if std::fs::metadata(&path).map_err(file)?.len() > LARGEST_REPORT {
            return Err(RunError::TooLarge { path, limit: LARGEST_REPORT });
        }
        let text = std::fs::read(&path).map_err(file)?;
        let mut data: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|error| RunError::Damaged { path: path.clone(), reason: error.to_string() })?;
        // JSON has no infinity, which leniency may be; the settings have.
        let leniency = self.settings()?.map(|settings| settings.rule().leniency);
        if let Some(summary) = data.get_mut("summary").and_then(|value| value.as_object_mut()) {
            summary.remove("leniency");
        }
        let mut report: Report = serde_json::from_value(data)
            .map_err(|error| RunError::Damaged { path: path.clone(), reason: error.to_string() })?;
        report.summary.leniency = leniency.unwrap_or(f64::NAN);
        Ok(report)
    }

    /// Takes back what was written before the first result, where nothing comes of a new run.
    pub fn abandon(&self) {
        let _ = self.remove_run();
        if self.made {
            // Fails where somebody else has put something there, and that is right.
            let _ = std::fs::remove_dir(&self.path);
        }
    }

    fn need(&self, name: &'static str) -> Result<PathBuf, RunError> {
        let path = self.path.join(name);
        if path.is_file() {
            return Ok(path);
        }
        Err(RunError::NotARun { path: self.path.clone(), missing: name })
    }

    fn remove_run(&self) -> Result<(), RunError> {
        for name in RESULTS.into_iter().chain([CONFIG]) {
            match std::fs::remove_file(self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed(name, error));
                }
                _ => {}
            }
        }
        match std::fs::remove_dir_all(self.path.join(CHECKPOINT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed(CHECKPOINT, error))
            }
            _ => {
                self.sweep();
                Ok(())
            }
        }
    }

    /// Removes files that a killed process left under their temporary names.
    fn sweep(&self) {
        for directory in [self.path.clone(), self.path.join(CHECKPOINT)] {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        replace_file(&self.path.join(name), &[bytes]).map_err(|source| self.failed(name, source))
    }

    fn failed(&self, name: &str, source: io::Error) -> RunError {
        RunError::File { path: self.path.join(name), source }
    }
}

fn metrics_csv(lines: &[MetricLine]) -> String {
    let mut text = "epoch,split,metric,value\n".to_owned();
    for line in lines {
        text.push_str(&format!("{},{},{},{}\n", line.epoch, line.split, line.metric, line.value));
    }
    text
}
