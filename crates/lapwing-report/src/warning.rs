//! Warnings, with what to do about them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{name, number};

/// The names of many sources: the first of them, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Names {
    /// The first, at most [`Names::MOST`].
    pub first: Vec<String>,
    /// All of them.
    pub count: usize,
}

impl Names {
    /// Names kept. A warning about a million sources is read by somebody who looks at three.
    pub const MOST: usize = 100;

    fn listed(&self) -> String {
        name::list_of(&self.first, self.count, 3)
    }
}

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        let mut names = names.into_iter();
        let first: Vec<String> = names.by_ref().take(Self::MOST).collect();
        let count = first.len() + names.count();
        Self { first, count }
    }
}

/// Something the reader should know before trusting the numbers. `Display` gives the sentences of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// There is nothing to compare a single source with.
    SingleSource,
    /// Some sources were seen too rarely for their window of losses to fill.
    WindowsNeverFilled {
        /// Their names.
        sources: Names,
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
        sources: Names,
    },
    /// Two sources: where they differ, nothing tells which of them is right.
    TwoSources {
        /// Their names.
        sources: Vec<String>,
    },
    /// Sources that give all their rows the same label.
    OneLabel {
        /// The first of them.
        sources: Vec<String>,
        /// How many there are.
        count: u64,
    },
    /// All rows of a class come from one source.
    ClassOfOneSource {
        /// The first of such classes, each with its source.
        classes: Vec<(String, String)>,
        /// How many there are.
        count: u64,
    },
    /// Most of what there is to compare with is unreliable itself.
    MostUnreliable {
        /// Unreliable sources.
        sources: u64,
        /// Of so many that were judged.
        of: u64,
        /// Share of the training rows that come from them, 0 to 1.
        rows: f64,
    },
    /// A test score is no better than the labels it is measured by.
    TestedOnUnreliable {
        /// Test rows of sources that are unreliable.
        rows: u64,
        /// All test rows.
        of: u64,
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
                let one = sources.count == 1;
                write!(
                    f,
                    "{} never filled {} of {} losses, because {} in at most {} {}: too few to be judged. Train longer \
                     (--epochs), use smaller batches (--batch-size), or a shorter window (--history {} or less).",
                    sources.listed(),
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
                sources.listed(),
                number::percent(*share),
                name::quoted(class),
            ),
            Warning::TwoSources { sources } => write!(
                f,
                "There are two sources only ({}). Where they contradict each other, nothing tells which of them is right: \
                 a verdict on one may be due to the other.",
                name::list(sources, 2),
            ),
            Warning::OneLabel { sources, count } => {
                let one = *count == 1;
                write!(
                    f,
                    "{} {} rows the same label. Whether {} wrong, or {} rows of one class only, labels alone cannot \
                     tell: no method can, where nobody else answers the same rows.",
                    listed(sources, *count),
                    if one { "gives all its" } else { "each give all their" },
                    if one { "it is" } else { "they are" },
                    if one { "sees" } else { "see" },
                )
            }
            Warning::ClassOfOneSource { classes, count } => {
                let all: Vec<String> = classes
                    .iter()
                    .map(|(class, source)| {
                        format!("{} from {}", name::quoted(class), name::quoted(source))
                    })
                    .chain((*count > classes.len() as u64).then(|| {
                        format!("so do {} others", number::count(count - classes.len() as u64))
                    }))
                    .collect();
                write!(
                    f,
                    "All rows of a class come from one source: {}. Nobody else can confirm or contradict {} labels.",
                    name::join(&all),
                    if *count == 1 { "these" } else { "such" },
                )
            }
            Warning::MostUnreliable { sources, of, rows } => write!(
                f,
                "{} of the {} sources that could be judged, with {} of their rows, are unreliable. Sources are judged by what most labels say; where \
                 most are wrong in the same way, the right ones look wrong. Check some rows by hand, and name sources \
                 that you know to be right with --trust.",
                number::count(*sources),
                number::count(*of),
                number::percent(*rows),
            ),
            Warning::TestedOnUnreliable { rows, of } => write!(
                f,
                "{} of the {} test rows {} from unreliable sources, whose labels the test score takes for right: --test names \
                 rows that were checked, and `lapwing evaluate --by` tells sources apart.",
                number::count(*rows),
                number::count(*of),
                if *rows == 1 { "comes" } else { "come" },
            ),
            Warning::Other { text } => f.write_str(&name::reveal(text)),
        }
    }
}

/// `“a”, “b” and 3 others`, where only the first names are known.
fn listed(names: &[String], count: u64) -> String {
    let more = count.saturating_sub(names.len() as u64);
    let mut parts: Vec<String> = names.iter().map(|name| name::quoted(name)).collect();
    if more > 0 {
        parts.push(format!("{} others", number::words(more as usize)));
    }
    name::join(&parts)
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
    fn a_million_names_are_a_hundred_and_a_number() {
        let names: Names = (0..1_000_000).map(|n| n.to_string()).collect();
        assert_eq!((names.first.len(), names.count), (100, 1_000_000));
        assert_eq!(names.listed(), "“0”, “1”, “2” and 999,997 others");
    }

    #[test]
    fn a_class_held_by_down_weighted_sources_is_named() {
        let warning = Warning::ClassWeightedDown {
            class: "cat".into(),
            share: 0.81,
            sources: ["a".to_owned()].into_iter().collect(),
        };
        assert!(warning.to_string().contains("(“a”) hold 81\u{202F}% of the rows labelled “cat”"));
    }

    #[test]
    fn what_no_method_can_know_is_said() {
        let said = |warning: Warning| warning.to_string();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let one = said(Warning::OneLabel { sources: names(&["a"]), count: 1 });
        assert!(
            one.starts_with("“a” gives all its rows the same label. Whether it is wrong"),
            "{one}"
        );
        let many = said(Warning::OneLabel { sources: names(&["a", "b"]), count: 5 });
        assert!(many.starts_with("“a”, “b” and three others each give all their rows"), "{many}");
        let class = |count| Warning::ClassOfOneSource {
            classes: vec![("cat".to_owned(), "<b>".to_owned())],
            count,
        };
        assert!(said(class(1)).contains("one source: “cat” from “<b>”. Nobody else"));
        assert!(said(class(7)).contains("“cat” from “<b>” and so do 6 others. Nobody"));
        let most = said(Warning::MostUnreliable { sources: 3, of: 4, rows: 0.75 });
        assert!(
            most.starts_with("3 of the 4 sources that could be judged, with 75\u{202F}%"),
            "{most}"
        );
        let tested = |rows| said(Warning::TestedOnUnreliable { rows, of: 1000 });
        assert!(tested(1).starts_with("1 of the 1,000 test rows comes from unreliable sources"));
        assert!(tested(200).starts_with("200 of the 1,000 test rows come from"));
        let two = said(Warning::TwoSources { sources: names(&["a", "b"]) });
        assert!(two.contains("(“a” and “b”)"), "{two}");
    }
}
