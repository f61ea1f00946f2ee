//! Training as an estimator asks for it: a network, trees, or the better of the two.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use lapwing_core::LapConfig;
use lapwing_judge::{JudgeError, SourceRow, TrajectoryPoint};
use lapwing_run::{
    Compared, FoldRun, Folds, JudgedLabels, LabelledRows, Learnt, MOST_POINTS, ModelKind, Progress,
    Recorder, RunError, Size, Trial, Watch, round_as_epoch, show_round,
};
use lapwing_train::{
    Data, DataError, DataShape, DeviceName, Epoch, Finish, Loss, MethodConfig, ModelError,
    Observer, PlanError, SampleError, Step, Task, TrainConfig, TrainError, Trainer, View, Wishes,
    Workers, plan,
};
use lapwing_trees::{Say, TreesConfig, TreesError, boost};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Time between two looks at whether the user has had enough.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

/// Why nothing was trained.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FitError {
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Sample(#[from] SampleError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Trees(#[from] TreesError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{0}")]
    Kind(String),
    #[error("{0} is for networks, and the model is trees")]
    NotForTrees(&'static str),
    #[error("trees are grown with lap or standard: {0} is for networks")]
    TreesMethod(String),
    #[error("the model cannot be written or read: {0}")]
    File(#[from] std::io::Error),
    #[error("the model cannot be written or read: {0}")]
    Spec(#[from] serde_json::Error),
    #[error("the model cannot be read: it is damaged")]
    Damaged,
    #[error(transparent)]
    Judge(#[from] JudgeError),
    #[error("interrupted")]
    Python(#[from] PyErr),
}

impl From<FitError> for PyErr {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Python(error) => error,
            FitError::Train(TrainError::Diverged { .. })
            | FitError::Trees(TreesError::Diverged { .. })
            | FitError::File(_) => PyRuntimeError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        }
    }
}

/// The parameters of an estimator; those left out are planned for the data.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    seed: u64,
    model: String,
    history_length: Option<usize>,
    leniency: Option<f64>,
    depression_strength: Option<f64>,
    warmup: u64,
    hidden: Option<Vec<usize>>,
    dropout: Option<f32>,
    weight_decay: Option<f64>,
    learning_rate: Option<f64>,
    batch_size: Option<usize>,
    epochs: Option<usize>,
    patience: Option<usize>,
    method: String,
    method_parameters: BTreeMap<String, f64>,
    folds: usize,
}

/// The word for a choice by validation rows.
const AUTO: &str = "auto";

impl Settings {
    /// The model that is asked for; nothing where it is to be chosen.
    fn kind(&self) -> Result<Option<ModelKind>, FitError> {
        match self.model.as_str() {
            AUTO => Ok(None),
            name => {
                let known = |error| FitError::Kind(format!("{error}, {AUTO}"));
                name.parse().map(Some).map_err(known)
            }
        }
    }

    fn rule(&self, usual: LapConfig) -> LapConfig {
        LapConfig {
            history_length: self.history_length.unwrap_or(usual.history_length),
            leniency: self.leniency.unwrap_or(usual.leniency),
            depression_strength: self.depression_strength.unwrap_or(usual.depression_strength),
            warmup: self.warmup,
            ..usual
        }
    }

    /// Settings of the loop and of the rule for this data: the plan with what was asked for.
    fn over_plan(
        &self,
        data: &Data<'_>,
        sources: usize,
    ) -> Result<(TrainConfig, MethodConfig), FitError> {
        let wishes = Wishes {
            network: self.kind()?.and_then(ModelKind::network),
            hidden: self.hidden.clone(),
            dropout: self.dropout,
            weight_decay: self.weight_decay,
            learning_rate: self.learning_rate,
            batch_size: self.batch_size,
            epochs: self.epochs,
            patience: self.patience,
            depression_strength: self.depression_strength,
            ..Wishes::default()
        };
        let usual = LapConfig::default();
        let history_length = self.history_length.unwrap_or(usual.history_length);
        let plan = plan(&DataShape::of(data, sources), history_length, &wishes)?;
        let depression_strength = plan.depression_strength;
        let rule = self.rule(LapConfig { depression_strength, ..usual });
        let mut method = MethodConfig::named(&self.method).map_err(TrainError::from)?;
        for (name, &value) in &self.method_parameters {
            method = method.with(&name.replace('_', "-"), value).map_err(TrainError::from)?;
        }
        Ok((plan.config(self.seed), method.judged_by(rule)))
    }

    /// The trees for this data.
    fn trees(&self, data: &Data<'_>, sources: usize) -> Result<TreesConfig, FitError> {
        let networks = [
            ("hidden", self.hidden.is_some()),
            ("dropout", self.dropout.is_some()),
            ("weight_decay", self.weight_decay.is_some()),
            ("batch_size", self.batch_size.is_some()),
        ];
        if let Some((name, _)) = networks.into_iter().find(|(_, asked)| *asked) {
            return Err(FitError::NotForTrees(name));
        }
        let say = match self.method.as_str() {
            "lap" if self.method_parameters.is_empty() => Say::Rule { floor: 0.0 },
            "standard" if self.method_parameters.is_empty() => Say::Full,
            method => return Err(FitError::TreesMethod(method.to_owned())),
        };
        let loss = match data.targets.task() {
            Task::Classification => Loss::CrossEntropy,
            Task::Regression => Loss::SquaredError,
        };
        let categorical = vec![false; data.samples.spec().size()];
        let usual = TreesConfig::new(loss, categorical, vec![say; sources]);
        let rounds = self.epochs.unwrap_or(usual.rounds);
        let config = TreesConfig {
            rounds,
            patience: self.patience.unwrap_or(usual.patience.min(rounds)),
            learning_rate: self.learning_rate.unwrap_or(usual.learning_rate),
            seed: self.seed,
            rule: self.rule(usual.rule),
            ..usual
        };
        config.check(data)?;
        Ok(config)
    }
}

/// What comes out of the loop.
pub(crate) struct Outcome {
    pub(crate) model: Learnt,
    pub(crate) kind: ModelKind,
    pub(crate) epochs: Vec<Epoch>,
    pub(crate) points: Vec<TrajectoryPoint>,
    pub(crate) lap: lapwing_core::Lap<u32>,
    pub(crate) method: MethodConfig,
    /// What each source weighs at the end.
    pub(crate) weights: Vec<f64>,
}

impl Outcome {
    /// All sources by number, judged; `of_rows` are those of the training rows.
    pub(crate) fn judged(&self, names: &[String], of_rows: &[u32]) -> Vec<SourceRow> {
        let unseen =
            |name: &String| SourceRow { source: name.clone(), weight: 1.0, ..Default::default() };
        let mut all: Vec<SourceRow> = names.iter().map(unseen).collect();
        for status in self.lap.sources() {
            let source = *status.source as usize;
            if let (Some(row), Some(&weight)) = (all.get_mut(source), self.weights.get(source)) {
                // Where another method weighs, the rule has looked on without a say.
                *row = SourceRow {
                    rows: 0,
                    weight,
                    rule_weight: self.method.rule_weight(status.unreliability),
                    ..SourceRow::seen(std::mem::take(&mut row.source), &status)
                };
            }
        }
        for &source in of_rows {
            all[source as usize].rows += 1;
        }
        for row in &mut all {
            row.judge(self.lap.config().history_length);
        }
        all
    }
}

/// Trains a network.
fn network(settings: &Settings, data: &Data<'_>, sources: usize) -> Result<Outcome, FitError> {
    let (config, method) = settings.over_plan(data, sources)?;
    let kind = ModelKind::Network(config.architecture.kind());
    let mut trainer = Trainer::new(config, &method, *data, DeviceName::Cpu)?;
    let mut watcher = Watcher::new();
    if trainer.run(&mut watcher, None)? == Finish::Interrupted
        && let Some(interruption) = watcher.interrupted
    {
        return Err(interruption.into());
    }
    Ok(Outcome {
        model: Learnt::Network(trainer.model()?),
        kind,
        epochs: trainer.history().to_vec(),
        points: watcher.recorder.into_points(),
        lap: trainer.method().lap().ok_or(FitError::Damaged)?.clone(),
        weights: (0..sources as u32).map(|source| trainer.standing(source).weight).collect(),
        method,
    })
}

/// Grows trees.
fn trees(settings: &Settings, data: &Data<'_>, sources: usize) -> Result<Outcome, FitError> {
    let config = settings.trees(data, sources)?;
    let mut watcher = Watcher::new();
    let mut epochs = Vec::new();
    let grown = boost(&config, data, &mut |round| {
        if !round.rehearsal {
            epochs.push(round_as_epoch(round, &config));
        }
        show_round(round, &config, &mut watcher)
    })?;
    let Some(grown) = grown else {
        return Err(watcher.interrupted.map_or(FitError::Damaged, FitError::from));
    };
    let method = MethodConfig::named(&settings.method).map_err(TrainError::from)?;
    Ok(Outcome {
        model: Learnt::Trees(grown.forest),
        kind: ModelKind::Trees,
        epochs,
        points: watcher.recorder.into_points(),
        lap: grown.lap,
        weights: grown.weights,
        method: method.judged_by(config.rule),
    })
}

/// Trains what is asked for, or what does better on validation rows, and says why.
pub(crate) fn fit(
    settings: &Settings,
    data: &Data<'_>,
    sources: usize,
) -> Result<(Outcome, Option<String>), FitError> {
    match settings.kind()? {
        Some(ModelKind::Trees) => return Ok((trees(settings, data, sources)?, None)),
        Some(ModelKind::Network(_)) => return Ok((network(settings, data, sources)?, None)),
        None => {}
    }
    let all: Vec<u32> = data.train.iter().chain(data.valid).copied().collect();
    let block = data.samples.gather(&all, View::Plain)?;
    if block.into_floats().is_some_and(|numbers| numbers.iter().any(|number| number.is_nan())) {
        let reason = "networks take no missing values".to_owned();
        return Ok((trees(settings, data, sources)?, Some(reason)));
    }
    if let Err(refused) = settings.trees(data, sources) {
        let reason = refused.to_string().replace(", and the model is trees", "");
        return Ok((network(settings, data, sources)?, Some(reason)));
    }
    let size = Size {
        train: data.train.len(),
        valid: data.valid.len(),
        features: data.samples.spec().size(),
        classes: if data.targets.task() == Task::Classification {
            data.targets.outputs()
        } else {
            0
        },
        sources,
    };
    match size.decides() {
        Some((true, reason)) => return Ok((trees(settings, data, sources)?, Some(reason))),
        Some((false, reason)) => return Ok((network(settings, data, sources)?, Some(reason))),
        None => {}
    }
    let both = [network(settings, data, sources)?, trees(settings, data, sources)?];
    let trial = |outcome: &Outcome| -> Result<Trial, FitError> {
        let predictions = outcome.model.predict(data.samples, data.valid)?;
        Ok(Trial { predictions, weights: outcome.weights.clone() })
    };
    let trials = [trial(&both[0])?, trial(&both[1])?];
    let of_rows: Vec<u32> = data.valid.iter().map(|&row| data.sources[row as usize]).collect();
    let compared = Compared::new(&data.targets.select(data.valid), &of_rows, &trials);
    let reason = compared.reason([both[0].kind, both[1].kind]);
    let [first, second] = both;
    Ok((if compared.second_is_better() { second } else { first }, Some(reason)))
}

/// Has labels judged by networks that have not seen them, as many as asked for; nothing where there are no classes, too few
/// rows, or a network diverged. `data` has no missing values.
pub(crate) fn judge_labels(
    settings: &Settings,
    kind: ModelKind,
    data: &Data<'_>,
    sources: usize,
) -> Result<Option<JudgedLabels>, FitError> {
    if settings.folds == 0 {
        return Ok(None);
    }
    let (config, method) = match kind {
        ModelKind::Network(_) => settings.over_plan(data, sources)?,
        // Rounds are no epochs: networks beside trees are planned for the data.
        ModelKind::Trees => {
            let (epochs, patience, learning_rate) = (None, None, None);
            let planned = Settings { epochs, patience, learning_rate, ..settings.clone() };
            planned.over_plan(data, sources)?
        }
    };
    let steps = Trainer::new(config.clone(), &method, *data, DeviceName::Cpu)?.steps();
    let Data { targets, sources: of_rows, train, valid, .. } = *data;
    let labelled = LabelledRows { targets, sources: of_rows, train, valid };
    let folds = Folds::new(settings.folds, steps, &labelled, method.guards(), settings.seed);
    let Ok(folds) = folds else { return Ok(None) };
    let run = FoldRun {
        data: *data,
        sources,
        config: &config,
        method: &method,
        validation: valid.len() as f64 / (train.len() + valid.len()).max(1) as f64,
        device: DeviceName::Cpu,
        workers: Workers::alone(),
    };
    let mut watcher = Watcher::new();
    let judged = folds.run(&run, None, &mut watcher)?;
    match watcher.interrupted {
        Some(interruption) => Err(interruption.into()),
        None => Ok(judged.and_then(Result::ok)),
    }
}

/// Records, and listens for Ctrl-C.
struct Watcher {
    recorder: Recorder,
    looked: Instant,
    interrupted: Option<PyErr>,
}

impl Watcher {
    fn new() -> Self {
        Self { recorder: Recorder::new(MOST_POINTS), looked: Instant::now(), interrupted: None }
    }

    fn listen(&mut self) -> ControlFlow<()> {
        if self.looked.elapsed() >= BETWEEN_SIGNALS {
            self.looked = Instant::now();
            let checked: PyResult<()> = Python::attach(|py| {
                py.check_signals()?;
                Ok(())
            });
            self.interrupted = checked.err();
        }
        if self.interrupted.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Watch for Watcher {
    fn step(&mut self, _: &Progress<'_>) -> ControlFlow<()> {
        self.listen()
    }
}

impl Observer for Watcher {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.recorder.record(step);
        self.listen()
    }
}
