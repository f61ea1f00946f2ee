//! Since when, and until when, labels contradict what is known of their rows.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, Scope};
use crate::chance::is_beyond_chance;
use crate::change::{Change, End, change, ln_chance};
use crate::{Finding, Subject, Word};

/// Its labels are contradicted more often from some time on, or up to some time, than before or after. The strength is how
/// much more often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Since {
    /// When it begins; nothing where it has been so from the first row on.
    pub from: Option<Moment>,
    /// When it ends; nothing where it is so up to the last row.
    pub until: Option<Moment>,
    /// Share of its rows that contradict the model meanwhile.
    pub inside: f64,
    /// The same before and after.
    pub outside: f64,
}

/// A time as it would stand in the table, with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The first row from which on it is so, or no longer.
    pub time: String,
    /// It lies behind this time.
    pub low: String,
    /// It does not lie behind this time.
    pub high: String,
}

impl Examination for Since {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let course = subject.course()?;
        if (course.len() as u64) < ENOUGH {
            return None;
        }
        let rows: Vec<(f64, bool)> = course.iter().map(|row| (row.time, row.contradicts)).collect();
        if !is_beyond_chance(ln_chance(&rows), subject.case().sources().len()) {
            return None;
        }
        let Change { begin, end, inside, outside } = change(&rows)?;
        let text = subject.rows()?.times?.text;
        let moment =
            |end: End| Moment { time: text(end.time), low: text(end.low), high: text(end.high) };
        let fault = Self { from: begin.map(moment), until: end.map(moment), inside, outside };
        let within = |time: f64| {
            begin.is_none_or(|begin| time >= begin.time) && end.is_none_or(|end| time < end.time)
        };
        let meanwhile: std::collections::BTreeSet<u32> = course
            .iter()
            .filter(|row| row.contradicts && within(row.time))
            .map(|row| row.place)
            .collect();
        let rows = subject.examples(|place| meanwhile.contains(&place));
        Some(Finding::new(fault, inside - outside).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let between = |moment: &'a Moment| {
            let words = [
                Word::Text(&moment.time),
                Word::Text(" (95 % interval: after "),
                Word::Text(&moment.low),
                Word::Text(", not after "),
                Word::Text(&moment.high),
                Word::Text(")"),
            ];
            words.into_iter()
        };
        let mut words = Vec::new();
        if let Some(from) = &self.from {
            words.push(Word::Text("From "));
            words.extend(between(from));
            words.push(Word::Text(if self.until.is_some() { " until " } else { " on" }));
        }
        if let Some(until) = &self.until {
            if self.from.is_none() {
                words.push(Word::Text("Until "));
            }
            words.extend(between(until));
        }
        words.extend([
            Word::Text(" it contradicts the model in "),
            Word::Share(self.inside),
            Word::Text(" of its rows, "),
            Word::Text(match (&self.from, &self.until) {
                (Some(_), Some(_)) => "before and after in ",
                (Some(_), None) => "before in ",
                (None, _) => "afterwards in ",
            }),
            Word::Share(self.outside),
            Word::Text(": ask what was changed then."),
        ]);
        words
    }
}
