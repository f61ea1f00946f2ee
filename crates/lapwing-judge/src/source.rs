//! What is known of a source: one row, wherever it is written, read or shown.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::Hash;

use lapwing_core::{Lap, SourceStatus};
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    Fault, Finding, Interval, JudgedSource, Moment, Reason, SourceNoise, Verdict, verdict,
};

/// One source at the end of training: what the rule saw of it, and what was made of that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRow {
    /// Name as in the data; any text at all.
    pub source: String,
    /// Training rows.
    pub rows: u64,
    /// Batches in which it had a finite loss.
    pub batches: u64,
    /// C.
    pub unreliability: u64,
    /// What its rows count for, the user's guards included.
    pub weight: f64,
    /// f(C), whatever the user said. Under other methods than LAP, what it would have been.
    pub rule_weight: f64,
    /// Mean loss over its window.
    pub mean_loss: Option<f64>,
    /// Mean loss of the others, weighted by their reliability.
    pub reference_loss: Option<f64>,
    /// Standard deviation that goes with it.
    pub reference_std: Option<f64>,
    /// Losses that were NaN or infinite.
    pub nonfinite: u64,
    /// Steps in which it was compared with the others.
    pub judged: u64,
    /// How many of these found it above the threshold.
    pub above: u64,
    /// The first of these. Logs of losses may number their steps from anywhere.
    pub first_departure_step: Option<i64>,
    /// What the user ruled about it, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why this verdict; nothing where nothing speaks against the source.
    pub reasons: Vec<Reason>,
    /// Estimated share of wrong labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_error: Option<Interval>,
    /// What networks that have not seen its labels say of them, where they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<SourceNoise>,
    /// What is wrong with it, most telling first.
    pub findings: Vec<Finding>,
}

/// What the user ruled about a source, whatever its losses say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    /// Never down-weighted.
    Trusted,
    /// Weight 0.
    Blocked,
}

/// One field of a [`SourceRow`], for those who write tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A text.
    Text(&'a str),
    /// A text that may be missing.
    Maybe(Option<Cow<'a, str>>),
    /// A count.
    Count(u64),
    /// A number that may be missing.
    Number(Option<f64>),
    /// A step that may be missing.
    Step(Option<i64>),
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Maybe(text) => text.serialize(serializer),
            Cell::Count(count) => serializer.serialize_u64(*count),
            Cell::Number(number) => number.serialize(serializer),
            Cell::Step(step) => step.serialize(serializer),
        }
    }
}

impl SourceRow {
    /// The columns of `sources.csv`.
    pub const COLUMNS: [&'static str; 24] = [
        "source",
        "rows",
        "batches",
        "unreliability",
        "weight",
        "mean_loss",
        "reference_loss",
        "reference_std",
        "nonfinite",
        "first_departure_step",
        "verdict",
        "noise_rate",
        "noise_rate_low",
        "noise_rate_high",
        "disagreement",
        "doubt",
        "class_mix",
        "bad_from",
        "bad_from_low",
        "bad_from_high",
        "bad_until",
        "bad_until_low",
        "bad_until_high",
        "faults",
    ];

    /// What the rule knows of a source; not yet judged.
    pub fn seen<K>(name: impl Into<String>, status: &SourceStatus<K>) -> Self {
        Self {
            source: name.into(),
            rows: status.rows,
            batches: status.batches,
            unreliability: status.unreliability,
            weight: status.weight,
            rule_weight: status.weight,
            mean_loss: status.mean_loss,
            reference_loss: status.reference.map(|reference| reference.mean),
            reference_std: status.reference.map(|reference| reference.std),
            nonfinite: status.nonfinite,
            judged: status.judged,
            above: status.above,
            first_departure_step: status.first_departure_step.map(|step| step as i64),
            ..Self::default()
        }
    }

    /// What the rule knows of every source, in order of first appearance, judged.
    pub fn all<K: Hash + Eq>(lap: &Lap<K>, name: impl Fn(&K) -> String) -> Vec<Self> {
        let mut rows: Vec<Self> =
            lap.sources().map(|status| Self::seen(name(status.source), &status)).collect();
        for row in &mut rows {
            row.judge(lap.config().history_length);
        }
        rows
    }

    /// Sets verdict and reasons from what the rule saw.
    pub fn judge(&mut self, history_length: usize) {
        (self.verdict, self.reasons) = verdict::judge(self, history_length);
        // There may be a million sources, and room for four reasons in each.
        self.reasons.shrink_to_fit();
    }

    /// Sets verdict and reasons from what networks say that have not seen its labels, whatever the rule saw.
    pub fn judge_by(&mut self, judged: JudgedSource) {
        self.noise = Some(judged.noise);
        self.verdict = judged.verdict;
        self.reasons = judged.reasons;
    }

    /// Reconsiders a verdict on values that rests on losses, once its label errors are known, by the share of their spread
    /// that the model [explains](crate::explained): difficult rows have high losses, too.
    pub fn reconsider(&mut self, explained: Option<f64>) {
        let (verdict, reasons) = verdict::reconsidered(self, explained);
        self.verdict = verdict;
        self.reasons.extend(reasons);
    }

    /// Reconsiders a verdict by networks that have not seen its rows, by how far what it sends lies
    /// [apart](crate::apart) from what all others send: of texts cut to five words, or a channel of noise, networks are
    /// sure, and wrong.
    pub fn reconsider_inputs(&mut self, distance: f64) {
        if self.noise.is_some() {
            let (verdict, reason) = verdict::with_inputs(self.verdict, distance);
            self.verdict = verdict;
            self.reasons.extend(reason);
        }
    }

    /// Share of its judgements in which its loss was above the threshold.
    pub fn share_above(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.above as f64 / self.judged as f64)
    }

    /// The field of a column; an empty text for a name that is none.
    pub fn cell(&self, column: &str) -> Cell<'_> {
        let noise = |value: fn(&SourceNoise) -> f64| Cell::Number(self.noise.as_ref().map(value));
        let when = |moment: Option<&'_ Moment>, of: fn(&Moment) -> &String| {
            Cell::Maybe(moment.map(|moment| Cow::Owned(of(moment).clone())))
        };
        match column {
            "source" => Cell::Text(&self.source),
            "rows" => Cell::Count(self.rows),
            "batches" => Cell::Count(self.batches),
            "unreliability" => Cell::Count(self.unreliability),
            "weight" => Cell::Number(Some(self.weight)),
            "mean_loss" => Cell::Number(self.mean_loss),
            "reference_loss" => Cell::Number(self.reference_loss),
            "reference_std" => Cell::Number(self.reference_std),
            "nonfinite" => Cell::Count(self.nonfinite),
            "judged" => Cell::Count(self.judged),
            "above" => Cell::Count(self.above),
            "first_departure_step" => Cell::Step(self.first_departure_step),
            "verdict" => Cell::Text(self.verdict.word()),
            "noise_rate" => noise(|noise| noise.noise_rate.estimate),
            "noise_rate_low" => noise(|noise| noise.noise_rate.low),
            "noise_rate_high" => noise(|noise| noise.noise_rate.high),
            "disagreement" => noise(|noise| noise.disagreement),
            "doubt" => noise(|noise| noise.doubt),
            "class_mix" => noise(|noise| noise.class_mix),
            "bad_from" => when(self.since().0, |moment| &moment.time),
            "bad_from_low" => when(self.since().0, |moment| &moment.low),
            "bad_from_high" => when(self.since().0, |moment| &moment.high),
            "bad_until" => when(self.since().1, |moment| &moment.time),
            "bad_until_low" => when(self.since().1, |moment| &moment.low),
            "bad_until_high" => when(self.since().1, |moment| &moment.high),
            "faults" => Cell::Maybe(self.faults().map(Cow::Owned)),
            _ => Cell::Text(""),
        }
    }

    /// The words of what was found, with blanks between them.
    fn faults(&self) -> Option<String> {
        let words: Vec<&str> = self.findings.iter().map(|finding| finding.fault.word()).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// Since when and until when it is bad, where that was found out.
    pub fn since(&self) -> (Option<&Moment>, Option<&Moment>) {
        let found = self.findings.iter().find_map(|finding| match &finding.fault {
            Fault::Since(since) => Some((since.from.as_ref(), since.until.as_ref())),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// The order in which sources are read: worst verdict first, then smallest weight, then largest unreliability, then
    /// name.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        self.verdict
            .cmp(&other.verdict)
            .then(self.weight.total_cmp(&other.weight))
            .then(other.unreliability.cmp(&self.unreliability))
            .then_with(|| self.source.cmp(&other.source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_the_name_decides_between_equals() {
        let row = |source: &str, verdict, weight, unreliability| SourceRow {
            source: source.into(),
            verdict,
            weight,
            unreliability,
            ..SourceRow::default()
        };
        let mut rows = [
            row("f", Verdict::Reliable, 0.1, 9),
            row("e", Verdict::Insufficient, 0.1, 9),
            row("b", Verdict::Unreliable, 0.2, 1),
            row("a", Verdict::Unreliable, 0.2, 1),
            row("c", Verdict::Unreliable, 0.2, 5),
            row("d", Verdict::Suspect, 0.1, 9),
        ];
        rows.sort_by(SourceRow::worst_first);
        assert_eq!(rows.map(|row| row.source), ["c", "a", "b", "d", "e", "f"]);
    }

    #[test]
    fn every_column_has_a_field() {
        let row = SourceRow { source: "a".into(), ..SourceRow::default() };
        for column in SourceRow::COLUMNS {
            assert_ne!(row.cell(column), Cell::Text(""), "{column}");
        }
    }

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let row = SourceRow {
            source: "<b>".into(),
            ruling: Some(Ruling::Trusted),
            label_error: Some(Interval { estimate: 0.1, low: 0.05, high: 0.3 }),
            first_departure_step: Some(-3),
            reasons: vec![Reason::Light { weight: 0.2, most: 0.5 }],
            ..SourceRow::default()
        };
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<SourceRow>(&text).unwrap(), row);
    }
}
