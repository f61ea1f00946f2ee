//! Warnings, with what to do about them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{name, number};

/// Something the reader should know before trusting the numbers. `Display` gives the sentences of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// There is nothing to compare a single source with.
    SingleSource,
    /// Some sources were seen too rarely for their window of losses to fill.
    WindowsNeverFilled {
        /// Their names.
        sources: Vec<String>,
        /// H.
        history_length: u64,
        /// Batches of the one among them that was seen most often.
        most_batches: u64,
    },
    /// Most rows of one class come from sources that were weighted down.
    ClassWeightedDown {
        /// The class.
        class: String,
        /// Share of its rows that come from such sources, 0 to 1.
        share: f64,
        /// These sources.
        sources: Vec<String>,
    },
    /// Anything else.
    Other {
        /// Whole sentences.
        text: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::SingleSource => write!(
                f,
                "All rows come from one source. Reliability is judged by comparing sources, so nothing could be \
                 judged and every row kept its full weight. If the data has a finer origin (annotator, site, device, \
                 day), name that column with --source."
            ),
            Warning::WindowsNeverFilled {
                sources,
                history_length,
                most_batches,
            } => {
                let (have, they) = if sources.len() == 1 {
                    ("has", "it")
                } else {
                    ("have", "they")
                };
                write!(
                    f,
                    "{} never filled {} window of {} losses ({} seen in at most {} batches), so {} could not be judged \
                     to the end and {} no verdict to rely on. Train longer (--epochs), use smaller batches \
                     (--batch-size) or a shorter window (--history {} or less).",
                    name::list(sources, 3),
                    if sources.len() == 1 { "its" } else { "their" },
                    number::count(*history_length),
                    they,
                    number::count(*most_batches),
                    they,
                    have,
                    number::count((*most_batches / 2).max(1)),
                )
            }
            Warning::ClassWeightedDown {
                class,
                share,
                sources,
            } => write!(
                f,
                "Sources that were weighted down ({}) hold {} of the rows labelled {}. The model may have unlearnt this \
                 class rather than its errors. Look at these rows first; --trust keeps a source at full weight and \
                 --floor sets a least weight for all.",
                name::list(sources, 3),
                number::percent(*share),
                name::quoted(class),
            ),
            Warning::Other { text } => f.write_str(&name::reveal(text)),
        }
    }
}
