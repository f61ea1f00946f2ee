//! Boosting, twice: first to learn whom to believe, then with the weights that were found, keeping the best round. Where rows
//! of sources that are not believed are many, a third time: they have inputs all the same. What is kept then is the mean of
//! both.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hessboost::config::{GrowPolicy, TrainingParams, TreeMethod};
use hessboost::data::{DMatrix, FeatureType, MetaInfo};
use hessboost::metric::{EvalMetric, Metric};
use hessboost::model::BoostedModel;
use hessboost::objective::{GradPair, Loss as LibraryLoss, Objective as LibraryObjective};
use hessboost::training::Trainer;
use lapwing_core::{Lap, LapError};
use lapwing_sample::{Data, DataError, Draws, Loss, SourceLosses, TargetSpec, Targets};
use rayon::prelude::*;

use crate::TreesError;
use crate::config::TreesConfig;
use crate::forest::{Forest, numbers};
use crate::objective::Objective;
use crate::rounds::{Rounds, SourceRound};

/// Rows whose losses or gradients are one task.
const CHUNK: usize = 1 << 12;
/// Rows that the rehearsal is held with, about: trees that only judge sources need no more.
const MOST_REHEARSED: usize = 1 << 17;
/// Rows of a source among them, where it has as many: half of them judge it.
const LEAST_REHEARSED: usize = 128;
/// What random numbers are drawn for.
const PURPOSE: u64 = 25;
/// What a source weighs at most whose rows are given other values.
const DISBELIEVED: f64 = 0.1;
/// The share of the rows that they are at least.
const WORTH_IT: f64 = 0.05;
/// Rows of the other sources, at least: trees of fewer say little that could stand for a value.
const LEAST_BELIEVED: usize = 1000;
/// Added to the seed of the trees that learn from them.
const ANEW: u64 = 77;
/// Rows of a leaf, where there are plenty: as LightGBM has it.
const LEAF_ROWS: f64 = 20.0;

/// One round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Rounds before this one; counted anew after those that are rehearsed, and on where trees are grown anew with values
    /// that others have said.
    pub round: usize,
    /// Whether sources were judged, and its trees are thrown away.
    pub rehearsal: bool,
    /// Mean of the finite losses of all training rows before the round, every row counting the same.
    pub train_loss: f64,
    /// Training losses that were not finite.
    pub nonfinite: u64,
    /// What the rows lost that sources were judged by, as a [bounded](lapwing_sample::Loss::bounded) score: one minus the
    /// probability of the label, or the absolute error; none after the rehearsal.
    pub losses: Vec<f32>,
    /// Where sources stand; none after the rehearsal.
    pub sources: Vec<SourceRound>,
    /// What validation rows say, if there are any, after the rehearsal.
    pub valid: Option<Valid>,
    /// Whether this is the best round so far.
    pub best: bool,
}

/// What validation rows say of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid {
    /// The loss, rows counting as much as their sources.
    pub loss: f64,
    /// What chooses the best round: see [`Loss::bounded`](lapwing_sample::Loss::bounded).
    pub score: f64,
    /// The loss, every row counting the same.
    pub unweighted: f64,
    /// Mean loss per source.
    pub by_source: Vec<(u32, f64)>,
}

/// Trees that were grown, and the rule that watched.
#[derive(Debug)]
pub struct Grown {
    /// Those of the best round and before; of all rounds where nothing was validated.
    pub forest: Forest,
    /// The rule as it stood at the end.
    pub lap: Lap<u32>,
    /// What every source weighed at the end.
    pub weights: Vec<f64>,
}

/// Grows trees. `watch` hears of every round; where it breaks off, there is no result.
///
/// # Errors
/// Where data and settings do not fit, or numbers become infinite.
pub fn boost(
    config: &TreesConfig,
    data: &Data<'_>,
    watch: &mut dyn FnMut(&Round) -> ControlFlow<()>,
) -> Result<Option<Grown>, TreesError> {
    config.check(data)?;
    let admitted = |row: &&u32| config.admits(data.sources[**row as usize]);
    let train: Vec<u32> = data.train.iter().filter(admitted).copied().collect();
    if train.is_empty() {
        return Err(DataError::NoRows.into());
    }
    let target = data.targets.spec(data.train);
    let objective = Objective::new(config.loss, &target);
    let of_rows =
        |rows: &[u32]| -> Vec<u32> { rows.iter().map(|&row| data.sources[row as usize]).collect() };
    let rehearsed = rehearsed(&train, data.sources, config.say.len(), config.seed);
    let sources = of_rows(&rehearsed);
    let state = State {
        rounds: Rounds::new(config.rule, &config.say, &sources, config.seed)?,
        objective,
        sources,
        validated: of_rows(data.valid),
        admitted: data.valid.iter().map(|row| config.admits(data.sources[*row as usize])).collect(),
        rehearses: true,
        replaced: vec![false; config.say.len()],
        before: 0,
        round: None,
        plain: SourceLosses::default(),
        bounded: SourceLosses::default(),
        best: None,
        failed: None,
    };
    let validates = state.admitted.contains(&true);
    let state = Shared(Arc::new(Mutex::new(state)));
    let given = |rows: &[u32]| -> Result<DMatrix, TreesError> {
        matrix(config, data, rows, &labels(config, data, &target, rows)?)
    };
    if config.rehearsal > 0 {
        let (training, params) =
            (given(&rehearsed)?, params(config, objective, rehearsed.len(), &state)?);
        let trainer = Trainer::new(&params, &training, config.rehearsal);
        if run(trainer, &state, usize::MAX, watch)?.is_none() {
            return Ok(None);
        }
    }
    {
        let mut state = state.lock();
        (state.rehearses, state.sources) = (false, of_rows(&train));
    }
    let validation = if validates { Some(given(data.valid)?) } else { None };
    let patience = if validates { config.patience } else { usize::MAX };
    let mut grow = |training: DMatrix, seed| -> Result<Option<Forest>, TreesError> {
        let config = &TreesConfig { seed, ..config.clone() };
        let params = params(config, objective, train.len(), &state)?;
        let mut trainer = Trainer::new(&params, &training, config.rounds);
        if let Some(validation) = &validation {
            trainer = trainer.eval(validation, "validation").custom_metric(Box::new(state.clone()));
        }
        let Some(model) = run(trainer, &state, patience, watch)? else { return Ok(None) };
        let kept = state.lock().end(model.num_boost_rounds());
        Forest::new(config, target, model.slice(..kept, 1)?).map(Some)
    };
    let Some(mut forest) = grow(given(&train)?, config.seed)? else { return Ok(None) };
    let doubted = state.lock().doubt(config);
    if !doubted.is_empty() {
        let mut labels = labels(config, data, &target, &train)?;
        let rows: Vec<u32> = doubted.iter().map(|&at| train[at]).collect();
        for (at, said) in doubted.into_iter().zip(forest.margins(data.samples, &rows)?) {
            labels[at] = said;
        }
        // Other columns: trees that see what the first ones saw would say what they said.
        let seed = config.seed.wrapping_add(ANEW);
        match grow(matrix(config, data, &train, &labels)?, seed)? {
            Some(anew) => forest = forest.mean(&anew)?,
            None => return Ok(None),
        }
    }
    let state = state.lock();
    let weights = state.rounds.weights().to_vec();
    Ok(Some(Grown { forest, lap: state.rounds.lap().clone(), weights }))
}

/// The rows that the rehearsal is held with: all, or of many a part, of every source its share and enough to judge it by.
fn rehearsed(train: &[u32], sources: &[u32], count: usize, seed: u64) -> Vec<u32> {
    if train.len() <= MOST_REHEARSED {
        return train.to_vec();
    }
    let mut of_source: Vec<Vec<u32>> = vec![Vec::new(); count];
    for &row in train {
        of_source[sources[row as usize] as usize].push(row);
    }
    let mut rows = Vec::new();
    for (source, mut own) in (0..).zip(of_source) {
        Draws::of(seed, PURPOSE, 0, source).shuffle_wide(&mut own);
        let share = (own.len() * MOST_REHEARSED).div_ceil(train.len());
        own.truncate(share.max(LEAST_REHEARSED));
        rows.append(&mut own);
    }
    rows.sort_unstable();
    rows
}

/// Trains on a thread of its own: who looks on need not be able to leave this one. `None` where that one broke off.
fn run(
    trainer: Trainer<'_>,
    state: &Shared,
    patience: usize,
    watch: &mut dyn FnMut(&Round) -> ControlFlow<()>,
) -> Result<Option<BoostedModel>, TreesError> {
    let (tell, told) = sync_channel::<Round>(0);
    let (answer, answered) = sync_channel::<ControlFlow<()>>(0);
    let mut interrupted = false;
    let trained = std::thread::scope(|scope| {
        let state = state.clone();
        let training = scope.spawn(move || {
            trainer.on_round(move |_| state.end_round(patience, &tell, &answered)).train()
        });
        for round in told {
            let flow = watch(&round);
            interrupted |= flow.is_break();
            if answer.send(flow).is_err() {
                break;
            }
        }
        training.join()
    });
    let trained =
        trained.map_err(|_| TreesError::Library("the library of trees panicked".to_owned()))?;
    let model = trained?.model;
    match state.lock().failed.take() {
        Some(error) => Err(error),
        None => Ok((!interrupted).then_some(model)),
    }
}

fn params(
    config: &TreesConfig,
    objective: Objective,
    rows: usize,
    state: &Shared,
) -> Result<TrainingParams, TreesError> {
    // Curvature is 1 per row for values, so that this is the fewest rows of a leaf; fewer where there are few. Where the
    // model is certain of a class it is next to nothing, and the library's own bound is enough.
    let least = match config.loss {
        Loss::CrossEntropy => 1.0,
        Loss::SquaredError | Loss::Huber { .. } => (rows as f64 / 100.0).clamp(1.0, LEAF_ROWS),
    };
    let loss = Weighed { objective, state: state.clone(), replaced: config.replaced };
    Ok(TrainingParams::builder()
        .objective(LibraryObjective::custom(loss))
        .tree_method(TreeMethod::Hist)
        .grow_policy(GrowPolicy::LossGuide)
        .unlimited_depth()
        .max_leaves(config.leaves)
        .min_child_weight(least)
        .eta(config.learning_rate)
        .colsample_bytree(config.columns)
        .seed(config.seed)
        .build()?)
}

/// The targets of rows, as the library wants them.
fn labels(
    config: &TreesConfig,
    data: &Data<'_>,
    target: &TargetSpec,
    rows: &[u32],
) -> Result<Vec<f32>, TreesError> {
    Ok(match (data.targets, target) {
        (Targets::Classes { labels, .. }, _) => {
            rows.iter().map(|&row| labels[row as usize] as f32).collect()
        }
        (Targets::Values(values), TargetSpec::Values(scale)) => {
            let standardised = |&row: &u32| scale.standardised(values[row as usize]) as f32;
            rows.iter().map(standardised).collect()
        }
        _ => return Err(TreesError::Loss(config.loss)),
    })
}

/// Rows with targets, as the library wants them.
fn matrix(
    config: &TreesConfig,
    data: &Data<'_>,
    rows: &[u32],
    labels: &[f32],
) -> Result<DMatrix, TreesError> {
    let kind = |&categorical: &bool| match categorical {
        true => FeatureType::Categorical,
        false => FeatureType::Numerical,
    };
    let kinds: Vec<FeatureType> = config.categorical.iter().map(kind).collect();
    let values = numbers(data.samples, rows)?;
    let matrix = DMatrix::from_dense_vec(values, rows.len(), kinds.len())?;
    Ok(matrix.with_labels(labels)?.with_feature_types(&kinds)?)
}

/// What loss, metric and loop share.
struct State {
    rounds: Rounds,
    objective: Objective,
    /// Sources of the training rows.
    sources: Vec<u32>,
    /// Sources of the validation rows, and whether they have a say.
    validated: Vec<u32>,
    admitted: Vec<bool>,
    /// Whether this is the rehearsal.
    rehearses: bool,
    /// Sources whose values are not their own, but what trees have said.
    replaced: Vec<bool>,
    /// Rounds after the rehearsal that ended before the first of these trees.
    before: usize,
    /// What is known of the round so far.
    round: Option<Round>,
    /// Losses of validation rows after it, and what chooses the best.
    plain: SourceLosses,
    bounded: SourceLosses,
    best: Option<Best>,
    failed: Option<TreesError>,
}

struct Best {
    round: usize,
    scores: SourceLosses,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After the tree of a round: whether it is the best, what the watcher says, and whether to stop.
    fn end_round(
        &self,
        patience: usize,
        tell: &SyncSender<Round>,
        answered: &Receiver<ControlFlow<()>>,
    ) -> ControlFlow<()> {
        let (round, stale) = {
            let mut state = self.lock();
            let Some(mut round) = state.round.take() else { return ControlFlow::Break(()) };
            if state.failed.is_some() {
                return ControlFlow::Break(());
            }
            state.choose(&mut round);
            let stale = state.best.as_ref().map_or(0, |best| round.round - best.round);
            (round, stale)
        };
        if tell.send(round).is_err() {
            return ControlFlow::Break(());
        }
        match answered.recv() {
            Ok(ControlFlow::Continue(())) if stale < patience => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

impl State {
    /// A round begins: its losses are those of the trees before it.
    fn begin(&mut self, round: usize, losses: &[f32]) -> Result<(), LapError> {
        let finite = losses.iter().filter(|loss| loss.is_finite());
        let (sum, rows) = finite.fold((0.0, 0_u64), |(s, n), &loss| (s + f64::from(loss), n + 1));
        if rows == 0 {
            self.failed = Some(TreesError::Diverged { round: round + 1 });
        }
        let (drawn, sources) = match self.rehearses {
            // Bounded, since a few rows that no tree can reach would make a small source look bad for ever.
            true => {
                let scores: Vec<f32> =
                    losses.iter().map(|&loss| self.objective.bounded(loss)).collect();
                self.rounds.step(round, &scores)?
            }
            false => Default::default(),
        };
        self.round = Some(Round {
            round: self.before + round,
            rehearsal: self.rehearses,
            train_loss: sum / rows as f64,
            nonfinite: losses.len() as u64 - rows,
            losses: drawn,
            sources,
            valid: None,
            best: false,
        });
        Ok(())
    }

    /// The trees are grown: how many of them are kept.
    fn end(&mut self, rounds: usize) -> usize {
        let kept = self.best.take().map_or(rounds, |best| best.round + 1 - self.before);
        self.before += rounds;
        kept
    }

    /// Rows whose sources are not believed, and which are worth learning from all the same, with values that the trees say:
    /// they tell where inputs lie, and trees of more rows err less. None where they are few, or where targets are classes.
    fn doubt(&mut self, config: &TreesConfig) -> Vec<usize> {
        let values = config.loss != Loss::CrossEntropy && config.rehearsal > 0;
        let doubted = |source: u32| values && self.rounds.weight(source) <= DISBELIEVED;
        let sources = self.sources.iter().enumerate();
        let rows: Vec<usize> =
            sources.filter(|(_, source)| doubted(**source)).map(|(at, _)| at).collect();
        let (few, all) = (rows.len(), self.sources.len());
        let worth_it = few as f64 >= WORTH_IT * all as f64 && all - few >= LEAST_BELIEVED;
        if config.replaced <= 0.0 || !worth_it {
            return Vec::new();
        }
        for &at in &rows {
            self.replaced[self.sources[at] as usize] = true;
        }
        rows
    }

    /// What rows of each source count for in training.
    fn counted(&self, replaced: f64) -> Vec<f64> {
        let weights = self.rounds.weights().iter().zip(&self.replaced);
        weights.map(|(&weight, &own)| if own { replaced } else { weight }).collect()
    }

    /// Whether this is the best round. Weights have changed since the best one was chosen: both are compared under those
    /// of now.
    fn choose(&mut self, round: &mut Round) {
        if self.rehearses || !self.admitted.contains(&true) {
            return;
        }
        let weight = |source| self.rounds.weight(source);
        let score = self.bounded.mean(weight);
        round.best = match &self.best {
            Some(best) => score < best.scores.mean(weight),
            None => score.is_finite(),
        };
        round.valid = Some(Valid {
            loss: self.plain.mean(weight),
            score,
            unweighted: self.plain.mean(|_| 1.0),
            by_source: self.plain.means().collect(),
        });
        if round.best {
            self.best = Some(Best { round: round.round, scores: self.bounded.clone() });
        }
    }
}

/// The loss of rows, each weighing what its source does.
struct Weighed {
    objective: Objective,
    state: Shared,
    /// See [`TreesConfig::replaced`].
    replaced: f64,
}

impl LibraryLoss for Weighed {
    fn name(&self) -> &str {
        "lapwing"
    }

    fn n_outputs(&self) -> usize {
        self.objective.outputs
    }

    /// Nobody asks for gradients outside a round.
    fn gradient(&self, _: &[f32], _: &[f32], _: Option<&[f32]>, out: &mut [GradPair]) {
        out.fill(GradPair::default());
    }

    /// In the rehearsal, judges by the losses of one half of the rows and lets trees see the other; weighs gradients by
    /// what came of it.
    fn gradient_info_at(
        &self,
        margins: &[f32],
        info: &MetaInfo<'_>,
        out: &mut [GradPair],
        round: usize,
    ) {
        let (objective, targets) = (self.objective, info.label_values());
        let losses = losses(&objective, margins, targets);
        let mut state = self.state.lock();
        if let Err(error) = state.begin(round, &losses) {
            state.failed = Some(error.into());
        }
        let weights = state.counted(self.replaced);
        let hidden = if state.rehearses { state.rounds.judged().to_vec() } else { Vec::new() };
        let sources = std::mem::take(&mut state.sources);
        drop(state);
        let width = objective.outputs;
        let rows = out.par_chunks_mut(width * CHUNK).enumerate();
        rows.for_each(|(chunk, out)| {
            for (at, out) in (chunk * CHUNK..).zip(out.chunks_exact_mut(width)) {
                let weight = weights[sources[at] as usize];
                let seen = !hidden.get(at).copied().unwrap_or(false);
                if seen && losses[at].is_finite() && weight > 0.0 {
                    let margins = &margins[at * width..(at + 1) * width];
                    objective.gradient(margins, targets[at], weight, out);
                } else {
                    out.fill(GradPair::default());
                }
            }
        });
        self.state.lock().sources = sources;
    }

    /// Trees start from nothing: a mean would be that of bad sources, too.
    fn base_margins_info(&self, _: &MetaInfo<'_>) -> Vec<f32> {
        vec![0.0; self.objective.outputs]
    }

    /// The library wants one beside ours; nobody looks at it.
    fn default_metric(&self) -> EvalMetric {
        if self.objective.outputs == 1 { EvalMetric::Rmse } else { EvalMetric::MError }
    }
}

/// Looks at validation rows after a round.
impl Metric for Shared {
    fn name(&self) -> &str {
        "lapwing"
    }

    fn prediction_width(&self, _: &MetaInfo<'_>) -> Option<usize> {
        None
    }

    fn eval(&self, margins: &[f32], targets: &[f32], _: Option<&[f32]>) -> f64 {
        let objective = self.lock().objective;
        let losses = losses(&objective, margins, targets);
        let mut guard = self.lock();
        let state = &mut *guard;
        (state.plain, state.bounded) = Default::default();
        for ((&source, &admitted), loss) in state.validated.iter().zip(&state.admitted).zip(losses)
        {
            state.plain.add(source, loss);
            if admitted {
                state.bounded.add(source, objective.bounded(loss));
            }
        }
        state.plain.mean(|source| state.rounds.weight(source))
    }
}

/// The loss of each row.
pub(crate) fn losses(objective: &Objective, margins: &[f32], targets: &[f32]) -> Vec<f32> {
    let rows = margins.par_chunks_exact(objective.outputs).zip(targets);
    rows.with_min_len(CHUNK).map(|(margins, &target)| objective.loss(margins, target)).collect()
}
