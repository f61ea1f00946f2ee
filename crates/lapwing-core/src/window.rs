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
/// The older part is summarised by the suffix at the cursor and the newer one by `newer`, so mean
/// and variance take one merge of the two. A loss that is overwritten is in neither: nothing of it
/// remains. When a round is complete the suffixes are computed anew, H steps' worth of work every
/// H steps.
///
/// In the first round there is nothing older, and the ring holds losses alone: where there are a
/// million sources, few of them get any further. From then on a loss and the suffix that starts at
/// it lie side by side, so that a step touches one place in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Losses; after the first round, loss, mean and squares of each place.
    ring: Vec<f64>,
    cursor: usize,
    newer: Spread,
}

/// Numbers of a place after the first round.
const PLACE: usize = 3;
/// Losses that there is room for at first, as many as fit into the smallest piece of memory there is, and then: pieces that
/// grow little by little leave holes behind that nobody can use.
const ROOM: (usize, usize) = (3, 32);

impl Window {
    pub(crate) fn push(&mut self, loss: f64, history_length: usize) {
        if self.cursor == history_length {
            self.begin_round();
        }
        if self.is_first_round() {
            if self.ring.capacity() == self.cursor {
                let room = if self.cursor == 0 { ROOM.0 } else { ROOM.1.max(4 * self.cursor) };
                self.ring.reserve_exact(room.min(history_length) - self.cursor);
            }
            self.ring.push(loss);
        } else {
            self.ring[PLACE * self.cursor] = loss;
        }
        self.cursor += 1;
        self.newer = self.newer.with(loss, self.cursor);
    }

    /// A number at the place that [`mean_and_variance`](Self::mean_and_variance) will look at
    /// after the next [`push`](Self::push).
    pub(crate) fn peek(&self) -> f64 {
        self.ring.get(PLACE * (self.cursor + 1) + 1).copied().unwrap_or(0.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    pub(crate) fn is_complete(&self, history_length: usize) -> bool {
        self.count() == history_length
    }

    /// Mean and population variance of the losses held; 0 and 0 when there are none.
    pub(crate) fn mean_and_variance(&self) -> (f64, f64) {
        let per_loss = 1.0 / self.count().max(1) as f64;
        let Some(older) = self.older() else {
            return (self.newer.mean, self.newer.squares * per_loss);
        };
        let share = self.cursor as f64 * per_loss;
        let difference = self.newer.mean - older.mean;
        let mean = older.mean + difference * share;
        let variance = (older.squares + self.newer.squares) * per_loss
            + difference * difference * share * (1.0 - share);
        (mean, variance)
    }

    /// −log of the mean of e^−loss over the losses held; 0 when there are none.
    ///
    /// Losses are taken above the least of them, so that nothing overflows and at least one term counts
    /// in full; and what the others lack of it is summed, so that nearly equal losses keep their digits.
    pub(crate) fn evidence(&self) -> f64 {
        let losses = || self.ring.iter().step_by(self.stride()).copied();
        let Some(least) = losses().reduce(f64::min) else { return 0.0 };
        let lacking: f64 = losses().map(|loss| libm::expm1(least - loss)).sum();
        least - libm::log1p(lacking / self.count() as f64)
    }

    fn is_first_round(&self) -> bool {
        self.cursor == self.ring.len()
    }

    /// Numbers from one loss to the next.
    fn stride(&self) -> usize {
        if self.is_first_round() { 1 } else { PLACE }
    }

    /// How many losses are held.
    fn count(&self) -> usize {
        if self.is_first_round() { self.cursor } else { self.ring.len() / PLACE }
    }

    /// The losses of the last round, if there are any left.
    fn older(&self) -> Option<Spread> {
        match self.ring.get(PLACE * self.cursor..)? {
            &[_, mean, squares, ..] => Some(Spread { mean, squares }),
            _ => None,
        }
    }

    /// Summarises the ring from each place to its end, and goes back to its beginning.
    fn begin_round(&mut self) {
        if self.is_first_round() {
            let mut places = Vec::with_capacity(PLACE * self.ring.len());
            places.extend(self.ring.iter().flat_map(|&loss| [loss, 0.0, 0.0]));
            self.ring = places;
        }
        let mut spread = Spread::default();
        for (at, place) in self.ring.chunks_exact_mut(PLACE).rev().enumerate() {
            spread = spread.with(place[0], at + 1);
            (place[1], place[2]) = (spread.mean, spread.squares);
        }
        self.cursor = 0;
    }

    /// The losses from the oldest to the newest, and how many of them were written in this round:
    /// enough to rebuild the window to the last bit.
    pub(crate) fn save(&self) -> (Vec<f64>, usize) {
        let stride = self.stride();
        let (newer, older) = self.ring.split_at(stride * self.cursor);
        (
            older.iter().step_by(stride).chain(newer.iter().step_by(stride)).copied().collect(),
            self.cursor,
        )
    }

    /// The inverse of [`save`](Self::save); `None` where `cursor` cannot be.
    pub(crate) fn restore(losses: &[f64], cursor: usize, history_length: usize) -> Option<Self> {
        let count = losses.len();
        let possible = if count < history_length {
            cursor == count
        } else {
            count == history_length && (1..=count).contains(&cursor)
        };
        if !possible {
            return None;
        }
        let (older, newer) = losses.split_at(count - cursor);
        let ring = newer.iter().chain(older).copied().collect();
        let mut window = Self { ring, cursor: count, newer: Spread::default() };
        if cursor < count {
            window.begin_round();
            window.cursor = cursor;
        }
        for (at, &loss) in newer.iter().enumerate() {
            window.newer = window.newer.with(loss, at + 1);
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
                let restored = Window::restore(&saved, cursor, history_length).unwrap();
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

    fn evidence(losses: &[f64]) -> f64 {
        let mut window = Window::default();
        losses.iter().for_each(|loss| window.push(*loss, losses.len()));
        window.evidence()
    }

    proptest! {
        #[test]
        fn evidence_is_minus_the_logarithm_of_the_mean_likelihood(
            losses in prop::collection::vec(-20.0..20.0f64, 1..60),
        ) {
            let likelihoods: f64 = losses.iter().map(|loss| (-loss).exp()).sum();
            let slow = -(likelihoods / losses.len() as f64).ln();
            let ours = evidence(&losses);
            prop_assert!((ours - slow).abs() < 1e-12 * (1.0 + slow.abs()), "{} is not {}", ours, slow);
            // Jensen: never above the mean, never below the least.
            let (mean, _) = two_pass(&losses);
            let least = losses.iter().copied().reduce(f64::min).unwrap();
            prop_assert!(least <= ours && ours <= mean + 1e-12);
        }
    }

    // from decimal import *; getcontext().prec = 50
    // e = lambda v: -(sum((-Decimal(x)).exp() for x in v) / len(v)).ln()
    #[test]
    fn evidence_neither_overflows_nor_loses_its_digits() {
        // e([800, 801, 802]), e([-800, -801]): e^±800 is no f64.
        assert!((evidence(&[800.0, 801.0, 802.0]) - 800.691_006_324_223_7).abs() < 1e-12);
        assert!((evidence(&[-800.0, -801.0]) + 800.620_114_506_958_3).abs() < 1e-12);
        // Two losses of which one is out of the world: the other, half as likely.
        assert!((evidence(&[0.5, 1e150]) - (0.5 + 2f64.ln())).abs() < 1e-15);
        assert_eq!(evidence(&[-1e150, 1e150]), -1e150);
        // Losses that differ by 2⁻³⁰: half of it above the least, less 2⁻⁶³.
        let step = 2f64.powi(-30);
        assert!((evidence(&[0.0, step]) - (step / 2.0 - step * step / 8.0)).abs() < 1e-23);
        assert_eq!((evidence(&[0.1; 7]), evidence(&[])), (0.1, 0.0));
    }

    #[test]
    fn a_window_that_is_not_full_holds_its_losses_and_nothing_else() {
        let mut window = Window::default();
        for held in 1..=25 {
            window.push(0.5, 25);
            assert_eq!(window.ring.capacity(), if held <= 3 { 3 } else { 25 }, "{held}");
        }
        window.push(0.5, 25);
        assert_eq!((window.ring.capacity(), window.count(), window.cursor), (75, 25, 1));
    }

    #[test]
    fn impossible_cursors_are_refused() {
        assert!(Window::restore(&[1.0, 2.0], 1, 3).is_none());
        assert!(Window::restore(&[1.0, 2.0], 0, 2).is_none());
        assert!(Window::restore(&[1.0, 2.0], 3, 2).is_none());
        assert!(Window::restore(&[1.0, 2.0, 3.0], 3, 2).is_none());
        assert!(Window::restore(&[], 0, 2).is_some());
    }
}
