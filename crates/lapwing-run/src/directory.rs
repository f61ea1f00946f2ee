//! The directory of a run.
//!
//! ```text
//! run.json             what it was started on, and the digests of its results
//! config.toml          settings, defaults included
//! checkpoint/          for going on after a crash, until it is finished
//! model.safetensors    parameters; of trees: model.ubj
//! model.json           network or trees, preprocessing, classes
//! metrics.csv          epoch, split, metric, value
//! sources.csv          one row per source, with its verdict
//! rows.csv             the rows whose labels were judged, those first that are most likely wrong
//! items.csv            with items: what all answers on each of them amount to
//! trajectory.parquet   loss, unreliability and weight per step and source
//! report.json          what the report shows, so that it can be written again without the data
//! report.html          the report
//! ```
//!
//! Every file is whole or not there: it is written under another name and renamed. Nothing holds a time, so equal runs
//! give equal bytes. A run that takes the place of another is built beside it and changes places when it is finished.
//! One process at a time trains in a directory. Files of other names are never touched. `docs/formats.md` says what is
//! in each file, and what is promised.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing_judge::SourceRow;
use lapwing_report::{DoubtfulRow, Report};
use lapwing_store::{
    AtomicFile, Digested, DirectoryLock, StoreError, Successor, is_ours, replace, sweep,
};
use lapwing_train::CheckpointDir;

use crate::fit::close_names;
use crate::folds::{MOST_FOLDS, fold_checkpoints};
use crate::manifest::{Input, Manifest, RUN, kernels};
use crate::results::MetricLine;
use crate::{
    Checkpoints, Fit, Job, Learnt, Results, RunError, Settings, items_file, model_file, rows_file,
    sources_file, trajectory_file,
};

const CONFIG: &str = "config.toml";
const CHECKPOINT: &str = "checkpoint";
const METRICS: &str = "metrics.csv";
const SOURCES: &str = "sources.csv";
const ROWS: &str = "rows.csv";
const ITEMS: &str = "items.csv";
const TRAJECTORY: &str = "trajectory.parquet";
const REPORT_DATA: &str = "report.json";
const REPORT: &str = "report.html";
/// What a run leaves; nothing else in a directory is ever touched. The manifest comes last: as long as it is the old
/// one, the new results are not taken for what they are not.
const FILES: [&str; 12] = [
    model_file::DESCRIPTION,
    model_file::WEIGHTS,
    model_file::TREES,
    METRICS,
    SOURCES,
    ROWS,
    ITEMS,
    TRAJECTORY,
    REPORT_DATA,
    REPORT,
    CONFIG,
    RUN,
];
/// Largest report read back, and largest table of sources: ten million sources.
const LARGEST: u64 = 1 << 32;

/// The directory of a run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Where the run is built: the same, or beside the one it replaces.
    work: PathBuf,
    /// Whether it was made here, and may go again if nothing comes of the run.
    made: bool,
    /// Whether it takes the place of another run when it is finished.
    replaces: bool,
    /// Held while the run is built.
    _lock: Option<DirectoryLock>,
}

/// What is in a directory, as far as a new run is concerned.
#[derive(Debug, PartialEq)]
enum Content {
    Nothing,
    Run,
    Other,
}

impl Content {
    fn of(path: &Path) -> Result<Self, RunError> {
        let entries = match std::fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            entries => entries.map_err(failed(path))?,
        };
        if Successor::of(path).is_complete() || Manifest::is_in(path) {
            return Ok(Self::Run);
        }
        // A process that was killed while it wrote its first file leaves that under another name.
        let mut others = entries.filter(|e| e.as_ref().is_ok_and(|e| !is_ours(&e.file_name())));
        Ok(if others.next().is_some() { Self::Other } else { Self::Nothing })
    }
}

impl RunDirectory {
    /// Fails where [`create`](Self::create) would, without touching anything. `inputs` are files that the run reads.
    pub fn check(path: &Path, force: bool, inputs: &[&Path]) -> Result<(), RunError> {
        match Content::of(path)? {
            Content::Nothing => return Ok(()),
            Content::Run if !force => return Err(RunError::Exists(path.to_owned())),
            Content::Other if !force => return Err(RunError::NotEmpty(path.to_owned())),
            Content::Other => return Err(RunError::NotOurs(path.to_owned())),
            Content::Run => {}
        }
        let whole = |path: &Path| std::fs::canonicalize(path).ok();
        let saved = || all_checkpoints(path).flat_map(|place| place.files());
        let own = || FILES.map(|name| path.join(name)).into_iter().chain(saved());
        for input in inputs {
            let found = whole(input);
            if found.is_some() && own().any(|own| whole(&own) == found) {
                return Err(RunError::InputInRun {
                    input: (*input).to_owned(),
                    run: path.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Starts a new run: [`reserve`](Self::reserve), then [`start`](Self::start).
    pub fn create(path: &Path, force: bool, settings: &Settings) -> Result<Self, RunError> {
        let inputs: Vec<&Path> = settings.data.iter().chain(&settings.test).map(|p| &**p).collect();
        let mut directory = Self::reserve(path, force, &inputs)?;
        match directory.start(settings) {
            Ok(()) => Ok(directory),
            Err(error) => {
                directory.abandon();
                Err(error)
            }
        }
    }

    /// Takes a directory for a new run: nobody else may train in it, and files may be put into [`work`](Self::work). One
    /// that is not empty is refused unless it holds a run and `force` is given; that run stays until the new one is
    /// finished.
    pub fn reserve(path: &Path, force: bool, inputs: &[&Path]) -> Result<Self, RunError> {
        Self::check(path, force, inputs)?;
        let made = !path.exists();
        std::fs::create_dir_all(path).map_err(failed(path))?;
        let lock = lock(path)?;
        // Again: somebody may have been faster.
        Self::check(path, force, inputs)?;
        let successor = Successor::of(path);
        successor.settle(&FILES)?;
        sweep(path, Duration::ZERO);
        successor.begin()?;
        let replaces = Content::of(path)? == Content::Run;
        let (path, work) = (path.to_owned(), successor.path());
        Ok(Self { path, work, made, replaces, _lock: Some(lock) })
    }

    /// Writes down what the run is started on. From here on it can be resumed.
    pub fn start(&mut self, settings: &Settings) -> Result<(), RunError> {
        let manifest = Manifest::new(settings)?.encode()?;
        self.settle_on(settings)?;
        replace(&self.work.join(RUN), &[&manifest])?;
        if !self.replaces {
            Successor::of(&self.path).complete(&[CONFIG, RUN])?;
            self.work.clone_from(&self.path);
        }
        Ok(())
    }

    /// Writes down with what the run goes on: at its start, and when its model has been chosen.
    pub fn settle_on(&self, settings: &Settings) -> Result<(), RunError> {
        let settled = |path: &PathBuf| match path.strip_prefix(&self.work) {
            Ok(name) => self.path.join(name),
            Err(_) => path.clone(),
        };
        let (data, test) =
            (settings.data.as_ref().map(settled), settings.test.as_ref().map(settled));
        let config = absolute(&Settings { data, test, ..settings.clone() })?.to_toml()?;
        Ok(replace(&self.work.join(CONFIG), &[config.as_bytes()])?)
    }

    /// A run to be read.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => settle(path)?,
            Ok(_) => {
                return Err(RunError::Damaged {
                    path: path.to_owned(),
                    reason: "expected the directory of a run, found a file".to_owned(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(RunError::NoRun(path.to_owned()));
            }
            Err(error) => return Err(failed(path)(error)),
        }
        let path = path.to_owned();
        Ok(Self { work: path.clone(), path, made: false, replaces: false, _lock: None })
    }

    /// A run to go on with: one that was to take the place of another, if there is one, else the one that is there.
    /// `None` where there is nothing at all.
    pub fn resume(path: &Path) -> Result<Option<Self>, RunError> {
        let successor = Successor::of(path);
        match Content::of(path)? {
            Content::Nothing => return Ok(None),
            Content::Other => return Err(RunError::NoRun(path.to_owned())),
            Content::Run => {}
        }
        let lock = lock(path)?;
        successor.settle(&FILES)?;
        // One without a manifest was killed before there was anything to go on with.
        let begun = successor.is_begun() && Manifest::read(&successor.path())?.is_some();
        let work = if begun { successor.path() } else { path.to_owned() };
        let (path, lock) = (path.to_owned(), Some(lock));
        Ok(Some(Self { path, work, made: false, replaces: begun, _lock: lock }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its files are written until it is finished.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Where the report is.
    pub fn report_path(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// Whether it takes the place of another run when it is finished.
    pub fn replaces(&self) -> bool {
        self.replaces
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self) -> Result<bool, RunError> {
        Ok(self.manifest()?.is_finished())
    }

    /// The settings it was started with.
    pub fn settings(&self) -> Result<Settings, RunError> {
        Settings::read(&self.work.join(CONFIG))
    }

    /// Refuses settings that are not those of the run.
    pub fn check_settings(&self, now: &Settings) -> Result<(), RunError> {
        match absolute(now)?.difference(&self.settings()?) {
            None => Ok(()),
            Some((key, now, before)) => {
                Err(RunError::OtherSettings { path: self.path.clone(), key, before, now })
            }
        }
    }

    /// Refuses settings, data or kernels with which the run would not go on as it began.
    pub fn check_unchanged(&self, now: &Settings) -> Result<(), RunError> {
        self.check_settings(now)?;
        let manifest = self.manifest()?;
        for (input, before) in
            [(&now.data, Some(&manifest.data)), (&now.test, manifest.test.as_ref())]
        {
            if let Some(input) = input
                && Some(&Input::of(input)?) != before
            {
                return Err(RunError::OtherData { path: input.clone() });
            }
        }
        match kernels(now) {
            kernels if kernels == manifest.kernels => Ok(()),
            now => {
                let path = self.path.clone();
                Err(RunError::OtherKernels { path, before: manifest.kernels, now })
            }
        }
    }

    /// Where checkpoints go.
    pub fn checkpoints(&self, interval: Duration, resume: bool) -> Checkpoints {
        Checkpoints { directory: checkpoints(&self.work), interval, resume, last: false }
    }

    /// Writes everything a finished run leaves.
    pub fn write(&self, job: &Job<'_>, fit: &Fit, results: &Results) -> Result<(), RunError> {
        let mut digests = Vec::new();
        let mut write = |name: &'static str, content: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
            digests.push((name, write_parts(&self.work.join(name), content)?));
            Ok::<(), RunError>(())
        };
        write(METRICS, &|out| out.write_all(metrics_csv(&results.metrics).as_bytes()))?;
        let trajectory = trajectory_file::encode(&fit.trajectory, &job.dataset().sources.names)
            .map_err(|error| RunError::Damaged {
                path: self.path.join(TRAJECTORY),
                reason: error.to_string(),
            })?;
        write(TRAJECTORY, &|out| out.write_all(&trajectory))?;
        write(SOURCES, &|out| sources_file::write(results.sources(), out))?;
        write(ROWS, &|out| rows_file::write(job.dataset(), fit.labels.as_ref().ok(), out))?;
        if let Some(items) = &results.items {
            write(ITEMS, &|out| items_file::write(items, out))?;
        }
        write(REPORT_DATA, &|out| Ok(serde_json::to_writer(out, &results.report)?))?;
        let page = lapwing_report::render(&results.report)?;
        replace(&self.work.join(REPORT), &[page.as_bytes()])?;
        let description = model_file::write(&self.work, &fit.model, &job.input)?;
        digests.push((model_file::DESCRIPTION, blake3::hash(&description)));
        let manifest = self.manifest()?.finished(digests);
        replace(&self.work.join(RUN), &[&manifest.encode()?])?;
        if self.replaces {
            Successor::of(&self.path).complete(&FILES)?;
            // The run that was there may have been of the other kind.
            let _ = std::fs::remove_file(self.path.join(match fit.model {
                Learnt::Network(_) => model_file::TREES,
                Learnt::Trees(_) => model_file::WEIGHTS,
            }));
            if results.items.is_none() {
                let _ = std::fs::remove_file(self.path.join(ITEMS));
            }
        }
        self.tidy();
        Ok(())
    }

    /// Removes what a finished run has no use for, and what killed ones left.
    pub fn tidy(&self) {
        for place in all_checkpoints(&self.path).filter(|place| place.path().is_dir()) {
            sweep(place.path(), Duration::ZERO);
            // What cannot be removed does no harm.
            let _ = place.clear();
        }
        sweep(&self.path, Duration::ZERO);
    }

    /// The sources of a finished run with their verdicts and findings, worst first.
    pub fn sources(&self) -> Result<Vec<SourceRow>, RunError> {
        // Findings stand in the report; whoever changed the table of verdicts shall hear of it all the same.
        self.result(SOURCES)?;
        let mut sources = self.report()?.sources;
        sources.sort_by(SourceRow::worst_first);
        Ok(sources)
    }

    /// The rows of a finished run whose labels are most likely wrong, worst first: at most so many, of one source or all.
    pub fn rows(&self, most: usize, source: Option<&str>) -> Result<Vec<DoubtfulRow>, RunError> {
        let report = self.report()?;
        if report.summary.folds == 0 {
            return Err(RunError::LabelsNotJudged { path: self.path.clone() });
        }
        if let Some(name) = source
            && report.sources.iter().all(|row| row.source != name)
        {
            let names: Vec<String> = report.sources.into_iter().map(|row| row.source).collect();
            let close = close_names(&names, name);
            return Err(RunError::NoSource { name: name.to_owned(), close });
        }
        rows_file::decode(&self.result(ROWS)?, most, |row| {
            source.is_none_or(|name| row.source == name)
        })
        .map_err(|error| RunError::Damaged {
            path: self.path.join(ROWS),
            reason: error.to_string(),
        })
    }

    /// Writes the report again, and says where.
    pub fn rewrite_report(&self) -> Result<PathBuf, RunError> {
        let _lock = lock(&self.path)?;
        let page = lapwing_report::render(&self.report()?)?;
        replace(&self.report_path(), &[page.as_bytes()])?;
        sweep(&self.path, Duration::ZERO);
        Ok(self.report_path())
    }

    /// What the report of a finished run shows.
    pub fn report(&self) -> Result<Report, RunError> {
        let path = self.path.join(REPORT_DATA);
        let damaged = |error: serde_json::Error| RunError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        };
        serde_json::from_slice(&self.result(REPORT_DATA)?).map_err(damaged)
    }

    /// Takes back what was written before the first result, where nothing comes of a new run.
    pub fn abandon(self) {
        let _ = Successor::of(&self.path).abandon();
        if self.replaces {
            return;
        }
        for name in [CONFIG, RUN] {
            let _ = std::fs::remove_file(self.path.join(name));
        }
        self.tidy();
        let Self { path, made, _lock: lock, .. } = self;
        drop(lock);
        if made {
            // Fails where somebody else has put something there, and that is right.
            let _ = std::fs::remove_dir(path);
        }
    }

    fn manifest(&self) -> Result<Manifest, RunError> {
        Manifest::read(&self.work)?
            .ok_or_else(|| RunError::NotARun { path: self.path.clone(), missing: RUN })
    }

    /// The bytes of a result, if they are what the run wrote.
    fn result(&self, name: &'static str) -> Result<Vec<u8>, RunError> {
        let manifest = self.manifest()?;
        let (path, missing) =
            (self.path.join(name), || RunError::NotARun { path: self.path.clone(), missing: name });
        if !manifest.is_finished() {
            return Err(missing());
        }
        match lapwing_store::read(&path, LARGEST) {
            Err(error) if error.is_missing() => Err(missing()),
            Err(error) => Err(error.into()),
            Ok(bytes) if !manifest.wrote(name, &bytes) => Err(RunError::Changed { path }),
            Ok(bytes) => Ok(bytes),
        }
    }
}

/// Finishes the change of places of two runs, where it was cut off.
pub(crate) fn settle(path: &Path) -> Result<(), RunError> {
    let successor = Successor::of(path);
    if successor.is_complete() {
        let _lock = lock(path)?;
        successor.settle(&FILES)?;
    }
    Ok(())
}

fn lock(path: &Path) -> Result<DirectoryLock, RunError> {
    DirectoryLock::acquire(path).map_err(|error| match error {
        StoreError::Busy { path } => RunError::InUse(path),
        error => error.into(),
    })
}

fn checkpoints(directory: &Path) -> CheckpointDir {
    CheckpointDir::new(directory.join(CHECKPOINT))
}

/// Those of the networks that judge labels, and of the one that is kept, in whose directory they are.
fn all_checkpoints(directory: &Path) -> impl Iterator<Item = CheckpointDir> {
    let run = checkpoints(directory);
    let folds: Vec<_> = (0..MOST_FOLDS).map(|fold| fold_checkpoints(&run, fold)).collect();
    folds.into_iter().chain([run])
}

fn failed(path: &Path) -> impl Fn(io::Error) -> RunError {
    move |source| StoreError::File { path: path.to_owned(), source }.into()
}

/// The settings with paths that mean the same wherever the run is taken up again.
fn absolute(settings: &Settings) -> Result<Settings, RunError> {
    let absolute = |path: &Option<PathBuf>| match path {
        None => Ok(None),
        Some(path) => std::path::absolute(path).map(Some).map_err(failed(path)),
    };
    let (data, test) = (absolute(&settings.data)?, absolute(&settings.test)?);
    let cache = absolute(&settings.cache)?;
    Ok(Settings { data, test, cache, ..settings.clone() })
}

/// Writes a file part by part, so that all of it need never be held, and returns its digest.
fn write_parts(
    path: &Path,
    content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<blake3::Hash, RunError> {
    let mut buffered = BufWriter::new(Digested::new(AtomicFile::create(path)?));
    content(&mut buffered).map_err(failed(path))?;
    let digested = buffered.into_inner().map_err(|error| failed(path)(error.into_error()))?;
    let (file, digest) = digested.finish();
    file.commit()?;
    Ok(digest)
}

fn metrics_csv(lines: &[MetricLine]) -> String {
    let mut text = "epoch,split,metric,value\n".to_owned();
    for line in lines {
        text.push_str(&format!("{},{},{},{}\n", line.epoch, line.split, line.metric, line.value));
    }
    text
}
