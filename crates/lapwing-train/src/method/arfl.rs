//! ARFL: federated training in which every source is a client. Each round every client trains the common network on its
//! own rows for an epoch, and the results are averaged with weights from the clients' losses: one whose loss lies far
//! above that of the others counts for nothing.

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::{
    Audience, Guards, Method, MethodConfig, MethodError, MethodKind, Parameter, Range, Seen,
    Standing, Start, Weighs,
};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::optimiser::Optimiser;
use crate::parameters::{self, find, read, write};
use crate::saved::Saved;

const TOLERANCE: Parameter = Parameter {
    name: "tolerance",
    value_name: "LOSS",
    about: "how far above the others a source's mean loss may lie before it counts for nothing",
    default: Some(1.0),
    range: Range::Above(0.0),
    audience: Audience::Everybody,
};
const WORKERS: Parameter = Parameter {
    name: "workers",
    value_name: "N",
    about: "clients share so many optimisers, whose moments live on from round to round",
    default: Some(1.0),
    range: Range::Whole(1),
    audience: Audience::Recipes,
};

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "arfl"
    }

    fn about(&self) -> &'static str {
        "Sources train apart and are averaged, those with high losses not at all"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let tolerance = method.number(&TOLERANCE);
        format!(
            "sources are trained on apart and averaged; one whose loss is {tolerance} above the others counts for nothing"
        )
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[TOLERANCE, WORKERS]
    }

    fn weighs(&self) -> Weighs {
        Weighs::Sources
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(Box::new(Arfl::new(start)))
    }
}

pub(super) struct Arfl {
    /// λ over the number of rows.
    tolerance: f64,
    clients: BTreeMap<u32, Client>,
    /// Client number i, in the order of the sources, trains with optimiser i mod their number.
    optimisers: Vec<Optimiser>,
    round: Round,
    guards: Guards,
    device: Device,
}

struct Client {
    worker: usize,
    rows: Vec<u32>,
    /// How far its last loss was below the limit; its share in the average goes with it.
    slack: f64,
}

/// What there is of a round that has begun.
#[derive(Default)]
struct Round {
    client: Option<u32>,
    /// The network that every client starts from.
    start: Vec<parameters::Parameter>,
    /// The average of the clients so far.
    sum: Vec<parameters::Parameter>,
}

#[derive(Serialize, Deserialize)]
struct State {
    client: Option<u32>,
}

impl Arfl {
    pub(super) fn new(start: Start<'_, '_>) -> Self {
        let Start { method, config, learner } = start;
        let tolerance = method.number(&TOLERANCE);
        let workers = (method.number(&WORKERS) as usize).max(1);
        let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &row in learner.train() {
            rows.entry(learner.data.sources[row as usize]).or_default().push(row);
        }
        let clients: BTreeMap<u32, Client> = rows
            .into_iter()
            .enumerate()
            .map(|(place, (source, rows))| {
                (source, Client { worker: place % workers, rows, slack: tolerance })
            })
            .collect();
        let device = learner.device.clone().inner();
        let optimiser = |_| Optimiser::new(config.optimiser, &learner.network);
        let optimisers = (0..workers.min(clients.len())).map(optimiser).collect();
        let (round, guards) = (Round::default(), method.guards().clone());
        Self { tolerance, clients, optimisers, round, guards, device }
    }

    /// The client that trained last has trained: it goes into the average, and the next one starts over.
    fn change(&mut self, next: Option<u32>, learner: &mut Learner<'_>) -> Result<(), TrainError> {
        if let Some(last) = self.round.client {
            self.swap_optimiser(last, learner);
            let share = self.share(last);
            let trained = read(&learner.network);
            for sum in &mut self.round.sum {
                // By name: arrays from a checkpoint come in another order.
                let trained = find(&trained, &sum.name, &sum.shape)?;
                for (sum, value) in sum.values.iter_mut().zip(&trained.values) {
                    *sum += share as f32 * value;
                }
            }
        } else {
            self.round.start = read(&learner.network);
            self.round.sum = self.round.start.clone();
            self.round.sum.iter_mut().for_each(|array| array.values.fill(0.0));
        }
        if let Some(next) = next {
            learner.network = write(learner.network.clone(), &self.round.start)?;
            self.swap_optimiser(next, learner);
        }
        self.round.client = next;
        Ok(())
    }

    fn swap_optimiser(&mut self, client: u32, learner: &mut Learner<'_>) {
        let worker = self.clients.get(&client).map_or(0, |client| client.worker);
        std::mem::swap(&mut learner.optimiser, &mut self.optimisers[worker]);
    }

    /// α of a client over the sum of all.
    fn share(&self, source: u32) -> f64 {
        let alpha = |client: &Client| client.rows.len() as f64 * client.slack;
        let all: f64 = self.clients.values().map(alpha).sum();
        self.clients.get(&source).map_or(0.0, alpha) / all
    }
}

/// How far each client lies below the limit η: 0 for those above it. Clients are numbers of rows and mean losses.
///
/// The limit is the highest mean over the p clients with the lowest losses, plus λ over their rows, that still lies
/// above the loss of the p-th.
fn slacks(clients: &[(usize, f64)], tolerance: f64) -> Vec<f64> {
    let total: usize = clients.iter().map(|(rows, _)| rows).sum();
    let lambda = tolerance * total as f64;
    let mut order: Vec<usize> = (0..clients.len()).collect();
    order.sort_by(|&a, &b| clients[a].1.total_cmp(&clients[b].1));
    let (mut rows, mut losses, mut limit) = (0.0, 0.0, f64::NEG_INFINITY);
    for &place in &order {
        let (own, loss) = clients[place];
        rows += own as f64;
        losses += own as f64 * loss;
        let with = (losses + lambda) / rows;
        if with.is_nan() || with < loss {
            break;
        }
        limit = with;
    }
    clients.iter().map(|(_, loss)| (limit - loss).max(0.0)).collect()
}

impl Method for Arfl {
    fn batches(&self, order: &[u32], size: usize, sources: &[u32]) -> Vec<Vec<u32>> {
        let mut place = BTreeMap::new();
        let mut clients: Vec<Vec<u32>> = Vec::new();
        for &row in order {
            let at = *place.entry(sources[row as usize]).or_insert_with(|| {
                clients.push(Vec::new());
                clients.len() - 1
            });
            clients[at].push(row);
        }
        clients.iter().flat_map(|rows| rows.chunks(size)).map(<[u32]>::to_vec).collect()
    }

    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let client = batch.sources.first().copied();
        if self.round.client != client {
            self.change(client, learner)?;
        }
        let pass = learner.forward(batch)?;
        let weights = vec![1.0; batch.len()];
        let (seen, loss) = (pass.seen.clone(), pass.mean(&weights));
        learner.descend(pass, loss, batch.pace)?;
        let weight = client.map_or(1.0, |client| self.standing(client).weight);
        Ok(Seen { losses: seen, weights: vec![weight; batch.len()] })
    }

    fn end_epoch(&mut self, learner: &mut Learner<'_>, _: usize) -> Result<(), TrainError> {
        self.change(None, learner)?;
        learner.network = write(learner.network.clone(), &self.round.sum)?;
        self.round = Round::default();
        let judge = |client: &Client| -> Result<(usize, f64), TrainError> {
            let losses = learner.losses(&client.rows)?;
            let sum: f64 = losses.iter().map(|&loss| f64::from(loss)).sum();
            let mean = sum / losses.len() as f64;
            Ok((losses.len(), if mean.is_nan() { f64::INFINITY } else { mean }))
        };
        let judged = self.clients.values().map(judge).collect::<Result<Vec<_>, _>>()?;
        let slacks = slacks(&judged, self.tolerance);
        // Nobody below the limit: no finite loss at all, which the loop reports.
        let best = slacks.iter().copied().fold(0.0, f64::max);
        if best > 0.0 {
            for ((&source, client), slack) in self.clients.iter_mut().zip(slacks) {
                // Weights are slacks beside the best, and the guards are about weights.
                let guarded = self.guards.weight(source, slack / best);
                client.slack = if guarded == slack / best { slack } else { guarded * best };
            }
        }
        Ok(())
    }

    /// A source weighs as much as a row of it counts in the average, compared with a row of the best source.
    fn standing(&self, source: u32) -> Standing {
        let best = self.clients.values().map(|client| client.slack).fold(0.0, f64::max);
        let weight = self.clients.get(&source).map_or(1.0, |client| client.slack / best);
        Standing { unreliability: 0, weight }
    }

    fn save(&self) -> Result<Saved, MethodError> {
        let slacks = self.clients.values().map(|client| client.slack).collect();
        let state = serde_json::to_value(State { client: self.round.client })?;
        let arrays = |arrays: &Vec<parameters::Parameter>| Saved {
            arrays: arrays.clone(),
            ..Saved::default()
        };
        let mut saved = Saved::default()
            .with("state", Saved::of(state).with_values("slack", slacks))
            .with("start", arrays(&self.round.start))
            .with("sum", arrays(&self.round.sum));
        for (worker, optimiser) in self.optimisers.iter().enumerate() {
            saved = saved.with(&format!("optimiser{worker}"), optimiser.save());
        }
        Ok(saved)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        let own = saved.part("state");
        let state = State::deserialize(own.state()).map_err(MethodError::from)?;
        let slacks = own.values("slack")?;
        if slacks.len() != self.clients.len() {
            return Err(TrainError::OtherRun);
        }
        for (client, slack) in self.clients.values_mut().zip(slacks) {
            client.slack = *slack;
        }
        let (start, sum) = (saved.part("start").arrays, saved.part("sum").arrays);
        self.round = Round { client: state.client, start, sum };
        for (worker, optimiser) in self.optimisers.iter_mut().enumerate() {
            optimiser.load(&saved.part(&format!("optimiser{worker}")), &self.device)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_far_above_the_others_has_no_slack() {
        // With λ = N = 40: limits 1 + 40/10 = 5, 1.05 + 2, 1.1 + 4/3, then (33 + 40 + 60)/40 = 3.325 < 6: dropped.
        let found = slacks(&[(10, 1.0), (10, 1.2), (10, 1.1), (10, 6.0)], 1.0);
        let limit = 1.1 + 40.0 / 30.0;
        for (found, expected) in found.iter().zip([limit - 1.0, limit - 1.2, limit - 1.1, 0.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        // All alike: everybody as far below as λ says.
        let even = slacks(&[(3, 2.0), (7, 2.0)], 1.0);
        assert!(even.iter().all(|slack| (slack - 1.0).abs() < 1e-12), "{even:?}");
        assert_eq!(slacks(&[(5, 1.0), (5, f64::INFINITY)], 1.0)[1], 0.0);
        assert_eq!(slacks(&[(5, f64::INFINITY)], 1.0), [0.0]);
    }
}
