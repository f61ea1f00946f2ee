//! Noise rates where several sources answer on the same item: what all of them say together is learnt.
//!
//! At first every answer is learnt for the probability that it is the truth, as with noise rates alone. At some points of
//! the run (30, 50, 70 and 85 % of the steps) the network and all answers on an item are weighed together, and from then
//! on every row has the label of its item for its target, with as much doubt as there is. Noise rates go on: they are what
//! is known of sources.

use std::collections::HashMap;

use burn::tensor::activation::log_softmax;
use burn::tensor::{Tensor, TensorData};
use lapwing_core::{Answers, Consensus};
use lapwing_sample::softmax;

use super::noise_rate::GuardedNoise;
use super::{Guards, Method, MethodError, Seen, Standing};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::{Learner, ShardPass};
use crate::parameters::{self, find};
use crate::saved::Saved;

/// Shares of the steps after which answers are weighed.
const MOMENTS: [f64; 4] = [0.3, 0.5, 0.7, 0.85];
/// What the network's word counts for beside the answers, from which it has learnt: as a power of its probabilities. With 1
/// or with a half, networks came out worse on Music (44 annotators).
const SHARE: f64 = 0.7;
/// Rounds of weighing each time.
const ROUNDS: usize = 20;
const NOWHERE: u32 = u32::MAX;

pub(super) struct ItemNoise<'a> {
    noise: GuardedNoise<'a>,
    consensus: Consensus,
    /// The item of each row of the data; [`NOWHERE`] for rows that are not trained on.
    items: Vec<u32>,
    /// The rows that are trained on.
    rows: Vec<u32>,
    /// Before which steps answers are weighed.
    moments: Vec<u64>,
    /// The first epoch (from 0) that learns from nothing but what was weighed last.
    settled: usize,
    /// The probability of every class, item after item; nothing before answers are weighed for the first time.
    beliefs: Vec<f32>,
}

impl<'a> ItemNoise<'a> {
    /// `items` are those of all rows of the data, `steps` and `epochs` those of the run.
    pub(super) fn new(
        noise: GuardedNoise<'a>,
        learner: &Learner<'_>,
        (items, labels, classes): (&[u32], &[u32], usize),
        guards: &Guards,
        (steps, epochs): (usize, usize),
    ) -> Result<Self, MethodError> {
        let rows = learner.train().to_vec();
        let mut known = HashMap::new();
        let mut of_rows = vec![NOWHERE; items.len()];
        for &row in &rows {
            let next = known.len() as u32;
            of_rows[row as usize] = *known.entry(items[row as usize]).or_insert(next);
        }
        let of =
            |list: &[u32]| -> Vec<u32> { rows.iter().map(|&row| list[row as usize]).collect() };
        let (answered, sources, labels) = (of(&of_rows), of(learner.sources()), of(labels));
        let answers = Answers { items: &answered, sources: &sources, labels: &labels, classes };
        let consensus = Consensus::new(&answers, known.len(), |source| guards.trusts(source))?;
        let moments = MOMENTS.map(|share| (share * steps as f64) as u64).to_vec();
        let settled = (MOMENTS[MOMENTS.len() - 1] * epochs as f64).ceil() as usize;
        let settled = settled.min(epochs.saturating_sub(1));
        let items = of_rows;
        Ok(Self { noise, consensus, items, rows, moments, settled, beliefs: Vec::new() })
    }

    /// Weighs what the network and all answers say of each item.
    fn weigh_answers(&mut self, learner: &Learner<'_>) -> Result<(), TrainError> {
        let classes = self.consensus.classes();
        let outputs = learner.outputs(&self.rows)?;
        let mut said = vec![0.0; self.consensus.items() * classes];
        let mut answers = vec![0.0; self.consensus.items()];
        for (&row, outputs) in self.rows.iter().zip(outputs.chunks_exact(classes)) {
            let item = self.items[row as usize] as usize;
            answers[item] += 1.0;
            let own = &mut said[item * classes..(item + 1) * classes];
            let mut probabilities = outputs.to_vec();
            softmax(&mut probabilities);
            own.iter_mut().zip(probabilities).for_each(|(sum, p)| *sum += f64::from(p));
        }
        for (said, answers) in said.chunks_exact_mut(classes).zip(answers) {
            said.iter_mut().for_each(|p| *p = (*p / answers).powf(SHARE));
        }
        let beliefs = match self.beliefs.as_slice() {
            [] => self.consensus.first(&said, |source| self.noise.rate(source)),
            before => before.iter().map(|&p| f64::from(p)).collect(),
        };
        let weighed = self.consensus.weigh(&said, beliefs, ROUNDS);
        // What is learnt and what is saved is the same, so that a run that goes on learns the same.
        self.beliefs = weighed.into_iter().map(|p| p as f32).collect();
        Ok(())
    }

    /// What is believed of the items of some rows, row after row.
    fn targets(&self, rows: &[u32]) -> Vec<f32> {
        let classes = self.consensus.classes();
        let item = |&row: &u32| self.items[row as usize] as usize * classes;
        let believed = |row: &u32| &self.beliefs[item(row)..item(row) + classes];
        rows.iter().flat_map(believed).copied().collect()
    }
}

impl Method for ItemNoise<'_> {
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        if self.moments.contains(&batch.step) {
            self.weigh_answers(learner)?;
        }
        let pass = learner.forward(batch)?;
        let weights = self.noise.weigh(&pass.observed(batch, &|| pass.outputs_on_host()))?;
        let losses = pass.seen.clone();
        if self.beliefs.is_empty() {
            let loss = pass.mean(&weights);
            learner.descend(pass, loss, batch.pace)?;
            return Ok(Seen { losses, weights });
        }
        // Whom to believe is settled item by item: every row counts for the same.
        let weights = vec![1.0; batch.len()];
        let believed = |shard: &ShardPass| {
            let said = log_softmax(shard.outputs.clone(), 1);
            let targets =
                TensorData::new(self.targets(&batch.rows[shard.rows.clone()]), said.dims());
            let targets = Tensor::<2>::from_data(targets, &said.device());
            (targets * said).sum_dim(1).reshape([-1]).neg()
        };
        let loss = pass.sum(believed, &weights, pass.rows);
        learner.descend(pass, loss, batch.pace)?;
        Ok(Seen { losses, weights })
    }

    fn is_candidate(&self, epoch: usize) -> bool {
        epoch >= self.settled
    }

    fn standing(&self, source: u32) -> Standing {
        self.noise.standing(source)
    }

    fn save(&self) -> Result<Saved, MethodError> {
        let array = || parameters::Parameter {
            name: "beliefs".to_owned(),
            shape: vec![self.beliefs.len()],
            values: self.beliefs.clone(),
        };
        let arrays = if self.beliefs.is_empty() { Vec::new() } else { vec![array()] };
        let items = Saved { arrays, ..Saved::default() };
        Ok(Saved::default().with("noise", self.noise.save()?).with("items", items))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        self.noise.load(&saved.part("noise"))?;
        let arrays = saved.part("items").arrays;
        self.beliefs = match arrays.as_slice() {
            [] => Vec::new(),
            arrays => {
                let shape = [self.consensus.items() * self.consensus.classes()];
                find(arrays, "beliefs", &shape)?.values.clone()
            }
        };
        Ok(())
    }
}
