//! A run: from a table to a model, a verdict per source, and a directory that holds everything about it.
//!
//! ```text
//! Settings ─ Prepared::read ─▶ dataset, split, test ─ Job::new ─▶ plan ─ Job::run ─▶ Fit ─ Results::new ─▶ RunDirectory
//!                                                                         Job::judge ─▶ (labels judged by other networks)
//! ```
//!
//! Three hospitals, one of which says the contrary:
//!
//! ```
//! use lapwing_judge::Verdict;
//! use lapwing_run::{Job, Prepared, Results, RunDirectory, Settings};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("visits.csv");
//! let mut table = "age,hospital,ill\n".to_owned();
//! for row in 0..600 {
//!     let (age, hospital) = (row * 7 % 100, ["north", "south", "attic"][row % 3]);
//!     let ill = (age > 50) != (hospital == "attic");
//!     table += &format!("{age},{hospital},{ill}\n");
//! }
//! std::fs::write(&path, table)?;
//!
//! let (target, source) = (Some("ill".to_owned()), Some("hospital".to_owned()));
//! let settings = Settings { data: Some(path), target, source, epochs: Some(60), ..Settings::default() };
//! let prepared = Prepared::read(&settings)?;
//! let job = Job::new(&prepared.dataset, &prepared.split, &settings)?;
//! let Some(fit) = job.run(None, &mut ())? else { return Ok(()) }; // `()` looks on and never interrupts
//! let Some(mut fit) = job.judge(fit, None, &mut ())? else { return Ok(()) };
//! let results = Results::new(&prepared, &job, &mut fit, None)?;
//! for source in results.sources() {
//!     let expected = if source.source == "attic" { Verdict::Unreliable } else { Verdict::Reliable };
//!     assert_eq!(source.verdict, expected);
//! }
//! RunDirectory::create(&directory.path().join("run"), false, &job.settings)?.write(&job, &fit, &results)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Candidates`] choose between trees and a network where nobody asks for a model, [`Comparison`] trains several methods
//! and models side by side, [`Replay`] runs the rule over a log of losses without training.

mod auto;
mod choice;
mod compare;
mod demo;
mod directory;
mod error;
mod export;
mod fit;
mod folds;
mod items_file;
mod judgement;
mod learnt;
mod limits;
mod manifest;
mod metrics;
mod model_file;
mod model_kind;
mod paired;
mod prepare;
mod recorder;
mod replay;
mod report;
mod results;
mod rows_file;
mod settings;
mod shown;
mod sources_file;
mod standings;
mod trajectory_file;
mod trees;

pub use auto::{Both, Candidates, Compared, Size, Trial};
pub use choice::Choice;
pub use compare::{Comparison, Outcome};
pub use demo::{DEMO_LEVELS, Demonstration, Moon, two_moons};
pub use directory::RunDirectory;
pub use error::RunError;
pub use fit::{Checkpoints, Fit, Job, Progress, Watch};
pub use folds::{
    FOLDS, FoldRun, Folds, JudgedLabels, LabelledRows, MOST_FOLDS, MOST_ROWS, MOST_STEPS, Unjudged,
};
pub use items_file::ItemRow;
pub use learnt::Learnt;
pub use metrics::Metrics;
pub use model_file::{Evaluation, Predicted, Predictor};
pub use model_kind::ModelKind;
pub use paired::{Difference, Spread};
pub use prepare::Prepared;
pub use recorder::{MOST_POINTS, Recorder};
pub use replay::{Replay, ReplayError};
pub use results::{MetricLine, Results};
pub use settings::{BadRow, LossName, OptimiserName, Parameters, Settings, method_parameters};
pub use trees::{round_as_epoch, show_round};
