//! A run into a checkpoint and out of it.

use crate::checkpoint::{Checkpoint, CheckpointDir, CheckpointError};
use crate::error::TrainError;
use crate::observer::Observer;
use crate::parameters::write;
use crate::saved::Saved;
use crate::train::{Progress, Trainer};

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
    /// Goes on from the last checkpoint in `directory`, if there is one and it is of the same data and configuration. Of
    /// several workers the first reads it and tells the others.
    pub fn resume(
        &mut self,
        directory: &CheckpointDir,
        observer: &mut dyn Observer,
    ) -> Result<Resumed, TrainError> {
        self.check_that_workers_agree()?;
        let Some(found) = directory.load_among(self.learner.workers.peers)? else {
            return Ok(Resumed::Fresh);
        };
        let Checkpoint { fingerprint, progress, parts, observer: gathered } = found.checkpoint;
        let ours = self.fingerprint()?;
        // A cursor behind the last batch would never reach the end of its epoch.
        if fingerprint.run != ours.run || progress.batch >= self.batches() {
            return Err(TrainError::OtherRun);
        }
        if fingerprint.features != ours.features {
            return Err(TrainError::OtherFeatures);
        }
        self.learner.load(&parts.part("learner"))?;
        self.method.load(&parts.part("method"))?;
        self.check_state(&progress)?;
        let best = parts.part("best").arrays;
        if !best.is_empty() {
            write(self.learner.network.clone(), &best)?;
            self.best = Some(best);
        }
        self.progress = progress;
        observer.load(&gathered).map_err(TrainError::Observer)?;
        let step = self.progress.step;
        Ok(match found.damaged {
            None => Resumed::At { step },
            Some(damaged) => Resumed::Fallback { step, damaged },
        })
    }

    /// Refuses a state that no run of these data comes to, however right its checksum is: what it holds becomes an index
    /// later on.
    fn check_state(&self, progress: &Progress) -> Result<(), TrainError> {
        let sources = self.learner.data.sources.iter().max().map_or(0, |&last| last as usize + 1);
        let mut named: Vec<u32> = self
            .method
            .lap()
            .map_or_else(Vec::new, |lap| lap.sources().map(|status| *status.source).collect());
        named.extend(progress.sources());
        if named.iter().any(|&source| source as usize >= sources) {
            return Err(TrainError::Contradiction("it names a source that the data does not have"));
        }
        let steps = (progress.epoch as u64).checked_mul(self.batches() as u64);
        let steps = steps.and_then(|steps| steps.checked_add(progress.batch as u64));
        if steps != Some(progress.step) || progress.epoch != progress.history.len() {
            return Err(TrainError::Contradiction("its steps and epochs do not agree"));
        }
        Ok(())
    }

    /// Saves the run as it is between two steps, the last one included. Of several workers the first does.
    pub fn save(
        &self,
        directory: &CheckpointDir,
        observer: &dyn Observer,
    ) -> Result<(), TrainError> {
        if self.learner.workers.peers.rank() == 0 {
            directory.save(&self.checkpoint(observer)?)?;
            // The image of a million sources takes 200 MB, which the next one would find torn by histories that have grown
            // in between.
            lapwing_ops::release_memory();
        }
        Ok(())
    }

    /// The run as it is between two steps.
    pub(crate) fn checkpoint(&self, observer: &dyn Observer) -> Result<Checkpoint, TrainError> {
        let arrays = self.best.clone().unwrap_or_default();
        let parts = Saved::default()
            .with("learner", self.learner.save())
            .with("method", self.method.save()?)
            .with("best", Saved { arrays, ..Saved::default() });
        Ok(Checkpoint {
            fingerprint: self.fingerprint()?.clone(),
            progress: self.progress.clone(),
            parts,
            observer: observer.save(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TrainConfig;
    use crate::device::DeviceName;
    use crate::method::MethodConfig;
    use crate::network::{Architecture, Init, MlpConfig};
    use crate::optimiser::OptimiserConfig;
    use crate::saved::Numbers;
    use crate::schedule::Schedule;
    use lapwing_sample::Loss;
    use lapwing_sample::{Data, Matrix, Targets};

    fn config(inputs: usize) -> TrainConfig {
        let mlp = MlpConfig {
            inputs,
            hidden: vec![2],
            outputs: 2,
            dropout: 0.0,
            squash: None,
            softmax: false,
            init: Init::Torch,
        };
        TrainConfig {
            seed: 0,
            architecture: Architecture::Mlp(mlp),
            loss: Loss::CrossEntropy,
            optimiser: OptimiserConfig::Adam { weight_decay: 0.0 },
            schedule: Schedule::Constant { learning_rate: 0.01 },
            batch_size: 1000,
            epochs: 3,
            patience: 3,
        }
    }

    #[test]
    fn a_checkpoint_that_names_a_source_that_does_not_exist_is_refused() {
        let rows = Matrix::new((0..16).map(|n| n as f32).collect(), 2).unwrap();
        let targets = Targets::Classes { labels: vec![0, 1, 0, 1, 0, 1, 0, 1], classes: 2 };
        let all: Vec<u32> = (0..8).collect();
        let sources = [0, 1, 2, 0, 1, 2, 0, 1];
        let (valid, relabel) = (&[][..], None);
        let data = Data {
            samples: &rows,
            targets: &targets,
            sources: &sources,
            train: &all,
            valid,
            relabel,
            items: None,
        };
        let lap = MethodConfig::named("lap").unwrap();
        let trainer = || Trainer::new(config(2), &lap, data, DeviceName::Cpu).unwrap();
        let mut one = trainer();
        one.run(&mut (), None).unwrap();
        let mut checkpoint = one.checkpoint(&()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let place = CheckpointDir::new(directory.path());
        place.save(&checkpoint).unwrap();
        assert!(trainer().resume(&place, &mut ()).is_ok());
        for column in &mut checkpoint.parts.columns {
            if let ("method.source", Numbers::Counts(sources)) =
                (column.name.as_str(), &mut column.numbers)
            {
                *sources = vec![0, 77, 2].into();
            }
        }
        place.save(&checkpoint).unwrap();
        let said = trainer().resume(&place, &mut ()).unwrap_err().to_string();
        assert!(said.contains("names a source that the data does not have"), "{said}");
    }

    #[test]
    fn many_sources_did_not_fit_into_the_header_of_a_checkpoint() {
        let rows = Matrix::new((0..5000).map(|n| n as f32).collect(), 1).unwrap();
        let targets = Targets::Classes { labels: vec![0; 5000], classes: 2 };
        let all: Vec<u32> = (0..5000).collect();
        let (train, valid) = all.split_at(4000);
        let data = Data {
            samples: &rows,
            targets: &targets,
            sources: &all,
            train,
            valid,
            relabel: None,
            items: None,
        };
        for method in ["lap", "standard", "noise-rate", "group-dro"] {
            let method = MethodConfig::named(method).unwrap();
            let mut trainer = Trainer::new(config(1), &method, data, DeviceName::Cpu).unwrap();
            trainer.run(&mut (), None).unwrap();
            let directory = tempfile::tempdir().unwrap();
            let place = CheckpointDir::new(directory.path());
            place.save(&trainer.checkpoint(&()).unwrap()).unwrap();
            let bytes = std::fs::read(&place.files()[0]).unwrap();
            let header = u64::from_le_bytes(*bytes.first_chunk().unwrap());
            assert!(header < 10_000, "{header} bytes of {}", bytes.len());
            let state = trainer.method.save().unwrap().state.to_string();
            assert!(state.len() < 2_000, "{state}");
        }
    }
}
