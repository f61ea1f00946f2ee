//! Co-teaching: two networks, each of which learns from the rows on which the other has the lowest losses. Rows with
//! wrong labels have high losses before they are learnt by heart, and the two do not make the same mistakes.

use super::{
    Audience, Guards, Method, MethodConfig, MethodError, MethodKind, Parameter, Range, Seen, Start,
    Weighs,
};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::optimiser::Pace;
use crate::saved::Saved;

/// Adam's β₁ once the learning rate falls.
const LATE_BETA: f64 = 0.1;

const FORGET_RATE: Parameter = Parameter {
    name: "forget-rate",
    value_name: "SHARE",
    about: "share of each batch that is left out, from the tenth epoch on",
    default: Some(0.2),
    range: Range::Below(0.0, 1.0),
    audience: Audience::Everybody,
};
const RAMP_EPOCHS: Parameter = Parameter {
    name: "ramp-epochs",
    value_name: "N",
    about: "epochs over which the share that is left out grows from nothing",
    default: Some(10.0),
    range: Range::Whole(0),
    audience: Audience::Recipes,
};
const DECAY_FROM: Parameter = Parameter {
    name: "decay-from",
    value_name: "EPOCH",
    about: "epoch from which the learning rate falls to nothing at the last, and Adam's β₁ is 0.1",
    default: None,
    range: Range::Whole(0),
    audience: Audience::Recipes,
};
const DIVIDE_TWICE: Parameter = Parameter {
    name: "divide-twice",
    value_name: "YES",
    about: "divides the mean over the rows that are kept by their number again, as some of the experiments did",
    default: Some(0.0),
    range: Range::Switch,
    audience: Audience::Recipes,
};

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "co-teaching"
    }

    fn about(&self) -> &'static str {
        "Two networks choose the rows with low losses for each other"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let rate = method.number(&FORGET_RATE);
        format!("two networks leave out the {rate} of each batch with the highest losses")
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[FORGET_RATE, RAMP_EPOCHS, DECAY_FROM, DIVIDE_TWICE]
    }

    fn weighs(&self) -> Weighs {
        Weighs::Rows
    }

    fn networks(&self) -> usize {
        2
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        let end = start.config.epochs;
        let from = start.method.value(&DECAY_FROM).map(|from| from as usize);
        Ok(Box::new(CoTeaching {
            forget_rate: start.method.number(&FORGET_RATE),
            ramp_epochs: start.method.number(&RAMP_EPOCHS) as usize,
            decay: from.filter(|&from| from < end).map(|from| (from, end)),
            divide_twice: start.method.number(&DIVIDE_TWICE) == 1.0,
            guards: start.method.guards().clone(),
            second: start.network(1)?,
        }))
    }
}

pub(super) struct CoTeaching<'a> {
    pub(super) forget_rate: f64,
    pub(super) ramp_epochs: usize,
    /// Epoch from which the learning rate falls, and that at which it would be nothing.
    pub(super) decay: Option<(usize, usize)>,
    pub(super) divide_twice: bool,
    pub(super) guards: Guards,
    pub(super) second: Learner<'a>,
}

impl CoTeaching<'_> {
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

/// 1 for the rows with the lowest losses, those of trusted sources first and in any case, 0 for the others.
fn lowest(losses: &[f32], count: usize, trusted: impl Fn(usize) -> bool) -> Vec<f64> {
    let mut order: Vec<usize> = (0..losses.len()).filter(|&i| losses[i].is_finite()).collect();
    order.sort_by(|&a, &b| {
        trusted(b).cmp(&trusted(a)).then_with(|| losses[a].total_cmp(&losses[b]))
    });
    let always = order.iter().take_while(|&&i| trusted(i)).count();
    let mut chosen = vec![0.0; losses.len()];
    order.iter().take(count.max(always)).for_each(|&i| chosen[i] = 1.0);
    chosen
}

impl Method for CoTeaching<'_> {
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let trusted = |row: usize| self.guards.trusts(batch.sources[row]);
        let always = (0..batch.len()).filter(|&row| trusted(row)).count();
        let (kept, pace) = (self.kept(batch.epoch, batch.len()).max(always), self.pace(batch));
        let (one, two) = (learner.forward(batch)?, self.second.forward(batch)?);
        let (by_one, by_two) = (lowest(&one.seen, kept, trusted), lowest(&two.seen, kept, trusted));
        let divisor = if self.divide_twice { kept * kept } else { kept };
        let seen = one.seen.clone();
        let loss = one.sum(|shard| shard.losses.clone(), &by_two, divisor);
        learner.descend(one, loss, pace)?;
        let loss = two.sum(|shard| shard.losses.clone(), &by_one, divisor);
        self.second.descend(two, loss, pace)?;
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
        let chosen = |losses: &[f32], count| lowest(losses, count, |_| false);
        assert_eq!(chosen(&[3.0, f32::NAN, 1.0, 2.0], 2), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(chosen(&[f32::INFINITY, 1.0], 2), [0.0, 1.0]);
        assert_eq!(chosen(&[1.0, 1.0, 1.0], 2), [1.0, 1.0, 0.0]);
        assert_eq!(chosen(&[], 1), [0.0; 0]);
    }
    #[test]
    fn rows_of_trusted_sources_are_chosen_in_any_case() {
        let losses = [1.0, 9.0, 2.0, f32::NAN, 8.0];
        assert_eq!(lowest(&losses, 2, |row| row == 1), [1.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(lowest(&losses, 1, |row| matches!(row, 1 | 3 | 4)), [0.0, 1.0, 0.0, 0.0, 1.0]);
    }
}
