//! What two choices of the rule are for: others count by their weight, and unreliability stops at 0.

use std::collections::VecDeque;

use lapwing_core::{Lap, LapConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const HISTORY: usize = 10;
const STEPS: usize = 1_500;

/// The rule with either choice left out.
struct Variant {
    weighted: bool,
    clipped: bool,
    windows: Vec<VecDeque<f64>>,
    unreliability: Vec<i64>,
}

impl Variant {
    fn new(weighted: bool, clipped: bool, sources: usize) -> Self {
        let (windows, unreliability) = (vec![VecDeque::new(); sources], vec![0; sources]);
        Self { weighted, clipped, windows, unreliability }
    }

    fn weight(&self, source: usize) -> f64 {
        let depth = (0.005 * self.unreliability[source].max(0) as f64).tanh();
        if self.weighted { 1.0 - depth * depth } else { 1.0 }
    }

    fn step(&mut self, losses: &[f64]) {
        for (window, loss) in self.windows.iter_mut().zip(losses) {
            window.push_back(*loss);
            if window.len() > HISTORY {
                window.pop_front();
            }
        }
        if self.windows[0].len() < HISTORY {
            return;
        }
        let rises: Vec<bool> = (0..losses.len())
            .map(|source| {
                let others = (0..losses.len()).filter(|other| *other != source);
                let weighed: Vec<(f64, f64)> = others
                    .flat_map(|o| self.windows[o].iter().map(move |loss| (o, *loss)))
                    .map(|(other, loss)| (self.weight(other), loss))
                    .collect();
                let total: f64 = weighed.iter().map(|(weight, _)| weight).sum();
                let mean = weighed.iter().map(|(w, loss)| w * loss).sum::<f64>() / total;
                let square = |(w, loss): &(f64, f64)| w * (loss - mean) * (loss - mean);
                let deviation = (weighed.iter().map(square).sum::<f64>() / total).sqrt();
                let own = self.windows[source].iter().sum::<f64>() / HISTORY as f64;
                own > mean + deviation
            })
            .collect();
        for (unreliability, rises) in self.unreliability.iter_mut().zip(rises) {
            *unreliability += if rises { 1 } else { -1 };
            if self.clipped {
                *unreliability = (*unreliability).max(0);
            }
        }
    }
}

/// Losses of an awful source, a source that is a little worse than the rest, and three good ones.
fn losses(generator: &mut ChaCha8Rng) -> [f64; 5] {
    [5.0, 1.3, 1.0, 1.0, 1.0].map(|level| {
        let unit = (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        level + 0.3 * (unit - 0.5)
    })
}

/// Unreliability of the second source after each step.
fn second(weighted: bool, clipped: bool) -> Vec<i64> {
    let mut generator = ChaCha8Rng::seed_from_u64(7);
    let mut variant = Variant::new(weighted, clipped, 5);
    let step = |_| {
        variant.step(&losses(&mut generator));
        variant.unreliability[1]
    };
    (0..STEPS).map(step).collect()
}

#[test]
fn a_weighted_mean_finds_the_lesser_noise_once_the_greater_is_out_of_the_way() {
    let (weighted, plain) = (second(true, true), second(false, true));
    assert!(weighted[STEPS - 1] > 500, "{}", weighted[STEPS - 1]);
    // The awful source hides it for ever: mean and spread of the others are its own.
    assert!(plain.iter().all(|unreliability| *unreliability == 0));
    // And so it is in the weighted form, for as long as the awful one weighs anything.
    assert_eq!(weighted[100], 0);
}

#[test]
fn without_the_stop_at_zero_a_source_lives_on_credit() {
    let (clipped, free) = (second(true, true), second(true, false));
    let accused_at = |unreliability: &[i64]| unreliability.windows(2).position(|w| w[1] > w[0]);
    let first = accused_at(&clipped).unwrap();
    assert_eq!(accused_at(&free), Some(first), "it is accused in the same steps");
    // Only from its credit upwards.
    let doubted = free.iter().position(|unreliability| *unreliability > 0).unwrap();
    assert!(doubted > 2 * first - HISTORY, "{doubted} against {first}");
    assert!(free[STEPS - 1] < clipped[STEPS - 1] - 200);
}

#[test]
fn with_both_choices_it_is_the_rule() {
    let config = LapConfig { history_length: HISTORY, leniency: 1.0, ..LapConfig::default() };
    let mut lap = Lap::new(config).unwrap();
    let mut generator = ChaCha8Rng::seed_from_u64(7);
    for (step, expected) in second(true, true).into_iter().enumerate() {
        lap.weigh(&losses(&mut generator), &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!(lap.unreliability(&1) as i64, expected, "step {step}");
    }
}
