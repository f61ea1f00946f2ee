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
    Unreliable,
    Suspect,
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
        write!(out, "{}", verdicts::table(&sources))?;
        writeln!(out, "{}", verdicts::tally(&sources))?;
    }
    let worst = match arguments.fail_on {
        None => return Ok(()),
        Some(FailOn::Unreliable) => Verdict::Unreliable,
        Some(FailOn::Suspect) => Verdict::Suspect,
    };
    let found: Vec<&&SourceRow> = sources.iter().filter(|r| r.verdict <= worst).collect();
    match found.first() {
        None => Ok(()),
        Some(first) => Err(Finding(format!(
            "{} of {} sources are {}, the worst is {}",
            found.len(),
            sources.len(),
            match worst {
                Verdict::Suspect => "suspect or unreliable",
                _ => "unreliable",
            },
            printable(&first.source)
        ))
        .into()),
    }
}
