//! RRL: robust representation learning on noisy data, after Li, Xiong and Hoi (2021), alone and with LAP.
//!
//! The network sees each picture twice, as it is and after AugMix, and learns more than labels: the two are to be nearer
//! to each other than to all others (`instance`), mixtures of pictures are to lie where the means of their classes mix
//! (`prototype`), and an embedding of few numbers must be enough to rebuild what the classifier sees. From some epoch on
//! labels are cleaned before each epoch: a label that neither the network nor the nearest neighbours believe is
//! replaced, and rows of which nobody knows what they are take no part in learning labels.
//!
//! With LAP, the loss on labels of each row is weighed by its source.
//!
//! There are two forms. The one that was published; and, `modified`, the one that the authors of LAP ran, which differs
//! in more than a name: the embedding of the second view is made from the first, cleaned labels serve cross-entropy only
//! and its mean is over the whole batch, and mixtures are of all rows with their labels as given.

mod labels;
mod losses;
#[cfg(test)]
mod tests;

use lapwing_core::Lap;
use lapwing_sample::{Draws, softmax};

use self::labels::{Cleaning, Labels};
use self::losses::{Mixture, Step};
use super::lap::GuardedLap;
use super::{
    Audience, Guards, Method, MethodConfig, MethodError, MethodKind, Observed, Parameter, Range,
    Seen, Standing, Start, Weighs,
};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::network::{Architecture, NetworkKind};
use crate::optimiser::Pace;
use crate::random::Purpose;
use crate::saved::Saved;

/// Steps before the first are counted from here, so that they draw nothing that a step draws.
const BEFORE: u64 = 1 << 63;

const NEIGHBOURS: Parameter = Parameter {
    name: "neighbours",
    value_name: "N",
    about: "neighbours by which a label is cleaned",
    default: Some(200.0),
    range: Range::Whole(1),
    audience: Audience::Everybody,
};
const CLEAN_FROM: Parameter = Parameter {
    name: "clean-from",
    value_name: "EPOCH",
    about: "epochs before labels are cleaned",
    default: Some(5.0),
    range: Range::Whole(0),
    audience: Audience::Everybody,
};
const WARMUP_BATCHES: Parameter = Parameter {
    name: "warmup-batches",
    value_name: "N",
    about: "batches before the first epoch that teach labels and reconstruction only, at most those of an epoch",
    default: Some(101.0),
    range: Range::Whole(0),
    audience: Audience::Recipes,
};
const MODIFIED: Parameter = Parameter {
    name: "modified",
    value_name: "0|1",
    about: "1 for the form that the authors of LAP ran in place of the one that was published",
    default: Some(0.0),
    range: Range::Switch,
    audience: Audience::Everybody,
};
const PARAMETERS: &[Parameter] = &[NEIGHBOURS, CLEAN_FROM, WARMUP_BATCHES, MODIFIED];

/// RRL alone.
#[derive(Debug)]
pub(super) struct Plain;

/// RRL with LAP.
#[derive(Debug)]
pub(super) struct WithLap;

fn sentence(method: &MethodConfig) -> String {
    let (epoch, count) = (method.number(&CLEAN_FROM) + 1.0, method.number(&NEIGHBOURS));
    format!(
        "two views of each picture; from epoch {epoch} on, labels are cleaned by {count} neighbours"
    )
}

impl MethodKind for Plain {
    fn name(&self) -> &'static str {
        "rrl"
    }

    fn about(&self) -> &'static str {
        "Contrastive learning from two views of pictures, labels cleaned by their neighbours (classification)"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        sentence(method)
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn needs_classes(&self) -> bool {
        true
    }

    fn weighs(&self) -> Weighs {
        Weighs::Rows
    }

    fn views(&self) -> usize {
        2
    }

    fn network(&self) -> Option<NetworkKind> {
        Some(NetworkKind::PreActResNet18)
    }

    /// A picture goes through the network twice, and two mixtures of it.
    fn networks(&self) -> usize {
        4
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(Box::new(Rrl::new(&start, None)?))
    }
}

impl MethodKind for WithLap {
    fn name(&self) -> &'static str {
        "rrl-lap"
    }

    fn about(&self) -> &'static str {
        "The same with LAP: the loss on labels is weighed by source (classification)"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        format!("{}; {}", sentence(method), super::lap::Kind.sentence(method))
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

    fn runs_rule(&self) -> bool {
        true
    }

    fn views(&self) -> usize {
        2
    }

    fn network(&self) -> Option<NetworkKind> {
        Plain.network()
    }

    fn networks(&self) -> usize {
        Plain.networks()
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        let lap = GuardedLap::new(start.method.rule(), start.method.guards().clone())?;
        Ok(Box::new(Rrl::new(&start, Some(lap))?))
    }
}

pub(super) struct Rrl {
    lap: Option<GuardedLap>,
    guards: Guards,
    cleaning: Cleaning,
    clean_from: usize,
    warmup_batches: usize,
    modified: bool,
    seed: u64,
    batch_size: usize,
    /// The learning rate before the first epoch.
    rate: f64,
    /// By place among the rows that are trained on.
    labels: Labels,
    /// The place of each row of the data.
    places: Vec<u32>,
}

impl Rrl {
    fn new(start: &Start<'_, '_>, lap: Option<GuardedLap>) -> Result<Self, MethodError> {
        let Start { method, config, learner } = start;
        let Architecture::PreActResNet18(network) = &config.architecture else {
            let (expected, found) = (NetworkKind::PreActResNet18, config.architecture.kind());
            let (method, expected, found) = (method.kind().name(), expected.name(), found.name());
            return Err(MethodError::Network { method, expected, found });
        };
        let mut places = vec![u32::MAX; learner.data.sources.len()];
        for (&row, place) in learner.train.iter().zip(0..) {
            places[row as usize] = place;
        }
        Ok(Self {
            lap,
            guards: method.guards().clone(),
            cleaning: Cleaning {
                neighbours: method.number(&NEIGHBOURS) as usize,
                ..Cleaning::default()
            },
            clean_from: method.number(&CLEAN_FROM) as usize,
            warmup_batches: method.number(&WARMUP_BATCHES) as usize,
            modified: method.number(&MODIFIED) == 1.0,
            seed: config.seed,
            batch_size: config.batch_size,
            rate: config.schedule.highest(),
            labels: Labels::new(learner.train.len(), network.outputs, network.embedding),
            places,
        })
    }

    /// Labels and reconstruction alone, so that the first prototypes are of something.
    fn warm_up(&self, learner: &mut Learner<'_>) -> Result<(), TrainError> {
        let mut order = learner.train.to_vec();
        Draws::of(self.seed, Purpose::WarmUp, 0, 0).shuffle(&mut order);
        let batches = order.chunks(self.batch_size).take(self.warmup_batches);
        for (rows, step) in batches.zip(BEFORE..) {
            let when = (step, 0, Pace::new(self.rate));
            let batch = Batch::gather(
                &learner.data,
                &learner.target,
                rows.to_vec(),
                when,
                learner.workers,
                (self.seed, 1),
                &learner.device,
            )?;
            let pass = learner.forward(&batch)?;
            let labels = pass.mean(&vec![1.0; batch.len()]);
            let rebuilt = losses::rebuilt(learner, &pass);
            let loss = labels.into_iter().zip(rebuilt).map(|(a, b)| a + b).collect();
            learner.descend(pass, loss, batch.pace)?;
        }
        Ok(())
    }

    /// The labels of the rows that are trained on, as a step that is none sees them.
    fn given(&self, learner: &Learner<'_>) -> Result<Vec<u32>, TrainError> {
        let mut given = Vec::with_capacity(learner.train.len());
        for (rows, place) in learner.train.chunks(self.batch_size).zip(0..) {
            given.extend(learner.data.labels(u64::MAX - place, rows)?);
        }
        Ok(given)
    }

    /// What becomes of a batch: whose labels are learnt, and which labels.
    fn decided(&self, batch: &Batch) -> (Vec<bool>, Vec<u32>) {
        let places = batch.rows.iter().map(|&row| self.places[row as usize] as usize);
        let decide =
            |(place, (&given, &source)): (usize, (&u32, &u32))| match self.labels.cleaned(place) {
                Some((label, sure)) if !self.guards.trusts(source) => (sure, label),
                _ => (true, given),
            };
        places.zip(batch.labels.iter().zip(&batch.sources)).map(decide).unzip()
    }

    /// A step in which pictures are mixed as `mixture` says of so many.
    fn learn(
        &mut self,
        learner: &mut Learner<'_>,
        batch: &Batch,
        mixture: impl FnOnce(usize) -> Mixture,
    ) -> Result<Seen, TrainError> {
        let mut pass = learner.forward(batch)?;
        let (sure, labels) = self.decided(batch);
        let step = Step {
            sure: &sure,
            labels: &labels,
            prototypes: self.labels.prototypes(),
            modified: self.modified,
        };
        let Some(terms) = step.terms(learner, &mut pass, batch, mixture) else {
            return Err(MethodError::Other("rrl needs two views and further heads".into()).into());
        };
        // Where cleaned labels take the place of given ones, what a row costs no longer tells what its source said.
        let losses = if self.modified { terms.of_labels() } else { pass.seen.clone() };
        let weights = match &mut self.lap {
            Some(lap) => lap.weigh(&Observed::new(&losses, &batch.sources))?,
            None => vec![1.0; batch.len()],
        };
        let loss = terms.sum(&weights);
        learner.descend(pass, vec![loss], batch.pace)?;
        let counted = weights.iter().zip(&sure).map(|(w, &sure)| if sure { *w } else { 0.0 });
        Ok(Seen { losses, weights: counted.collect() })
    }
}

impl Method for Rrl {
    fn begin_epoch(&mut self, learner: &mut Learner<'_>, epoch: usize) -> Result<(), TrainError> {
        if epoch == 0 {
            self.warm_up(learner)?;
        }
        let given = self.given(learner)?;
        let (mut probabilities, embeddings) = learner.projections(&learner.train)?;
        probabilities.chunks_exact_mut(self.labels.classes()).for_each(softmax);
        if epoch < self.clean_from {
            self.labels.take(&embeddings, &given);
        } else {
            self.labels.clean(&self.cleaning, &embeddings, &probabilities, &given);
        }
        Ok(())
    }

    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let (seed, step) = (self.seed, batch.step);
        self.learn(learner, batch, |count| Mixture::drawn(seed, step, count))
    }

    fn standing(&self, source: u32) -> Standing {
        let untold = Standing { unreliability: 0, weight: 1.0 };
        self.lap.as_ref().map_or(untold, |lap| lap.standing(source))
    }

    fn save(&self) -> Result<Saved, MethodError> {
        let saved = Saved::default().with("labels", self.labels.save());
        Ok(match &self.lap {
            Some(lap) => saved.with("lap", lap.save()?),
            None => saved,
        })
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        self.labels.load(&saved.part("labels"))?;
        match &mut self.lap {
            Some(lap) => lap.load(&saved.part("lap")),
            None => Ok(()),
        }
    }

    fn lap(&self) -> Option<&Lap<u32>> {
        self.lap.as_ref().and_then(Method::lap)
    }
}
