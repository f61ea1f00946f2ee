//! The verdict on a source.
//!
//! Every step in which a source is compared with the others is a *judgement*: its loss is above the threshold or not.
//! Unreliability C counts one up for every judgement above and one down for every other, never below zero.
//!
//! | verdict | when |
//! |---|---|
//! | `insufficient` | fewer than [`FEWEST_ROWS`] training rows, or fewer judgements than twice the history length (at least [`FEWEST_JUDGEMENTS`]) |
//! | `unreliable` | above the threshold in at least half of its judgements, and C at least a quarter of them |
//! | `suspect` | above in at least a quarter of its judgements with C above a twentieth of them, or at less than half weight |
//! | `reliable` | everything else |
//!
//! Why these. A source that is no worse than the others is above a threshold of 0.8 standard deviations rarely, and its
//! C keeps returning to zero: a share of one half is the point at which C grows in the long run instead of falling. C
//! itself says whether it still holds at the end: a source that was above early and was then learnt has a large share
//! and a small C, and is no more than suspect. C is compared with the judgements of the source, not with the steps of
//! the run, because a source that is in one batch of ten cannot collect more. Fewer rows than ten are few enough to be
//! hard by chance: their mean loss strays further than the threshold in about one clean source of ten.
//!
//! A loss cannot tell difficult rows from wrong labels. For classes, [`unseen`](crate::unseen) can. For values, a source that
//! is flagged is reconsidered by what the model says of its rows ([`SourceRow::reconsider`]), of which it has learnt little
//! where they weighed little:
//!
//! | | at least half of their spread [explained](crate::explained) | less |
//! |---|---|---|
//! | interval of the label errors from 0.12 on | `suspect` at most | as it was |
//! | it begins below that | `hard` | `suspect` at most |

use serde::{Deserialize, Serialize};

use crate::SourceRow;

/// Fewest training rows for a verdict.
pub const FEWEST_ROWS: u64 = 10;
/// Fewest judgements for a verdict.
pub const FEWEST_JUDGEMENTS: u64 = 20;
/// Weight below which a source is no longer called reliable.
const LIGHT: f64 = 0.5;
/// Where the interval of the share of wrong values must begin for `unreliable`: as that of a noise rate.
const WRONG: f64 = 0.12;
/// The share of the spread of its values by which a source is difficult rather than wrong.
const EXPLAINED: f64 = 0.5;

/// The verdict on a source, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Its labels contradict the other sources.
    Unreliable,
    /// It may be unreliable.
    Suspect,
    /// Too little was seen of it.
    #[default]
    Insufficient,
    /// Its rows are difficult; its labels are not wrong.
    Hard,
    /// Its classes are unlike those of the others; its labels are not wrong.
    Different,
    /// Nothing speaks against it.
    Reliable,
}

impl Verdict {
    /// All of them, worst first.
    pub const ALL: [Self; 6] = [
        Self::Unreliable,
        Self::Suspect,
        Self::Insufficient,
        Self::Hard,
        Self::Different,
        Self::Reliable,
    ];

    /// The word as in `sources.csv`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Unreliable => "unreliable",
            Verdict::Suspect => "suspect",
            Verdict::Insufficient => "insufficient",
            Verdict::Hard => "hard",
            Verdict::Different => "different",
            Verdict::Reliable => "reliable",
        }
    }

    /// Whether the source is to be looked at.
    pub fn is_flagged(self) -> bool {
        matches!(self, Verdict::Unreliable | Verdict::Suspect)
    }
}

/// What a verdict rests on: a number, and the limit that it passed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// Fewer training rows than it takes.
    FewRows {
        /// How many there are.
        rows: u64,
        /// How many it takes.
        least: u64,
    },
    /// Fewer comparisons with the others than it takes.
    FewJudgements {
        /// How many there were.
        judged: u64,
        /// How many it takes.
        least: u64,
    },
    /// Its loss was above the threshold in many of its judgements.
    Above {
        /// In this share of them.
        share: f64,
        /// The limit.
        least: f64,
    },
    /// It still was at the end: C as a share of its judgements.
    Lasting {
        /// The share.
        share: f64,
        /// The limit.
        least: f64,
    },
    /// The rule left it little weight.
    Light {
        /// How much.
        weight: f64,
        /// The limit.
        most: f64,
    },
    /// Networks that have not seen its labels take many of them for noise.
    Noise {
        /// The noise rate.
        rate: f64,
        /// Its 95 % interval.
        low: f64,
        /// The other end.
        high: f64,
        /// The limit for the interval's lower end.
        least: f64,
    },
    /// It gives the same label to all its rows, so that nobody can tell a wrong label from rows of one class.
    OneLabel,
    /// The interval of its noise rate is so wide that it says nothing.
    Wide {
        /// The interval.
        low: f64,
        /// The other end.
        high: f64,
        /// How wide it may be.
        most: f64,
    },
    /// Networks give other labels to its rows more often than to those of the others.
    Contradicted {
        /// On this share of its rows.
        share: f64,
        /// And on this share of the others'.
        others: f64,
    },
    /// Networks doubt their own answers on its rows: they are difficult.
    Doubted {
        /// On this share of its rows they expect to be wrong.
        share: f64,
        /// And on this share of the others'.
        others: f64,
    },
    /// Networks do not doubt their own answers on its rows, though they contradict it: it is not that they are difficult.
    Undoubted {
        /// On this share of its rows they expect to be wrong.
        share: f64,
    },
    /// Two classes have the label of each other.
    Exchanged {
        /// Rows of the two, by the networks' word.
        rows: u64,
        /// The share of them that has the label of the other class.
        share: f64,
    },
    /// The classes of its rows are not those of the others.
    OtherClasses {
        /// The total variation between the two.
        distance: f64,
        /// The limit.
        least: f64,
    },
    /// The model explains much of how its values differ.
    Explained {
        /// The share of their spread.
        share: f64,
        /// The limit.
        least: f64,
    },
    /// Hardly more of its values are far from the model than is usual.
    Near {
        /// The share that is, beyond what is usual.
        share: f64,
        /// Where its interval begins.
        low: f64,
        /// The limit for that.
        least: f64,
    },
    /// What it sends is unlike what all others send, so that networks that have not seen it may be wrong about it.
    OtherInputs {
        /// How far apart the two are, 0 to 1.
        distance: f64,
        /// The limit.
        least: f64,
    },
}

/// How far the inputs of a source lie from all others' where networks cannot be asked of them.
const UNKNOWN: f64 = 0.9;

/// What becomes of a verdict by networks, and the reason that is added, where inputs lie so far from the others'.
pub(crate) fn with_inputs(verdict: Verdict, distance: f64) -> (Verdict, Option<Reason>) {
    match verdict {
        Verdict::Unreliable if distance >= UNKNOWN => {
            (Verdict::Suspect, Some(Reason::OtherInputs { distance, least: UNKNOWN }))
        }
        verdict => (verdict, None),
    }
}

/// What becomes of a verdict on values that rests on losses, and the reasons that are added.
pub(crate) fn reconsidered(seen: &SourceRow, explained: Option<f64>) -> (Verdict, Vec<Reason>) {
    let mut reasons = Vec::new();
    if !seen.verdict.is_flagged() {
        return (seen.verdict, reasons);
    }
    if let Some(share) = explained.filter(|share| *share >= EXPLAINED) {
        reasons.push(Reason::Explained { share, least: EXPLAINED });
    }
    if let Some(error) = seen.label_error.filter(|error| error.low < WRONG) {
        reasons.push(Reason::Near { share: error.estimate, low: error.low, least: WRONG });
    }
    let verdict = match reasons.len() {
        0 => seen.verdict,
        1 => Verdict::Suspect,
        _ => Verdict::Hard,
    };
    (verdict, reasons)
}

/// The verdict, and why.
pub(crate) fn judge(seen: &SourceRow, history_length: usize) -> (Verdict, Vec<Reason>) {
    let SourceRow { rows, judged, above, unreliability, rule_weight: weight, .. } = *seen;
    let enough = FEWEST_JUDGEMENTS.max(2 * history_length as u64);
    let mut lacking = Vec::new();
    if rows < FEWEST_ROWS {
        lacking.push(Reason::FewRows { rows, least: FEWEST_ROWS });
    }
    if judged < enough {
        lacking.push(Reason::FewJudgements { judged, least: enough });
    }
    if !lacking.is_empty() {
        return (Verdict::Insufficient, lacking);
    }
    let share = above as f64 / judged as f64;
    let held = unreliability as f64 / judged as f64;
    let grounds = |above, lasting| {
        vec![Reason::Above { share, least: above }, Reason::Lasting { share: held, least: lasting }]
    };
    if share >= 0.5 && held >= 0.25 {
        return (Verdict::Unreliable, grounds(0.5, 0.25));
    }
    let mut reasons = Vec::new();
    if share >= 0.25 && held > 0.05 {
        reasons = grounds(0.25, 0.05);
    }
    if weight < LIGHT {
        reasons.push(Reason::Light { weight, most: LIGHT });
    }
    (if reasons.is_empty() { Verdict::Reliable } else { Verdict::Suspect }, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(judged: u64, above: u64, unreliability: u64) -> SourceRow {
        SourceRow {
            rows: 1000,
            judged,
            above,
            unreliability,
            rule_weight: 1.0,
            ..SourceRow::default()
        }
    }

    fn verdict(seen: &SourceRow) -> Verdict {
        judge(seen, 25).0
    }

    #[test]
    fn a_source_above_the_threshold_most_of_the_time_to_the_end_is_unreliable() {
        assert_eq!(verdict(&seen(1000, 1000, 1000)), Verdict::Unreliable);
        assert_eq!(verdict(&seen(1000, 650, 300)), Verdict::Unreliable);
    }

    #[test]
    fn a_source_that_recovered_or_wavers_is_suspect() {
        assert_eq!(verdict(&seen(1000, 550, 100)), Verdict::Suspect);
        assert_eq!(verdict(&seen(1000, 300, 60)), Verdict::Suspect);
        let light = SourceRow { rule_weight: 0.3, ..seen(10_000, 1000, 400) };
        assert_eq!(verdict(&light), Verdict::Suspect);
    }

    #[test]
    fn a_source_now_and_then_above_is_reliable() {
        assert_eq!(verdict(&seen(1000, 150, 3)), Verdict::Reliable);
        assert_eq!(verdict(&seen(1000, 0, 0)), Verdict::Reliable);
    }

    #[test]
    fn little_seen_is_little_known() {
        assert_eq!(verdict(&seen(49, 49, 49)), Verdict::Insufficient);
        assert_eq!(verdict(&seen(50, 50, 50)), Verdict::Unreliable);
        let few = SourceRow { rows: 9, ..seen(1000, 1000, 1000) };
        assert_eq!(verdict(&few), Verdict::Insufficient);
    }

    #[test]
    fn a_verdict_says_what_it_rests_on() {
        let reasons = |row: &SourceRow| judge(row, 25).1;
        assert_eq!(reasons(&seen(1000, 0, 0)), []);
        assert_eq!(
            reasons(&seen(1000, 650, 300)),
            [
                Reason::Above { share: 0.65, least: 0.5 },
                Reason::Lasting { share: 0.3, least: 0.25 }
            ]
        );
        let few = SourceRow { rows: 9, ..seen(49, 49, 49) };
        assert_eq!(
            reasons(&few),
            [
                Reason::FewRows { rows: 9, least: FEWEST_ROWS },
                Reason::FewJudgements { judged: 49, least: 50 }
            ]
        );
        let light = SourceRow { rule_weight: 0.3, ..seen(1000, 300, 60) };
        assert_eq!(reasons(&light)[2], Reason::Light { weight: 0.3, most: 0.5 });
    }

    #[test]
    fn values_that_the_model_explains_are_difficult_and_not_wrong() {
        let interval = |low| Some(crate::Interval { estimate: low + 0.05, low, high: low + 0.1 });
        let after = |verdict, low, explained| {
            let row = SourceRow { verdict, label_error: interval(low), ..SourceRow::default() };
            let mut row = SourceRow { reasons: vec![Reason::OneLabel], ..row };
            row.reconsider(explained);
            (row.verdict, row.reasons.len() - 1)
        };
        use Verdict::{Hard, Reliable, Suspect, Unreliable};
        assert_eq!(after(Unreliable, 0.04, Some(0.8)), (Hard, 2));
        assert_eq!(after(Unreliable, 0.2, Some(0.8)), (Suspect, 1));
        assert_eq!(after(Unreliable, 0.04, Some(0.3)), (Suspect, 1));
        assert_eq!(after(Unreliable, 0.2, Some(0.3)), (Unreliable, 0));
        assert_eq!(after(Unreliable, 0.2, None), (Unreliable, 0));
        assert_eq!(after(Suspect, 0.04, Some(0.8)), (Hard, 2));
        assert_eq!(after(Suspect, 0.2, Some(-3.0)), (Suspect, 0));
        assert_eq!(after(Reliable, 0.04, Some(0.8)), (Reliable, 0));
    }

    #[test]
    fn what_the_user_ruled_does_not_change_the_verdict() {
        let trusted = SourceRow { weight: 1.0, ..seen(1000, 1000, 1000) };
        let blocked = SourceRow { weight: 0.0, ..seen(1000, 0, 0) };
        assert_eq!(
            (verdict(&trusted), verdict(&blocked)),
            (Verdict::Unreliable, Verdict::Reliable)
        );
    }

    #[test]
    fn verdicts_are_listed_once_each_worst_first() {
        assert!(Verdict::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.word());
        }
    }
}
