//! `lapwing sources`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lapwing_judge::{SourceRow, Verdict};
use lapwing_run::RunDirectory;

use crate::failure::Finding;
use crate::table::printable;
use crate::verdicts;

/// Show the verdicts of a run, worst first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing sources runs/visits
  lapwing sources runs/visits --fail-on unreliable && deploy
  lapwing sources runs/visits --json")]
pub(crate) struct Arguments {
    /// The directory of the run
    run: PathBuf,

    /// End with exit code 1 if a source has this verdict or a worse one
    #[arg(long, value_enum, value_name = "VERDICT")]
    fail_on: Option<FailOn>,

    /// JSON, one object per line, instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailOn {
    /// Labels are wrong
    Unreliable,
    /// Labels may be wrong
    Suspect,
    /// Too little is known
    Insufficient,
    /// Rows are difficult
    Hard,
    /// Rows are of other classes than the others'
    Different,
}

impl FailOn {
    fn verdict(self) -> Verdict {
        match self {
            Self::Unreliable => Verdict::Unreliable,
            Self::Suspect => Verdict::Suspect,
            Self::Insufficient => Verdict::Insufficient,
            Self::Hard => Verdict::Hard,
            Self::Different => Verdict::Different,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = RunDirectory::open(&arguments.run)?;
    let sources = directory.sources()?;
    let sources = verdicts::worst_first(&sources);
    let mut out = crate::output::stdout();
    if arguments.json {
        for source in &sources {
            writeln!(out, "{}", verdicts::object(source)?)?;
        }
    } else {
        write!(out, "{}{}", verdicts::table(&sources), verdicts::reasons(&sources))?;
        write!(out, "{}", verdicts::findings(&sources))?;
        writeln!(out, "{}", verdicts::tally(&sources))?;
    }
    let Some(worst) = arguments.fail_on.map(FailOn::verdict) else { return Ok(()) };
    let found: Vec<&&SourceRow> = sources.iter().filter(|r| r.verdict <= worst).collect();
    let words: Vec<&str> =
        Verdict::ALL.into_iter().filter(|verdict| *verdict <= worst).map(Verdict::word).collect();
    match found.first() {
        None => Ok(()),
        Some(first) => Err(Finding(format!(
            "{} of {} sources are {}, the worst is {}",
            found.len(),
            sources.len(),
            either(&words),
            printable(&first.source)
        ))
        .into()),
    }
}

/// `a`, `a or b`, `a, b or c`, the last first.
fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, others @ ..] => {
            let others: Vec<&str> = others.iter().rev().copied().collect();
            format!("{} or {first}", others.join(", "))
        }
    }
}
