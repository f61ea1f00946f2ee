//! Methods and models side by side: the same splits and the same first parameters for all of them, repeat by repeat.

use lapwing_train::MethodKind;

use crate::paired::Difference;
use crate::prepare::split;
use crate::{Job, Metrics, ModelKind, Prepared, RunError, Settings, Watch};

const LAP: &str = "lap";

/// All results of a method, by repeat.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The method.
    pub method: &'static dyn MethodKind,
    /// The model, where models were named.
    pub model: Option<ModelKind>,
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
    /// The methods in the order asked for, at least one; all of them for each model.
    pub outcomes: Vec<Outcome>,
    /// The metric that decides.
    pub metric: &'static str,
    /// Whether less of it is better.
    pub lower_is_better: bool,
}

impl Comparison {
    /// Trains and tests every method so many times, with each of the models, or where there are none with that of the
    /// settings. Each repeat splits the table anew, with a seed that counts on from that of the settings; `watch` is told
    /// before each training.
    ///
    /// # Errors
    /// Where there is no method, no repeat or no row to test on, a model cannot be trained with a method, training fails,
    /// or is interrupted.
    pub fn run(
        prepared: &mut Prepared,
        settings: &Settings,
        models: &[ModelKind],
        methods: &[&'static dyn MethodKind],
        repeats: u32,
        watch: &mut dyn Watch,
    ) -> Result<Self, RunError> {
        let models: Vec<Option<ModelKind>> = match models {
            [] => vec![None],
            models => models.iter().copied().map(Some).collect(),
        };
        let of_model = |&model: &Option<ModelKind>| {
            methods.iter().map(move |&method| Outcome { method, model, metrics: Vec::new() })
        };
        let mut outcomes: Vec<Outcome> = models.iter().flat_map(of_model).collect();
        for outcome in &outcomes {
            // Before hours are spent on the others.
            outcome.job(prepared, settings)?;
        }
        for repeat in 0..u64::from(repeats) {
            let seed = settings.seed().wrapping_add(repeat);
            let settings = Settings { seed: Some(seed), ..settings.clone() };
            prepared.split = split(&prepared.dataset, &settings.split()?)?;
            for outcome in &mut outcomes {
                let job = outcome.job(prepared, &settings)?;
                watch.training(&job);
                let metrics = tested(&job, prepared, watch)?;
                outcome.metrics.push(metrics);
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

    /// The pairs that answer the question, the one that is asked about first. With each model LAP against standard
    /// training, in whatever order they were named, or else the last method against the first; and with LAP, or else the
    /// last method, each other model against the first.
    pub fn pairs(&self) -> Vec<(&Outcome, &Outcome)> {
        let Some(methods) = self.outcomes.iter().position(|o| o.model != self.outcomes[0].model)
        else {
            return pair(&self.outcomes).into_iter().collect();
        };
        let models: Vec<&[Outcome]> = self.outcomes.chunks(methods).collect();
        let of_methods = models.iter().filter_map(|model| pair(model));
        let lap = models[0].iter().position(|outcome| outcome.method.name() == LAP);
        let method = lap.unwrap_or(methods - 1);
        let of_models = models.iter().skip(1).map(|model| (&model[method], &models[0][method]));
        of_methods.chain(of_models).collect()
    }
}

impl Outcome {
    fn job<'a>(&self, prepared: &'a Prepared, settings: &Settings) -> Result<Job<'a>, RunError> {
        let settings = settings.for_method(self.method);
        let settings = self.model.map_or_else(|| settings.clone(), |kind| settings.for_model(kind));
        Job::new(&prepared.dataset, &prepared.split, &settings)
    }
}

fn pair(outcomes: &[Outcome]) -> Option<(&Outcome, &Outcome)> {
    let find = |name| outcomes.iter().find(|outcome| outcome.method.name() == name);
    match (find(LAP), find("standard")) {
        (Some(lap), Some(standard)) => Some((lap, standard)),
        _ => match outcomes {
            [first, .., last] => Some((last, first)),
            _ => None,
        },
    }
}

/// Trains once and tests: nothing is written, and nobody is judged but by the method itself.
fn tested(job: &Job<'_>, prepared: &Prepared, watch: &mut dyn Watch) -> Result<Metrics, RunError> {
    let fit = job.run(None, watch)?.ok_or(RunError::Interrupted)?;
    job.test(&fit.model, prepared)?.ok_or(RunError::NothingToTest)
}
