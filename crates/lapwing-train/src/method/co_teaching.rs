//! Co-teaching: two networks, each of which learns from the rows on which the other has the lowest losses. Rows with
//! wrong labels have high losses before they are learnt by heart, and the two do not make the same mistakes.

use super::{Method, MethodError, Seen};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::optimiser::Pace;
use crate::saved::Saved;

/// Adam's β₁ once the learning rate falls.
const LATE_BETA: f64 = 0.1;

pub(crate) struct CoTeaching<'a> {
    forget_rate: f64,
    ramp_epochs: usize,
    /// Epoch from which the learning rate falls, and that at which it would be nothing.
    decay: Option<(usize, usize)>,
    divide_twice: bool,
    second: Learner<'a>,
}

impl<'a> CoTeaching<'a> {
    pub(crate) fn new(
        (forget_rate, ramp_epochs): (f64, usize),
        decay: Option<(usize, usize)>,
        divide_twice: bool,
        second: Learner<'a>,
    ) -> Result<Self, MethodError> {
        if !(0.0..1.0).contains(&forget_rate) {
            return Err(MethodError::Parameter("the forget rate must be from 0 to below 1"));
        }
        Ok(Self { forget_rate, ramp_epochs, decay, divide_twice, second })
    }

    /// Rows of a batch that are kept in an epoch.
    pub(super) fn kept(&self, epoch: usize, rows: usize) -> usize {
        let rate = if epoch + 1 < self.ramp_epochs {
            epoch as f64 * (self.forget_rate / (self.ramp_epochs - 1) as f64)
        } else {
            self.forget_rate
        };
        (((1.0 - rate) * rows as f64) as usize).max(1)
    }

    pub(super) fn pace(&self, batch: &Batch) -> Pace {
        match self.decay {
            Some((from, end)) if batch.epoch >= from => {
                let left = end.saturating_sub(batch.epoch) as f64 / (end - from) as f64;
                Pace { rate: batch.pace.rate * left, beta1: LATE_BETA }
            }
            _ => batch.pace,
        }
    }
}

/// 1 for the rows with the lowest losses, 0 for the others.
fn lowest(losses: &[f32], count: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..losses.len()).filter(|&i| losses[i].is_finite()).collect();
    order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
    let mut chosen = vec![0.0; losses.len()];
    order.iter().take(count).for_each(|&i| chosen[i] = 1.0);
    chosen
}

impl Method for CoTeaching<'_> {
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let (kept, pace) = (self.kept(batch.epoch, batch.len()), self.pace(batch));
        let (one, two) = (learner.forward(batch)?, self.second.forward(batch)?);
        let (by_one, by_two) = (lowest(&one.seen, kept), lowest(&two.seen, kept));
        let divisor = if self.divide_twice { kept * kept } else { kept };
        let seen = one.seen.clone();
        let loss = one.sum(one.losses.clone(), &by_two, divisor);
        learner.descend(one, loss, pace);
        let loss = two.sum(two.losses.clone(), &by_one, divisor);
        self.second.descend(two, loss, pace);
        Ok(Seen { losses: seen, weights: by_two })
    }

    fn save(&self) -> Result<Saved, MethodError> {
        Ok(Saved::default().with("second", self.second.save()))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        self.second.load(&saved.part("second"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_finite_losses_are_chosen() {
        assert_eq!(lowest(&[3.0, f32::NAN, 1.0, 2.0], 2), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(lowest(&[f32::INFINITY, 1.0], 2), [0.0, 1.0]);
        assert_eq!(lowest(&[1.0, 1.0, 1.0], 2), [1.0, 1.0, 0.0]);
        assert_eq!(lowest(&[], 1), [0.0; 0]);
    }
}
