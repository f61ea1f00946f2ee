//! The last H batch-mean losses of one source.

use alloc::vec::Vec;

/// Mean and sum of squared deviations of some consecutive losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spread {
    mean: f64,
    squares: f64,
}

impl Spread {
    /// With one loss more, `count` of them in all (Welford's update).
    fn with(self, loss: f64, count: usize) -> Self {
        if count == 1 {
            return Self { mean: loss, squares: 0.0 };
        }
        let difference = loss - self.mean;
        let mean = self.mean + difference / count as f64;
        Self { mean, squares: self.squares + difference * (loss - mean) }
    }
}

/// A ring of losses that knows its mean and variance without ever subtracting a loss that leaves.
///
/// ```text
/// losses    n n n n n o o o o      n: newer, written in this round; o: older, of the last round
/// suffixes  · · · · · s s s s      s: mean and squares of the losses from here to the end
///                     ^ cursor     the next loss goes here
/// ```
///
/// The older part is summarised by `suffixes[cursor]` and the newer one by `newer`, so mean and
/// variance take one merge of the two. A loss that is overwritten is in neither: nothing of it
/// remains. When a round is complete the suffixes are computed anew, H steps' worth of work every
/// H steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    losses: Vec<f64>,
    suffixes: Vec<Spread>,
    cursor: usize,
    newer: Spread,
}

impl Window {
    pub(crate) fn push(&mut self, loss: f64, history_length: usize) {
        if self.cursor == history_length {
            self.start_round();
        }
        if self.losses.len() == self.cursor {
            if self.losses.capacity() == self.cursor {
                let more = self.cursor.max(4).min(history_length - self.cursor);
                self.losses.reserve_exact(more);
            }
            self.losses.push(loss);
        } else {
            self.losses[self.cursor] = loss;
        }
        self.cursor += 1;
        self.newer = self.newer.with(loss, self.cursor);
    }

    pub(crate) fn len(&self) -> usize {
        self.losses.len()
    }

    pub(crate) fn is_complete(&self, history_length: usize) -> bool {
        self.losses.len() == history_length
    }

    /// Mean and population variance of the losses held; 0 and 0 when there are none.
    pub(crate) fn mean_and_variance(&self) -> (f64, f64) {
        let count = self.losses.len();
        if self.cursor == count {
            return (self.newer.mean, self.newer.squares / count.max(1) as f64);
        }
        let older = self.suffixes[self.cursor];
        let share = self.cursor as f64 / count as f64;
        let difference = self.newer.mean - older.mean;
        let mean = older.mean + difference * share;
        let variance = (older.squares + self.newer.squares) / count as f64
            + difference * difference * share * (1.0 - share);
        (mean, variance)
    }

    fn start_round(&mut self) {
        let count = self.losses.len();
        self.suffixes.resize(count, Spread::default());
        self.fill_suffixes(0);
        self.cursor = 0;
        self.newer = Spread::default();
    }

    fn fill_suffixes(&mut self, from: usize) {
        let count = self.losses.len();
        let mut spread = Spread::default();
        for at in (from..count).rev() {
            spread = spread.with(self.losses[at], count - at);
            self.suffixes[at] = spread;
        }
    }

    /// The losses from the oldest to the newest, and how many of them are newer than the round's
    /// start: enough to rebuild the window to the last bit.
    pub(crate) fn save(&self) -> (Vec<f64>, usize) {
        let (newer, older) = self.losses.split_at(self.cursor);
        (older.iter().chain(newer).copied().collect(), self.cursor)
    }

    /// The inverse of [`save`](Self::save); `None` where `cursor` cannot be.
    pub(crate) fn restore(
        mut losses: Vec<f64>,
        cursor: usize,
        history_length: usize,
    ) -> Option<Self> {
        let count = losses.len();
        let possible = if count < history_length {
            cursor == count
        } else {
            count == history_length && (1..=count).contains(&cursor)
        };
        if !possible {
            return None;
        }
        losses.rotate_right(cursor);
        let mut newer = Spread::default();
        for (at, &loss) in losses[..cursor].iter().enumerate() {
            newer = newer.with(loss, at + 1);
        }
        let mut window = Self { losses, suffixes: Vec::new(), cursor, newer };
        if cursor < count {
            window.suffixes.resize(count, Spread::default());
            window.fill_suffixes(cursor);
        }
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn two_pass(losses: &[f64]) -> (f64, f64) {
        let n = losses.len() as f64;
        let mean = losses.iter().sum::<f64>() / n;
        (mean, losses.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
    }

    proptest! {
        #[test]
        fn mean_and_variance_are_those_of_the_last_losses(
            losses in prop::collection::vec(-1e3..1e3f64, 1..120),
            history_length in 1usize..12,
        ) {
            let mut window = Window::default();
            for (at, &loss) in losses.iter().enumerate() {
                window.push(loss, history_length);
                let held = &losses[(at + 1).saturating_sub(history_length)..=at];
                let ((mean, variance), (m, v)) = (window.mean_and_variance(), two_pass(held));
                prop_assert!((mean - m).abs() < 1e-10 && (variance - v).abs() < 1e-7);
                prop_assert!(variance >= 0.0);
                prop_assert_eq!(window.is_complete(history_length), held.len() == history_length);

                let (saved, cursor) = window.save();
                prop_assert_eq!(&saved, held);
                let restored = Window::restore(saved, cursor, history_length).unwrap();
                prop_assert_eq!(restored.mean_and_variance(), (mean, variance));
            }
        }
    }

    #[test]
    fn an_enormous_loss_leaves_no_trace_once_it_has_left() {
        let loss = |step: u32| 0.5 + 0.01 * f64::from(step % 10);
        let (mut spiked, mut calm) = (Window::default(), Window::default());
        for step in 0..100 {
            spiked.push(if step == 40 { 1e150 } else { loss(step) }, 25);
            calm.push(loss(step), 25);
            let same = spiked.mean_and_variance() == calm.mean_and_variance();
            assert_eq!(same, !(40..65).contains(&step), "step {step}");
        }
    }

    #[test]
    fn a_constant_loss_has_exactly_no_variance() {
        let mut window = Window::default();
        for _ in 0..60 {
            window.push(0.1, 7);
            assert_eq!(window.mean_and_variance(), (0.1, 0.0));
        }
    }

    #[test]
    fn impossible_cursors_are_refused() {
        assert!(Window::restore(Vec::from([1.0, 2.0]), 1, 3).is_none());
        assert!(Window::restore(Vec::from([1.0, 2.0]), 0, 2).is_none());
        assert!(Window::restore(Vec::from([1.0, 2.0]), 3, 2).is_none());
        assert!(Window::restore(Vec::from([1.0, 2.0, 3.0]), 3, 2).is_none());
        assert!(Window::restore(Vec::new(), 0, 2).is_some());
    }
}
