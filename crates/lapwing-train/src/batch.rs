//! Batches: rows gathered on the host, the next one while the current one trains.

use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

use burn::tensor::Device;
use lapwing_sample::{Data, TargetSpec, Targets, View};

use crate::error::TrainError;
use crate::loss::BatchTargets;
use crate::network::Input;
use crate::optimiser::Pace;

/// The rows of one step.
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
    pub(crate) input: Input,
    pub(crate) targets: BatchTargets,
}

impl Batch {
    pub(crate) fn gather(
        data: &Data<'_>,
        target: &TargetSpec,
        rows: Vec<u32>,
        (step, epoch, pace): (u64, usize, Pace),
        device: &Device,
    ) -> Result<Self, TrainError> {
        let labels = data.labels(step, &rows)?;
        let targets = match data.targets {
            Targets::Classes { .. } => BatchTargets::classes(labels.iter().copied(), device),
            Targets::Values(_) => BatchTargets::of(data.targets, target, &rows, device)?,
        };
        let sources = rows.iter().map(|&row| data.sources[row as usize]).collect();
        let input = Input::gather(data.samples, &rows, View::Plain, device)?;
        Ok(Self { step, epoch, pace, rows, sources, labels, input, targets })
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
