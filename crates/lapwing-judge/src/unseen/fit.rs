//! Probabilities at the temperature at which they come true, the noise rates that go with them, and what adds up over the
//! rows of a source.

use lapwing_core::{
    Answer, Labels, Likelihoods, NoiseModel, NoiseRateConfig, estimate, rate_interval,
};

use super::word::{Others, word};
use super::{JudgedSource, LabelNoise, RowNoise, SourceNoise, Unseen};
use crate::Interval;

/// EM iterations: more change nothing that is printed.
const ITERATIONS: usize = 30;
/// Between what the temperature lies, and how often the interval is cut: to half a per cent.
const TEMPERATURES: (f64, f64) = (0.5, 5.0);
const CUTS: usize = 13;
/// Rows by which the temperature is found: it is one number for all of them, and more make it no better.
const ENOUGH_ROWS: usize = 50_000;
/// The prior's strength while the temperature is sought: rates drawn towards it would be made up for by a temperature
/// that is too low, and intervals would be too narrow.
const WEAK_PRIOR: f64 = 0.5;

/// The temperature with the highest likelihood of all labels.
pub(super) fn temperature(rows: &Unseen<'_>, model: &Labels) -> f64 {
    let every = rows.labels.len().div_ceil(ENOUGH_ROWS).max(1);
    let chosen: Vec<usize> = (0..rows.labels.len()).step_by(every).collect();
    let weak = NoiseRateConfig { prior_strength: WEAK_PRIOR, ..NoiseRateConfig::default() };
    highest(|temperature| {
        let known = likelihoods(rows, model, temperature, &chosen);
        let sources: Vec<usize> = chosen.iter().map(|&row| rows.sources[row] as usize).collect();
        let rates = rates(&weak, &known, &sources, rows.source_count);
        let rows = known.iter().zip(&sources);
        rows.filter_map(|(row, &source)| Some((*row)?.logarithm(rates[source]))).sum()
    })
}

/// Where a function of the temperature is highest, by the golden section of its logarithm.
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

/// p^(1/T), normalised.
fn temper(row: &[f32], temperature: f64, tempered: &mut Vec<f64>) {
    tempered.clear();
    tempered.extend(row.iter().map(|&p| f64::from(p).powf(1.0 / temperature)));
    let sum: f64 = tempered.iter().sum();
    tempered.iter_mut().for_each(|p| *p /= sum);
}

/// What truth and noise say of the labels of some rows.
fn likelihoods(
    rows: &Unseen<'_>,
    model: &Labels,
    temperature: f64,
    chosen: &[usize],
) -> Vec<Option<Likelihoods>> {
    let mut tempered = Vec::with_capacity(rows.classes);
    let of_row = |&row: &usize| {
        let (label, first) = (rows.labels[row], row * rows.classes);
        temper(&rows.probabilities[first..first + rows.classes], temperature, &mut tempered);
        model.likelihoods(Answer { probability: tempered[label as usize], label })
    };
    chosen.iter().map(of_row).collect()
}

fn rates(
    config: &NoiseRateConfig,
    rows: &[Option<Likelihoods>],
    sources: &[usize],
    count: usize,
) -> Vec<f64> {
    // The lists fit together: nothing is left to be refused.
    estimate(config, rows, sources, count, ITERATIONS)
        .map_or_else(|_| vec![config.prior; count], |estimate| estimate.rates)
}

/// What is known at a temperature.
pub(super) struct Fit<'a> {
    rows: Unseen<'a>,
    model: &'a Labels,
    temperature: f64,
    likelihoods: Vec<Option<Likelihoods>>,
    rates: Vec<f64>,
}

impl<'a> Fit<'a> {
    pub(super) fn new(rows: Unseen<'a>, model: &'a Labels, temperature: f64) -> Self {
        let all: Vec<usize> = (0..rows.labels.len()).collect();
        let likelihoods = likelihoods(&rows, model, temperature, &all);
        let sources: Vec<usize> = rows.sources.iter().map(|&source| source as usize).collect();
        let rates = rates(&NoiseRateConfig::default(), &likelihoods, &sources, rows.source_count);
        Self { rows, model, temperature, likelihoods, rates }
    }

    fn temper(&self, row: usize, tempered: &mut Vec<f64>) {
        let classes = self.rows.classes;
        temper(
            &self.rows.probabilities[row * classes..(row + 1) * classes],
            self.temperature,
            tempered,
        );
    }

    /// Sources and rows with what is to be said of them.
    pub(super) fn told(&self) -> LabelNoise {
        let mut all = Tally::new(self.rows.classes);
        let mut tempered = Vec::with_capacity(self.rows.classes);
        let mut told_of_rows = Vec::with_capacity(self.rows.labels.len());
        for (row, &label) in self.rows.labels.iter().enumerate() {
            self.temper(row, &mut tempered);
            let probability = tempered[label as usize];
            let rate = self.rates[self.rows.sources[row] as usize];
            told_of_rows.push(RowNoise {
                wrong: self.model.wrong(Answer { probability, label }, rate),
                label: Some(probability).filter(|p| p.is_finite()),
                suggestion: best(&tempered, Some(label)),
            });
            if self.likelihoods[row].is_some() {
                all.add(&tempered, label);
            }
        }
        let numbers = self.sources(&all);
        let others = Others::new(&numbers);
        let judged = |noise: &SourceNoise| {
            let (verdict, mut reasons) = word(noise, &others.of(noise), self.rows.classes);
            reasons.shrink_to_fit();
            JudgedSource { noise: shown(noise), verdict, reasons }
        };
        LabelNoise {
            temperature: self.temperature,
            sources: numbers.iter().map(judged).collect(),
            rows: told_of_rows,
        }
    }

    /// The numbers of every source, one source after the other: there may be a million of them, and a thousand classes.
    fn sources(&self, all: &Tally) -> Vec<SourceNoise> {
        let mut order: Vec<u32> = (0..self.rows.labels.len() as u32).collect();
        order.retain(|&row| self.likelihoods[row as usize].is_some());
        order.sort_by_key(|&row| self.rows.sources[row as usize]);
        let mut own_rows = order.as_slice();
        let mut tempered = Vec::with_capacity(self.rows.classes);
        let mut known = Vec::new();
        let mut of_source = |(source, &rate): (u32, &f64)| {
            let count = own_rows.partition_point(|&row| self.rows.sources[row as usize] == source);
            let (own, rest) = own_rows.split_at(count);
            own_rows = rest;
            known.clear();
            let mut tally = Tally::new(if own.is_empty() { 0 } else { self.rows.classes });
            for &row in own {
                self.temper(row as usize, &mut tempered);
                tally.add(&tempered, self.rows.labels[row as usize]);
                known.extend(self.likelihoods[row as usize]);
            }
            let (low, high) = rate_interval(&known);
            SourceNoise {
                noise_rate: Interval { estimate: rate, low, high },
                class_mix: tally.distance_to_rest_of(all),
                ..tally.told()
            }
        };
        (0..).zip(&self.rates).map(&mut of_source).collect()
    }
}

/// With an estimate that lies within its interval, whatever the prior makes of few rows.
fn shown(noise: &SourceNoise) -> SourceNoise {
    let Interval { estimate, low, high } = noise.noise_rate;
    let noise_rate = Interval { estimate: estimate.clamp(low, high), low, high };
    SourceNoise { noise_rate, ..*noise }
}

/// The most probable class, but for one.
fn best(probabilities: &[f64], but: Option<u32>) -> (u32, f64) {
    let others = (0..).zip(probabilities).filter(|(class, _)| Some(*class) != but);
    others.fold((0, 0.0), |best, (class, &p)| if p > best.1 { (class, p) } else { best })
}

/// What adds up over rows.
struct Tally {
    rows: u64,
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
            rows: 0,
            disagreeing: 0,
            doubt: 0.0,
            classes: vec![0.0; classes],
            first_label: None,
            one_label: true,
        }
    }

    fn add(&mut self, probabilities: &[f64], label: u32) {
        let (class, probability) = best(probabilities, None);
        self.rows += 1;
        self.disagreeing += u64::from(class != label);
        self.doubt += 1.0 - probability;
        self.classes.iter_mut().zip(probabilities).for_each(|(sum, p)| *sum += p);
        self.one_label &= *self.first_label.get_or_insert(label) == label;
    }

    fn told(&self) -> SourceNoise {
        let share = |sum: f64| sum / self.rows.max(1) as f64;
        SourceNoise {
            rows: self.rows,
            disagreement: share(self.disagreeing as f64),
            doubt: share(self.doubt),
            one_label: self.rows > 0 && self.one_label,
            ..SourceNoise::default()
        }
    }

    /// The total variation between the classes of a source and those of all others.
    fn distance_to_rest_of(&self, all: &Self) -> f64 {
        let others = all.rows - self.rows;
        if self.rows == 0 || others == 0 {
            return 0.0;
        }
        let apart = |(own, all): (&f64, &f64)| {
            (own / self.rows as f64 - (all - own).max(0.0) / others as f64).abs()
        };
        0.5 * self.classes.iter().zip(&all.classes).map(apart).sum::<f64>()
    }
}
