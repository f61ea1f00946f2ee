//! Runs of boosted trees: what is chosen where nothing is asked for, what is refused, and the way from rounds to a fit.

use std::ops::ControlFlow;

use lapwing_core::LapConfig;
use lapwing_data::{Dataset, Input};
use lapwing_sample::{Loss, Samples, Task};
use lapwing_train::{Epoch, Guards, METHODS, Observer, Resumed, SourceStep, Standing, Step};
use lapwing_trees::{Round, Say, TreesConfig, boost};

use crate::fit::{Witness, data};
use crate::settings::LossName;
use crate::standings::Standings;
use crate::{
    Checkpoints, Choice, Fit, Job, Learnt, ModelKind, RunError, Settings, Unjudged, Watch,
};

/// The methods that trees can be grown with.
const LAP: &str = "lap";
const STANDARD: &str = "standard";

impl Settings {
    /// Whether trees are asked for.
    pub(crate) fn wants_trees(&self) -> bool {
        self.model.and_then(Choice::chosen) == Some(ModelKind::Trees)
    }

    /// These settings with the method and the rule that suit rounds, where others are not asked for.
    ///
    /// # Errors
    /// Where something is asked for that trees do not have.
    pub(crate) fn for_trees(&self) -> Result<Self, RunError> {
        let networks = [
            ("item", self.item.is_some()),
            ("hidden", self.hidden.is_some()),
            ("dropout", self.dropout.is_some()),
            ("optimiser", self.optimiser.is_some()),
            ("momentum", self.momentum.is_some()),
            ("weight-decay", self.weight_decay.is_some()),
            ("batch-size", self.batch_size.is_some()),
            ("shards", self.shards.is_some_and(|shards| shards > 1)),
        ];
        if let Some((name, _)) = networks.into_iter().find(|(_, asked)| *asked) {
            return Err(RunError::NotForTrees(name));
        }
        if let Some(device) = self.device.as_deref().filter(|device| *device != "cpu") {
            return Err(RunError::TreesDevice(device.to_owned()));
        }
        let method = self.method.unwrap_or(METHODS[0]);
        if ![LAP, STANDARD].contains(&method.name()) {
            return Err(RunError::TreesMethod(method.name()));
        }
        let rule = TreesConfig::rule();
        Ok(Self {
            method: Some(method),
            history: self.history.or(Some(rule.history_length)),
            leniency: self.leniency.or(Some(rule.leniency).filter(|_| self.false_alarm.is_none())),
            ..self.clone()
        })
    }

    /// The trees that these settings ask for.
    pub(crate) fn trees(
        &self,
        dataset: &Dataset,
        input: &Input,
        guards: &Guards,
    ) -> Result<TreesConfig, RunError> {
        let loss = match self.wishes()?.loss {
            Some(loss) => loss,
            None if dataset.schema.task == Task::Classification => Loss::CrossEntropy,
            None => Loss::SquaredError,
        };
        let weighs = self.method().name() == LAP;
        let say = |source| match (guards.admits(source), guards.trusts(source)) {
            (false, _) => Say::Blocked,
            (true, false) if weighs => Say::Rule { floor: guards.floor },
            _ => Say::Full,
        };
        let say = (0..dataset.sources.names.len() as u32).map(say).collect();
        let usual = TreesConfig::new(loss, input.categorical(), say);
        let rounds = self.epochs.unwrap_or(usual.rounds);
        let strength = self.strength.and_then(Choice::chosen);
        Ok(TreesConfig {
            rounds,
            patience: self.patience.unwrap_or(usual.patience.min(rounds)),
            learning_rate: self.learning_rate.unwrap_or(usual.learning_rate),
            seed: self.seed(),
            rule: LapConfig {
                depression_strength: strength.unwrap_or(usual.rule.depression_strength),
                ..self.rule()
            },
            ..usual
        })
    }

    /// The settings with a value for every key that a run of these trees depends on.
    pub(crate) fn filled_for_trees(
        &self,
        dataset: &Dataset,
        trees: &TreesConfig,
    ) -> Result<Self, RunError> {
        let split = self.split()?;
        let (loss, huber_delta) = LossName::of(trees.loss);
        Ok(Self {
            task: Some(Choice::Is(dataset.schema.task)),
            ignore: Some(self.ignore.clone().unwrap_or_default()),
            test_fraction: Some(split.test),
            validation_fraction: Some(split.validation),
            model: Some(Choice::Is(ModelKind::Trees)),
            loss: Some(Choice::Is(loss)),
            huber_delta,
            epochs: Some(trees.rounds),
            patience: Some(trees.patience),
            learning_rate: Some(trees.learning_rate),
            history: Some(trees.rule.history_length),
            leniency: Some(trees.rule.leniency),
            strength: Some(Choice::Is(trees.rule.depression_strength)),
            warmup: Some(trees.rule.warmup),
            floor: Some(self.floor.unwrap_or(0.0)),
            trust: Some(self.trust.clone().unwrap_or_default()),
            block: Some(self.block.clone().unwrap_or_default()),
            folds: self.used_folds(dataset.schema.task)?,
            seed: Some(self.seed()),
            device: Some("cpu".to_owned()),
            ..self.clone()
        })
    }
}

impl Job<'_> {
    /// Grows trees. There are no checkpoints of them: whoever resumes begins anew, and ends in the same bytes.
    pub(crate) fn grow(
        &self,
        trees: &TreesConfig,
        checkpoints: Option<&Checkpoints>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Fit>, RunError> {
        if checkpoints.is_some_and(|checkpoints| checkpoints.resume) {
            watch.resumed(&Resumed::Fresh);
        }
        let bound = self.input.bind(&self.dataset().table)?;
        let samples: &dyn Samples = &*bound;
        let data = data(self.dataset(), self.split(), samples);
        let mut witness =
            Witness::new(self.dataset().sources.names.len(), trees.rehearsal + trees.rounds, watch);
        let mut history: Vec<Epoch> = Vec::new();
        let grown = boost(trees, &data, &mut |round| {
            if !round.rehearsal {
                let epoch = round_as_epoch(round, trees);
                witness.last_epoch = Some(epoch.clone());
                history.push(epoch);
            }
            show_round(round, trees, &mut witness)
        })?;
        let Some(grown) = grown else { return Ok(None) };
        Ok(Some(Fit {
            steps: trees.rehearsal as u64,
            history,
            sources: self.facts(Standings::new(grown.weights, Some(&grown.lap))),
            model: Learnt::Trees(grown.forest),
            trajectory: witness.recorder.into_points(),
            labels: Err(Unjudged::NotAsked),
        }))
    }
}

/// A round after the rehearsal as an epoch, in which the rule makes no step.
pub fn round_as_epoch(round: &Round, trees: &TreesConfig) -> Epoch {
    let of = |value: fn(&lapwing_trees::Valid) -> f64| {
        round.valid.as_ref().map(value).filter(|value| value.is_finite())
    };
    Epoch {
        epoch: round.round,
        step: trees.rehearsal as u64,
        train_loss: round.train_loss,
        nonfinite: round.nonfinite,
        valid_loss: of(|valid| valid.loss),
        valid_score: of(|valid| valid.score),
        valid_loss_unweighted: of(|valid| valid.unweighted),
        valid_loss_by_source: round.valid.iter().flat_map(|v| v.by_source.clone()).collect(),
        candidate: true,
        best: round.best,
    }
}

/// Shows a round as a step to somebody who looks on while networks are trained.
pub fn show_round(
    round: &Round,
    trees: &TreesConfig,
    observer: &mut dyn Observer,
) -> ControlFlow<()> {
    let sources: Vec<SourceStep> = round
        .sources
        .iter()
        .map(|source| SourceStep {
            source: source.source,
            loss: source.loss,
            standing: Standing { unreliability: source.unreliability, weight: source.weight },
        })
        .collect();
    let rehearsed = if round.rehearsal { 0 } else { trees.rehearsal };
    // Where nobody is judged, what is shown is the loss of all rows.
    let all = [round.train_loss as f32];
    observer.on_step(&Step {
        step: (rehearsed + round.round) as u64,
        steps: (trees.rehearsal + trees.rounds) as u64,
        epoch: round.round,
        learning_rate: trees.learning_rate,
        rows: &[],
        losses: if round.rehearsal { &round.losses } else { &all },
        weights: &[],
        sources: &sources,
    })
}
