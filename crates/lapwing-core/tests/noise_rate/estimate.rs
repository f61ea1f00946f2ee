use lapwing_core::{Likelihoods, NoiseRateConfig, estimate, rate_interval};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The logarithm of what EM climbs: the likelihood of a source's rows at a rate, times the prior's
/// density (that of `prior · strength` noisy rows and `(1 − prior) · strength` others).
fn objective(config: &NoiseRateConfig, rows: &[(f64, f64)], rate: f64) -> f64 {
    let prior = config.prior * config.prior_strength;
    let rest = config.prior_strength - prior;
    let rows = rows.iter().map(|(truth, noise)| (rate * noise + (1.0 - rate) * truth).ln());
    rows.sum::<f64>() + prior * rate.ln() + rest * (1.0 - rate).ln()
}

proptest! {
    #[test]
    fn rates_are_the_maximum_that_a_search_finds(
        rows in prop::collection::vec((0.001..1.0f64, 0.01..1.0f64, 0usize..3), 0..80),
    ) {
        let config = NoiseRateConfig { cap: 0.999, ..NoiseRateConfig::default() };
        let given: Vec<_> = rows.iter().map(|&(t, n, _)| Likelihoods::new(t, n)).collect();
        let sources: Vec<usize> = rows.iter().map(|row| row.2).collect();
        let found = estimate(&config, &given, &sources, 3, 3000).unwrap();
        for source in 0..3 {
            let own: Vec<(f64, f64)> =
                rows.iter().filter(|row| row.2 == source).map(|row| (row.0, row.1)).collect();
            // The objective is concave in the rate, so thirds of the interval close in on its maximum.
            let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
            for _ in 0..200 {
                let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
                if objective(&config, &own, a) < objective(&config, &own, b) { low = a } else { high = b }
            }
            prop_assert!((found.rates[source] - low).abs() < 1e-4, "{} {low}", found.rates[source]);
        }
        for (((truth, noise, source), row), r) in rows.iter().zip(&given).zip(&found.responsibilities) {
            let e = found.rates[*source];
            let expected = e * noise / (e * noise + (1.0 - e) * truth);
            prop_assert!((r.unwrap() - expected).abs() < 1e-12, "{row:?}");
        }
    }
}

const CLASSES: usize = 5;

/// Rows of a source whose labels are noise at this rate, as a network sees them that is right: its
/// probabilities are those that the truth is drawn from.
fn simulated(rng: &mut ChaCha8Rng, rate: f64, rows: usize) -> Vec<Likelihoods> {
    let row = |_| {
        let p = [0.0; CLASSES].map(|_: f64| rng.random::<f64>().powi(8));
        let sum: f64 = p.iter().sum();
        let p = p.map(|p| p / sum);
        let mut left = rng.random::<f64>();
        let truth = p.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        let label = if rng.random::<f64>() < rate {
            rng.random_range(0..CLASSES)
        } else {
            truth.unwrap_or(CLASSES - 1)
        };
        Likelihoods::new(p[label], 1.0 / CLASSES as f64).unwrap()
    };
    (0..rows).map(row).collect()
}

#[test]
fn known_noise_rates_are_found_again_in_30_iterations() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let truths = [0.0, 0.1, 0.4, 0.9];
    let (mut rows, mut sources) = (Vec::new(), Vec::new());
    for (source, &truth) in truths.iter().enumerate() {
        rows.extend(simulated(&mut rng, truth, 4000).into_iter().map(Some));
        sources.extend([source; 4000]);
    }
    let found = estimate(&NoiseRateConfig::default(), &rows, &sources, truths.len(), 30).unwrap();
    for (found, truth) in found.rates.iter().zip(truths) {
        assert!((found - truth).abs() < 0.03, "{found} for {truth}");
    }
}

#[test]
fn intervals_of_500_sources_hold_the_truth_in_93_to_97_of_100() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut held = 0;
    for source in 0..500 {
        let truth = if source % 5 == 0 { 0.0 } else { 0.8 * rng.random::<f64>() };
        let rows = [15, 40, 100, 300][source % 4];
        let (low, high) = rate_interval(&simulated(&mut rng, truth, rows));
        held += usize::from(low <= truth && truth <= high);
    }
    assert!((465..=485).contains(&held), "{held} of 500");
}

#[test]
fn nothing_can_be_said_of_rows_without_likelihoods_and_sources_without_rows() {
    let config = NoiseRateConfig::default();
    let found = estimate(&config, &[None, Likelihoods::new(0.0, 0.2)], &[0, 2], 3, 30).unwrap();
    assert_eq!(found.responsibilities, [None, Some(1.0)]);
    assert_eq!(found.rates[..2], [0.1, 0.1]);
    assert!(found.rates[2] > 0.1);
    assert!(estimate(&config, &[None], &[], 3, 30).is_err());
    assert!(estimate(&config, &[None], &[3], 3, 30).is_err());
    assert!(estimate(&NoiseRateConfig { cap: 2.0, ..config }, &[], &[], 0, 30).is_err());
}
