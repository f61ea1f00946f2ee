//! Noise rates from one pass over all rows.

use alloc::vec;
use alloc::vec::Vec;

use super::{Likelihoods, NoiseRateConfig};
use crate::LapError;

/// Noise rates that explain a pass over all rows best.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// e of each source.
    pub rates: Vec<f64>,
    /// For each row, the probability that its label is noise; `None` where nothing can be said.
    pub responsibilities: Vec<Option<f64>>,
}

/// Expectation–maximisation over all rows, for a network that does not change any more: starts from
/// the prior, and alternates between responsibilities and rates. 30 iterations are enough in
/// practice.
///
/// `sources` are numbers from 0 to below `count`. A source without rows keeps the prior. Give
/// probabilities of a network that has not learnt these rows: one that has learnt them by heart
/// believes all labels.
///
/// ```
/// use lapwing_core::{Likelihoods, NoiseRateConfig, estimate};
/// // 40 rows whose label has probability 0.9, and 40 for which it is 0.01; noise has 0.1 for any.
/// let row = |at| Likelihoods::new(if at < 40 { 0.9 } else { 0.01 }, 0.1);
/// let rows: Vec<_> = (0..80).map(row).collect();
/// let sources: Vec<_> = (0..80).map(|at| at / 40).collect();
/// let found = estimate(&NoiseRateConfig::default(), &rows, &sources, 2, 30)?;
/// assert!(found.rates[0] < 0.05 && found.rates[1] > 0.8);
/// # Ok::<(), lapwing_core::LapError>(())
/// ```
///
/// # Errors
/// Where a parameter lies outside its range, or there is not exactly one source below `count` for
/// each row.
pub fn estimate(
    config: &NoiseRateConfig,
    rows: &[Option<Likelihoods>],
    sources: &[usize],
    count: usize,
    iterations: usize,
) -> Result<Estimate, LapError> {
    config.check()?;
    if rows.len() != sources.len() || sources.iter().any(|&source| source >= count) {
        let within = sources.iter().filter(|&&source| source < count).count();
        return Err(LapError::Unpaired { losses: rows.len(), sources: within });
    }
    let mut evidence = vec![(0.0, 0.0); count];
    for _ in 0..iterations {
        let rates = rates(config, &evidence);
        evidence.fill((0.0, 0.0));
        for (row, &source) in rows.iter().zip(sources) {
            if let Some(row) = row {
                let (noise, rows) = &mut evidence[source];
                *noise += row.responsibility(rates[source]);
                *rows += 1.0;
            }
        }
    }
    let rates = rates(config, &evidence);
    let responsibility = |(row, &source): (&Option<Likelihoods>, &usize)| {
        row.map(|row| row.responsibility(rates[source]))
    };
    let responsibilities = rows.iter().zip(sources).map(responsibility).collect();
    Ok(Estimate { rates, responsibilities })
}

fn rates(config: &NoiseRateConfig, evidence: &[(f64, f64)]) -> Vec<f64> {
    evidence.iter().map(|&(noise, rows)| config.rate(noise, rows)).collect()
}
