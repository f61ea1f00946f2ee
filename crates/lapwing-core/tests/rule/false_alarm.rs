//! How often clean sources are accused, against a simulation with the rule itself.

use lapwing_core::{Lap, LapConfig, false_alarm_rate, leniency_for_false_alarm};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Two standard normal numbers (Box and Muller).
fn normal(generator: &mut ChaCha8Rng) -> [f64; 2] {
    let mut unit = || ((generator.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (radius, angle) = ((-2.0 * unit().ln()).sqrt(), std::f64::consts::TAU * unit());
    [radius * angle.cos(), radius * angle.sin()]
}

/// The share of clean sources that are accused at the first judgement, when all histories are complete.
fn simulated(leniency: f64, sources: usize, history_length: usize, trials: usize) -> f64 {
    let mut generator = ChaCha8Rng::seed_from_u64((sources * history_length) as u64);
    let names: Vec<usize> = (0..sources).collect();
    let config = LapConfig { leniency, history_length, ..LapConfig::default() };
    let mut accused = 0;
    for _ in 0..trials {
        let mut lap = Lap::new(config).unwrap();
        for _ in 0..history_length {
            let mut losses: Vec<f64> = Vec::with_capacity(sources + 1);
            while losses.len() < sources {
                losses.extend(normal(&mut generator).map(|z| 5.0 + z));
            }
            losses.truncate(sources);
            lap.weigh(&losses, &names).unwrap();
        }
        accused += names.iter().filter(|source| lap.unreliability(*source) == 1).count();
    }
    accused as f64 / (trials * sources) as f64
}

#[test]
fn the_rate_of_false_alarms_is_the_one_that_was_asked_for() {
    for sources in [3, 10, 100] {
        for history in [1, 5, 25] {
            for asked in [0.05, 0.25] {
                let leniency = leniency_for_false_alarm(asked, sources, history).unwrap();
                let trials = 60_000 / sources;
                let found = simulated(leniency, sources, history, trials);
                // Sources of one trial are compared with each other, so at worst only trials are independent.
                let error = (asked * (1.0 - asked) / trials as f64).sqrt();
                assert!(
                    (found - asked).abs() < 3.0 * error,
                    "{sources} sources, H = {history}: {asked} asked for, {found} found"
                );
            }
        }
    }
}

#[test]
fn the_papers_formula_is_not_the_rate() {
    let found = simulated(1.644_853_626_951_472_2, 3, 1, 20_000);
    assert!((found - 0.258).abs() < 0.01, "{found}");
    let rate = false_alarm_rate(0.8, 10, 25).unwrap();
    assert!((rate - 9.82e-5).abs() < 1e-7, "{rate}");
    assert!(simulated(0.8, 10, 25, 2_000) < 0.002);
}
