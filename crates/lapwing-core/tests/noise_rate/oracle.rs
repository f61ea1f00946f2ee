//! Noise rates as slowly and plainly as they can be written: everything is computed anew from all
//! batches there have been.

use lapwing_core::NoiseRateConfig;

/// Probability, label and source.
pub type Row = (f64, u32, usize);

pub struct Oracle {
    pub config: NoiseRateConfig,
    pub classes: u32,
    /// The batches so far, with the responsibility of each row.
    pub past: Vec<Vec<(Row, Option<f64>)>>,
}

impl Oracle {
    /// How often a label was among the rows that count, and once in advance.
    fn frequency(&self, label: u32) -> f64 {
        let rows = || self.past.iter().flatten().filter(|(_, noise)| noise.is_some());
        let of_label = rows().filter(|((_, l, _), _)| *l == label).count();
        (of_label as f64 + 1.0) / (rows().count() as f64 + f64::from(self.classes))
    }

    pub fn rate(&self, source: usize) -> f64 {
        let NoiseRateConfig { decay, prior, prior_strength, cap, warmup } = self.config;
        if (self.past.len() as u64) < warmup {
            return prior.min(cap);
        }
        let of_source = |batch: &Vec<(Row, Option<f64>)>| -> Vec<f64> {
            batch.iter().filter(|((_, _, s), _)| *s == source).filter_map(|(_, r)| *r).collect()
        };
        let batches: Vec<Vec<f64>> =
            self.past.iter().map(of_source).filter(|batch| !batch.is_empty()).collect();
        let (mut noise, mut rows) = (prior * prior_strength, prior_strength);
        for (age, batch) in batches.iter().rev().enumerate() {
            let left = decay.powi(age as i32);
            noise += left * batch.iter().sum::<f64>();
            rows += left * batch.len() as f64;
        }
        (noise / rows).min(cap)
    }

    pub fn step(&mut self, batch: &[Row]) -> Vec<f64> {
        let seen: Vec<(Row, Option<f64>)> = batch
            .iter()
            .map(|&(probability, label, source)| {
                let usable = probability >= 0.0;
                let (e, m, p) = (self.rate(source), self.frequency(label), probability.min(1.0));
                let noise = if e == 0.0 { 0.0 } else { e * m / (e * m + (1.0 - e) * p) };
                ((probability, label, source), usable.then_some(noise))
            })
            .collect();
        let weights = seen.iter().map(|(_, noise)| noise.map_or(0.0, |noise| 1.0 - noise));
        let weights = weights.collect();
        self.past.push(seen);
        weights
    }
}
