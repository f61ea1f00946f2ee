//! The losses of all sources early, midway and late in training: since when is a source bad?

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::histogram::inner_range;

/// One source at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrajectoryPoint {
    /// Steps before this one.
    pub step: u64,
    /// The source.
    pub source: u32,
    /// Mean of its finite losses in the batch; NaN where there was none.
    pub loss: f64,
    /// C after the step.
    pub unreliability: u64,
    /// Its weight after the step.
    pub weight: f64,
}

/// The losses of all sources in one stretch of training, such as its first third.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// `early`, `middle`, `late`.
    pub name: String,
    /// First step of the stretch.
    pub first_step: u64,
    /// Last step of the stretch.
    pub last_step: u64,
    /// Mean loss of the sources, weighted by reliability, at the end of the stretch.
    pub reference_mean: Option<f64>,
    /// That mean plus λ standard deviations.
    pub threshold: Option<f64>,
    /// The sources seen in it.
    pub sources: Vec<SourceLosses>,
}

/// The losses of one source in one stretch of training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceLosses {
    /// Name of the source.
    pub source: String,
    /// Its weight at the end of the stretch.
    pub weight: f64,
    /// Its losses.
    pub losses: Histogram,
}

/// A phase before its losses are counted: what [`Phase::count`] takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseLosses {
    /// See [`Phase::name`].
    pub name: String,
    /// See [`Phase::first_step`].
    pub first_step: u64,
    /// See [`Phase::last_step`].
    pub last_step: u64,
    /// See [`Phase::reference_mean`].
    pub reference_mean: Option<f64>,
    /// See [`Phase::threshold`].
    pub threshold: Option<f64>,
    /// Source, its weight at the end, and its mean loss in each batch of the phase.
    pub sources: Vec<(String, f64, Vec<f64>)>,
}

impl Phase {
    /// Counts the losses of several phases over one range, so that they can be compared.
    pub fn count(phases: &[PhaseLosses]) -> Vec<Phase> {
        let lines = phases.iter().flat_map(|p| p.reference_mean.into_iter().chain(p.threshold));
        let losses = phases
            .iter()
            .flat_map(|p| p.sources.iter().flat_map(|(_, _, losses)| losses.iter().copied()));
        let (low, high) = inner_range(losses.collect()).unwrap_or((0.0, 1.0));
        let high = lines.filter(|v| v.is_finite()).fold(high, f64::max);
        phases
            .iter()
            .map(|phase| Phase {
                name: phase.name.clone(),
                first_step: phase.first_step,
                last_step: phase.last_step,
                reference_mean: phase.reference_mean,
                threshold: phase.threshold,
                sources: phase
                    .sources
                    .iter()
                    .map(|(source, weight, losses)| SourceLosses {
                        source: source.clone(),
                        weight: *weight,
                        losses: Histogram::of(losses, low, high),
                    })
                    .collect(),
            })
            .collect()
    }
}

/// The first, second and last third of a run of so many steps; a third without a step is left out.
///
/// `courses` are the recorded points of every source by rising step, `shown` the name and number of those whose losses
/// are wanted. Reference and threshold are those of all sources together, each counting as much as it weighs, over
/// their last `history_length` recorded points: the rule itself leaves out the source that it judges.
pub fn phases(
    courses: &[Vec<TrajectoryPoint>],
    shown: &[(&str, usize)],
    steps: u64,
    history_length: usize,
    leniency: f64,
) -> Vec<PhaseLosses> {
    let third = |n: u64| (u128::from(steps) * u128::from(n) / 3) as u64;
    let mut phases = Vec::new();
    for (at, name) in (0..).zip(["early", "middle", "late"]) {
        let (first, end) = (third(at), third(at + 1));
        if end == first {
            continue;
        }
        let within = |course: &'_ [TrajectoryPoint]| {
            let from = course.partition_point(|point| point.step < first);
            from..course.partition_point(|point| point.step < end)
        };
        let mut pooled = Pooled::default();
        for course in courses {
            let points = &course[within(course)];
            pooled.add(&points[points.len().saturating_sub(history_length)..]);
        }
        let (reference_mean, std) = pooled.mean_and_std().unzip();
        let losses_of = |&(name, source): &(&str, usize)| {
            let course = courses.get(source)?;
            let points = &course[within(course)];
            let weight = points.last()?.weight;
            Some((name.to_owned(), weight, points.iter().map(|point| point.loss).collect()))
        };
        phases.push(PhaseLosses {
            name: name.to_owned(),
            first_step: first,
            last_step: end - 1,
            reference_mean,
            threshold: reference_mean.zip(std).map(|(mean, std)| mean + leniency * std),
            sources: shown.iter().filter_map(losses_of).collect(),
        });
    }
    phases
}

/// The mean of the finite losses.
pub fn mean_loss(points: &[TrajectoryPoint]) -> Option<f64> {
    let finite: Vec<f64> = points.iter().map(|p| p.loss).filter(|loss| loss.is_finite()).collect();
    (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64)
}

/// Losses of many sources, each source counting as much as it weighs.
#[derive(Default)]
struct Pooled {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl Pooled {
    fn add(&mut self, points: &[TrajectoryPoint]) {
        let Some(mean) = mean_loss(points) else { return };
        let weight = points.last().map_or(0.0, |point| point.weight);
        let finite = points.iter().map(|p| p.loss).filter(|loss| loss.is_finite());
        let square = finite.clone().map(|loss| loss * loss).sum::<f64>() / finite.count() as f64;
        self.weight += weight;
        self.sum += weight * mean;
        self.squares += weight * square;
    }

    fn mean_and_std(&self) -> Option<(f64, f64)> {
        let mean = self.sum / self.weight;
        (self.weight > 0.0)
            .then(|| (mean, (self.squares / self.weight - mean * mean).max(0.0).sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn phases_share_a_range_that_ignores_a_wild_loss_and_holds_the_threshold() {
        let mut losses: Vec<f64> = (0..1000).map(|i| f64::from(i) / 1000.0).collect();
        losses[0] = 1e9;
        let phase = PhaseLosses {
            threshold: Some(1.5),
            sources: vec![("a".into(), 1.0, losses)],
            ..Default::default()
        };
        let counted = Phase::count(&[phase]);
        assert_eq!(counted[0].sources[0].losses.high, 1.5);
        assert_eq!(counted[0].sources[0].losses.total(), 1000);
    }

    #[test]
    fn a_run_of_two_steps_has_two_phases() {
        let found = phases(&[], &[], 2, 25, 0.8);
        let spans: Vec<_> =
            found.iter().map(|p| (p.name.as_str(), p.first_step, p.last_step)).collect();
        assert_eq!(spans, [("middle", 0, 0), ("late", 1, 1)]);
        assert!(phases(&[], &[], 0, 25, 0.8).is_empty());
    }

    /// The weighted mean and the spread around it, point by point and in two passes.
    fn slow_reference(
        courses: &[Vec<TrajectoryPoint>],
        first: u64,
        end: u64,
        h: usize,
    ) -> Option<(f64, f64)> {
        let mut counted: Vec<(f64, f64)> = Vec::new();
        for course in courses {
            let within: Vec<&TrajectoryPoint> =
                course.iter().filter(|p| (first..end).contains(&p.step)).collect();
            let recent: Vec<&&TrajectoryPoint> = within.iter().rev().take(h).collect();
            let losses: Vec<f64> =
                recent.iter().map(|p| p.loss).filter(|loss| loss.is_finite()).collect();
            if let Some(last) = within.last() {
                counted
                    .extend(losses.iter().map(|&loss| (last.weight / losses.len() as f64, loss)));
            }
        }
        let weight: f64 = counted.iter().map(|(weight, _)| weight).sum();
        let mean = counted.iter().map(|(weight, loss)| weight * loss).sum::<f64>() / weight;
        let variance =
            counted.iter().map(|(weight, loss)| weight * (loss - mean).powi(2)).sum::<f64>()
                / weight;
        (weight > 0.0).then(|| (mean, variance.sqrt()))
    }

    proptest! {
        #[test]
        fn phases_are_those_of_the_slow_oracle(
            losses in prop::collection::vec(prop::collection::vec((any::<bool>(), 0.0..5.0f64, 0.0..=1.0f64), 0..40), 1..5),
            steps in 1u64..40,
            history_length in 1usize..12,
        ) {
            let courses: Vec<Vec<TrajectoryPoint>> = losses.iter().enumerate().map(|(source, points)| {
                points.iter().enumerate().take(steps as usize).map(|(step, &(known, loss, weight))| TrajectoryPoint {
                    step: step as u64,
                    source: source as u32,
                    loss: if known { loss } else { f64::NAN },
                    unreliability: 0,
                    weight,
                }).collect()
            }).collect();
            let found = phases(&courses, &[("a", 0)], steps, history_length, 0.8);
            // Every step is in exactly one phase.
            let covered: u64 = found.iter().map(|p| p.last_step + 1 - p.first_step).sum();
            prop_assert_eq!(covered, steps);
            for phase in &found {
                let end = phase.last_step + 1;
                let expected = slow_reference(&courses, phase.first_step, end, history_length);
                prop_assert_eq!(phase.reference_mean.is_some(), expected.is_some());
                if let (Some(mean), Some(threshold), Some((slow_mean, slow_std))) =
                    (phase.reference_mean, phase.threshold, expected)
                {
                    prop_assert!((mean - slow_mean).abs() < 1e-9);
                    // A difference of squares loses half of the digits where there is no spread.
                    prop_assert!((threshold - slow_mean - 0.8 * slow_std).abs() < 1e-6);
                }
                let own: Vec<TrajectoryPoint> = courses[0].iter().copied()
                    .filter(|p| (phase.first_step..end).contains(&p.step)).collect();
                match phase.sources.first() {
                    None => prop_assert!(own.is_empty()),
                    Some((name, weight, losses)) => {
                        prop_assert_eq!((name.as_str(), *weight), ("a", own[own.len() - 1].weight));
                        let bits = |x: &f64| x.to_bits();
                        let expected: Vec<u64> = own.iter().map(|p| bits(&p.loss)).collect();
                        prop_assert_eq!(losses.iter().map(bits).collect::<Vec<_>>(), expected);
                    }
                }
            }
        }
    }
}
