//! Panels: a frame with two axes into which values are drawn.

use crate::picture::{Anchor, Colour, FAINT, INK, Picture, Point};

/// A frame on a picture, with the range of values on both axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    /// Left, top, width, height.
    pub(crate) frame: [f64; 4],
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
}

impl Panel {
    /// The place of a value, kept within the frame.
    pub(crate) fn place(&self, x: f64, y: f64) -> Point {
        let share = |value: f64, (low, high): (f64, f64)| {
            let share = (value - low) / (high - low);
            if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
        };
        let [left, top, width, height] = self.frame;
        (left + width * share(x, self.x), top + height * (1.0 - share(y, self.y)))
    }

    /// Draws the frame and its title.
    pub(crate) fn frame(&self, picture: &mut Picture, title: &str) {
        let [left, top, width, height] = self.frame;
        let (right, bottom) = (left + width, top + height);
        let corners = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        picture.line(corners, FAINT, 1.0);
        picture.text((left + width / 2.0, top - 5.0), 10.0, Anchor::Middle, title);
    }

    /// Draws marks and their numbers up the side.
    pub(crate) fn marks_up(&self, picture: &mut Picture, marks: &[f64]) {
        for &mark in marks {
            let (x, y) = self.place(self.x.0, mark);
            picture.line(vec![(x - 3.0, y), (x, y)], INK, 1.0);
            picture.text((x - 5.0, y + 3.0), 8.0, Anchor::End, number(mark));
        }
    }

    /// Draws marks and their names along the bottom.
    pub(crate) fn marks_across(&self, picture: &mut Picture, marks: &[(f64, String)]) {
        for (mark, name) in marks {
            let (x, y) = self.place(*mark, self.y.0);
            picture.line(vec![(x, y), (x, y + 3.0)], INK, 1.0);
            picture.text((x, y + 12.0), 8.0, Anchor::Middle, name.clone());
        }
    }

    /// A line through values.
    pub(crate) fn line(&self, picture: &mut Picture, values: &[Point], colour: Colour) {
        let points = values.iter().map(|&(x, y)| self.place(x, y)).collect();
        picture.line(points, colour, 1.5);
    }
}

/// A short number: no zeros at the end.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// About `count` round numbers from low to high.
pub(crate) fn marks((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
    if !(rough > 0.0 && rough.is_finite()) {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = power
        * match rough / power {
            r if r <= 1.0 => 1.0,
            r if r <= 2.0 => 2.0,
            r if r <= 5.0 => 5.0,
            _ => 10.0,
        };
    let first = (low / step - 1e-9).ceil();
    (0..=2 * count + 2)
        .map(|at| (first + at as f64) * step)
        .take_while(|&mark| mark <= high + step * 1e-9)
        .collect()
}

/// The range of some values, with a little room; from 0 to 1 where there are none.
pub(crate) fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    let room = (0.06 * (high - low)).max(1e-9 + 1e-3 * high.abs());
    (low - room, high + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_in_the_frame_and_marks_are_round() {
        let panel = Panel { frame: [10.0, 20.0, 100.0, 50.0], x: (0.0, 10.0), y: (0.0, 1.0) };
        assert_eq!(panel.place(5.0, 1.0), (60.0, 20.0));
        assert_eq!(panel.place(-5.0, f64::NAN), (10.0, 70.0));
        assert_eq!(marks((0.0, 1.0), 4), [0.0, 0.5, 1.0]);
        assert_eq!(marks((61.0, 71.0), 5), [62.0, 64.0, 66.0, 68.0, 70.0]);
        assert_eq!(marks((1.0, 1.0), 4), [1.0]);
        assert_eq!([0.25, 1.0, -0.0].map(number), ["0.25", "1", "0"]);
        let (low, high) = range([1.0, f64::NAN, 2.0]);
        assert!(low < 1.0 && high > 2.0);
        assert_eq!(range([]), (0.0, 1.0));
    }
}
