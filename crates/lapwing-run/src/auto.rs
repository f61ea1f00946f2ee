//! A model where nobody asked for one: trees and the network that suits the data are both trained, and the one is kept that
//! does better on validation rows; where that would say nothing or take too long, it is decided beforehand.

use lapwing_core::{Alone, Peers};
use lapwing_data::{Dataset, InputKind, Split};
use lapwing_sample::{Predictions, SourceLosses, Targets};
use lapwing_train::TrainError;
use lapwing_trees::TreesError;

use crate::{Checkpoints, Choice, Fit, Job, ModelKind, RunError, Settings, Watch};

/// Fewest validation rows by which two models are compared: with fewer it would be left to chance.
const FEWEST_ROWS: usize = 100;
/// Most training rows, and most numbers that a round looks at (rows × features × trees), with which both are trained.
const MOST_ROWS: usize = 50_000;
const MOST_NUMBERS: usize = 5_000_000;
/// Most features, and most trees of a round (one per class), of a table beyond that which is for trees.
const MOST_FEATURES: usize = 500;
const MOST_TREES: usize = 10;

/// Most sources for trees, whose rounds keep more of each than the steps of a network do: with a million of them it is two
/// gigabytes instead of one.
const MOST_SOURCES: usize = 100_000;

/// What is trained.
#[derive(Debug)]
pub enum Candidates<'a> {
    /// A model that was asked for, or decided on.
    One(Box<Job<'a>>),
    /// A network and trees, of which the better one is kept.
    Both(Box<Both<'a>>),
}

/// A network and trees for the same table.
#[derive(Debug)]
pub struct Both<'a> {
    /// The network.
    pub network: Job<'a>,
    /// The trees.
    pub trees: Job<'a>,
    /// What is known before one of them is chosen.
    pub settings: Settings,
}

impl<'a> Candidates<'a> {
    /// Plans a run of one process; nothing is written and nothing is trained.
    ///
    /// # Errors
    /// As [`Job::new`].
    pub fn new(
        dataset: &'a Dataset,
        split: &'a Split,
        settings: &Settings,
    ) -> Result<Self, RunError> {
        Self::among(&Alone, dataset, split, settings)
    }

    /// Plans a run of several workers, who train a network where nothing else is asked for: trees have one.
    ///
    /// # Errors
    /// As [`Job::among`].
    pub fn among(
        peers: &'a dyn Peers,
        dataset: &'a Dataset,
        split: &'a Split,
        settings: &Settings,
    ) -> Result<Self, RunError> {
        let job = |settings: &Settings| Job::among(peers, dataset, split, settings);
        let one = |mut job: Job<'a>, reason: String| {
            job.settings.model_reason = Some(reason);
            Ok(Self::One(Box::new(job)))
        };
        if settings.model.and_then(Choice::chosen).is_some() {
            return Ok(Self::One(Box::new(job(settings)?)));
        }
        if InputKind::of(&dataset.schema) != InputKind::Table {
            return one(job(settings)?, "trees are for numbers and categories".to_owned());
        }
        // The same reason for any number of workers: it stands in the settings and in the report.
        if peers.count() > 1 || settings.shards.is_some_and(|shards| shards > 1) {
            return one(job(settings)?, "trees are not grown in shards".to_owned());
        }
        let trees = Settings { model: Some(Choice::Is(ModelKind::Trees)), ..settings.clone() };
        // Whatever is wrong with the table is wrong for networks, too.
        let trees = match job(&trees) {
            Err(refused) => {
                let reason = refused.to_string().replace(", and the model is trees", "");
                return one(job(settings)?, reason);
            }
            Ok(trees) => trees,
        };
        let size = Size {
            train: split.train.len(),
            valid: split.validation.len(),
            features: trees.input.spec().size(),
            classes: dataset.schema.classes.len(),
            sources: dataset.sources.names.len(),
        };
        match size.decides() {
            Some((true, reason)) => one(trees, reason),
            Some((false, reason)) => one(job(settings)?, reason),
            None => {
                let network = job(settings)?;
                let settings = undecided(&network.settings, settings);
                Ok(Self::Both(Box::new(Both { network, trees, settings })))
            }
        }
    }

    /// What is known before anything is trained.
    pub fn settings(&self) -> &Settings {
        match self {
            Self::One(job) => &job.settings,
            Self::Both(both) => &both.settings,
        }
    }

    /// What is trained, or trained first.
    pub fn first(&self) -> &Job<'a> {
        match self {
            Self::One(job) => job,
            Self::Both(both) => &both.network,
        }
    }
}

/// The size of a table, as far as the choice of a model goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Rows to train on.
    pub train: usize,
    /// Rows to validate on.
    pub valid: usize,
    /// Numbers and levels of a row.
    pub features: usize,
    /// Classes, or 0 for values.
    pub classes: usize,
    /// Sources.
    pub sources: usize,
}

impl Size {
    /// Whether it is trees or, if not, a network, and why, where the size alone decides; `None` where both are tried.
    pub fn decides(self) -> Option<(bool, String)> {
        let Self { train, valid, features, classes, sources } = self;
        if sources > MOST_SOURCES {
            return Some((false, format!("{sources} sources are too many for trees")));
        }
        let trees = if classes > 2 { classes } else { 1 };
        let numbers = train.saturating_mul(features).saturating_mul(trees);
        if train > MOST_ROWS || numbers > MOST_NUMBERS {
            let size = match trees {
                1 => format!("{train} rows of {features} features"),
                classes => format!("{train} rows of {features} features and {classes} classes"),
            };
            return Some(match features <= MOST_FEATURES && trees <= MOST_TREES {
                true => (true, format!("{size} are too many to try a network, too")),
                false => (false, format!("{size} are too many for trees")),
            });
        }
        let network = |reason: String| Some((false, reason));
        match valid {
            FEWEST_ROWS.. => None,
            0 => network("there are no validation rows to compare it with trees by".to_owned()),
            _ => network(format!(
                "{valid} validation rows are too few to compare it with trees by, {FEWEST_ROWS} are needed"
            )),
        }
    }
}

/// The settings of a run whose model is not yet chosen: what was asked for, and what holds for both.
fn undecided(filled: &Settings, asked: &Settings) -> Settings {
    Settings {
        model: Some(Choice::Auto),
        task: filled.task,
        ignore: filled.ignore.clone(),
        test_fraction: filled.test_fraction,
        validation_fraction: filled.validation_fraction,
        loss: asked.loss.filter(|loss| loss.chosen().is_some()),
        strength: asked.strength.filter(|strength| strength.chosen().is_some()),
        floor: filled.floor,
        trust: filled.trust.clone(),
        block: filled.block.clone(),
        folds: filled.folds,
        seed: filled.seed,
        device: filled.device.clone(),
        ..asked.clone()
    }
}

impl<'a> Both<'a> {
    /// Trains both, says so before each, and keeps the better one, with the reason in its settings; `None` where somebody
    /// broke off. The network comes first: it has checkpoints, and whoever resumes finds it trained while trees are grown
    /// again.
    ///
    /// # Errors
    /// Where training fails; but where it diverges, the other model is kept.
    pub fn run(
        self,
        checkpoints: Option<&Checkpoints>,
        watch: &mut dyn Watch,
    ) -> Result<Option<(Job<'a>, Fit)>, RunError> {
        let Self { network, trees, .. } = self;
        let checkpoints = checkpoints.map(|saved| Checkpoints { last: true, ..saved.clone() });
        watch.training(&network);
        let first = match network.run(checkpoints.as_ref(), watch) {
            Err(RunError::Train(TrainError::Diverged { .. })) => None,
            Err(error) => return Err(error),
            Ok(None) => return Ok(None),
            Ok(fit) => fit,
        };
        watch.training(&trees);
        let second = trees.run(None, watch);
        let told = |mut job: Job<'a>, fit: Fit, reason: String| {
            job.settings.model_reason = Some(reason);
            Ok(Some((job, fit)))
        };
        match (first, second) {
            (_, Ok(None)) => Ok(None),
            (Some(first), Err(RunError::Trees(TreesError::Diverged { .. }))) => {
                told(network, first, "trees diverged".to_owned())
            }
            (_, Err(error)) => Err(error),
            (None, Ok(Some(second))) => {
                let reason = format!("{} diverged", network.model());
                told(trees, second, reason)
            }
            (Some(first), Ok(Some(second))) => {
                let (dataset, rows) = (network.dataset(), &network.split().validation);
                let sources: Vec<u32> =
                    rows.iter().map(|&row| dataset.sources.codes[row as usize]).collect();
                let trials = [trial(&network, &first)?, trial(&trees, &second)?];
                let compared = Compared::new(&dataset.target.select(rows), &sources, &trials);
                let reason = compared.reason([network.model(), trees.model()]);
                match compared.second_is_better() {
                    true => told(trees, second, reason),
                    false => told(network, first, reason),
                }
            }
        }
    }
}

/// What a model says of the validation rows.
fn trial(job: &Job<'_>, fit: &Fit) -> Result<Trial, RunError> {
    let bound = job.input.bind(&job.dataset().table)?;
    let predictions = fit.model.predict(&*bound, &job.split().validation)?;
    Ok(Trial { predictions, weights: fit.sources.iter().map(|source| source.weight).collect() })
}

/// What a model says of validation rows, and what it thinks of the sources.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What it says.
    pub predictions: Predictions,
    /// What each source weighs.
    pub weights: Vec<f64>,
}

/// Two models on the same validation rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    metric: &'static str,
    /// Weighted mean squared error, or share of rows that are wrong.
    errors: [f64; 2],
}

impl Compared {
    /// Compares what two models say of rows with these targets and sources. A row counts for what the model that trusts
    /// its source less thinks of it, so that both are measured by the same rows.
    pub fn new(targets: &Targets, sources: &[u32], trials: &[Trial; 2]) -> Self {
        let weight = |source: u32| {
            let of = |trial: &Trial| trial.weights.get(source as usize).copied().unwrap_or(0.0);
            of(&trials[0]).min(of(&trials[1]))
        };
        let error = |trial: &Trial| {
            let mut errors = SourceLosses::default();
            let wrong: Vec<f32> = match (targets, &trial.predictions) {
                (Targets::Values(given), Predictions::Values(said)) => given
                    .iter()
                    .zip(said)
                    .map(|(given, said)| (given - said).powi(2) as f32)
                    .collect(),
                (Targets::Classes { labels, .. }, said) => {
                    let wrong = |(given, said): (&u32, u32)| f32::from(u8::from(*given != said));
                    labels.iter().zip(said.labels()).map(wrong).collect()
                }
                // A model is made for the targets that it was trained on.
                (Targets::Values(_), Predictions::Classes { .. }) => Vec::new(),
            };
            sources.iter().zip(wrong).for_each(|(&source, wrong)| errors.add(source, wrong));
            errors.mean(weight)
        };
        let metric = match targets {
            Targets::Classes { .. } => "accuracy",
            Targets::Values(_) => "mse",
        };
        Self { metric, errors: [error(&trials[0]), error(&trials[1])] }
    }

    /// Whether the second is better; the first is kept where both are as good.
    pub fn second_is_better(&self) -> bool {
        self.errors[1] < self.errors[0]
    }

    /// Why the better one is kept, given what the two are called.
    pub fn reason(&self, names: [ModelKind; 2]) -> String {
        let better = usize::from(self.second_is_better());
        let shown = |error: f64| match self.metric {
            "accuracy" => format!("{:.4}", 1.0 - error),
            _ => format!("{error:.4e}")
                .parse()
                .map_or_else(|_| error.to_string(), |e: f64| e.to_string()),
        };
        format!(
            "its weighted validation {} is {}, that of {} {}",
            self.metric,
            shown(self.errors[better]),
            names[1 - better],
            shown(self.errors[1 - better])
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_train::NetworkKind;

    fn values(said: [f64; 4], weights: [f64; 2]) -> Trial {
        Trial { predictions: Predictions::Values(said.to_vec()), weights: weights.to_vec() }
    }

    const NAMES: [ModelKind; 2] = [ModelKind::Network(NetworkKind::ALL[0]), ModelKind::Trees];

    #[test]
    fn rows_of_a_source_that_one_of_the_two_distrusts_do_not_decide() {
        let targets = Targets::Values(vec![1.0, 2.0, 50.0, -50.0]);
        let sources = [0, 0, 1, 1];
        // The first learnt by heart what the bad source says.
        let trials =
            [values([1.5, 2.5, 50.0, -50.0], [1.0, 1.0]), values([1.1, 2.1, 1.0, 2.0], [1.0, 0.0])];
        let compared = Compared::new(&targets, &sources, &trials);
        assert!(compared.second_is_better());
        let reason = compared.reason(NAMES);
        let expected =
            format!("its weighted validation mse is 0.01, that of {} 0.25", NAMES[0].name());
        assert_eq!(reason, expected);
        // Where nobody is trusted by both, all rows count.
        let [first, second] = trials;
        let trials = [Trial { weights: vec![0.0, 1.0], ..first }, second];
        assert!(!Compared::new(&targets, &sources, &trials).second_is_better());
    }

    #[test]
    fn long_tables_are_for_trees_wide_ones_for_networks_and_few_rows_decide_nothing() {
        let size = Size { train: 10_000, valid: 1_000, features: 20, classes: 0, sources: 10 };
        assert_eq!(size.decides(), None);
        let trees = |size: Size| size.decides().map(|(trees, reason)| (trees, reason.len() > 20));
        assert_eq!(trees(Size { train: 1_000_000, ..size }), Some((true, true)));
        assert_eq!(trees(Size { train: 9_000, features: 600, ..size }), Some((false, true)));
        assert_eq!(trees(Size { classes: 10, features: 100, ..size }), Some((true, true)));
        assert_eq!(trees(Size { classes: 100, ..size }), Some((false, true)));
        assert_eq!(trees(Size { valid: 99, ..size }), Some((false, true)));
        let crowd = Size { sources: 1_000_000, train: 2_000_000, ..size };
        assert_eq!(trees(crowd), Some((false, true)));
        assert_eq!(trees(Size { valid: 0, ..size }), Some((false, true)));
        assert_eq!(
            trees(Size { train: usize::MAX, features: usize::MAX, ..size }),
            Some((false, true))
        );
    }

    #[test]
    fn classes_are_compared_by_how_many_are_right_and_the_first_wins_a_draw() {
        let targets = Targets::Classes { labels: vec![0, 1, 1, 0], classes: 2 };
        let trial = |probabilities: [f32; 4]| Trial {
            predictions: Predictions::Classes {
                probabilities: probabilities.into_iter().flat_map(|p| [1.0 - p, p]).collect(),
                classes: 2,
            },
            weights: vec![1.0],
        };
        let (good, sure) = (trial([0.1, 0.6, 0.7, 0.6]), trial([0.0, 1.0, 1.0, 0.9]));
        let compared = Compared::new(&targets, &[0; 4], &[good.clone(), sure]);
        assert!(!compared.second_is_better());
        assert!(compared.reason(NAMES).contains("is 0.7500, that of trees 0.7500"));
        let best = trial([0.4, 0.6, 0.6, 0.4]);
        assert!(Compared::new(&targets, &[0; 4], &[good, best]).second_is_better());
    }
}
