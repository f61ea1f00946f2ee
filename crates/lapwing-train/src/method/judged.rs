//! Any method, while the rule of LAP looks on: verdicts on sources without a say in their weights.

use lapwing_core::{Lap, LapConfig};

use super::lap::GuardedLap;
use super::{Guards, Method, MethodError, Observed, Seen, Standing};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::saved::Saved;

pub(crate) struct Judged<'a> {
    method: Box<dyn Method + 'a>,
    judge: GuardedLap,
}

impl<'a> Judged<'a> {
    pub(crate) fn new(method: Box<dyn Method + 'a>, rule: LapConfig) -> Result<Self, MethodError> {
        // At strength 0 every weight is 1: references are plain means over the other sources, as there is nobody whose
        // word counts less.
        let rule = LapConfig { depression_strength: 0.0, ..rule };
        Ok(Self { method, judge: GuardedLap::new(rule, Guards::default())? })
    }
}

impl Method for Judged<'_> {
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let seen = self.method.step(learner, batch)?;
        let sums = learner.sums.as_deref();
        self.judge.weigh(&Observed { sums, ..Observed::new(&seen.losses, &batch.sources) })?;
        Ok(seen)
    }

    fn is_candidate(&self, epoch: usize) -> bool {
        self.method.is_candidate(epoch)
    }

    fn batches(&self, order: &[u32], size: usize, sources: &[u32]) -> Vec<Vec<u32>> {
        self.method.batches(order, size, sources)
    }

    fn begin_epoch(&mut self, learner: &mut Learner<'_>, epoch: usize) -> Result<(), TrainError> {
        self.method.begin_epoch(learner, epoch)
    }

    fn end_epoch(&mut self, learner: &mut Learner<'_>, epoch: usize) -> Result<(), TrainError> {
        self.method.end_epoch(learner, epoch)
    }

    fn standing(&self, source: u32) -> Standing {
        Standing {
            unreliability: self.judge.standing(source).unreliability,
            weight: self.method.standing(source).weight,
        }
    }

    fn save(&self) -> Result<Saved, MethodError> {
        let (method, judge) = (self.method.save()?, self.judge.save()?);
        Ok(Saved::default().with("method", method).with("judge", judge))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        self.method.load(&saved.part("method"))?;
        self.judge.load(&saved.part("judge"))
    }

    fn lap(&self) -> Option<&Lap<u32>> {
        self.judge.lap()
    }
}
