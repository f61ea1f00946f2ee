//! The validation loss, weighted by how reliable each row's source is, and when to stop.
//!
//! Validation rows come from the same sources as training rows, so a noisy source misleads here as well. A row counts
//! as much as its source does at the moment of asking. Those weights change as training goes on: two epochs can only be
//! compared under the same weights, so the losses are kept per source and the best epoch so far is scored again each
//! time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Sums of losses and their number, per source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceLosses(BTreeMap<u32, (f64, u64)>);

impl SourceLosses {
    /// Adds a row; one whose loss is not finite says nothing about the model and is left out.
    pub fn add(&mut self, source: u32, loss: f32) {
        if loss.is_finite() {
            let (sum, rows) = self.0.entry(source).or_default();
            *sum += f64::from(loss);
            *rows += 1;
        }
    }

    /// The mean loss per source.
    pub fn means(&self) -> impl Iterator<Item = (u32, f64)> {
        self.0.iter().map(|(&source, &(sum, rows))| (source, sum / rows as f64))
    }

    /// The weighted mean over rows; the plain one if nobody weighs anything; infinite if there is no row.
    pub fn mean(&self, weight: impl Fn(u32) -> f64) -> f64 {
        let over = |weight: &dyn Fn(u32) -> f64| {
            let (mut losses, mut rows) = (0.0, 0.0);
            for (&source, &(sum, count)) in &self.0 {
                losses += weight(source) * sum;
                rows += weight(source) * count as f64;
            }
            (rows > 0.0).then(|| losses / rows)
        };
        over(&weight).or_else(|| over(&|_| 1.0)).unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_as_much_as_their_sources() {
        let mut losses = SourceLosses::default();
        for (source, loss) in [(0, 1.0), (0, 3.0), (1, 10.0), (1, f32::NAN)] {
            losses.add(source, loss);
        }
        assert_eq!(losses.mean(|_| 1.0), 14.0 / 3.0);
        assert_eq!(losses.mean(|source| if source == 0 { 1.0 } else { 0.0 }), 2.0);
        assert_eq!(losses.mean(|source| if source == 0 { 1.0 } else { 0.5 }), 9.0 / 2.5);
        assert_eq!(losses.mean(|_| 0.0), 14.0 / 3.0);
        assert_eq!(losses.means().collect::<Vec<_>>(), [(0, 2.0), (1, 10.0)]);
        assert_eq!(SourceLosses::default().mean(|_| 1.0), f64::INFINITY);
    }
}
