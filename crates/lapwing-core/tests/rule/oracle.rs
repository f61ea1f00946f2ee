//! Algorithm 1 as slowly and plainly as it can be written: every window is summed anew, in two
//! passes, for every source and step.

use std::collections::VecDeque;

use lapwing_core::{HistoryReading, LapConfig, Ties, Weighting};

#[derive(Clone, Default)]
pub struct OracleSource {
    pub window: VecDeque<f64>,
    pub unreliability: u64,
}

pub struct Oracle {
    pub config: LapConfig,
    pub step: u64,
    /// By source number; a source that was never seen has an empty window.
    pub sources: Vec<OracleSource>,
}

/// What one judgement rests on, so that a test can tell a wrong answer from a coin toss at the
/// last bit.
pub struct Judgement {
    pub source: usize,
    pub too_close_to_call: bool,
}

impl Oracle {
    pub fn new(config: LapConfig, sources: usize) -> Self {
        Self { config, step: 0, sources: vec![OracleSource::default(); sources] }
    }

    fn ln_weight(&self, unreliability: u64) -> f64 {
        let x = 0.005 * self.config.depression_strength * unreliability as f64;
        match self.config.weighting {
            // 1 - tanh² x = (cosh x)^-2, and cosh x = e^x (1 + e^-2x) / 2
            Weighting::TanhSquared => -2.0 * (x + (-2.0 * x).exp().ln_1p() - 2f64.ln()),
            Weighting::Exponential => -x,
            // Cut sources weigh nothing beside any other, and are all alike.
            Weighting::Cut if x < 0.5f64.sqrt().atanh() => 0.0,
            Weighting::Cut => -1e12,
            _ => unreachable!(),
        }
    }

    pub fn weight(&self, source: usize) -> f64 {
        self.ln_weight(self.sources[source].unreliability).exp()
    }

    /// What a history is read as, and its mean.
    fn levels(&self, window: &VecDeque<f64>) -> (f64, f64) {
        let count = window.len() as f64;
        let mean = window.iter().sum::<f64>() / count;
        let least = window.iter().copied().fold(f64::INFINITY, f64::min);
        let likelihood = window.iter().map(|loss| (least - loss).exp()).sum::<f64>() / count;
        match self.config.reading {
            HistoryReading::Mean => (mean, mean),
            HistoryReading::Evidence => (least - likelihood.ln(), mean),
        }
    }

    pub fn step(&mut self, batch: &[(usize, f64)]) -> Vec<Judgement> {
        let history_length = self.config.history_length;
        let mut present: Vec<usize> = Vec::new();
        for source in 0..self.sources.len() {
            let losses: Vec<f64> = batch
                .iter()
                .filter(|(s, loss)| *s == source && loss.is_finite())
                .map(|(_, loss)| *loss)
                .collect();
            if !losses.is_empty() {
                let window = &mut self.sources[source].window;
                window.push_back(losses.iter().sum::<f64>() / losses.len() as f64);
                if window.len() > history_length {
                    window.pop_front();
                }
                present.push(source);
            }
        }
        let mut judgements = Vec::new();
        if self.step >= self.config.warmup {
            let before = self.sources.clone();
            let complete = |s: usize| before[s].window.len() == history_length;
            for &source in present.iter().filter(|&&s| complete(s)) {
                let others: Vec<usize> =
                    (0..before.len()).filter(|&s| s != source && complete(s)).collect();
                let Some(heaviest) = others
                    .iter()
                    .map(|&s| self.ln_weight(before[s].unreliability))
                    .reduce(f64::max)
                else {
                    continue;
                };
                let weighted: Vec<(f64, f64)> = others
                    .iter()
                    .flat_map(|&s| {
                        let weight = (self.ln_weight(before[s].unreliability) - heaviest).exp();
                        // Where the reading is not the mean, all losses are moved by as much.
                        let (read, mean) = self.levels(&before[s].window);
                        before[s].window.iter().map(move |&loss| (weight, loss + (read - mean)))
                    })
                    .collect();
                let total: f64 = weighted.iter().map(|(w, _)| w).sum();
                let mean = weighted.iter().map(|(w, l)| w * l).sum::<f64>() / total;
                let variance =
                    weighted.iter().map(|(w, l)| w * (l - mean).powi(2)).sum::<f64>() / total;
                let own = &before[source].window;
                let (own_mean, _) = self.levels(own);
                let (std, leniency) = (variance.sqrt(), self.config.leniency);
                let threshold = mean + leniency * std;
                let change = match self.config.ties {
                    _ if leniency == f64::INFINITY => -1,
                    Ties::Package if std <= 1e-8 => 0,
                    Ties::Package if own_mean >= threshold => 1,
                    Ties::Paper if own_mean > threshold => 1,
                    _ => -1,
                };
                let c = &mut self.sources[source].unreliability;
                *c = c.saturating_add_signed(change);

                let size = weighted.iter().map(|(w, l)| if *w > 1e-300 { l.abs() } else { 0.0 });
                let scale = size.chain(own.iter().map(|l| l.abs())).fold(0.0, f64::max)
                    * (1.0 + leniency.min(1e3));
                let spread_unclear =
                    self.config.ties == Ties::Package && (std - 1e-8).abs() <= 1e-8 * (1.0 + scale);
                judgements.push(Judgement {
                    source,
                    too_close_to_call: (own_mean - threshold).abs() <= 1e-9 * scale
                        || spread_unclear,
                });
            }
        }
        self.step += 1;
        judgements
    }
}
