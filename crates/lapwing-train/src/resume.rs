//! A run into a checkpoint and out of it.

use crate::checkpoint::{Checkpoint, CheckpointDir, CheckpointError, State};
use crate::error::TrainError;
use crate::observer::Observer;
use crate::parameters::{read, write};
use crate::train::Trainer;

/// How a resumed run starts.
#[derive(Debug)]
pub enum Resumed {
    /// There was no checkpoint: from the beginning.
    Fresh,
    /// From the last checkpoint.
    At {
        /// Steps already done.
        step: u64,
    },
    /// From the checkpoint before the last, because the last is damaged.
    Fallback {
        /// Steps already done.
        step: u64,
        /// What is wrong with the last.
        damaged: CheckpointError,
    },
}

impl Trainer<'_> {
    /// Goes on from the last checkpoint in `directory`, if there is one and it is of the same data and configuration.
    pub fn resume(
        &mut self,
        directory: &CheckpointDir,
        observer: &mut dyn Observer,
    ) -> Result<Resumed, TrainError> {
        let Some(found) = directory.load()? else {
            return Ok(Resumed::Fresh);
        };
        let Checkpoint { state, network, optimiser, best, observer: gathered } = found.checkpoint;
        // A cursor behind the last batch would never reach the end of its epoch.
        if state.fingerprint != self.fingerprint || state.progress.batch >= self.batches() {
            return Err(TrainError::OtherRun);
        }
        self.network = write(self.network.clone(), &network)?;
        self.optimiser.load(&optimiser, &self.device.clone().inner())?;
        self.method.load(state.method)?;
        if let Some(best) = &best {
            write(self.network.clone(), best)?;
        }
        self.best = best;
        self.progress = state.progress;
        observer.load(&gathered).map_err(TrainError::Observer)?;
        let step = self.progress.step;
        Ok(match found.damaged {
            None => Resumed::At { step },
            Some(damaged) => Resumed::Fallback { step, damaged },
        })
    }

    /// The run as it is between two steps.
    pub(crate) fn checkpoint(&self, observer: &dyn Observer) -> Result<Checkpoint, TrainError> {
        Ok(Checkpoint {
            state: State::new(self.fingerprint.clone(), self.progress.clone(), self.method.save()?),
            network: read(&self.network),
            optimiser: self.optimiser.save(),
            best: self.best.clone(),
            observer: observer.save(),
        })
    }
}
