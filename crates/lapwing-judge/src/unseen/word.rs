//! From the numbers of a source to its verdict, and why.

use super::SourceNoise;
use super::exchange::Exchange;
use crate::{FEWEST_ROWS, Interval, Reason, Verdict};

/// Where the interval of a noise rate must begin for the verdicts.
pub(super) const UNRELIABLE: f64 = 0.12;
const UNRELIABLE_RATE: f64 = 0.2;
const UNRELIABLE_ONE_LABEL: f64 = 0.7;
const SUSPECT: f64 = 0.05;
/// By how many standard errors a source must be contradicted beyond what is expected for the verdicts: by chance alone, one
/// clean source of two hundred is, and one of forty.
const SURPRISING: (f64, f64) = (2.6, 2.0);
/// Which of the others says how far networks are usually wrong about themselves: most sources may be bad.
const USUALLY_WRONG: f64 = 0.25;
/// An interval that says nothing.
const WIDE: f64 = 0.5;
/// How much more than the others a source is contradicted where rows are hard.
const HARDER: f64 = 0.1;
/// How much more the network doubts there, and by how many standard errors, of which this is the most they can be.
const DOUBTED: (f64, f64) = (0.05, 2.0);
/// One-sided 95 % of the normal distribution.
const Z: f64 = 1.644_853_626_951_472_2;
/// Total variation between class mixes: the limit, and how it widens with classes over rows.
const OTHER_MIX: (f64, f64) = (0.3, 0.4);

/// What is usual among sources whose labels are not noise, or among all where there is none such.
pub(super) struct Others {
    /// Whether those with noise count as well.
    noisy: bool,
    /// Whether those count as well that give all rows the same label: they are contradicted where that label is rare, and are no
    /// measure for others.
    one_label: bool,
    /// Sources that count.
    count: usize,
    weight: f64,
    disagreement: f64,
    doubt: f64,
    /// By how much each source with enough rows is contradicted beyond the networks' doubt, in ascending order.
    gaps: Vec<f64>,
}

/// What is usual among the others of a source.
pub(super) struct Usual {
    disagreement: f64,
    doubt: f64,
    gap: f64,
}

/// By how much a source is contradicted beyond the networks' doubt.
fn gap(source: &SourceNoise) -> f64 {
    source.disagreement - source.doubt
}

impl Others {
    pub(super) fn new(all: &[SourceNoise]) -> Self {
        let with = |noisy, one_label| Self {
            noisy,
            one_label,
            count: 0,
            weight: 0.0,
            disagreement: 0.0,
            doubt: 0.0,
            gaps: Vec::new(),
        };
        let any = |sum: &Self| all.iter().any(|source| sum.weight_of(source).is_some());
        let one_label = !any(&with(true, false));
        let mut sum = with(!any(&with(false, one_label)), one_label);
        let mut gaps: Vec<f64> = all.iter().filter(|own| sum.compares(own)).map(gap).collect();
        gaps.sort_by(f64::total_cmp);
        sum.gaps = gaps;
        for source in all {
            if let Some(weight) = sum.weight_of(source) {
                sum.count += 1;
                sum.weight += weight;
                sum.disagreement += weight * source.disagreement;
                sum.doubt += weight * source.doubt;
            }
        }
        sum
    }

    /// Whether others are compared with a source at all.
    fn compares(&self, source: &SourceNoise) -> bool {
        source.rows >= FEWEST_ROWS && (self.one_label || !source.one_label)
    }

    /// What a source counts for; nothing where it is not to be compared with.
    fn weight_of(&self, source: &SourceNoise) -> Option<f64> {
        let counts = self.compares(source) && (self.noisy || source.noise_rate.low < UNRELIABLE);
        counts.then_some(source.rows as f64 * (1.0 - source.noise_rate.estimate))
    }

    /// All but one of them. Alone, a source is as usual as can be.
    pub(super) fn of(&self, source: &SourceNoise) -> Usual {
        let (count, own) = self.weight_of(source).map_or((0, 0.0), |weight| (1, weight));
        let rest = self.weight - own;
        let gap = self.gap_without(source);
        if self.count == count || rest <= 0.0 {
            return Usual { disagreement: source.disagreement, doubt: source.doubt, gap };
        }
        let share = |sum: f64, own_share: f64| ((sum - own * own_share) / rest).clamp(0.0, 1.0);
        Usual {
            disagreement: share(self.disagreement, source.disagreement),
            doubt: share(self.doubt, source.doubt),
            gap,
        }
    }

    /// The lower quartile of the gaps of all but one; 0 where there is nobody else.
    fn gap_without(&self, source: &SourceNoise) -> f64 {
        let own = match self.compares(source) {
            true => self.gaps.partition_point(|other| *other < gap(source)),
            false => self.gaps.len(),
        };
        let others = self.gaps.len() - usize::from(own < self.gaps.len());
        let Some(last) = others.checked_sub(1) else { return 0.0 };
        let place = (last as f64 * USUALLY_WRONG) as usize;
        self.gaps[if place < own { place } else { place + 1 }]
    }
}

impl Usual {
    /// Whether the network doubts its answers on the rows of a source more than elsewhere.
    pub(super) fn are_less_doubted_than(&self, source: &SourceNoise) -> bool {
        let (least, errors) = DOUBTED;
        let error = (self.doubt * (1.0 - self.doubt) / source.rows.max(1) as f64).sqrt();
        source.rows >= FEWEST_ROWS && source.doubt >= self.doubt + least.max(errors * error)
    }

    /// By how many standard errors a source is contradicted beyond what is expected of it: the networks' doubt of its rows, and
    /// as much more as is usual elsewhere. Where the outcome itself is a matter of chance, or networks are too sure of
    /// themselves, everybody is contradicted, and nobody stands out.
    fn surprise(&self, source: &SourceNoise) -> f64 {
        let expected = (source.doubt + self.gap).clamp(0.0, 1.0);
        let error = (expected * (1.0 - expected) / source.rows.max(1) as f64).sqrt();
        // Where none is expected, one row in which they are wrong is the error.
        (source.disagreement - expected) / error.max(1.0 / source.rows.max(1) as f64)
    }
}

/// The verdict on a source, and why.
pub(super) fn word(
    source: &SourceNoise,
    others: &Usual,
    classes: usize,
    exchange: Option<Exchange>,
) -> (Verdict, Vec<Reason>) {
    let SourceNoise { noise_rate, disagreement, doubt, class_mix, one_label, .. } = *source;
    let Interval { estimate: rate, low, high } = noise_rate;
    if source.rows < FEWEST_ROWS {
        let few = Reason::FewRows { rows: source.rows, least: FEWEST_ROWS };
        return (Verdict::Insufficient, vec![few]);
    }
    if high - low > WIDE && low < UNRELIABLE {
        return (Verdict::Insufficient, vec![Reason::Wide { low, high, most: WIDE }]);
    }
    let rows = source.rows as f64;
    let noise = |least| Reason::Noise { rate: rate.clamp(low, high), low, high, least };
    let contradicted = Reason::Contradicted { share: disagreement, others: others.disagreement };
    let doubted = Reason::Doubted { share: doubt, others: others.doubt };
    let is_doubted = others.are_less_doubted_than(source);
    let surprise = others.surprise(source);
    if low >= UNRELIABLE && rate >= UNRELIABLE_RATE && surprise >= SURPRISING.0 {
        // A rule that votes for one class may be right on rows that nobody else answers.
        if one_label && low < UNRELIABLE_ONE_LABEL {
            return (Verdict::Suspect, vec![Reason::OneLabel, noise(UNRELIABLE)]);
        }
        return (Verdict::Unreliable, vec![noise(UNRELIABLE)]);
    }
    if let Some(Exchange { rows, share }) = exchange {
        return (Verdict::Unreliable, vec![Reason::Exchanged { rows, share }]);
    }
    if high - low > WIDE {
        return (Verdict::Insufficient, vec![Reason::Wide { low, high, most: WIDE }]);
    }
    let chance = Z * (others.disagreement * (1.0 - others.disagreement) / rows).sqrt();
    if disagreement >= others.disagreement + HARDER + chance {
        // Where networks contradict without doubting themselves, labels are wrong in a way that does not look like
        // chance, such as two classes exchanged, or inputs are unlike the others'.
        return match is_doubted {
            true => (Verdict::Hard, vec![contradicted, doubted]),
            false => (Verdict::Suspect, vec![contradicted, Reason::Undoubted { share: doubt }]),
        };
    }
    if low >= SUSPECT && surprise >= SURPRISING.1 {
        return (Verdict::Suspect, vec![noise(SUSPECT)]);
    }
    let (limit, widening) = OTHER_MIX;
    let least = limit + widening * (classes as f64 / rows).sqrt();
    if class_mix >= least {
        let other = Reason::OtherClasses { distance: class_mix, least };
        return (Verdict::Different, vec![other]);
    }
    (Verdict::Reliable, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(disagreement: f64, low: f64, one_label: bool) -> SourceNoise {
        let noise_rate = Interval { estimate: low + 0.2, low, high: low + 0.4 };
        SourceNoise { rows: 200, noise_rate, disagreement, doubt: 0.17, class_mix: 0.0, one_label }
    }

    /// Where the outcome is a matter of chance networks are wrong about everybody, but for those who always say what is common.
    #[test]
    fn who_gives_all_rows_the_same_label_is_no_measure_for_the_others() {
        let honest = source(0.25, 0.3, false);
        let all = [source(0.07, 0.0, true), honest, honest, honest];
        let (verdict, reasons) = word(&honest, &Others::new(&all).of(&honest), 2, None);
        assert_eq!(verdict, Verdict::Reliable, "{reasons:?}");

        // Rules that vote are compared with rules that vote.
        let all = [source(0.07, 0.0, true), source(0.09, 0.0, true), source(0.6, 0.4, true)];
        let (verdict, _) = word(&all[2], &Others::new(&all).of(&all[2]), 2, None);
        assert_eq!(verdict, Verdict::Suspect);
    }
}
