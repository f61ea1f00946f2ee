//! The rule with faults that can be switched on one by one: those of the authors' package, which computes in single precision,
//! and two choices of the rule left out. For experiments on what they do, and for nothing else.
//!
//! It is written as plainly as it can be: every statistic is summed anew over the histories. Without a fault it is the rule with
//! the ties of the package; with the three of the package it goes the way of
//! the package's traces, all but the one whose losses are not numbers.

use std::collections::VecDeque;

use lapwing_core::{BatchSums, DISCRETE_AMOUNT, LapConfig};
use lapwing_train::{
    Audience, Method, MethodConfig, MethodError, MethodKind, Observed, Parameter, Range, Standing,
    Start, TrainError, Weighs,
};

/// Others that spread by no more than this say nothing.
const NO_SPREAD: f64 = 1e-8;

const SINGLE_WEIGHTS: Parameter =
    switch("single-weights", "weights in single precision, in which they become exactly 0");
const NAN_ACCUSES: Parameter =
    switch("nan-accuses", "a threshold that is not a number counts against the source");
const RUNNING_SUMS: Parameter = switch(
    "running-sums",
    "sums of losses and of their squares in single precision, from which those that leave are subtracted",
);
const PLAIN_MEAN: Parameter = switch("plain-mean", "others count alike, whatever they weigh");
const UNCLIPPED: Parameter = switch("unclipped", "unreliability falls below 0");

const fn switch(name: &'static str, about: &'static str) -> Parameter {
    let (default, range, audience) = (Some(0.0), Range::Switch, Audience::Recipes);
    Parameter { name, value_name: "YES", about, default, range, audience }
}

/// The rule with faults, as a method of recipes.
#[derive(Debug)]
pub(crate) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "lap-with-faults"
    }

    fn about(&self) -> &'static str {
        "Loss Adapted Plasticity with faults that can be switched on"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let on = self.parameters().iter().filter(|fault| method.number(fault) == 1.0);
        let names: Vec<&str> = on.map(|fault| fault.name).collect();
        if names.is_empty() { "no fault".to_owned() } else { names.join(", ") }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[SINGLE_WEIGHTS, NAN_ACCUSES, RUNNING_SUMS, PLAIN_MEAN, UNCLIPPED]
    }

    fn weighs(&self) -> Weighs {
        Weighs::Sources
    }

    fn runs_rule(&self) -> bool {
        true
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        let on = |fault: &Parameter| start.method.number(fault) == 1.0;
        let faults = Faults {
            single_weights: on(&SINGLE_WEIGHTS),
            nan_accuses: on(&NAN_ACCUSES),
            running_sums: on(&RUNNING_SUMS),
            plain_mean: on(&PLAIN_MEAN),
            unclipped: on(&UNCLIPPED),
        };
        Ok(Box::new(FaultyLap::new(start.method.rule(), faults)))
    }
}

/// Which faults are on.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    single_weights: bool,
    nan_accuses: bool,
    running_sums: bool,
    plain_mean: bool,
    unclipped: bool,
}

#[derive(Debug)]
struct FaultyLap {
    rule: LapConfig,
    faults: Faults,
    step: u64,
    sources: Vec<Source>,
    sums: BatchSums<u32>,
}

#[derive(Clone, Debug, Default)]
struct Source {
    losses: VecDeque<f64>,
    /// Of the losses and of their squares, kept up as the package does it.
    sum: f32,
    squares: f32,
    unreliability: i64,
}

impl Source {
    fn push(&mut self, loss: f64, history_length: usize) {
        // The oldest goes before the newest comes: the order decides what a spike leaves behind.
        if self.losses.len() == history_length
            && let Some(oldest) = self.losses.pop_front()
        {
            let oldest = oldest as f32;
            self.sum -= oldest;
            self.squares -= oldest * oldest;
        }
        let single = loss as f32;
        self.losses.push_back(loss);
        self.sum += single;
        self.squares += single * single;
    }
}

/// What a source is compared by: its own mean, and mean and standard deviation of the others.
struct Comparison {
    own: f64,
    mean: f64,
    std: f64,
}

impl FaultyLap {
    fn new(rule: LapConfig, faults: Faults) -> Self {
        Self { rule, faults, step: 0, sources: Vec::new(), sums: BatchSums::new() }
    }

    fn depression(&self, unreliability: i64) -> f64 {
        DISCRETE_AMOUNT * self.rule.depression_strength * unreliability.max(0) as f64
    }

    /// What samples of a source weigh.
    fn weight(&self, unreliability: i64) -> f64 {
        let depression = self.depression(unreliability);
        if self.faults.single_weights {
            // Rounded once, so that it is the same on every machine.
            let tanh = f64::from(depression as f32).tanh() as f32;
            return f64::from(1.0 - tanh * tanh);
        }
        self.rule.weighting.weight(depression)
    }

    /// What others count for when they are compared with. Only ratios count; in double precision they are taken from
    /// logarithms, so that somebody always counts.
    fn counts(&self, others: &[&Source]) -> Vec<f64> {
        if self.faults.plain_mean {
            return vec![1.0; others.len()];
        }
        if self.faults.single_weights {
            return others.iter().map(|other| self.weight(other.unreliability)).collect();
        }
        // 1 − tanh² x = (cosh x)^−2, and cosh x = e^x (1 + e^−2x) / 2
        let logarithm = |other: &&Source| {
            let x = self.depression(other.unreliability);
            -2.0 * (x + (-2.0 * x).exp().ln_1p())
        };
        let logarithms: Vec<f64> = others.iter().map(logarithm).collect();
        let heaviest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logarithms.iter().map(|logarithm| (logarithm - heaviest).exp()).collect()
    }

    fn compare(&self, own: &Source, others: &[&Source]) -> Comparison {
        let counts = self.counts(others);
        let length = self.rule.history_length;
        if self.faults.running_sums {
            let (mut total, mut sum, mut squares) = (0f32, 0f32, 0f32);
            for (other, count) in others.iter().zip(&counts) {
                let count = *count as f32;
                total += count;
                sum += count * other.sum;
                squares += count * other.squares;
            }
            let losses = total * length as f32;
            let mean = sum / losses;
            // E[x²] − E[x]² may be less than 0, and its root is then not a number.
            let std = (squares / losses - mean * mean).sqrt();
            let own = own.sum / length as f32;
            return Comparison { own: own.into(), mean: mean.into(), std: std.into() };
        }
        let total = counts.iter().sum::<f64>() * length as f64;
        let over_all = |of: &dyn Fn(f64) -> f64| {
            let each = others.iter().zip(&counts).map(|(other, count)| {
                count * other.losses.iter().map(|loss| of(*loss)).sum::<f64>()
            });
            each.sum::<f64>() / total
        };
        let mean = over_all(&|loss| loss);
        let variance = over_all(&|loss| (loss - mean) * (loss - mean));
        let own = own.losses.iter().sum::<f64>() / length as f64;
        Comparison { own, mean, std: variance.sqrt() }
    }

    /// By how much the unreliability of a source moves.
    fn change(&self, Comparison { own, mean, std }: Comparison) -> i64 {
        let threshold = match self.faults.running_sums {
            true => f64::from(mean as f32 + self.rule.leniency as f32 * std as f32),
            false => mean + self.rule.leniency * std,
        };
        if threshold.is_nan() {
            i64::from(self.faults.nan_accuses)
        } else if std <= NO_SPREAD {
            0
        } else if own >= threshold {
            1
        } else {
            -1
        }
    }

    /// A step with the sums of a batch.
    fn update(&mut self) {
        let length = self.rule.history_length;
        let mut present = Vec::new();
        for (&source, sum) in self.sums.iter() {
            let place = source as usize;
            if place >= self.sources.len() {
                self.sources.resize_with(place + 1, Source::default);
            }
            if let Some(loss) = sum.mean() {
                self.sources[place].push(loss, length);
                present.push(place);
            }
        }
        let complete = |place: &usize| self.sources[*place].losses.len() == length;
        let judged =
            present.into_iter().filter(|place| self.step >= self.rule.warmup && complete(place));
        let changes: Vec<(usize, i64)> = judged
            .filter_map(|place| {
                let others = (0..self.sources.len()).filter(|other| *other != place);
                let others: Vec<&Source> =
                    others.filter(complete).map(|other| &self.sources[other]).collect();
                let comparison =
                    (!others.is_empty()).then(|| self.compare(&self.sources[place], &others))?;
                Some((place, self.change(comparison)))
            })
            .collect();
        for (place, change) in changes {
            let unreliability = &mut self.sources[place].unreliability;
            *unreliability += change;
            if !self.faults.unclipped {
                *unreliability = (*unreliability).max(0);
            }
        }
        self.step += 1;
    }
}

impl Method for FaultyLap {
    fn weigh(&mut self, observed: &Observed<'_>) -> Result<Vec<f64>, MethodError> {
        observed.sum_up(&mut self.sums, |_| true);
        self.update();
        let weigh = |(loss, source): (&f32, &u32)| {
            if loss.is_finite() { self.standing(*source).weight } else { 0.0 }
        };
        Ok(observed.losses.iter().zip(observed.sources).map(weigh).collect())
    }

    fn standing(&self, source: u32) -> Standing {
        let unreliability = self.sources.get(source as usize).map_or(0, |s| s.unreliability);
        Standing {
            unreliability: unreliability.max(0).unsigned_abs(),
            weight: self.weight(unreliability),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use lapwing_core::{Lap, Ties};
    use lapwing_sample::Draws;
    use std::collections::BTreeMap;
    use std::path::Path;

    const PACKAGE: Faults = Faults {
        single_weights: true,
        nan_accuses: true,
        running_sums: true,
        plain_mean: false,
        unclipped: false,
    };

    fn rule(history_length: usize, warmup: u64, strength: f64, leniency: f64) -> LapConfig {
        LapConfig {
            history_length,
            warmup,
            depression_strength: strength,
            leniency,
            ties: Ties::Package,
            ..LapConfig::default()
        }
    }

    fn read(name: &str) -> Vec<BTreeMap<String, f64>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        let file = std::fs::File::open(path.join(format!("{name}.csv.gz"))).unwrap();
        let mut reader = csv::Reader::from_reader(GzDecoder::new(file));
        reader.deserialize().map(|row| row.unwrap()).collect()
    }

    /// In how many of how many steps the unreliability of all sources is the package's.
    fn agreement(name: &str, rule: LapConfig, faults: Faults) -> (usize, usize) {
        let (samples, states) =
            (read(&format!("pkg_{name}_samples")), read(&format!("pkg_{name}_state")));
        let mut lap = FaultyLap::new(rule, faults);
        let mut same = 0;
        for (step, state) in states.iter().enumerate() {
            let batch: Vec<_> = samples.iter().filter(|row| row["step"] == step as f64).collect();
            let losses: Vec<f32> = batch.iter().map(|row| row["loss"] as f32).collect();
            let sources: Vec<u32> = batch.iter().map(|row| row["source"] as u32).collect();
            lap.weigh(&Observed::new(&losses, &sources)).unwrap();
            let theirs = |source: u32| state[&format!("C_{source}")] as u64;
            let all = 0..state.len() as u32 - 1;
            let ours = |source| lap.standing(source).unreliability;
            same += usize::from(all.into_iter().all(|source| ours(source) == theirs(source)));
        }
        (same, states.len())
    }

    #[test]
    fn with_the_faults_of_the_package_it_goes_the_way_of_the_package() {
        for (name, rule) in [
            ("partial", rule(5, 0, 1.0, 0.8)),
            ("late", rule(10, 30, 2.0, 0.5)),
            ("tie", rule(1, 0, 1.0, 0.0)),
            ("quirk_spike", rule(25, 0, 1.0, 1.0)),
            ("quirk_underflow", rule(10, 0, 1.0, 1.0)),
        ] {
            let (same, all) = agreement(name, rule, PACKAGE);
            assert_eq!(same, all, "{name}");
        }
    }

    #[test]
    fn each_fault_is_what_its_trace_needs() {
        let spike = |faults| agreement("quirk_spike", rule(25, 0, 1.0, 1.0), faults);
        let (same, all) = spike(Faults { running_sums: false, ..PACKAGE });
        assert!(same < all, "without running sums a spike is forgotten");
        let underflow = |faults| agreement("quirk_underflow", rule(10, 0, 1.0, 1.0), faults);
        for faults in
            [Faults { single_weights: false, ..PACKAGE }, Faults { nan_accuses: false, ..PACKAGE }]
        {
            let (same, all) = underflow(faults);
            assert!(same < all, "{faults:?}");
        }
        let (same, all) = underflow(Faults { running_sums: false, ..PACKAGE });
        assert_eq!(same, all, "what leaves the window is no part of it");
    }

    #[test]
    fn without_a_fault_it_is_the_rule() {
        for seed in 0..4 {
            let rule = rule(7, 20, 30.0, 0.6);
            let (mut slow, mut fast) =
                (FaultyLap::new(rule, Faults::default()), Lap::<u32>::new(rule).unwrap());
            let mut draws = Draws::free(seed, 9);
            for step in 0..400 {
                let rows = 1 + draws.below(12);
                let sources: Vec<u32> = (0..rows).map(|_| draws.below(6)).collect();
                let loss = |source: u32, noise: u32| (source * 40 + noise) as f32 / 1000.0;
                let losses: Vec<f32> =
                    sources.iter().map(|&source| loss(source, draws.below(300))).collect();
                let weights = slow.weigh(&Observed::new(&losses, &sources)).unwrap();
                assert_eq!(weights, fast.weigh(&losses, &sources).unwrap(), "step {step}");
                for source in 0..6 {
                    assert_eq!(slow.standing(source).unreliability, fast.unreliability(&source));
                }
            }
            assert!((0..6).any(|source| fast.unreliability(&source) > 50));
        }
    }
}
