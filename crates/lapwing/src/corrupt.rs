//! `lapwing corrupt`: noise on purpose in chosen sources of a table.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use lapwing_data::{Compression, DataError, Form, TableFile, Task};
use lapwing_noise::{Level, NoiseKind, SourceCount, TableNoise};

use crate::names;
use crate::output::{Output, count};
use crate::progress::Progress;
use crate::say::{say, word};

/// Rows between two looks at the clock.
const ROWS_BETWEEN_UPDATES: u64 = 1 << 14;

/// Make chosen sources of a table wrong on purpose, to see what a method does about it
///
/// Copies a table while noise is put into the rows of the sources given by --sources. All other
/// values stay what they are, in the same order: other columns, other sources, rows without target
/// or source. So do header, separator, line ends and byte order mark; but fields are quoted only
/// where they must be, and blank lines are left out. Parquet stays Parquet, with the types of its
/// columns; a folder of pictures becomes a CSV table of their paths, classes and sources. The same
/// seed gives the same bytes, and a source is changed in the same way whichever other sources are
/// chosen with it.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct Arguments {
    /// The table: CSV or TSV (.gz and .zst, too), Parquet, or a folder of pictures
    data: PathBuf,

    /// The column to predict [a folder: class]
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,

    /// The column that says where a row came from [a folder: source]
    #[arg(long, value_name = "COLUMN")]
    source: Option<String>,

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
    /// are compressed. Parquet without lists is written as CSV to a name in .csv
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
where it is. Lists and pictures stay as they are, but their labels can be changed. Whole numbers of
Parquet stay whole: what noise makes of them is rounded.

Examples:
  lapwing corrupt data.csv --target label --source site --noise random-label --sources b,d --out noisy.csv
  lapwing corrupt data.csv --target label --source site --noise exact-flip --sources b --level 0.25 > noisy.csv
  lapwing corrupt houses.tsv.gz --target price --source agent --noise uniform-target --sources 3,7 --seed 1 --out noisy.tsv.gz
  lapwing corrupt series.parquet --target speaker --source site --noise exact-flip --sources b --out noisy.parquet
  lapwing corrupt photos --noise class-swap --sources north --out noisy.csv",
    );
    text
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let kind = arguments.noise;
    if let Some(reason) = kind.unfit_for_tables() {
        bail!(lapwing_noise::TableNoiseError::Unfit { kind, reason });
    }
    let file = TableFile::open(&arguments.data)?;
    let form = form(arguments.out.as_deref(), &file)?;
    let directory = arguments.out.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let file = file.seen_from(directory)?;
    let noise = arguments.noise(&file)?;
    let mut output = Output::open(arguments.out.as_deref(), arguments.force)?;
    let mut corruption = noise.plan(&file)?;
    let mut progress = Progress::new("corrupt", Some(corruption.rows()), arguments.quiet);
    corruption.copy(&file, &mut output, form, |row| {
        if row.is_multiple_of(ROWS_BETWEEN_UPDATES) {
            progress.set(row, || format!("{} rows", count(row)));
        }
    })?;
    progress.finish();
    output.flush()?;
    output.finish()?;
    if !arguments.quiet {
        say!("{}", summary(noise.kind, corruption.counts()));
        if file.is_folder() {
            say!(
                "the pictures are where they were; learn from the table with --image {} --target {} --source {}",
                word(Path::new(&file.columns()[0])),
                word(Path::new(&noise.target)),
                word(Path::new(&noise.source))
            );
        }
    }
    Ok(())
}

impl Arguments {
    fn noise(&self, file: &TableFile) -> anyhow::Result<TableNoise> {
        let named = |name: &Option<String>, flag: &str, of_folder: &str| match name {
            Some(name) => Ok(name.clone()),
            None if file.is_folder() => Ok(of_folder.to_owned()),
            None => Err(anyhow::anyhow!("{flag} COLUMN is needed for a table")),
        };
        let target = named(&self.target, "--target", "class")?;
        let source = named(&self.source, "--source", "source")?;
        let is_column = |name: &str| file.columns().iter().any(|column| column == name);
        let features = self.features.as_ref().map(|values| names::listed(values, is_column));
        Ok(TableNoise {
            kind: self.noise,
            level: self.level,
            seed: self.seed,
            sources: self.named_sources(file, &source)?,
            target,
            source,
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
    fn named_sources(&self, file: &TableFile, source: &str) -> anyhow::Result<Vec<String>> {
        let mut asked: HashMap<&str, bool> = HashMap::new();
        for value in self.sources.iter().filter(|value| value.contains(',')) {
            asked.extend(value.split(',').chain([value.as_str()]).map(|name| (name.trim(), false)));
        }
        if !asked.is_empty() {
            let column = file.position(source)?;
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

/// How the copy is written. Refuses a name that promises another format, and one of a file that the table is read from.
fn form(out: Option<&Path>, file: &TableFile) -> anyhow::Result<Form> {
    let Some(out) = out else {
        if file.is_parquet() && std::io::stdout().is_terminal() {
            bail!("a terminal cannot show Parquet; --out names a file");
        }
        return Ok(if file.is_parquet() { Form::Parquet } else { Form::Text(Compression::None) });
    };
    let compression = Compression::of_name(out);
    let name = match compression {
        Compression::None => out.to_owned(),
        Compression::Gzip | Compression::Zstd => out.with_extension(""),
    };
    let extension = name.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let shown = out.display();
    if file.is_read_from(out) {
        bail!("{shown} is one of the files that {} is read from", file.path().display());
    }
    match extension.as_str() {
        "parquet" | "pq" if !file.is_parquet() => {
            bail!("{shown} would be text; give it a name in .csv")
        }
        "tsv" | "tab" if file.delimiter().is_none() => {
            bail!("{shown} would have commas; give it a name in .csv")
        }
        "tsv" | "tab" if file.delimiter() != Some(b'\t') => Err(anyhow::anyhow!(
            "the fields of {} are not separated by tabs",
            file.path().display()
        ))
        .with_context(|| format!("{shown} cannot be written")),
        _ if !file.is_parquet() || extension == "csv" => Ok(Form::Text(compression)),
        _ if compression != Compression::None => {
            bail!(
                "{shown} would be Parquet, which is compressed within; give it a name in .parquet"
            )
        }
        _ => Ok(Form::Parquet),
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
