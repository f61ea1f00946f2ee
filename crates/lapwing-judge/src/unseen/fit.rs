//! Probabilities at the temperature at which they come true, the noise rates that go with them, and what adds up over the
//! rows of a source.

use std::collections::BTreeMap;

use lapwing_core::{
    Answer, Labels, Likelihoods, NoiseModel, NoiseRateConfig, estimate, rate_interval,
};

use super::exchange::{Contradictions, Exchange};
use super::word::{Others, UNRELIABLE, word};
use super::{JudgedSource, LabelNoise, RowNoise, SourceNoise, Unseen};
use crate::{FEWEST_ROWS, Interval};

/// EM iterations: more change nothing that is printed.
const ITERATIONS: usize = 30;
/// Between what the temperature lies, and how often the interval is cut: to half a per cent.
const TEMPERATURES: (f64, f64) = (0.5, 5.0);
const CUTS: usize = 13;
/// How many times the temperature of all rows that of a source can be on whose rows the network doubts itself, and how
/// far its logarithm is thought to be off, as a standard deviation.
const HIGHEST_OWN: f64 = 8.0;
const OWN_DEVIATION: f64 = 1.0;
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
    highest(TEMPERATURES, |temperature| {
        let known = likelihoods(rows, model, temperature, &chosen);
        let sources: Vec<usize> = chosen.iter().map(|&row| rows.sources[row] as usize).collect();
        let rates = rates(&weak, &known, &sources, rows.source_count);
        let rows = known.iter().zip(&sources);
        rows.filter_map(|(row, &source)| Some((*row)?.logarithm(rates[source]))).sum()
    })
}

/// Where a function of the temperature is highest, by the golden section of its logarithm.
fn highest(between: (f64, f64), likelihood: impl Fn(f64) -> f64) -> f64 {
    let golden = 0.5 * (5.0f64.sqrt() - 1.0);
    let (mut low, mut high) = (between.0.ln(), between.1.ln());
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
    /// The temperatures of sources that have one of their own.
    own: BTreeMap<u32, f64>,
    likelihoods: Vec<Option<Likelihoods>>,
    rates: Vec<f64>,
}

impl<'a> Fit<'a> {
    pub(super) fn new(rows: Unseen<'a>, model: &'a Labels, temperature: f64) -> Self {
        let all: Vec<usize> = (0..rows.labels.len()).collect();
        let likelihoods = likelihoods(&rows, model, temperature, &all);
        let sources: Vec<usize> = rows.sources.iter().map(|&source| source as usize).collect();
        let rates = rates(&NoiseRateConfig::default(), &likelihoods, &sources, rows.source_count);
        let own = BTreeMap::new();
        let mut fit = Self { rows, model, temperature, own, likelihoods, rates };
        fit.look_closer();
        fit
    }

    /// On rows that are difficult a network is too sure of itself, and would take right labels for noise. So sources on
    /// whose rows it doubts itself more than elsewhere, which has nothing to do with their labels, get a temperature of
    /// their own, found together with their noise rate. Labels that are noise stay so: no temperature explains them.
    fn look_closer(&mut self) {
        let numbers = self.sources(&self.tally());
        let others = Others::new(&numbers);
        let doubted = |noise: &SourceNoise| others.of(noise).are_less_doubted_than(noise);
        let mut of_sources: BTreeMap<u32, Vec<usize>> = (0..)
            .zip(&numbers)
            .filter_map(|(source, noise)| doubted(noise).then_some((source, Vec::new())))
            .collect();
        for (row, source) in self.rows.sources.iter().enumerate() {
            if let Some(own) = of_sources.get_mut(source) {
                own.push(row);
            }
        }
        for (source, own) in of_sources {
            let temperature = self.own_temperature(&own);
            let known = likelihoods(&self.rows, self.model, temperature, &own);
            let alone = vec![0; own.len()];
            self.rates[source as usize] = rates(&NoiseRateConfig::default(), &known, &alone, 1)[0];
            for (row, known) in own.into_iter().zip(known) {
                self.likelihoods[row] = known;
            }
            self.own.insert(source, temperature);
        }
    }

    /// The temperature, at least that of all rows, at which the labels of these are likeliest, whatever their noise rate.
    fn own_temperature(&self, own: &[usize]) -> f64 {
        let weak = NoiseRateConfig { prior_strength: WEAK_PRIOR, ..NoiseRateConfig::default() };
        let alone = vec![0; own.len()];
        let between = (self.temperature, self.temperature * HIGHEST_OWN);
        highest(between, |temperature| {
            let known = likelihoods(&self.rows, self.model, temperature, own);
            let rate = rates(&weak, &known, &alone, 1)[0];
            let off = (temperature / self.temperature).ln() / OWN_DEVIATION;
            let labels: f64 = known.iter().flatten().map(|row| row.logarithm(rate)).sum();
            labels - 0.5 * off * off
        })
    }

    /// What adds up over all rows.
    fn tally(&self) -> Tally {
        let mut all = Tally::new(self.rows.classes);
        let mut tempered = Vec::with_capacity(self.rows.classes);
        for (row, &label) in self.rows.labels.iter().enumerate() {
            if self.likelihoods[row].is_some() {
                self.temper(row, &mut tempered);
                all.add(&tempered, label, 1.0 - self.rates[self.rows.sources[row] as usize]);
            }
        }
        all
    }

    fn temper(&self, row: usize, tempered: &mut Vec<f64>) {
        let classes = self.rows.classes;
        temper(
            &self.rows.probabilities[row * classes..(row + 1) * classes],
            self.own.get(&self.rows.sources[row]).copied().unwrap_or(self.temperature),
            tempered,
        );
    }

    /// Sources and rows with what is to be said of them.
    pub(super) fn told(&self) -> LabelNoise {
        let all = self.tally();
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
        }
        let numbers = self.sources(&all);
        let others = Others::new(&numbers);
        let exchanges = self.exchanges(&all, &numbers);
        let judged = |(source, noise): (u32, &SourceNoise)| {
            let exchange = exchanges.get(&source).copied();
            let (verdict, mut reasons) =
                word(noise, &others.of(noise), self.rows.classes, exchange);
            reasons.shrink_to_fit();
            JudgedSource { noise: shown(noise), verdict, reasons }
        };
        LabelNoise {
            temperature: self.temperature,
            sources: (0..).zip(&numbers).map(judged).collect(),
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
                tally.add(&tempered, self.rows.labels[row as usize], 1.0);
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

impl Fit<'_> {
    /// Sources that have exchanged two classes.
    fn exchanges(&self, all: &Tally, numbers: &[SourceNoise]) -> BTreeMap<u32, Exchange> {
        // Where labels are contradicted less than usual there is nothing to be found.
        let usual = all.disagreement / (all.rows.max(1) as f64);
        let looked_at =
            |noise: &SourceNoise| noise.rows >= FEWEST_ROWS && noise.disagreement > usual.min(0.1);
        let mut own: BTreeMap<u32, Contradictions> = (0..)
            .zip(numbers)
            .filter(|(_, noise)| looked_at(noise) && noise.noise_rate.low < UNRELIABLE)
            .map(|(source, _)| (source, Contradictions::new(self.rows.classes)))
            .collect();
        let mut tempered = Vec::with_capacity(self.rows.classes);
        for (row, (&label, source)) in self.rows.labels.iter().zip(self.rows.sources).enumerate() {
            if let (Some(_), Some(own)) = (self.likelihoods[row], own.get_mut(source)) {
                self.temper(row, &mut tempered);
                own.add(best(&tempered, None).0, label, 1.0);
            }
        }
        let found = own.into_iter().filter_map(|(source, own)| {
            let weight = 1.0 - self.rates[source as usize];
            Some((source, own.exchange(&all.contradictions, weight)?))
        });
        found.collect()
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
    disagreement: f64,
    doubt: f64,
    contradictions: Contradictions,
    /// Probabilities summed up by class.
    classes: Vec<f64>,
    first_label: Option<u32>,
    one_label: bool,
}

impl Tally {
    fn new(classes: usize) -> Self {
        Self {
            rows: 0,
            disagreement: 0.0,
            doubt: 0.0,
            contradictions: Contradictions::new(classes),
            classes: vec![0.0; classes],
            first_label: None,
            one_label: true,
        }
    }

    fn add(&mut self, probabilities: &[f64], label: u32, weight: f64) {
        self.rows += 1;
        self.disagreement += 1.0 - probabilities[label as usize];
        self.doubt += 1.0 - probabilities.iter().map(|p| p * p).sum::<f64>();
        self.contradictions.add(best(probabilities, None).0, label, weight);
        self.classes.iter_mut().zip(probabilities).for_each(|(sum, p)| *sum += p);
        self.one_label &= *self.first_label.get_or_insert(label) == label;
    }

    fn told(&self) -> SourceNoise {
        let share = |sum: f64| sum / self.rows.max(1) as f64;
        SourceNoise {
            rows: self.rows,
            disagreement: share(self.disagreement),
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
