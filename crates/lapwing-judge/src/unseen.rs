//! What networks say of labels that they have not seen: two numbers and a word per source, and for every row the
//! probability that its label is wrong.
//!
//! A network believes the labels it was trained on. So rows are split into folds, and each row is judged by a network
//! that was trained on the others. Two numbers of a source then bound the truth from two sides: its *noise rate* is right
//! where errors are random, and too low where like classes are confused; its *disagreement* with the network is right
//! where the network is, and too high where rows are difficult.
//!
//! | verdict | when |
//! |---|---|
//! | `insufficient` | fewer than [`FEWEST_ROWS`](crate::FEWEST_ROWS) rows, or an interval wider than one half that begins below 0.15 |
//! | `unreliable` | noise rate at least 0.2, its interval from 0.15 on; for a source with one label only, from 0.7 on |
//! | `suspect` | an interval from 0.05 on |
//! | `hard` | disagreement above that of the others, by 0.1 and by chance, and the network doubts its own answers there as well, or sees no noise |
//! | `different` | other classes than the others', by the network's own word |
//! | `reliable` | everything else |
//!
//! The limits were found on handwritten digits with sources of known kinds, and hold on others: the tests simulate sources
//! with random labels, one label, and a third of the labels exchanged, which must be `unreliable`, beside clean ones that
//! are hard or of two classes only, which must not.

use lapwing_core::{Answer, Labels, Likelihoods, NoiseRateConfig, estimate, rate_interval};
use serde::{Deserialize, Serialize};

use crate::{FEWEST_ROWS, Interval, JudgeError, Verdict};

/// EM iterations: more change nothing that is printed.
const ITERATIONS: usize = 30;
/// Where the interval of a noise rate must begin for the verdicts.
const UNRELIABLE: f64 = 0.15;
const UNRELIABLE_RATE: f64 = 0.2;
const UNRELIABLE_ONE_LABEL: f64 = 0.7;
const SUSPECT: f64 = 0.05;
/// An interval that says nothing.
const WIDE: f64 = 0.5;
/// How much more than the others a source is contradicted, or the network doubts, where rows are hard.
const HARDER: f64 = 0.1;
/// Noise rates that difficulty can explain.
const HARD_RATE: f64 = 0.4;
/// One-sided 95 % of the normal distribution.
const Z: f64 = 1.644_853_626_951_472_2;
/// Total variation between class mixes: the limit, and how it widens with classes over rows.
const OTHER_MIX: (f64, f64) = (0.3, 0.4);
/// Between what the temperature lies, and how often the interval is cut: to half a per cent.
const TEMPERATURES: (f64, f64) = (0.5, 5.0);
const CUTS: usize = 13;
/// The prior's strength while the temperature is sought: rates drawn towards it would be made up for by a temperature
/// that is too low, and intervals would be too narrow.
const WEAK_PRIOR: f64 = 0.5;

/// Rows with labels, and what networks that have not seen them say. Lists are as long as there are rows.
#[derive(Clone, Copy, Debug)]
pub struct Unseen<'a> {
    /// The number of each row's source.
    pub sources: &'a [u32],
    /// How many sources there are.
    pub source_count: usize,
    /// The label given to each row.
    pub labels: &'a [u32],
    /// How many classes there are.
    pub classes: usize,
    /// The probability of every class, row after row.
    pub probabilities: &'a [f32],
}

/// What is known of labels from networks that have not seen them.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelNoise {
    /// By how much the networks' logits were divided, so that their probabilities are as they come true.
    pub temperature: f64,
    /// Per source.
    pub sources: Vec<SourceNoise>,
    /// Per row.
    pub rows: Vec<RowNoise>,
}

/// What is known of the labels of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceNoise {
    /// Rows that networks could judge.
    pub rows: u64,
    /// The share of its labels that is noise, drawn towards a prior of 0.1 as if ten more rows said so; with the 95 %
    /// interval of the noise rate, without a prior.
    pub noise_rate: Interval,
    /// The share of its rows to which the network gives another label.
    pub disagreement: f64,
    /// The share of its rows on which the network expects to be wrong itself.
    pub doubt: f64,
    /// How far the classes of its rows are from those of the others, by the network's word: 0 alike, 1 entirely other.
    pub class_mix: f64,
    /// Whether it gives the same label to all rows.
    pub one_label: bool,
    /// The verdict.
    pub verdict: Verdict,
}

/// What is known of the label of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowNoise {
    /// The probability that the label is wrong; `None` where the network gave no probability.
    pub wrong: Option<f64>,
    /// The most probable other label, and its probability.
    pub suggestion: (u32, f64),
}

/// Judges labels by networks that have not seen them.
///
/// # Errors
/// Where lists differ in length, or a source or a label has no place.
pub fn unseen(rows: &Unseen<'_>) -> Result<LabelNoise, JudgeError> {
    check(rows)?;
    let sources: Vec<usize> = rows.sources.iter().map(|&source| source as usize).collect();
    let mut counts = vec![0.0; rows.classes];
    rows.labels.iter().for_each(|&label| counts[label as usize] += 1.0);
    // Without rows there is nothing to say, and no frequency.
    let Ok(model) = Labels::given(&counts) else {
        return Ok(LabelNoise {
            temperature: 1.0,
            sources: vec![SourceNoise::default(); rows.source_count],
            rows: Vec::new(),
        });
    };
    let weak = NoiseRateConfig { prior_strength: WEAK_PRIOR, ..NoiseRateConfig::default() };
    let at = |temperature| Fit::new(rows, &model, &sources, temperature, &weak).likelihood;
    let fitted = Fit::new(rows, &model, &sources, highest(at), &NoiseRateConfig::default());
    Ok(fitted.told(rows, &model, &sources))
}

fn check(rows: &Unseen<'_>) -> Result<(), JudgeError> {
    let count = rows.labels.len();
    let lengths = |what, expected, found| {
        if expected == found { Ok(()) } else { Err(JudgeError::Lengths { what, expected, found }) }
    };
    lengths("sources", count, rows.sources.len())?;
    lengths("probabilities", count * rows.classes, rows.probabilities.len())?;
    for (row, (&source, &label)) in rows.sources.iter().zip(rows.labels).enumerate() {
        for (what, code, count) in
            [("source", source, rows.source_count), ("class", label, rows.classes)]
        {
            if code as usize >= count {
                return Err(JudgeError::Code { row, what, code, count });
            }
        }
    }
    Ok(())
}

/// The temperature with the highest likelihood, by the golden section of its logarithm.
fn highest(likelihood: impl Fn(f64) -> f64) -> f64 {
    let golden = 0.5 * (5.0f64.sqrt() - 1.0);
    let (mut low, mut high) = (TEMPERATURES.0.ln(), TEMPERATURES.1.ln());
    let value = |logarithm: f64| likelihood(logarithm.exp());
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_a, mut at_b) = (value(a), value(b));
    for _ in 0..CUTS {
        if at_a >= at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - golden * (high - low);
            at_a = value(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + golden * (high - low);
            at_b = value(b);
        }
    }
    (0.5 * (low + high)).exp()
}

/// Probabilities at a temperature, and the noise rates that go with them.
struct Fit {
    temperature: f64,
    probabilities: Vec<f64>,
    likelihoods: Vec<Option<Likelihoods>>,
    rates: Vec<f64>,
    likelihood: f64,
}

impl Fit {
    fn new(
        rows: &Unseen<'_>,
        model: &Labels,
        sources: &[usize],
        temperature: f64,
        config: &NoiseRateConfig,
    ) -> Self {
        let probabilities = tempered(rows.probabilities, rows.classes, temperature);
        let answer = |(row, &label): (usize, &u32)| Answer {
            probability: probabilities[row * rows.classes + label as usize],
            label,
        };
        let likelihoods: Vec<Option<Likelihoods>> = rows
            .labels
            .iter()
            .enumerate()
            .map(|row| lapwing_core::NoiseModel::likelihoods(model, answer(row)))
            .collect();
        let count = rows.source_count;
        // The lists fit together: nothing is left to be refused.
        let rates = estimate(config, &likelihoods, sources, count, ITERATIONS)
            .map_or_else(|_| vec![config.prior; count], |estimate| estimate.rates);
        let logarithm = |(row, &label): (usize, &u32)| {
            let p = probabilities[row * rows.classes + label as usize];
            let rate = rates[sources[row]];
            let noise = model.frequency(label).unwrap_or(0.0);
            ((1.0 - rate) * p + rate * noise).max(f64::MIN_POSITIVE).ln()
        };
        let all = rows.labels.iter().enumerate().map(logarithm);
        let likelihood = all.filter(|value| !value.is_nan()).sum();
        Self { temperature, probabilities, likelihoods, rates, likelihood }
    }

    fn told(&self, rows: &Unseen<'_>, model: &Labels, sources: &[usize]) -> LabelNoise {
        let classes = rows.classes;
        let of_row = |row: usize| &self.probabilities[row * classes..(row + 1) * classes];
        let told_of_row = |(row, &label): (usize, &u32)| {
            let probability = of_row(row)[label as usize];
            let rate = self.rates[sources[row]];
            RowNoise {
                wrong: model.wrong(Answer { probability, label }, rate),
                suggestion: best(of_row(row), Some(label)),
            }
        };
        let mut tallies = vec![Tally::new(classes); rows.source_count];
        for (row, &label) in rows.labels.iter().enumerate() {
            if let Some(likelihoods) = self.likelihoods[row] {
                tallies[sources[row]].add(of_row(row), label, likelihoods);
            }
        }
        let all: Vec<SourceNoise> =
            tallies.iter().zip(&self.rates).map(|(tally, &rate)| tally.told(rate)).collect();
        let mut told = all.clone();
        for (at, source) in told.iter_mut().enumerate() {
            source.class_mix = class_mix(&tallies, at);
            source.verdict = verdict(source, &Others::of(&all, at), classes);
        }
        let rows = rows.labels.iter().enumerate().map(told_of_row).collect();
        LabelNoise { temperature: self.temperature, sources: told, rows }
    }
}

/// p^(1/T), normalised row by row.
fn tempered(probabilities: &[f32], classes: usize, temperature: f64) -> Vec<f64> {
    let mut powers: Vec<f64> =
        probabilities.iter().map(|&p| f64::from(p).powf(1.0 / temperature)).collect();
    for row in powers.chunks_exact_mut(classes.max(1)) {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
    }
    powers
}

/// The most probable class, but for one.
fn best(probabilities: &[f64], but: Option<u32>) -> (u32, f64) {
    let others = (0..).zip(probabilities).filter(|(class, _)| Some(*class) != but);
    others.fold((0, 0.0), |best, (class, &p)| if p > best.1 { (class, p) } else { best })
}

/// What adds up over the rows of a source.
#[derive(Clone)]
struct Tally {
    likelihoods: Vec<Likelihoods>,
    disagreeing: u64,
    doubt: f64,
    /// Probabilities summed up by class.
    classes: Vec<f64>,
    first_label: Option<u32>,
    one_label: bool,
}

impl Tally {
    fn new(classes: usize) -> Self {
        Self {
            likelihoods: Vec::new(),
            disagreeing: 0,
            doubt: 0.0,
            classes: vec![0.0; classes],
            first_label: None,
            one_label: true,
        }
    }

    fn add(&mut self, probabilities: &[f64], label: u32, likelihoods: Likelihoods) {
        let (class, probability) = best(probabilities, None);
        self.likelihoods.push(likelihoods);
        self.disagreeing += u64::from(class != label);
        self.doubt += 1.0 - probability;
        self.classes.iter_mut().zip(probabilities).for_each(|(sum, p)| *sum += p);
        self.one_label &= *self.first_label.get_or_insert(label) == label;
    }

    fn told(&self, rate: f64) -> SourceNoise {
        let rows = self.likelihoods.len();
        let (low, high) = rate_interval(&self.likelihoods);
        let share = |sum: f64| sum / rows.max(1) as f64;
        SourceNoise {
            rows: rows as u64,
            noise_rate: Interval { estimate: rate, low, high },
            disagreement: share(self.disagreeing as f64),
            doubt: share(self.doubt),
            class_mix: 0.0,
            one_label: rows > 0 && self.one_label,
            verdict: Verdict::default(),
        }
    }
}

/// The total variation between the classes of one source and of all others.
fn class_mix(tallies: &[Tally], at: usize) -> f64 {
    let own = &tallies[at].classes;
    let mut others = vec![0.0; own.len()];
    for tally in tallies.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, t)| t) {
        others.iter_mut().zip(&tally.classes).for_each(|(sum, p)| *sum += p);
    }
    let (own_rows, other_rows) = (own.iter().sum::<f64>(), others.iter().sum::<f64>());
    if own_rows == 0.0 || other_rows == 0.0 {
        return 0.0;
    }
    let apart = |(a, b): (&f64, &f64)| (a / own_rows - b / other_rows).abs();
    0.5 * own.iter().zip(&others).map(apart).sum::<f64>()
}

/// What is usual among the others, those with much noise counting less.
struct Others {
    disagreement: f64,
    doubt: f64,
}

impl Others {
    fn of(all: &[SourceNoise], at: usize) -> Self {
        let (mut sum, mut disagreement, mut doubt) = (0.0, 0.0, 0.0);
        for (_, other) in all.iter().enumerate().filter(|(other, _)| *other != at) {
            if other.rows >= FEWEST_ROWS {
                let weight = other.rows as f64 * (1.0 - other.noise_rate.estimate);
                sum += weight;
                disagreement += weight * other.disagreement;
                doubt += weight * other.doubt;
            }
        }
        // Alone, a source is as usual as can be.
        let (own_disagreement, own_doubt) = (all[at].disagreement, all[at].doubt);
        if sum == 0.0 {
            return Self { disagreement: own_disagreement, doubt: own_doubt };
        }
        Self { disagreement: disagreement / sum, doubt: doubt / sum }
    }
}

fn verdict(source: &SourceNoise, others: &Others, classes: usize) -> Verdict {
    let SourceNoise { noise_rate, disagreement, doubt, class_mix, one_label, .. } = *source;
    let Interval { estimate: rate, low, high } = noise_rate;
    if source.rows < FEWEST_ROWS || (high - low > WIDE && low < UNRELIABLE) {
        return Verdict::Insufficient;
    }
    let rows = source.rows as f64;
    let doubted = doubt >= others.doubt + HARDER;
    if low >= UNRELIABLE && rate >= UNRELIABLE_RATE {
        // A rule that votes for one class may be right on rows that nobody else answers.
        if one_label && low < UNRELIABLE_ONE_LABEL {
            return Verdict::Suspect;
        }
        let hard = doubted && disagreement >= others.disagreement + HARDER && rate < HARD_RATE;
        return if hard { Verdict::Hard } else { Verdict::Unreliable };
    }
    let chance = Z * (others.disagreement * (1.0 - others.disagreement) / rows).sqrt();
    if disagreement >= others.disagreement + HARDER + chance {
        return if low < SUSPECT || doubted { Verdict::Hard } else { Verdict::Suspect };
    }
    if low >= SUSPECT {
        return Verdict::Suspect;
    }
    let (limit, widening) = OTHER_MIX;
    if class_mix >= limit + widening * (classes as f64 / rows).sqrt() {
        return Verdict::Different;
    }
    Verdict::Reliable
}
