//! Examinations: each looks for one fault of a source.
//!
//! An examination is one file here and one line in the list at the end of this one. Its type is the fault with the
//! numbers that show it; it says how to find it ([`Examination::examine`]) and how to say it ([`Examination::words`]).
//!
//! Lines of the list are families, most telling first: of a family the first finding counts, because it explains what
//! the others would find as well. A source whose labels are given at random need not be told which of them are
//! exchanged.

mod class_mix;
mod clipped_range;
mod column_unit;
mod constant_column;
mod default_label;
mod departure;
mod disagreement;
mod duplicated_rows;
mod exchanged_classes;
mod flipped_sign;
mod frequent_disagreement;
mod input_noise;
mod input_shift;
mod missing_column;
mod moved_rows;
mod nonfinite_losses;
mod offset;
mod one_class;
mod one_label;
mod one_pair;
mod random_labels;
mod random_targets;
mod renumbered_classes;
mod replaced_inputs;
mod residual_spread;
mod scattered_disagreements;
mod shuffled_rows;
mod since;
mod stuck_value;
mod sure_rows;
mod unit;
mod wide_residuals;

use serde::{Deserialize, Serialize};

use crate::{Case, Finding, Residuals, Subject, Tally, Word};

pub use class_mix::ClassMix;
pub use clipped_range::ClippedRange;
pub use column_unit::ColumnUnit;
pub use constant_column::ConstantColumn;
pub use default_label::DefaultLabel;
pub use departure::Departure;
pub use disagreement::Disagreement;
pub use duplicated_rows::DuplicatedRows;
pub use exchanged_classes::ExchangedClasses;
pub use flipped_sign::FlippedSign;
pub use frequent_disagreement::FrequentDisagreement;
pub use input_noise::InputNoise;
pub use input_shift::InputShift;
pub use missing_column::MissingColumn;
pub use moved_rows::MovedRows;
pub use nonfinite_losses::NonfiniteLosses;
pub use offset::Offset;
pub use one_class::OneClass;
pub use one_label::OneLabel;
pub use one_pair::OnePair;
pub use random_labels::RandomLabels;
pub use random_targets::RandomTargets;
pub use renumbered_classes::RenumberedClasses;
pub use replaced_inputs::ReplacedInputs;
pub use residual_spread::ResidualSpread;
pub use scattered_disagreements::ScatteredDisagreements;
pub use shuffled_rows::ShuffledRows;
pub use since::{Moment, Since};
pub use stuck_value::StuckValue;
pub use sure_rows::SureRows;
pub use unit::Unit;
pub use wide_residuals::WideResiduals;

/// Rows below which no pattern is claimed.
const ENOUGH: u64 = 20;
/// Association below which labels have nothing to do with the rows.
const INDEPENDENT: f64 = 0.25;
/// Names told in a sentence.
const TOLD: usize = 3;

/// Which sources an examination is made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those with a verdict that calls for an explanation.
    Flagged,
    /// All: the fault is one whatever the losses say.
    Every,
}

/// A fault, and how to find it.
pub trait Examination: Sized {
    /// Which sources are examined.
    const SCOPE: Scope = Scope::Flagged;
    /// Looks for the fault in a source.
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>>;
    /// Whole sentences, and what to do about it. `rows` are those of the finding.
    fn words<'a>(&'a self, rows: &'a [u64]) -> Vec<Word<'a>>;
}

/// One examination of the list.
#[derive(Clone, Copy)]
pub struct Registered {
    /// The word for its fault.
    pub fault: &'static str,
    /// Which sources are examined.
    pub scope: Scope,
    /// Looks for the fault in a source.
    pub examine: fn(&Subject<'_>) -> Option<Finding>,
}

/// Examines every source of a case.
pub fn examine(case: &Case<'_>) -> Vec<Vec<Finding>> {
    (0..case.sources().len()).map(|source| examine_source(&case.subject(source))).collect()
}

fn examine_source(subject: &Subject<'_>) -> Vec<Finding> {
    let flagged = subject.row().verdict.is_flagged();
    let due = |examination: &&Registered| flagged || examination.scope == Scope::Every;
    let first = |family: &&[Registered]| {
        family.iter().filter(due).find_map(|examination| (examination.examine)(subject))
    };
    EXAMINATIONS.iter().filter_map(first).collect()
}

/// Labels enough to speak of a pattern, and not nearly all the same.
fn varied<'a>(subject: &'a Subject<'_>) -> Option<&'a Tally> {
    subject.tally().filter(|tally| tally.total >= ENOUGH && tally.dominant().is_none())
}

/// Whether the targets are constant, stuck or clipped, which explains where they lie.
fn has_limited_targets(subject: &Subject<'_>) -> bool {
    let looks = subject.case().inputs().looks();
    let mut targets = subject.columns().filter(|column| column.name().is_none());
    targets.any(|column| {
        ConstantColumn::of(&column, looks).is_some()
            || StuckValue::of(&column, looks).is_some()
            || ClippedRange::of(&column, looks).is_some()
    })
}

/// Targets enough to speak of a pattern, and beside predictions.
fn free_targets<'a>(subject: &'a Subject<'_>) -> Option<&'a Residuals> {
    let enough = subject.residuals().filter(|residuals| residuals.rows >= ENOUGH)?;
    (!has_limited_targets(subject)).then_some(enough)
}

/// `“a”, “b”` and so on, the first few.
fn named(columns: &[String]) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (at, name) in columns.iter().take(TOLD).enumerate() {
        let last = at + 1 == columns.len() && at > 0;
        words.extend([
            Word::Text(if last {
                " and "
            } else if at > 0 {
                ", "
            } else {
                ""
            }),
            Word::Name(name),
        ]);
    }
    if columns.len() > TOLD {
        words.extend([
            Word::Text(" and "),
            Word::Count((columns.len() - TOLD) as u64),
            Word::Text(" more"),
        ]);
    }
    words
}

/// How a sentence on a column begins, or one on the targets.
fn its_targets_or<'a>(column: Option<&'a str>, targets: &'a str, verb: &'a str) -> Vec<Word<'a>> {
    match column {
        None => vec![Word::Text(targets)],
        Some(name) => vec![Word::Name(name), Word::Text(verb)],
    }
}

/// Makes [`Fault`] and [`EXAMINATIONS`] of the list, so that they cannot disagree.
macro_rules! examinations {
    ($([$($fault:ident $word:literal),+ $(,)?])+) => {
        /// What can be wrong with a source.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "fault")]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[doc = concat!("See [`", stringify!($fault), "`].")] #[serde(rename = $word)] $fault($fault),)+)+
        }

        impl Fault {
            /// The word for it in files.
            pub fn word(&self) -> &'static str {
                match self { $($(Fault::$fault(_) => $word,)+)+ }
            }

            pub(crate) fn words<'a>(&'a self, rows: &'a [u64]) -> Vec<Word<'a>> {
                match self { $($(Fault::$fault(fault) => fault.words(rows),)+)+ }
            }
        }

        $($(impl From<$fault> for Fault {
            fn from(fault: $fault) -> Self {
                Fault::$fault(fault)
            }
        })+)+

        /// All examinations, family by family, in the order in which findings are read.
        pub const EXAMINATIONS: &[&[Registered]] = &[$(&[$(Registered {
            fault: $word,
            scope: $fault::SCOPE,
            examine: |subject| Some($fault::examine(subject)?.map(Fault::$fault)),
        }),+]),+];
    };
}

examinations! {
    [Disagreement "disagreement"]
    [ResidualSpread "residual-spread"]
    [
        DefaultLabel "default-label",
        OneLabel "one-label",
        MovedRows "moved-rows",
        ShuffledRows "shuffled-rows",
        RandomLabels "random-labels",
        ExchangedClasses "exchanged-classes",
        RenumberedClasses "renumbered-classes",
        OnePair "one-pair",
        OneClass "one-class",
        ScatteredDisagreements "scattered-disagreements",
        FlippedSign "flipped-sign",
        RandomTargets "random-targets",
        Unit "unit",
        Offset "offset",
        WideResiduals "wide-residuals",
    ]
    [FrequentDisagreement "frequent-disagreement"]
    [Since "since"]
    [ClassMix "class-mix"]
    [ReplacedInputs "replaced-inputs", InputNoise "input-noise"]
    [MissingColumn "missing-column"]
    [ConstantColumn "constant-column"]
    [StuckValue "stuck-value"]
    [ClippedRange "clipped-range"]
    [ColumnUnit "column-unit"]
    [InputShift "input-shift"]
    [DuplicatedRows "duplicated-rows"]
    [SureRows "sure-rows"]
    [Departure "departure"]
    [NonfiniteLosses "nonfinite-losses"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_word_of_its_own() {
        let mut words: Vec<&str> =
            EXAMINATIONS.iter().flat_map(|family| family.iter()).map(|e| e.fault).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }
}
