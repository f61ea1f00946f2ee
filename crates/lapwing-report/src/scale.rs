//! From values to places on an axis.
//!
//! Pictures are drawn in a box of 1000 × 1000 that the page stretches to its width, so that lines follow the screen
//! while text keeps its size. Everything that leaves this file is finite.

use serde::Serialize;

use crate::number;

/// Side of the box in which lines are drawn.
pub(crate) const BOX: f64 = 1000.0;

/// An axis from `low` to `high`, both finite, `low < high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tick {
    /// Place along the axis in per cent, such as `12.5%`.
    pub(crate) at: String,
    pub(crate) text: String,
}

impl Scale {
    /// The axis that holds all finite values; `None` when there are none.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (low, high) = values
            .into_iter()
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        (low <= high).then(|| Self::new(low, high))
    }

    /// An axis between two values, widened when they coincide or are too far apart for arithmetic.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        const LIMIT: f64 = 1e300;
        let (low, high) = (low.clamp(-LIMIT, LIMIT), high.clamp(-LIMIT, LIMIT));
        let slack = (low.abs().max(high.abs()) * 1e-9).max(1e-300);
        if high - low > slack {
            return Self { low, high };
        }
        let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
        Self { low: low - margin, high: high + margin }
    }

    /// The axis widened so that it begins and ends on a round number.
    pub(crate) fn rounded(self, marks: usize) -> Self {
        let step = self.step(marks);
        let (low, high) = ((self.low / step).floor() * step, (self.high / step).ceil() * step);
        if low.is_finite() && high.is_finite() { Self::new(low, high) } else { self }
    }

    /// The axis begun at zero where it begins just above, as steps do.
    pub(crate) fn begun_at_zero(self) -> Self {
        if self.low > 0.0 && self.low < 0.02 * self.high { Self { low: 0.0, ..self } } else { self }
    }

    pub(crate) fn high(self) -> f64 {
        self.high
    }

    /// Place of a value as a share of the axis, kept within it.
    pub(crate) fn share(self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// Whether the axis reaches a value.
    pub(crate) fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn step(self, marks: usize) -> f64 {
        let rough = (self.high - self.low) / marks.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = match rough / power {
            r if r <= 1.0 => power,
            r if r <= 2.0 => 2.0 * power,
            r if r <= 5.0 => 5.0 * power,
            _ => 10.0 * power,
        };
        if step.is_normal() { step } else { rough }
    }

    /// Round marks, about `marks` of them, from low to high.
    fn marks(self, marks: usize) -> Vec<(f64, f64)> {
        let step = self.step(marks);
        let first = (self.low / step - 1e-9).ceil();
        (0..=2 * marks + 2)
            .map(|i| ((first + i as f64) * step, step))
            .take_while(|(value, _)| *value <= self.high + step * 1e-9)
            .filter(|(value, _)| value.is_finite())
            .collect()
    }

    /// Marks along the bottom.
    pub(crate) fn ticks_across(self, marks: usize) -> Vec<Tick> {
        self.marks(marks)
            .into_iter()
            .map(|(v, step)| Tick { at: at(self.share(v)), text: tick_text(v, step) })
            .collect()
    }

    /// Marks up the side; the page counts from the top.
    pub(crate) fn ticks_up(self, marks: usize) -> Vec<Tick> {
        let place = |v| at(1.0 - self.share(v));
        self.marks(marks)
            .into_iter()
            .map(|(v, step)| Tick { at: place(v), text: tick_text(v, step) })
            .collect()
    }
}

/// A share as the template writes it.
pub(crate) fn at(share: f64) -> String {
    format!("{}%", trimmed(share * 100.0))
}

/// At most two decimals, without trailing zeros.
pub(crate) fn trimmed(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn tick_text(value: f64, step: f64) -> String {
    // A sum of steps may miss zero by a rounding error.
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    if value != 0.0 && (value.abs() >= 1e6 || step < 1e-4) {
        return number::tick_power(value);
    }
    number::fixed(value, (-step.log10() + 1e-9).ceil().clamp(0.0, 4.0) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(low: f64, high: f64) -> Vec<String> {
        Scale::new(low, high).ticks_across(5).into_iter().map(|t| t.text).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(texts(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(1.0, 2000.0), ["500", "1,000", "1,500", "2,000"]);
        assert_eq!(texts(-0.3, 0.3), ["−0.2", "0.0", "0.2"]);
        assert_eq!(texts(0.0, 0.012), ["0.000", "0.005", "0.010"]);
    }

    #[test]
    fn an_axis_over_nothing_finite_does_not_exist() {
        assert_eq!(Scale::over([]), None);
        assert_eq!(Scale::over([f64::NAN, f64::INFINITY]), None);
        assert_eq!(Scale::over([f64::NAN, 1.0, 3.0]), Some(Scale { low: 1.0, high: 3.0 }));
    }

    #[test]
    fn an_axis_over_one_value_puts_it_in_the_middle() {
        for value in [0.0, 1.0, -5.0, 1e300, 1e-300] {
            assert!((Scale::new(value, value).share(value) - 0.5).abs() < 0.51, "{value}");
        }
        assert_eq!(Scale::new(2.0, 2.0).share(2.0), 0.5);
    }

    #[test]
    fn steps_are_counted_begun_at_zero_and_few_epochs_from_one() {
        assert_eq!(Scale::new(1.0, 2000.0).begun_at_zero(), Scale::new(0.0, 2000.0));
        assert_eq!(Scale::new(1.0, 10.0).begun_at_zero(), Scale::new(1.0, 10.0));
    }

    #[test]
    fn rounding_widens_to_the_next_tick() {
        assert_eq!(Scale::new(0.13, 0.87).rounded(5), Scale::new(0.0, 1.0));
    }

    proptest! {
        #[test]
        fn every_place_is_finite_and_on_the_axis(low: f64, high: f64, value: f64, marks in 1usize..12) {
            if let Some(scale) = Scale::over([low, high]) {
                for scale in [scale, scale.rounded(marks)] {
                    prop_assert!((0.0..=1.0).contains(&scale.share(value)));
                    let ticks = scale.ticks_across(marks);
                    prop_assert!(ticks.len() <= 2 * marks + 3);
                    for tick in ticks.iter().chain(&scale.ticks_up(marks)) {
                        let at: f64 = tick.at.trim_end_matches('%').parse().unwrap();
                        prop_assert!((0.0..=100.0).contains(&at), "{}", tick.at);
                        prop_assert!(!tick.text.contains("finite"));
                    }
                }
            }
        }
    }
}
