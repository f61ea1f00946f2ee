//! A series in the size of a word, against a typical one.

use std::fmt::Write;

use serde::Serialize;

/// Channels drawn, one above the other, and points of each.
const CHANNELS: usize = 3;
const POINTS: usize = 64;
/// The box that a channel is drawn into, and the room between two.
const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 26.0;
const GAP: f64 = 4.0;

/// Lines in a box.
#[derive(Serialize)]
pub(crate) struct Spark {
    width: f64,
    height: f64,
    /// Of each channel, the typical line and the row's own, as paths.
    lines: Vec<[String; 2]>,
}

impl Spark {
    /// Nothing where there is nothing to draw.
    pub(crate) fn new(own: &[Vec<f32>], typical: &[Vec<f32>]) -> Option<Self> {
        let none = Vec::new();
        let channel = |(place, own): (usize, &Vec<f32>)| {
            let typical = typical.get(place).unwrap_or(&none);
            drawn([typical, own], place as f64 * (HEIGHT + GAP))
        };
        let lines: Vec<[String; 2]> = own.iter().take(CHANNELS).enumerate().map(channel).collect();
        let count = lines.len() as f64;
        let height = count * HEIGHT + (count - 1.0).max(0.0) * GAP;
        (!lines.is_empty()).then_some(Self { width: WIDTH, height, lines })
    }
}

/// Two lines on the same axes, below `top`.
fn drawn(lines: [&Vec<f32>; 2], top: f64) -> [String; 2] {
    let points = |line: &Vec<f32>| -> Vec<(f64, f64)> {
        let points = line.iter().take(POINTS).enumerate();
        let points = points.map(|(x, &y)| (x as f64, f64::from(y)));
        points.filter(|(_, y)| y.is_finite()).collect()
    };
    let lines = lines.map(points);
    let (mut low, mut high, mut last) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
    for &(x, y) in lines.iter().flatten() {
        (low, high, last) = (low.min(y), high.max(y), last.max(x));
    }
    let across = WIDTH / last.max(1.0);
    let down = |y: f64| match high > low {
        true => (high - y) / (high - low) * HEIGHT,
        false => HEIGHT / 2.0,
    };
    lines.map(|line| {
        let mut path = String::new();
        for (place, (x, y)) in line.into_iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{:.0} {:.0}", x * across, top + down(y));
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_share_their_axes_and_stay_in_the_box() {
        let spark =
            Spark::new(&[vec![0.0, 1.0, 0.5], vec![5.0; 2]], &[vec![-1.0, 0.0, f32::NAN]]).unwrap();
        assert_eq!(spark.height, 56.0);
        assert_eq!(spark.lines[0], ["M0 26L80 13", "M0 13L80 0L160 6"]);
        assert_eq!(spark.lines[1], ["", "M0 43L160 43"]);
        assert!(Spark::new(&[], &[]).is_none());
        let long = Spark::new(&vec![vec![f32::MAX; 100_000]; 50], &[]).unwrap();
        let size: usize = long.lines.iter().flatten().map(String::len).sum();
        assert!(long.lines.len() == CHANNELS && size < 2_000, "{size}");
    }
}
