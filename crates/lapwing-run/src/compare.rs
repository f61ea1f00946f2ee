//! Methods side by side: the same splits and the same first parameters for all of them, repeat by repeat.

use lapwing_data::Split;
use lapwing_train::MethodKind;

use crate::paired::Difference;
use crate::{Job, Metrics, Prepared, RunError, Settings, Watch};

/// All results of a method, by repeat.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The method.
    pub method: &'static dyn MethodKind,
    /// On the test rows of each repeat.
    pub metrics: Vec<Metrics>,
}

impl Outcome {
    /// The metric that decides, by repeat.
    pub fn primary(&self) -> Vec<f64> {
        self.metrics.iter().map(|metrics| metrics.primary().1).collect()
    }
}

/// Several methods on the same data.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The methods in the order asked for, at least one.
    pub outcomes: Vec<Outcome>,
    /// The metric that decides.
    pub metric: &'static str,
    /// Whether less of it is better.
    pub lower_is_better: bool,
}

impl Comparison {
    /// Trains and tests every method so many times. Each repeat splits the table anew, with a seed that counts on from
    /// that of the settings; `watch` is told before each training.
    ///
    /// # Errors
    /// Where there is no method, no repeat or no row to test on, training fails, or is interrupted.
    pub fn run(
        prepared: &mut Prepared,
        settings: &Settings,
        methods: &[&'static dyn MethodKind],
        repeats: u32,
        watch: &mut dyn Watch,
    ) -> Result<Self, RunError> {
        let mut outcomes: Vec<Outcome> =
            methods.iter().map(|&method| Outcome { method, metrics: Vec::new() }).collect();
        for repeat in 0..u64::from(repeats) {
            let seed = settings.seed().wrapping_add(repeat);
            let settings = Settings { seed: Some(seed), ..settings.clone() };
            prepared.split = Split::new(&prepared.dataset.target, &settings.split()?)?;
            for outcome in &mut outcomes {
                watch.training(outcome.method);
                let settings = settings.for_method(outcome.method);
                outcome.metrics.push(tested(prepared, &settings, watch)?);
            }
        }
        let first = outcomes.first().and_then(|outcome| outcome.metrics.first());
        let (metric, _) = first.ok_or(RunError::NothingToCompare)?.primary();
        Ok(Self { outcomes, metric, lower_is_better: metric == "mse" })
    }

    /// Each method but the first less the first.
    pub fn differences(&self) -> Vec<Difference> {
        let results: Vec<Vec<f64>> = self.outcomes.iter().map(Outcome::primary).collect();
        let others = results.iter().skip(1);
        others.map(|other| Difference::of(other, &results[0])).collect()
    }

    /// The pair that answers the question: LAP against standard training, in whatever order they were named, or else
    /// the last method against the first. `None` where there is one method only.
    pub fn pair(&self) -> Option<(&Outcome, &Outcome)> {
        let find = |name| self.outcomes.iter().find(|outcome| outcome.method.name() == name);
        match (find("lap"), find("standard")) {
            (Some(lap), Some(standard)) => Some((lap, standard)),
            _ => match self.outcomes.as_slice() {
                [first, .., last] => Some((last, first)),
                _ => None,
            },
        }
    }
}

/// Trains once and tests: nothing is written, and nobody is judged.
fn tested(
    prepared: &Prepared,
    settings: &Settings,
    watch: &mut dyn Watch,
) -> Result<Metrics, RunError> {
    let job = Job::new(&prepared.dataset, &prepared.split, settings)?;
    let fit = job.run(None, watch)?.ok_or(RunError::Interrupted)?;
    job.test(&fit.model, prepared)?.ok_or(RunError::NothingToTest)
}
