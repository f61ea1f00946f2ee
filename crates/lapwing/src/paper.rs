//! `lapwing paper`: the experiments of the paper on LAP, run again.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use lapwing_paper::{
    Cell, Cost, DataDir, Entry, Form, Kind, Recipe, Record, Records, Request, Results, Selection,
    Version, Watch, cost, merge, metric_name, recipe, recipes, run as run_cells, shown, summary,
    write_figures,
};

use crate::output::count;
use crate::progress::{Progress, duration};
use crate::say::{counted, say};
use crate::table::TextTable;

/// The variable that names the directory of the data sets.
const DATA_VARIABLE: &str = "LAPWING_DATA";

/// Run the experiments of the paper on LAP again, and put ours beside the paper's
///
/// Without a name: lists the experiments. With names: runs them cell by cell (noise or setting ×
/// method × run), prints the table and draws the figure. Every finished cell leaves a record below
/// --out and is not run again; whoever is interrupted loses at most the cells in progress. Runs
/// made smaller by --limit-train, --epochs, --width, --length or --excerpt are kept apart from full
/// ones. `summary` writes RESULTS.md from the records, those of other machines taken in first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing paper                                     what there is, what is done
  lapwing paper --measure                           what all of it would take on this machine
  lapwing paper toy                                 Figure 4, in minutes, without data
  lapwing paper table-1-fashion-mnist --data DIR --noise random-label --methods standard,lap
  lapwing paper table-1-cifar-10 --data DIR --epochs 5 --runs 1     a smaller one, marked as such
  lapwing paper sensitivity --shard 2/8             the second of eight parts, for job arrays
  lapwing paper summary                             RESULTS.md
  lapwing paper summary part-1 part-2 --out all     RESULTS.md from the records of two machines

DIR holds the data sets as their authors hand them out: fashion_mnist/*-ubyte.gz, mnist/*-ubyte.gz,
cifar-10-batches-bin/*.bin, cifar-100-binary/*.bin, cifar10n/CIFAR-10_human.pt,
california_housing/cal_housing.data. What is missing is named with where to get it.")]
pub(crate) struct Arguments {
    /// The experiments, or `summary` and, where machines had parts, their directories of results
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// The directory of the data sets [default: the variable LAPWING_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Where records, figures and the summary are kept
    #[arg(long, value_name = "DIR", default_value = "paper-results")]
    out: PathBuf,

    /// How often each cell is run [default: as often as in the paper]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Which cells")]
    runs: Option<usize>,

    /// Only these kinds of noise or settings
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which cells")]
    noise: Vec<String>,

    /// Only these methods
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which cells")]
    methods: Vec<String>,

    /// Only the I-th of N equal parts of the cells
    #[arg(long, value_name = "I/N", value_parser = shard, help_heading = "Which cells")]
    shard: Option<(usize, usize)>,

    /// Train on so many samples only: a smaller run, marked as such
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "How")]
    limit_train: Option<usize>,

    /// Train for so many epochs: a smaller run, marked as such
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "How")]
    epochs: Option<usize>,

    /// Give the first stage of a ResNet-18, ResNet-50 or PreAct-ResNet-18 so many channels instead of 64: a smaller run, marked as such
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "How")]
    width: Option<usize>,

    /// Take the first N words of every text, or moments of every signal: a smaller run, marked as such
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "How")]
    length: Option<usize>,

    /// Take files that are a part of the official ones, or others in their layout: a smaller run, marked as such
    #[arg(long, help_heading = "How")]
    excerpt: bool,

    /// Whom to follow where the paper's text and its authors' code differ
    #[arg(long = "as", value_name = "WHOM", value_enum, default_value_t = Whom::Code, help_heading = "How")]
    whom: Whom,

    /// Cells at a time [default: one per processor for small networks, otherwise one]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "How")]
    jobs: Option<usize>,

    /// Compute with Burn's own operations instead of ours, to compare the two: slower. Records do not
    /// tell, so give it an --out of its own
    #[arg(long, help_heading = "How", requires = "out")]
    stock: bool,

    /// Time a few steps of every experiment, or of those named, and say what all of it takes here,
    /// instead of running it; needs no data
    #[arg(long, conflicts_with = "list")]
    measure: bool,

    /// List the cells, and which of them are done, instead of running them
    #[arg(long)]
    list: bool,

    /// No progress, no closing remarks
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Whom {
    /// The code, which made the paper's numbers
    Code,
    /// The text
    Paper,
}

impl Whom {
    fn version(self) -> Version {
        match self {
            Self::Code => Version::Code,
            Self::Paper => Version::Paper,
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a number from 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    text.split_once('/')
        .and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)))
        .filter(|&(part, parts)| (1..=parts).contains(&part))
        .ok_or_else(|| "expected I/N with I from 1 to N, such as 2/8".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { ids, out, quiet, .. } = arguments;
    lapwing_ops::use_stock(arguments.stock);
    if ids.iter().any(|id| id == "summary") {
        ensure!(
            ids.first().is_some_and(|id| id == "summary"),
            "`summary` stands alone: it tells of all experiments"
        );
        let new = merge(out, &ids[1..])?;
        if ids.len() > 1 && !quiet {
            say!("took {} into {}", counted(new as u64, "record"), out.display());
        }
        ensure!(
            out.is_dir(),
            "{} is no directory of results: run an experiment first, or give --out",
            out.display()
        );
        let written = summary(out)?;
        if !quiet {
            for path in &written {
                say!("wrote {}", path.display());
            }
        }
        return Ok(());
    }
    let version = arguments.whom.version();
    if ids.is_empty() && !arguments.measure {
        return overview(out, version);
    }
    let recipes = match ids.is_empty() {
        true => recipes(version)?,
        false => ids.iter().map(|id| recipe(id, version)).collect::<Result<Vec<_>, _>>()?,
    };
    if arguments.measure {
        return measure(&recipes, *quiet);
    }
    let request = Request {
        selection: Selection {
            runs: arguments.runs,
            conditions: arguments.noise.clone(),
            methods: arguments.methods.clone(),
            shard: arguments.shard,
        },
        form: Form {
            limit_train: arguments.limit_train,
            epochs: arguments.epochs,
            width: arguments.width,
            length: arguments.length,
            excerpt: arguments.excerpt,
        },
        version,
        jobs: arguments.jobs,
    };
    request.selection.check(&recipes)?;
    if arguments.list {
        return list(&recipes, &request, out);
    }
    let root =
        arguments.data.clone().or_else(|| std::env::var_os(DATA_VARIABLE).map(PathBuf::from));
    if let Some(root) = &root
        && !root.is_dir()
    {
        bail!("{}: no such directory of data sets", root.display());
    }
    let data = match root {
        Some(root) if arguments.excerpt => DataDir::of_other_files(root),
        root => DataDir::new(root),
    };
    for recipe in &recipes {
        let watch = Bar::new(*quiet);
        let done = run_cells(recipe, &request, &data, out, &watch);
        watch.finish();
        done?;
        present(recipe, &request, out, *quiet)?;
    }
    Ok(())
}

/// All experiments: what they show, how much of them is done, and how long the rest takes.
fn overview(out: &Path, version: Version) -> anyhow::Result<()> {
    let mut table = TextTable::new(&["id", "shows", ">cells", ">done", ">time left", "about"]);
    let records = Records::new(out);
    for recipe in recipes(version)? {
        let cells = Selection::default().cells(&recipe)?.len();
        let results = Results::gather(&recipe, version, Form::FULL, &records)?;
        let done = results.records.len().min(cells);
        let left = match (recipe.kind, results.seconds_each()) {
            (Kind::Derived, _) => "–".to_owned(),
            (_, None) => "not measured".to_owned(),
            (_, Some(seconds)) => duration((seconds * (cells - done) as f64) as u64),
        };
        let (cells, done) = (count(cells as u64), count(done as u64));
        table.row([recipe.id, recipe.shows, cells, done, left, recipe.title]);
    }
    Ok(write!(crate::output::stdout(), "{}", table.render())?)
}

/// What the experiments take here, by a few steps of each.
fn measure(recipes: &[Recipe], quiet: bool) -> anyhow::Result<()> {
    let mut table = TextTable::new(&["id", "shows", ">a step", ">a run", ">runs", ">all"]);
    for recipe in recipes {
        if !quiet {
            say!("timing {}", recipe.id);
        }
        let Some(Cost { step, run, all }) = cost(recipe)? else { continue };
        let runs = Selection::default().cells(recipe)?.len();
        let [run, all] = [run, all].map(|seconds| duration(seconds.ceil() as u64));
        let step = format!("{step:.4} s");
        table.row([recipe.id.clone(), recipe.shows.clone(), step, run, count(runs as u64), all]);
    }
    Ok(write!(crate::output::stdout(), "{}", table.render())?)
}

/// The cells that would be run, one a line.
fn list(recipes: &[Recipe], request: &Request, out: &Path) -> anyhow::Result<()> {
    let records = Records::new(out);
    let mut stdout = crate::output::stdout();
    for recipe in recipes {
        let results = Results::gather(recipe, request.version, request.form, &records)?;
        for cell in request.selection.cells(recipe)? {
            let done = results.records.iter().any(|record| record.cell == cell);
            let Cell { experiment, condition, method, run } = cell;
            let word = if done { "done" } else { "to do" };
            writeln!(stdout, "{experiment}\t{condition}\t{method}\t{run}\t{word}")?;
        }
    }
    Ok(())
}

/// The table on standard output, the figure beside the records.
fn present(recipe: &Recipe, request: &Request, out: &Path, quiet: bool) -> anyhow::Result<()> {
    let results = Results::gather(recipe, request.version, request.form, &Records::new(out))?;
    let mut table = TextTable::new(&[
        "noise or setting",
        "method",
        "what",
        ">ours (runs)",
        ">paper",
        ">Welch's t",
    ]);
    let tried = |entry: &&Entry| entry.ours.is_some() || entry.failures > 0;
    for entry in results.entries.iter().filter(tried) {
        let ours = match (&entry.ours, entry.failures) {
            (Some(ours), 0) => shown(ours, &entry.metric),
            (Some(ours), failures) => format!("{}, {failures} failed", shown(ours, &entry.metric)),
            (None, failures) => format!("{failures} failed"),
        };
        table.row([
            entry.condition_name.clone(),
            entry.method_name.clone(),
            metric_name(&entry.metric),
            ours,
            entry.paper.as_ref().map_or_else(|| "–".to_owned(), |s| shown(s, &entry.metric)),
            entry.difference.map_or_else(|| "–".to_owned(), |welch| welch.to_string()),
        ]);
    }
    if results.is_empty() {
        say!("{}: no records yet to make a table of", recipe.id);
        return Ok(());
    }
    write!(crate::output::stdout(), "{}", table.render())?;
    for path in write_figures(&results, out)? {
        if !quiet {
            say!("drew {}", path.display());
        }
    }
    Ok(())
}

/// Progress over all cells of an experiment.
struct Bar {
    quiet: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    progress: Option<Progress>,
    work: u64,
    cells: usize,
    finished: usize,
}

impl Bar {
    fn new(quiet: bool) -> Self {
        Self { quiet, state: Mutex::default() }
    }

    fn finish(&self) {
        if let Ok(State { progress: Some(progress), .. }) = self.state.lock().as_deref() {
            progress.finish();
        }
    }
}

impl Watch for Bar {
    fn planned(&self, done: usize, to_do: usize, work: u64) {
        if !self.quiet {
            say!("{} cells to run, {} done before", count(to_do as u64), count(done as u64));
        }
        if let Ok(mut state) = self.state.lock() {
            let progress = Progress::new("running", Some(work), self.quiet);
            *state = State { progress: Some(progress), work: 0, cells: to_do, finished: 0 };
        }
    }

    fn advanced(&self, cell: &Cell, work: u64) {
        let Ok(mut state) = self.state.lock() else { return };
        state.work += work;
        let (work, finished, cells) = (state.work, state.finished, state.cells);
        if let Some(progress) = &mut state.progress {
            progress.set(work, || format!("cell {} of {cells}: {cell}", finished + 1));
        }
    }

    fn finished(&self, record: &Record) {
        let Ok(mut state) = self.state.lock() else { return };
        state.finished += 1;
        if let (Some(failure), Some(progress)) = (&record.failure, &state.progress) {
            progress.say(&format!("{} failed: {failure}", record.cell));
        }
    }
}
