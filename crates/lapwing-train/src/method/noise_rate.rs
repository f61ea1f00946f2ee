//! A noise rate per source, within the user's guards: a row counts for the probability that its label is the truth.
//!
//! Each label is the truth, which the network predicts, or noise, drawn from the label frequencies, with a probability
//! that belongs to its source. A source whose rows are difficult keeps its weight, where a rule on losses takes it away.

use lapwing_core::{
    Answer, Labels, NoiseRate, NoiseRateConfig, NoiseSourceState, NoiseState, NoiseSums, Peers,
};
use lapwing_sample::Targets;
use serde::Deserialize;

use super::item_noise::ItemNoise;
use super::{
    Audience, Guards, Method, MethodConfig, MethodError, MethodKind, Observed, Parameter, Range,
    Standing, Start, Weighs,
};
use crate::error::TrainError;
use crate::saved::Saved;

const WARMUP: Parameter = Parameter {
    name: "noise-warmup",
    value_name: "SHARE",
    about: "share of the steps in which every source has the noise rate of the prior",
    default: Some(0.1),
    range: Range::Within(0.0, 1.0),
    audience: Audience::Everybody,
};
const PRIOR: Parameter = Parameter {
    name: "noise-prior",
    value_name: "RATE",
    about: "noise rate of a source of which nothing is known",
    default: Some(0.1),
    range: Range::Within(0.0, 1.0),
    audience: Audience::Everybody,
};
const PRIOR_ROWS: Parameter = Parameter {
    name: "noise-prior-rows",
    value_name: "N",
    about: "how many rows that prior counts for",
    default: Some(10.0),
    range: Range::Above(0.0),
    audience: Audience::Everybody,
};
const DECAY: Parameter = Parameter {
    name: "noise-decay",
    value_name: "SHARE",
    about: "what is left of the evidence on a source one batch later",
    default: Some(0.98),
    range: Range::Within(0.0, 1.0),
    audience: Audience::Everybody,
};
/// Rows that a known rate counts for.
const CERTAIN: f64 = 1e12;
const PARAMETERS: &[Parameter] = &[WARMUP, PRIOR, PRIOR_ROWS, DECAY];

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "noise-rate"
    }

    fn about(&self) -> &'static str {
        "A noise rate per source: rows count for the probability that their label is right (classification)"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let number = |parameter| method.number(parameter);
        format!(
            "prior {} for {} rows, decay {}, warm-up {} of the steps",
            number(&PRIOR),
            number(&PRIOR_ROWS),
            number(&DECAY),
            number(&WARMUP)
        )
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn needs_classes(&self) -> bool {
        true
    }

    fn weighs(&self) -> Weighs {
        Weighs::Sources
    }

    fn runs_in_shards(&self) -> bool {
        true
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        let Targets::Classes { labels, classes } = start.learner.data.targets else {
            return Err(MethodError::NeedsClasses(self.name()).into());
        };
        let number = |parameter| start.method.number(parameter);
        let batches = start.learner.train().len().div_ceil(start.config.batch_size.max(1));
        let steps = batches * start.config.epochs;
        let mut config = NoiseRateConfig {
            decay: number(&DECAY),
            prior: number(&PRIOR),
            prior_strength: number(&PRIOR_ROWS),
            warmup: (number(&WARMUP) * steps as f64) as u64,
            ..NoiseRateConfig::default()
        };
        let known = start.method.noise_rates();
        if !known.is_empty() {
            (config.decay, config.warmup) = (1.0, 0);
        }
        let (guards, learner) = (start.method.guards(), start.learner);
        let mut noise =
            GuardedNoise::new(config, *classes as u32, guards.clone(), learner.peers())?;
        noise.tell(known)?;
        let Some(items) = learner.data.items else { return Ok(Box::new(noise)) };
        let (answers, length) = ((items, &labels[..], *classes), (steps, start.config.epochs));
        Ok(Box::new(ItemNoise::new(noise, learner, answers, guards, length)?))
    }
}

/// Noise rates within the user's guards.
#[derive(Debug)]
pub(super) struct GuardedNoise<'a> {
    noise: NoiseRate<u32>,
    guards: Guards,
    peers: &'a dyn Peers,
    weights: Vec<f64>,
}

impl<'a> GuardedNoise<'a> {
    fn new(
        config: NoiseRateConfig,
        classes: u32,
        guards: Guards,
        peers: &'a dyn Peers,
    ) -> Result<Self, MethodError> {
        let noise = NoiseRate::new(config, Labels::counted(classes)?)?;
        Ok(Self { noise, guards, peers, weights: Vec::new() })
    }

    /// Takes rates for known, where they are numbers: evidence beside which that of training is nothing.
    fn tell(&mut self, rates: &[f64]) -> Result<(), MethodError> {
        let mut state = self.noise.state();
        let known = rates.iter().enumerate().filter(|(_, rate)| rate.is_finite());
        let known = known.map(|(source, rate)| NoiseSourceState {
            source: source as u32,
            noise: rate.clamp(0.0, 1.0) * CERTAIN,
            rows: CERTAIN,
            seen: 0,
            nonfinite: 0,
        });
        state.sources = known.collect();
        Ok(self.noise.load(state)?)
    }

    /// The noise rate of a source.
    pub(super) fn rate(&self, source: u32) -> f64 {
        self.noise.rate(&source)
    }
}

impl Method for GuardedNoise<'_> {
    fn weigh(&mut self, observed: &Observed<'_>) -> Result<Vec<f64>, MethodError> {
        let probabilities =
            observed.probabilities_of_labels().ok_or(MethodError::NeedsClasses(Kind.name()))?;
        let answer = |(probability, &label)| Answer { probability, label };
        let rows: Vec<Answer> =
            probabilities.into_iter().zip(observed.labels).map(answer).collect();
        let (mut weights, mut own) = (Vec::with_capacity(rows.len()), Vec::new());
        for shard in observed.shards() {
            let (rows, sources) = (&rows[shard.clone()], &observed.sources[shard]);
            own.push(self.noise.sums(rows, sources, &mut self.weights)?);
            weights.extend_from_slice(&self.weights);
        }
        let whole = NoiseSums::of_parts(own, self.noise.step(), self.peers)?;
        self.noise.update(&whole)?;
        let weigh = |((row, source), &weight): ((&Answer, &u32), &f64)| {
            if row.probability.is_nan() { 0.0 } else { self.guards.weight(*source, weight) }
        };
        Ok(rows.iter().zip(observed.sources).zip(&weights).map(weigh).collect())
    }

    /// A source weighs what its rows count for on average, 1 − e.
    fn standing(&self, source: u32) -> Standing {
        let weight = self.guards.weight(source, 1.0 - self.noise.rate(&source));
        Standing { unreliability: 0, weight }
    }

    fn save(&self) -> Result<Saved, MethodError> {
        // Sources are columns: a million of them take gigabytes as JSON.
        let mut state = self.noise.state();
        let sources = std::mem::take(&mut state.sources);
        let counts = |of: fn(&NoiseSourceState<u32>) -> u64| -> Vec<u64> {
            sources.iter().map(of).collect()
        };
        let values = |of: fn(&NoiseSourceState<u32>) -> f64| -> Vec<f64> {
            sources.iter().map(of).collect()
        };
        Ok(Saved::of(serde_json::to_value(&state)?)
            .with_counts("source", counts(|known| known.source.into()))
            .with_values("noise", values(|known| known.noise))
            .with_values("rows", values(|known| known.rows))
            .with_counts("seen", counts(|known| known.seen))
            .with_counts("nonfinite", counts(|known| known.nonfinite)))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        let mut state: NoiseState<u32> =
            NoiseState::deserialize(saved.state()).map_err(MethodError::from)?;
        let (sources, noise, rows) =
            (saved.counts("source")?, saved.values("noise")?, saved.values("rows")?);
        let (seen, nonfinite) = (saved.counts("seen")?, saved.counts("nonfinite")?);
        if [noise.len(), rows.len(), seen.len(), nonfinite.len()] != [sources.len(); 4] {
            return Err(MethodError::Columns.into());
        }
        state.sources = (0..sources.len())
            .map(|at| {
                Ok(NoiseSourceState {
                    source: u32::try_from(sources[at]).map_err(|_| MethodError::Columns)?,
                    noise: noise[at],
                    rows: rows[at],
                    seen: seen[at],
                    nonfinite: nonfinite[at],
                })
            })
            .collect::<Result<_, MethodError>>()?;
        Ok(self.noise.load(state).map_err(MethodError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_core::Alone;

    fn noise(guards: Guards) -> GuardedNoise<'static> {
        GuardedNoise::new(NoiseRateConfig::default(), 2, guards, &Alone).unwrap()
    }

    /// Source 0 is believed by the network, source 1 is hard for it, source 2 is wrong.
    fn feed(method: &mut dyn Method, steps: u32) -> Vec<f64> {
        let mut weights = Vec::new();
        for step in 0..steps {
            let (losses, sources) = ([0.05, 0.7, 6.0], [0, 1, 2]);
            let labels = [step % 2; 3];
            let observed = Observed { labels: &labels, ..Observed::new(&losses, &sources) };
            weights = method.weigh(&observed).unwrap();
        }
        weights
    }

    #[test]
    fn wrong_labels_lose_their_weight_and_hard_ones_keep_it() {
        let mut method = noise(Guards::default());
        let weights = feed(&mut method, 200);
        assert!(weights[0] > 0.95 && weights[2] < 0.05, "{weights:?}");
        let weight = |source| method.standing(source).weight;
        assert!(weight(0) > 0.95 && weight(2) < 0.2, "{} {}", weight(0), weight(2));
        assert!(weight(1) > weight(2) + 0.5, "{}", weight(1));
        assert_eq!(weight(9), 0.9);
    }

    #[test]
    fn known_rates_stay_whatever_the_network_believes() {
        let config = NoiseRateConfig { decay: 1.0, warmup: 0, ..NoiseRateConfig::default() };
        let mut method = GuardedNoise::new(config, 2, Guards::default(), &Alone).unwrap();
        method.tell(&[0.0, f64::NAN, 0.9]).unwrap();
        for step in 0..200 {
            let observed = Observed::new(&[0.05, 0.05, 0.05], &[0, 1, 2]);
            method.weigh(&Observed { labels: &[step % 2; 3], ..observed }).unwrap();
        }
        let weight = |source| method.standing(source).weight;
        assert!((weight(2) - 0.1).abs() < 1e-6, "{}", weight(2));
        assert!(weight(0) > 0.999 && weight(1) > 0.95, "{} {}", weight(0), weight(1));
    }

    #[test]
    fn guards_hold_floor_trust_and_block() {
        let guards = Guards { floor: 0.3, trusted: [2].into(), blocked: [0].into() };
        let mut method = noise(guards);
        let guarded = feed(&mut method, 200);
        assert_eq!((guarded[0], guarded[2]), (0.0, 1.0));
        assert_eq!(method.standing(2).weight, 1.0);
        let mut method = noise(Guards { floor: 0.3, ..Guards::default() });
        assert_eq!(feed(&mut method, 200)[2], 0.3);
        assert_eq!(method.standing(2).weight, 0.3);
    }

    #[test]
    fn a_loss_that_is_not_finite_weighs_nothing_even_from_a_trusted_source() {
        let mut method = noise(Guards { trusted: [1].into(), ..Guards::default() });
        let observed = Observed::new(&[f32::NAN, 0.5], &[1, 1]);
        let observed = Observed { labels: &[0, 1], ..observed };
        assert_eq!(method.weigh(&observed).unwrap(), [0.0, 1.0]);
    }

    #[test]
    fn a_saved_method_goes_on_to_the_last_bit() {
        let mut one = noise(Guards::default());
        feed(&mut one, 37);
        let saved = one.save().unwrap();
        let mut two = noise(Guards::default());
        two.load(&saved).unwrap();
        for _ in 0..20 {
            assert_eq!(feed(&mut one, 1), feed(&mut two, 1));
        }
        assert!(two.load(&Saved::of(serde_json::json!({"version": 99}))).is_err());
        for at in 0..saved.columns.len() {
            let mut less = saved.clone();
            less.columns.remove(at);
            assert!(two.load(&less).is_err());
        }
        for (column, counts) in [("source", vec![0, 1, u64::MAX]), ("seen", vec![1])] {
            let mut forged = saved.clone();
            forged.columns.retain(|own| own.name != column);
            assert!(two.load(&forged.with_counts(column, counts)).is_err(), "{column}");
        }
    }
}
