//! The report of a run: one HTML file that opens offline, from a plain data value.
//!
//! ```
//! use lapwing_judge::{SourceRow, Verdict};
//! use lapwing_report::Report;
//!
//! let source = SourceRow { source: "<b>clinic 7</b>".into(), verdict: Verdict::Suspect, ..Default::default() };
//! let page = lapwing_report::render(&Report { sources: vec![source], ..Default::default() })?;
//! assert!(page.contains("&lt;b&gt;clinic 7"));
//! # Ok::<(), lapwing_report::ReportError>(())
//! ```
//!
//! The program fills a [`Report`]; [`render`] knows nothing of files or training. Names come from data and are
//! hostile until proven otherwise, so the page keeps three promises:
//!
//! - All text passes through the template's escaping, pictures included. Nothing is marked safe.
//! - No data is put into the script or the style sheet: both are constant, and the page's content security policy
//!   allows these two by their hashes and nothing else, so that even a mistake here could not run or load anything.
//!   Where rows are pictures it allows those that stand in the page itself as PNG, too.
//! - Characters that are invisible or that reorder text are spelt out, so that names that differ look different.
//!
//! The page needs no script to be read: script only adds sorting and a filter to the table of sources.

mod confusion;
mod distribution;
mod exhibit;
mod line;
mod name;
mod number;
mod page;
mod phrase;
mod reason;
mod report;
mod scale;
mod sentences;
mod spark;
mod table;
mod warning;

pub use name::{passage, reveal};
pub use phrase::phrase;
pub use reason::reason;
pub use report::{
    Column, DoubtfulRow, Dropped, EpochMetric, Importance, Outcome, Point, Report, Setting,
    Summary, Task, Trajectory,
};
pub use warning::{Names, Warning};

/// Why a report could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Two rows of [`Report::sources`] have the same name.
    #[error(
        "source {source_name:?} appears twice in the table of sources; expected one row per source"
    )]
    DuplicateSource {
        /// The name.
        source_name: String,
    },
    /// Another part of the report names a source that is not in [`Report::sources`].
    #[error("source {source_name:?} in {part} is not in the table of sources")]
    UnknownSource {
        /// The part.
        part: &'static str,
        /// The name.
        source_name: String,
    },
    /// Lists that belong together differ in length.
    #[error("evidence on source {source_name:?}: expected {expected} {what}, found {found}")]
    Shape {
        /// The source.
        source_name: String,
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A picture that is not base64.
    #[error("source {source_name:?}: the picture of row {row} is not base64")]
    Picture {
        /// The source.
        source_name: String,
        /// The row.
        row: u64,
    },
    /// The template failed: a fault of this crate.
    #[error("the report's template failed")]
    Template(#[from] minijinja::Error),
}

/// Renders the page.
///
/// # Errors
/// When parts of the report do not fit each other (see [`ReportError`]). Numbers that are not finite, empty lists and
/// strange names are no errors.
pub fn render(report: &Report) -> Result<String, ReportError> {
    report.check()?;
    page::render(report)
}
