//! Judgement on sources: what training saw of them in, verdicts and findings out.
//!
//! ```text
//! losses ─ the rule ─▶ SourceRow ─ judge ─▶ verdict, reasons
//! given and predicted ─ label_errors ─▶ the share of wrong labels, with its interval
//!                     ─ examine ─▶ findings: fault, strength, example rows
//! labels and networks that have not seen them ─ unseen ─▶ noise rate, disagreement and verdict; a probability per row
//! recorded points ─ phases ─▶ losses early, midway and late
//! ```
//!
//! Everything is a plain value. This crate knows no network, no file and no page: it is given lists of numbers, and
//! whoever shows its findings decides how numbers and names are written ([`Word`]).
//!
//! ```
//! use lapwing_judge::{Answered, Answers, Case, Rows, SourceRow, Verdict, examine};
//!
//! // Three sources of thirty rows each. The third gives every row the label that the model gives to none of them.
//! let names = ["cat".to_owned(), "dog".to_owned()];
//! let sources: Vec<u32> = (0..90).map(|row| row / 30).collect();
//! let given: Vec<u32> = (0..90).map(|row| if row < 60 { row % 2 } else { 1 }).collect();
//! let probabilities: Vec<f32> =
//!     (0..90).flat_map(|row| if row < 60 && row % 2 == 1 { [0.1, 0.9] } else { [0.9, 0.1] }).collect();
//! let numbers: Vec<u64> = (1..=90).collect();
//!
//! let row = |source: &str, verdict| SourceRow { source: source.into(), verdict, ..SourceRow::default() };
//! let judged =
//!     [row("ann", Verdict::Reliable), row("bob", Verdict::Reliable), row("cid", Verdict::Unreliable)];
//! let answers = Answers::Classes { names: &names, given: &given, probabilities: &probabilities };
//! let rows = Rows::new(Answered { sources: &sources, answers }, &numbers);
//! let findings = examine(&Case::new(&judged, Some(rows))?);
//! assert!(findings[0].is_empty());
//! assert_eq!(findings[2][1].fault.word(), "default-label");
//! # Ok::<(), lapwing_judge::JudgeError>(())
//! ```

mod apart;
mod case;
mod chance;
mod change;
mod confusion;
mod error;
mod evidence;
mod examination;
mod finding;
mod histogram;
mod inputs;
mod label_error;
mod phase;
mod residuals;
mod rows;
mod source;
mod structure;
mod unseen;
mod values;
mod verdict;

pub use apart::apart;
pub use case::{Case, Subject};
pub use confusion::{Confusion, MOST_CLASSES, Tally};
pub use error::JudgeError;
pub use evidence::{Comparison, Evidence, WorstRow};
pub use examination::*;
pub use finding::{Finding, Word};
pub use histogram::Histogram;
pub use label_error::{Interval, LabelError, label_error, label_errors, wilson};
pub use phase::{Phase, PhaseLosses, SourceLosses, TrajectoryPoint, mean_loss, phases};
pub use residuals::Residuals;
pub use rows::{Answered, Answers, Column, Features, Rows, Times};
pub use source::{Cell, Ruling, SourceRow};
pub use unseen::{JudgedSource, LabelNoise, RowNoise, SourceNoise, Unseen, unseen};
pub use values::explained;
pub use verdict::{FEWEST_JUDGEMENTS, FEWEST_ROWS, Reason, Verdict};
