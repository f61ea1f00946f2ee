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
            Warning::WindowsNeverFilled { sources, history_length, most_batches } => {
                let one = sources.len() == 1;
                write!(
                    f,
                    "{} never filled {} of {} losses, because {} in at most {} {}: too few to be judged. Train longer \
                     (--epochs), use smaller batches (--batch-size), or a shorter window (--history {} or less).",
                    name::list(sources, 3),
                    if one { "its window" } else { "their windows" },
                    number::count(*history_length),
                    if one { "it appeared" } else { "they appeared" },
                    number::count(*most_batches),
                    if *most_batches == 1 { "batch" } else { "batches" },
                    number::count((*most_batches / 2).max(1)),
                )
            }
            Warning::ClassWeightedDown { class, share, sources } => write!(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_never_filled_say_what_to_change() {
        let warning = |sources: &[&str]| Warning::WindowsNeverFilled {
            sources: sources.iter().map(|s| (*s).to_owned()).collect(),
            history_length: 25,
            most_batches: 12,
        };
        assert_eq!(
            warning(&["a"]).to_string(),
            "“a” never filled its window of 25 losses, because it appeared in at most 12 batches: too few to be judged. Train \
             longer (--epochs), use smaller batches (--batch-size), or a shorter window (--history 6 or less)."
        );
        assert!(
            warning(&["a", "b"])
                .to_string()
                .starts_with("“a” and “b” never filled their windows of 25 losses")
        );
    }

    #[test]
    fn a_class_held_by_down_weighted_sources_is_named() {
        let warning = Warning::ClassWeightedDown {
            class: "cat".into(),
            share: 0.81,
            sources: vec!["a".into()],
        };
        assert!(warning.to_string().contains("(“a”) hold 81\u{202F}% of the rows labelled “cat”"));
    }
}
