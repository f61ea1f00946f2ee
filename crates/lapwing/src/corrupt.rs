//! `lapwing corrupt`: noise on purpose in chosen sources of a table.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use lapwing_data::{Compression, DataError, TableFile, Task};
use lapwing_noise::{Level, NoiseKind, SourceCount, TableNoise};

use crate::names;
use crate::output::{Output, count};
use crate::progress::Progress;
use crate::say::say;

/// Rows between two looks at the clock.
const ROWS_BETWEEN_UPDATES: u64 = 1 << 14;

/// Make chosen sources of a table wrong on purpose, to see what a method does about it
///
/// Copies a table while noise is put into the rows of the sources given by --sources. All other
/// values stay what they are, in the same order: other columns, other sources, rows without target
/// or source. So do header, separator, line ends and byte order mark; but fields are quoted only
/// where they must be, and blank lines are left out. The same seed gives the same bytes, and a
/// source is changed in the same way whichever other sources are chosen with it.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct Arguments {
    /// The table: CSV or TSV (.gz and .zst, too)
    data: PathBuf,

    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    target: String,

    /// The column that says where a row came from
    #[arg(long, value_name = "COLUMN")]
    source: String,

    /// The kind of noise, see below
    #[arg(long, value_name = "KIND")]
    noise: NoiseKind,

    /// The sources to make wrong, separated by commas; a name that has one is taken as it is
    #[arg(long, value_name = "A,B", required = true)]
    sources: Vec<String>,

    /// How much of them: the probability of each row (exact-flip: the exact share, rounded down)
    #[arg(long, value_name = "P", default_value_t = Level::FULL, allow_negative_numbers = true)]
    level: Level,

    /// The columns that noise of the inputs changes [default: all numeric ones, or all of free text for words]
    #[arg(long, value_name = "A,B")]
    features: Option<Vec<String>>,

    /// Rows of a source in a chunk, for chunk-label-shuffle and chunk-label-flip
    #[arg(long, value_name = "ROWS", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,

    /// What the target is
    #[arg(long, value_enum, default_value_t = TaskChoice::Auto)]
    task: TaskChoice,

    /// Same seed, same noise
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Write to a file, which appears once it is complete, instead of standard output; .gz and .zst
    /// are compressed
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    /// Replace the file given by --out if it exists
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,

    /// No progress, no closing remarks
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TaskChoice {
    /// Classes where values are text or few whole numbers, else numbers
    Auto,
    /// Classes
    Classification,
    /// Numbers
    Regression,
}

fn after_help() -> String {
    let mut text = "Kinds of noise:\n".to_owned();
    for kind in NoiseKind::ALL.into_iter().filter(|kind| kind.unfit_for_tables().is_none()) {
        text.push_str(&format!("  {kind:<24} {}\n", kind.description()));
    }
    text.push_str(
        "
In a table the inputs are the columns of --features. The standard deviation of added-noise is that
of the column; replace-with-noise puts normal numbers of the column's own mean and standard
deviation in place of all values; chunk-shuffle moves values between columns. What is missing stays
where it is.

Examples:
  lapwing corrupt data.csv --target label --source site --noise random-label --sources b,d --out noisy.csv
  lapwing corrupt data.csv --target label --source site --noise exact-flip --sources b --level 0.25 > noisy.csv
  lapwing corrupt houses.tsv.gz --target price --source agent --noise uniform-target --sources 3,7 --seed 1 --out noisy.tsv.gz",
    );
    text
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let kind = arguments.noise;
    if let Some(reason) = kind.unfit_for_tables() {
        bail!(lapwing_noise::TableNoiseError::Unfit { kind, reason });
    }
    let file = TableFile::open_text(&arguments.data)?;
    let noise = arguments.noise(&file)?;
    if let Some(out) = &arguments.out {
        check_format(out, &file)?;
    }
    let mut output = Output::open(arguments.out.as_deref(), arguments.force)?;
    let mut corruption = noise.plan(&file)?;
    let mut progress = Progress::new("corrupt", Some(corruption.rows()), arguments.quiet);
    let compression = arguments.out.as_deref().map_or(Compression::None, Compression::of_name);
    corruption.copy(&file, &mut output, compression, |row| {
        if row.is_multiple_of(ROWS_BETWEEN_UPDATES) {
            progress.set(row, || format!("{} rows", count(row)));
        }
    })?;
    progress.finish();
    output.flush()?;
    output.finish()?;
    if !arguments.quiet {
        say!("{}", summary(noise.kind, corruption.counts()));
    }
    Ok(())
}

impl Arguments {
    fn noise(&self, file: &TableFile) -> anyhow::Result<TableNoise> {
        let is_column = |name: &str| file.columns().iter().any(|column| column == name);
        let features = self.features.as_ref().map(|values| names::listed(values, is_column));
        Ok(TableNoise {
            kind: self.noise,
            level: self.level,
            seed: self.seed,
            target: self.target.clone(),
            source: self.source.clone(),
            sources: self.named_sources(file)?,
            features,
            task: match self.task {
                TaskChoice::Auto => None,
                TaskChoice::Classification => Some(Task::Classification),
                TaskChoice::Regression => Some(Task::Regression),
            },
            chunk: self.chunk as usize,
        })
    }

    /// Names of sources may hold commas: which are names and which are lists, the table knows.
    fn named_sources(&self, file: &TableFile) -> anyhow::Result<Vec<String>> {
        let mut asked: HashMap<&str, bool> = HashMap::new();
        for value in self.sources.iter().filter(|value| value.contains(',')) {
            asked.extend(value.split(',').chain([value.as_str()]).map(|name| (name.trim(), false)));
        }
        if !asked.is_empty() {
            let column = file.position(&self.source)?;
            file.each_record(|_, record| {
                if let Some(found) = asked.get_mut(record.get(column).unwrap_or_default().trim()) {
                    *found = true;
                }
                Ok::<(), DataError>(())
            })?;
        }
        let is_known = |name: &str| asked.get(name.trim()).copied().unwrap_or(false);
        Ok(names::listed(&self.sources, is_known))
    }
}

/// Refuses a name that promises another format than the one that is written.
fn check_format(out: &Path, file: &TableFile) -> anyhow::Result<()> {
    let name = match Compression::of_name(out) {
        Compression::None => out.to_owned(),
        Compression::Gzip | Compression::Zstd => out.with_extension(""),
    };
    let extension = name.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match extension.as_str() {
        "parquet" | "pq" => bail!("{} would be text; give it a name in .csv", out.display()),
        "tsv" | "tab" if file.delimiter() != Some(b'\t') => Err(anyhow::anyhow!(
            "the fields of {} are not separated by tabs",
            file.path().display()
        ))
        .with_context(|| format!("{} cannot be written", out.display())),
        _ => Ok(()),
    }
}

/// How many rows of which sources changed, in a line.
fn summary(kind: NoiseKind, sources: &[SourceCount]) -> String {
    const NAMED: usize = 8;
    let total = |part: fn(&SourceCount) -> u64| count(sources.iter().map(part).sum());
    let (changed, rows) = (total(|source| source.changed), total(|source| source.rows));
    let mut named: Vec<String> = sources
        .iter()
        .take(NAMED)
        .map(|source| {
            format!("{:?} {} of {}", source.name, count(source.changed), count(source.rows))
        })
        .collect();
    if sources.len() > NAMED {
        named.push(format!("{} more", sources.len() - NAMED));
    }
    format!("{kind}: changed {changed} of {rows} rows ({})", named.join(", "))
}
