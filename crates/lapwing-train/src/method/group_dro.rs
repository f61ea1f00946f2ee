//! Group DRO: the sources with the highest losses gain weight, so that the network does well on the worst of them
//! (Sagawa, Koh, Hashimoto and Liang 2020). The opposite of LAP: it takes for granted that labels are right, and that a
//! high loss means a source that is hard or small.
//!
//! Each step, q of every source g in the batch becomes q · exp(step size · mean loss of g), and all are divided by their
//! sum. The loss is the mean over the sources in the batch of S · q · their mean loss, S being the number of sources:
//! Σ q · mean loss where all of them are in the batch, and of the same size where few of many are.

use std::collections::BTreeMap;

use lapwing_core::{BatchSums, LARGEST_LOSS};

use super::{
    Audience, Guards, Method, MethodConfig, MethodError, MethodKind, Observed, Parameter, Range,
    Standing, Start, Weighs,
};
use crate::error::TrainError;
use crate::saved::Saved;

const STEP_SIZE: Parameter = Parameter {
    name: "step-size",
    value_name: "RATE",
    about: "how fast weight moves to the sources with the highest losses",
    default: Some(0.01),
    range: Range::AtLeast(0.0),
    audience: Audience::Everybody,
};

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "group-dro"
    }

    fn about(&self) -> &'static str {
        "Sources with high losses gain weight, so that the worst is served best: for clean labels"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let rate = method.number(&STEP_SIZE);
        format!(
            "sources with high losses gain weight, at a step size of {rate}; wrong labels are learnt, too"
        )
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[STEP_SIZE]
    }

    fn weighs(&self) -> Weighs {
        Weighs::Sources
    }

    fn runs_in_shards(&self) -> bool {
        true
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        let (learner, guards) = (start.learner, start.method.guards().clone());
        let sources = learner.train().iter().map(|&row| learner.sources()[row as usize]);
        let step_size = start.method.number(&STEP_SIZE);
        Ok(Box::new(GroupDro::new(step_size, sources, guards)))
    }
}

#[derive(Debug)]
struct GroupDro {
    step_size: f64,
    /// The logarithm of q beside the highest, which is 0: exp(η · loss) would overflow, and only ratios matter.
    logarithms: BTreeMap<u32, f64>,
    guards: Guards,
    sums: BatchSums<u32>,
}

impl GroupDro {
    fn new(step_size: f64, sources: impl Iterator<Item = u32>, guards: Guards) -> Self {
        let logarithms = sources.map(|source| (source, 0.0)).collect();
        Self { step_size, logarithms, guards, sums: BatchSums::new() }
    }

    /// q beside the highest, within the guards: what a source weighs.
    fn weight(&self, source: u32) -> f64 {
        let logarithm = self.logarithms.get(&source).copied().unwrap_or(0.0);
        self.guards.weight(source, logarithm.exp())
    }

    /// S · q of each source, within the guards: 1 on average.
    fn shares(&self) -> BTreeMap<u32, f64> {
        let weights = || self.logarithms.keys().map(|&source| (source, self.weight(source)));
        let sum: f64 = weights().map(|(_, weight)| weight).sum();
        let mean = sum / self.logarithms.len() as f64;
        weights().map(|(source, weight)| (source, weight / mean)).collect()
    }

    /// One step of ascent. A source without a finite loss in the batch stays where it is.
    fn ascend(&mut self, batch: &BatchSums<u32>) {
        for (source, sum) in batch.iter() {
            if let (Some(logarithm), Some(loss)) = (self.logarithms.get_mut(source), sum.mean()) {
                *logarithm =
                    (*logarithm + self.step_size * loss).clamp(-LARGEST_LOSS, LARGEST_LOSS);
            }
        }
        let highest = self.logarithms.values().copied().fold(f64::NEG_INFINITY, f64::max);
        self.logarithms.values_mut().for_each(|logarithm| *logarithm -= highest);
    }
}

impl Method for GroupDro {
    fn weigh(&mut self, observed: &Observed<'_>) -> Result<Vec<f64>, MethodError> {
        let Observed { losses, sources, .. } = *observed;
        let mut batch = std::mem::take(&mut self.sums);
        observed.sum_up(&mut batch, |_| true);
        self.ascend(&batch);
        let shares = self.shares();
        let finite: BTreeMap<u32, u64> =
            batch.iter().map(|(&source, sum)| (source, sum.finite())).collect();
        let rows: u64 = batch.iter().map(|(_, sum)| sum.finite() + sum.nonfinite()).sum();
        let present = finite.values().filter(|&&own| own > 0).count() as f64;
        // The loop divides by all rows of the batch, and this is to be a mean over sources of means over their rows.
        let weigh = |(loss, source): (&f32, &u32)| {
            let own = finite.get(source).copied().unwrap_or_default() as f64;
            let share = shares.get(source).copied().unwrap_or_default();
            if loss.is_finite() { share * rows as f64 / (present * own) } else { 0.0 }
        };
        let weights = losses.iter().zip(sources).map(weigh).collect();
        self.sums = batch;
        Ok(weights)
    }

    fn standing(&self, source: u32) -> Standing {
        Standing { unreliability: 0, weight: self.weight(source) }
    }

    fn save(&self) -> Result<Saved, MethodError> {
        let sources = self.logarithms.keys().map(|&source| source.into()).collect();
        let logarithms = self.logarithms.values().copied().collect();
        Ok(Saved::default().with_counts("source", sources).with_values("logarithm", logarithms))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        let (sources, logarithms) = (saved.counts("source")?, saved.values("logarithm")?);
        let own = self.logarithms.keys().map(|&source| u64::from(source));
        let fits = own.eq(sources.iter().copied())
            && logarithms.len() == sources.len()
            && logarithms.iter().all(|logarithm| *logarithm <= 0.0);
        if !fits {
            return Err(TrainError::OtherRun);
        }
        self.logarithms.values_mut().zip(logarithms).for_each(|(own, saved)| *own = *saved);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn group_dro(step_size: f64, sources: u32, guards: Guards) -> GroupDro {
        GroupDro::new(step_size, 0..sources, guards)
    }

    /// The formula of the paper as it stands, with numbers small enough for it: q after these batches, and the weight
    /// of each row of the last.
    fn oracle(step_size: f64, sources: usize, batches: &[Vec<(u32, f32)>]) -> (Vec<f64>, Vec<f64>) {
        let (mut q, mut weights) = (vec![1.0 / sources as f64; sources], Vec::new());
        for batch in batches {
            let rows = |g: u32| batch.iter().filter(move |(s, loss)| *s == g && loss.is_finite());
            for (g, q) in q.iter_mut().enumerate() {
                let losses: Vec<f64> = rows(g as u32).map(|(_, loss)| f64::from(*loss)).collect();
                if !losses.is_empty() {
                    *q *= (step_size * losses.iter().sum::<f64>() / losses.len() as f64).exp();
                }
            }
            let sum: f64 = q.iter().sum();
            q.iter_mut().for_each(|q| *q /= sum);
            let present = (0..sources).filter(|&g| rows(g as u32).count() > 0).count();
            weights = batch
                .iter()
                .map(|&(g, loss)| {
                    let mean = batch.len() as f64 / (present * rows(g).count()) as f64;
                    if loss.is_finite() { sources as f64 * q[g as usize] * mean } else { 0.0 }
                })
                .collect();
        }
        (q, weights)
    }

    fn weigh(method: &mut GroupDro, batch: &[(u32, f32)]) -> Vec<f64> {
        let (sources, losses): (Vec<u32>, Vec<f32>) = batch.iter().copied().unzip();
        method.weigh(&Observed::new(&losses, &sources)).unwrap()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + b.abs())
    }

    fn batches() -> impl Strategy<Value = Vec<Vec<(u32, f32)>>> {
        let loss = prop_oneof![9 => 0.0..5.0f32, 1 => Just(f32::NAN), 1 => Just(f32::INFINITY)];
        prop::collection::vec(prop::collection::vec((0..4u32, loss), 1..12), 1..20)
    }

    proptest! {
        #[test]
        fn weights_are_those_of_the_paper(batches in batches(), step_size in 0.0..0.5f64) {
            let mut method = group_dro(step_size, 4, Guards::default());
            let mut last = Vec::new();
            batches.iter().for_each(|batch| last = weigh(&mut method, batch));
            let (q, weights) = oracle(step_size, 4, &batches);
            for (found, expected) in last.iter().zip(&weights) {
                prop_assert!(close(*found, *expected), "{last:?} {weights:?}");
            }
            let highest = q.iter().copied().fold(0.0, f64::max);
            for (source, q) in q.iter().enumerate() {
                prop_assert!(close(method.standing(source as u32).weight, q / highest));
            }
            let shares = method.shares();
            prop_assert!(close(shares.values().sum::<f64>(), 4.0), "{shares:?}");
        }

        #[test]
        fn weights_of_rows_add_up_to_the_shares_of_their_sources(batches in batches(), step_size in 0.0..9.0f64) {
            let guards = Guards { floor: 0.2, trusted: [1].into(), ..Guards::default() };
            let mut method = group_dro(step_size, 4, guards);
            for batch in &batches {
                let weights = weigh(&mut method, batch);
                let shares = method.shares();
                prop_assert!(close(shares.values().sum::<f64>(), 4.0));
                let present: Vec<u32> =
                    (0..4).filter(|g| batch.iter().any(|(s, l)| s == g && l.is_finite())).collect();
                for source in &present {
                    let own = batch.iter().zip(&weights).filter(|((s, _), _)| s == source);
                    let sum: f64 = own.map(|(_, weight)| weight).sum();
                    let expected = shares[source] * batch.len() as f64 / present.len() as f64;
                    prop_assert!(close(sum, expected), "{sum} {expected}");
                }
                prop_assert_eq!(method.standing(1).weight, 1.0);
                prop_assert!((0..4).all(|source| method.standing(source).weight >= 0.2));
            }
        }
    }

    #[test]
    fn the_worst_source_gains_weight_and_with_a_step_size_of_zero_nobody_does() {
        let mut method = group_dro(0.1, 3, Guards::default());
        let mut still = group_dro(0.0, 3, Guards::default());
        for _ in 0..50 {
            weigh(&mut method, &[(0, 0.2), (1, 0.3), (2, 2.0)]);
            assert_eq!(weigh(&mut still, &[(0, 0.2), (1, 0.3), (2, 2.0)]), [1.0; 3]);
        }
        let weight = |source| method.standing(source).weight;
        assert!(weight(2) == 1.0 && weight(0) < weight(1) && weight(1) < 0.01, "{method:?}");
    }

    #[test]
    fn enormous_losses_and_steps_leave_numbers_behind() {
        let mut method = group_dro(1e9, 3, Guards::default());
        for batch in [
            [(0, f32::MAX), (1, f32::MIN), (2, 1.0)],
            [(0, f32::NAN), (1, f32::INFINITY), (2, f32::NEG_INFINITY)],
        ] {
            let weights = weigh(&mut method, &batch);
            assert!(
                weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0),
                "{weights:?}"
            );
        }
        assert_eq!(method.standing(0).weight, 1.0);
        assert!((0..3).all(|source| method.standing(source).weight >= 0.0));
    }

    #[test]
    fn a_saved_method_goes_on_to_the_last_bit_and_states_of_others_are_refused() {
        let mut one = group_dro(0.1, 3, Guards::default());
        let batch = [(0, 0.25), (1, 1.7), (2, 0.4)];
        (0..13).for_each(|_| drop(weigh(&mut one, &batch)));
        let mut two = group_dro(0.1, 3, Guards::default());
        two.load(&one.save().unwrap()).unwrap();
        assert_eq!(weigh(&mut one, &batch), weigh(&mut two, &batch));
        for (sources, logarithms) in [
            (vec![0], vec![0.0]),
            (vec![0, 1, 2], vec![0.0, 3.0, 0.0]),
            (vec![0, 1, 2], vec![0.0, f64::NAN, 0.0]),
            (vec![0, 1, 2], vec![0.0]),
        ] {
            let saved = Saved::default().with_counts("source", sources);
            assert!(two.load(&saved.with_values("logarithm", logarithms)).is_err());
        }
        assert!(two.load(&Saved::default()).is_err());
    }
}
