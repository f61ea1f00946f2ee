//! Batches: rows gathered on the host, the next one while the current one trains.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc::sync_channel;

use burn::tensor::Device;
use lapwing_sample::{Data, TargetSpec, Targets, View};

use crate::error::TrainError;
use crate::loss::BatchTargets;
use crate::network::Input;
use crate::optimiser::Pace;
use crate::shards::Workers;

/// The rows of one step, or those of them that are this worker's.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Steps before this one.
    pub step: u64,
    /// Epochs before this one.
    pub epoch: usize,
    /// How fast the step goes.
    pub pace: Pace,
    /// The rows.
    pub rows: Vec<u32>,
    /// The source of each row.
    pub sources: Vec<u32>,
    /// The class of each row as this step sees it; empty where targets are values.
    pub labels: Vec<u32>,
    /// The shards that have rows; one, unless there are several of a batch.
    pub(crate) parts: Vec<Part>,
}

/// One shard of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Which of the shards of the whole batch.
    pub(crate) shard: usize,
    /// Where its rows are among those of the batch.
    pub(crate) rows: Range<usize>,
    pub(crate) input: Input,
    /// The same rows after AugMix, for methods that want two views.
    pub(crate) second: Option<Input>,
    pub(crate) targets: BatchTargets,
}

impl Batch {
    /// Gathers what this worker has of a batch, in so many views.
    pub(crate) fn gather(
        data: &Data<'_>,
        target: &TargetSpec,
        mut rows: Vec<u32>,
        (step, epoch, pace): (u64, usize, Pace),
        workers: Workers<'_>,
        (seed, views): (u64, usize),
        device: &Device,
    ) -> Result<Self, TrainError> {
        let (whole, own) = (rows.len(), workers.own_rows(rows.len()));
        // Noise is drawn for the batch as a whole.
        let mut labels = data.labels(step, &rows)?;
        if own.len() < whole {
            rows = rows[own.clone()].to_vec();
            labels = labels.get(own.clone()).unwrap_or_default().to_vec();
        }
        let view = match data.samples.augments() {
            true => View::Augmented { seed, step, copy: 0 },
            false => View::Plain,
        };
        let part = |shard: usize| -> Result<Option<Part>, TrainError> {
            let range = workers.rows_of(shard, whole);
            let range = range.start - own.start..range.end - own.start;
            if range.is_empty() {
                return Ok(None);
            }
            let some = &rows[range.clone()];
            let targets = match data.targets {
                Targets::Classes { .. } => {
                    BatchTargets::classes(labels[range.clone()].iter().copied(), device)
                }
                Targets::Values(_) => BatchTargets::of(data.targets, target, some, device)?,
            };
            let input = Input::gather(data.samples, some, view, device)?;
            let second =
                (views > 1).then(|| Input::augmix(data.samples, some, (seed, step), device));
            let second = second.transpose()?;
            Ok(Some(Part { shard, rows: range, input, second, targets }))
        };
        let parts = workers.own().filter_map(|shard| part(shard).transpose());
        let parts = parts.collect::<Result<_, _>>()?;
        let sources = rows.iter().map(|&row| data.sources[row as usize]).collect();
        Ok(Self { step, epoch, pace, rows, sources, labels, parts })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Numbers per batch from which gathering it on another thread is worth the handing over.
const WORTH_A_THREAD: usize = 1 << 15;

/// Calls `consume` with every batch in order until it breaks. Large batches are gathered on another thread, one ahead.
pub(crate) fn feed<E: Send>(
    batches: Vec<Vec<u32>>,
    numbers: usize,
    gather: impl Fn(usize, Vec<u32>) -> Result<Batch, E> + Send,
    mut consume: impl FnMut(Batch) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<()>, E> {
    let batches = batches.into_iter().enumerate();
    if numbers < WORTH_A_THREAD {
        for (place, rows) in batches {
            if consume(gather(place, rows)?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        return Ok(ControlFlow::Continue(()));
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        scope.spawn(move || {
            for (place, rows) in batches {
                let batch = gather(place, rows);
                let failed = batch.is_err();
                // Nobody wants the rest of a run that ended.
                if sender.send(batch).is_err() || failed {
                    break;
                }
            }
        });
        // By value, so that it is gone, and the thread with it, when this ends early.
        for batch in receiver {
            if consume(batch?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}
