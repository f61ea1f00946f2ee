//! What is to be predicted, row by row.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use lapwing_sample::{Targets, Task, UNSEEN_CLASS};

use crate::error::{DataError, shortened};
use crate::file::Record;
use crate::numeral::Numerals;
use crate::schema::{ColumnSchema, Kind};
use crate::value::{Lexicon, Raw, Value, spelt};

/// Largest target, either way: sums of squares of a table full of them are still finite.
const LARGEST: f64 = 1e100;

/// Fills a target value by value.
pub(crate) struct TargetBuilder {
    position: usize,
    name: String,
    kind: Kind,
    unit: f64,
    numerals: Numerals,
    values: Filling,
    buffer: String,
}

enum Filling {
    Classes {
        codes: Vec<u32>,
        /// Codes by the one spelling of each name.
        by_name: IndexMap<Box<str>, u32>,
        /// Names as they were first written: what is predicted is spelt as the user spells it.
        names: Vec<String>,
        known: bool,
        unseen: BTreeMap<String, u64>,
    },
    Values(Vec<f64>),
}

impl TargetBuilder {
    /// For training: classes are collected as they come.
    pub(crate) fn new(task: Task, column: &ColumnSchema, position: usize, capacity: usize) -> Self {
        let values = match task {
            Task::Classification => Filling::Classes {
                codes: Vec::with_capacity(capacity),
                by_name: IndexMap::new(),
                names: Vec::new(),
                known: false,
                unseen: BTreeMap::new(),
            },
            Task::Regression => Filling::Values(Vec::with_capacity(capacity)),
        };
        Self {
            position,
            name: column.name.clone(),
            kind: column.kind,
            unit: column.storage.unit,
            numerals: column.storage.numerals,
            values,
            buffer: String::new(),
        }
    }

    /// For data read after training: classes are those given.
    pub(crate) fn like(
        task: Task,
        column: &ColumnSchema,
        position: usize,
        classes: &[String],
    ) -> Self {
        let mut builder = Self::new(task, column, position, 0);
        if let Filling::Classes { by_name, names, known, .. } = &mut builder.values {
            for (code, class) in classes.iter().enumerate() {
                by_name.entry(spelt(class).into()).or_insert(code as u32);
            }
            *names = classes.to_vec();
            *known = true;
        }
        builder
    }

    pub(crate) fn push(&mut self, lexicon: &Lexicon, record: &Record<'_>) -> Result<(), DataError> {
        let raw = record.value(self.position);
        match &mut self.values {
            Filling::Classes { codes, by_name, names, known, unseen } => {
                let number;
                let class = match lexicon.look(raw) {
                    // 1, 1.0 and +1 are one class.
                    Value::Number(value) if self.kind == Kind::Numeric => {
                        number = (value + 0.0).to_string();
                        number.as_str()
                    }
                    _ => lexicon.text(raw, &mut self.buffer).unwrap_or_default(),
                };
                codes.push(match by_name.get(class) {
                    Some(&code) => code,
                    None if *known => {
                        *unseen.entry(class.to_owned()).or_default() += 1;
                        UNSEEN_CLASS
                    }
                    None => {
                        let code = names.len() as u32;
                        by_name.insert(class.into(), code);
                        names.push(match raw {
                            Raw::Text(text) if self.kind != Kind::Numeric => text.trim().to_owned(),
                            _ => class.to_owned(),
                        });
                        code
                    }
                });
            }
            Filling::Values(values) => {
                values.push(match (lexicon.look_as(raw, self.numerals), self.kind) {
                    (Value::Number(number), Kind::Numeric) if number.abs() > LARGEST => {
                        return Err(DataError::TargetTooLarge {
                            place: record.place(),
                            column: self.name.clone(),
                            value: shortened(
                                lexicon.text(raw, &mut self.buffer).unwrap_or_default(),
                            ),
                            limit: LARGEST,
                        });
                    }
                    (Value::Number(number), Kind::Numeric) => number,
                    (Value::Date(moment), Kind::Date) => moment.seconds / self.unit,
                    _ => {
                        return Err(DataError::WrongType {
                            place: record.place(),
                            column: self.name.clone(),
                            expected: self.kind,
                            value: shortened(
                                lexicon.text(raw, &mut self.buffer).unwrap_or_default(),
                            ),
                        });
                    }
                });
            }
        }
        Ok(())
    }

    /// The target, with the names of its classes.
    pub(crate) fn finish(self) -> Filled {
        match self.values {
            Filling::Values(values) => Filled {
                targets: Targets::Values(values),
                classes: Vec::new(),
                unseen: BTreeMap::new(),
            },
            Filling::Classes { codes, names, known, unseen, .. } => {
                let (labels, classes) =
                    if known { (codes, names) } else { in_order(codes, names, self.kind) };
                let targets = Targets::Classes { labels, classes: classes.len() };
                Filled { targets, classes, unseen }
            }
        }
    }
}

/// A target that has been read.
pub(crate) struct Filled {
    pub(crate) targets: Targets,
    /// Numbers by value, names by alphabet; none for values.
    pub(crate) classes: Vec<String>,
    /// How often each class came up that is not among those given.
    pub(crate) unseen: BTreeMap<String, u64>,
}

/// Renumbers classes so that their order does not depend on the order of the rows.
fn in_order(mut codes: Vec<u32>, names: Vec<String>, kind: Kind) -> (Vec<u32>, Vec<String>) {
    let mut order: Vec<usize> = (0..names.len()).collect();
    let number = |index: usize| names[index].parse::<f64>().unwrap_or(f64::INFINITY);
    order.sort_by(|&a, &b| match kind {
        Kind::Numeric => number(a).total_cmp(&number(b)).then_with(|| names[a].cmp(&names[b])),
        _ => names[a].cmp(&names[b]),
    });
    let mut new_code = vec![0; names.len()];
    for (new, &old) in order.iter().enumerate() {
        new_code[old] = new as u32;
    }
    for code in &mut codes {
        *code = new_code[*code as usize];
    }
    (codes, order.iter().map(|&old| names[old].clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ordered_by_value_or_by_alphabet() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (codes, ordered) = in_order(vec![0, 1, 2, 0], names(&["10", "9", "-1"]), Kind::Numeric);
        assert_eq!((codes, ordered), (vec![2, 1, 0, 2], names(&["-1", "9", "10"])));
        let (codes, ordered) = in_order(vec![0, 1, 2], names(&["b", "10", "9"]), Kind::Categorical);
        assert_eq!((codes, ordered), (vec![2, 0, 1], names(&["10", "9", "b"])));
    }
}
