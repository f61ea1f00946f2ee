//! What the user should be told of a table.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::shortened;

/// Something that does not stop training but may surprise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Warning {
    /// All rows come from one source: there is nothing to compare it with.
    OneSource(String),
    /// Every row is an item of its own: there are no answers to compare.
    OneAnswerEach {
        /// The column of items.
        column: String,
    },
    /// So few items that sources must have answered on each again and again.
    FewItems {
        /// The column of items.
        column: String,
        /// Items.
        items: u64,
        /// Rows.
        rows: u64,
    },
    /// Rows with the same inputs are taken for answers on one item, though nobody said so.
    ItemsFound {
        /// Rows.
        rows: u64,
        /// Items.
        items: u64,
    },
    /// Every row is its own source: no source can be judged.
    SourcePerRow(u64),
    /// A few texts among whole numbers: all values are then names.
    TextAmongNumbers {
        /// The column.
        column: String,
        /// Texts.
        strays: u64,
        /// Values.
        present: u64,
        /// The first text, and where it is.
        first: String,
    },
    /// Dates that are not read, because the day comes first in one country and the month in another.
    AmbiguousDates {
        /// The column.
        column: String,
        /// The first of them, and where it is.
        first: String,
    },
    /// Free text that is not used, and could be.
    TextNotUsed {
        /// The column.
        column: String,
    },
    /// Rows that do not say when they were taken.
    TimeMissing {
        /// The column.
        column: String,
        /// How many.
        rows: u64,
    },
    /// Rows that were left out, as asked, since their pictures cannot be read.
    PicturesSkipped {
        /// How many.
        rows: u64,
        /// The first of them, and why.
        first: String,
        /// Sources of which nothing is left.
        lost: Vec<String>,
    },
    /// Names that are the same but for case and spaces, and are told apart all the same.
    NamesAlike {
        /// Whether they are those of sources; else of classes.
        sources: bool,
        /// How many there are beside those that they are like.
        count: u64,
        /// The first two.
        first: (String, String),
    },
    /// On average a class has fewer than two rows; the target may be the wrong column.
    ManyClasses {
        /// Classes.
        classes: u64,
        /// Rows.
        rows: u64,
    },
}

/// Names looked at for others that are alike; of more, nobody would read the table.
const MOST_NAMES: usize = 100_000;

impl Warning {
    /// Where names, of sources or of classes, are the same but for case and spaces.
    pub(crate) fn of_names_alike(names: &[String], sources: bool) -> Option<Self> {
        if names.len() > MOST_NAMES {
            return None;
        }
        let mut seen: HashMap<String, &String> = HashMap::new();
        let (mut count, mut first) = (0, None);
        for name in names {
            let plain = name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            let like = *seen.entry(plain).or_insert(name);
            if like != name {
                count += 1;
                first.get_or_insert_with(|| (like.clone(), name.clone()));
            }
        }
        first.map(|first| Self::NamesAlike { sources, count, first })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneSource(name) => write!(f, "all rows come from one source, {name:?}"),
            Self::OneAnswerEach { column } => {
                write!(
                    f,
                    "no two rows have the same item in column {column:?}: answers cannot be compared"
                )
            }
            Self::FewItems { column, items, rows } => write!(
                f,
                "column {column:?} has {items} items for {rows} rows: sources answer on the same item again and again, and all \
                 its answers are taken for one; --item is for what several sources answer on, each of them once"
            ),
            Self::ItemsFound { rows, items } => write!(
                f,
                "the {rows} rows are taken for answers on {items} items: inputs are the same in several sources, and hardly \
                 ever twice in one; the rows of an item stay together in every split, and are weighed against each other \
                 where noise rates are learnt"
            ),
            Self::SourcePerRow(rows) => write!(f, "each of the {rows} rows is a source of its own"),
            Self::TextAmongNumbers { column, strays, present, first } => write!(
                f,
                "column {column:?}: {strays} of {present} values are not numbers ({first}); \
                 all of its values are taken as names"
            ),
            Self::AmbiguousDates { column, first } => write!(
                f,
                "column {column:?} holds dates such as {first}, which are not read as dates: \
                 day or month may come first; write them as 2024-12-31"
            ),
            Self::TextNotUsed { column } => {
                write!(f, "column {column:?} holds free text, which is not learnt from")
            }
            Self::TimeMissing { column, rows } => write!(
                f,
                "{rows} rows have no time in column {column:?}, and do not count where it is asked since when a \
                 source is bad"
            ),
            Self::PicturesSkipped { rows, first, lost } => {
                write!(
                    f,
                    "rows left out because their pictures cannot be read: {rows} (the first: {first})"
                )?;
                let names: Vec<String> =
                    lost.iter().take(10).map(|name| format!("{:?}", shortened(name))).collect();
                match (lost.len(), names.join(", ")) {
                    (0, _) => Ok(()),
                    (1, name) => {
                        write!(f, "; nothing is left of source {name}, and nobody judges it")
                    }
                    (count, names) => write!(
                        f,
                        "; nothing is left of {count} sources, and nobody judges them: {names}{}",
                        if count > 10 { ", …" } else { "" }
                    ),
                }
            }
            Self::NamesAlike { sources, count, first: (one, other) } => write!(
                f,
                "{} {} in case or spaces alone, such as {other:?} from {one:?}: they are told apart, correct the table if they \
                 are the same",
                match (sources, count) {
                    (true, 1) => "a source".to_owned(),
                    (true, count) => format!("{count} sources"),
                    (false, 1) => "a class".to_owned(),
                    (false, count) => format!("{count} classes"),
                },
                if *count == 1 { "differs from another one" } else { "differ from others" },
            ),
            Self::ManyClasses { classes, rows } => {
                write!(f, "the target has {classes} classes in {rows} rows")
            }
        }
    }
}
