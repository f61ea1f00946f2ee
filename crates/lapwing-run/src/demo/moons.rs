//! The toy data of the paper's Figure 4: two moons from five sources, of which four flip labels.

use lapwing_sample::{Draws, box_muller};

use super::Demonstration;

/// A twentieth of the paper's points: with all of them every method is right on 99.9 % of the test rows, because the
/// right labels outvote the wrong ones everywhere. With 100 rows a source there is little to outvote with, as in most
/// tables that people have, and what a network takes from a bad source shows.
const TRAINING_POINTS: usize = 500;
/// Many, so that a difference between the methods is not one of luck with the test rows.
const TEST_POINTS: usize = 10_000;
/// The paper's.
const NOISE: f64 = 0.1;

/// Share of flipped labels per source.
pub const DEMO_LEVELS: [f64; 5] = [0.0, 0.025, 0.05, 0.25, 1.0];

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moon {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Its source, an index into [`DEMO_LEVELS`].
    pub source: usize,
    /// The moon it says it is from.
    pub label: bool,
}

/// Points to train on, of which every source has exactly ⌊rows · level⌋ labels flipped, and points to test on, with the
/// right labels.
pub fn two_moons(train: usize, test: usize, noise: f64, seed: u64) -> (Vec<Moon>, Vec<Moon>) {
    let points = train + test;
    let mut draws = Draws::seeded(seed);
    let outer = points / 2;
    let mut moons: Vec<Moon> = (0..points)
        .map(|at| {
            let (label, place, of) =
                if at < outer { (false, at, outer) } else { (true, at - outer, points - outer) };
            let angle = std::f64::consts::PI * place as f64 / (of.max(2) - 1) as f64;
            let (sin, cos) = libm::sincos(angle);
            let (x, y) = if label { (1.0 - cos, 0.5 - sin) } else { (cos, sin) };
            let (dx, dy) = box_muller(draws.unit_above_zero(), draws.unit_above_zero());
            let source = draws.below_wide(DEMO_LEVELS.len());
            Moon { x: x + noise * dx, y: y + noise * dy, source, label }
        })
        .collect();
    draws.shuffle_wide(&mut moons);
    let test = moons.split_off(train);
    for (source, level) in DEMO_LEVELS.iter().enumerate() {
        let mut own: Vec<usize> =
            (0..moons.len()).filter(|&at| moons[at].source == source).collect();
        draws.shuffle_wide(&mut own);
        for &at in &own[..(own.len() as f64 * level) as usize] {
            moons[at].label = !moons[at].label;
        }
    }
    (moons, test)
}

pub(super) fn demonstration(seed: u64) -> Demonstration {
    let (train, test) = two_moons(TRAINING_POINTS, TEST_POINTS, NOISE, seed);
    let wrong = |level: f64| format!("{} % wrong", 100.0 * level);
    let table = |points: &[Moon]| {
        let mut text = "x,y,source,moon\n".to_owned();
        for point in points {
            let source = wrong(DEMO_LEVELS[point.source]);
            let moon = if point.label { "lower" } else { "upper" };
            text.push_str(&format!("{:.6},{:.6},{source},{moon}\n", point.x, point.y));
        }
        text
    };
    let fault = |level: f64| {
        (level > 0.0).then(|| format!("{} % of its labels are flipped", 100.0 * level))
    };
    Demonstration {
        name: "moons",
        target: "moon",
        source: "source",
        origin: "Made up: two half moons that reach into each other, as in the paper on LAP",
        train: table(&train),
        test: table(&test),
        sources: DEMO_LEVELS.iter().map(|&level| (wrong(level), fault(level))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_exactly_its_share_of_flipped_labels() {
        let (train, test) = two_moons(8_000, 2_000, 0.0, 0);
        assert_eq!((train.len(), test.len()), (8000, 2000));
        // Without noise a point lies on its moon: the outer one is a circle around the origin.
        let truth = |moon: &Moon| (moon.x.hypot(moon.y) - 1.0).abs() > 1e-9;
        assert!(test.iter().all(|moon| moon.label == truth(moon)));
        for (source, level) in DEMO_LEVELS.iter().enumerate() {
            let own: Vec<&Moon> = train.iter().filter(|moon| moon.source == source).collect();
            let flipped = own.iter().filter(|moon| moon.label != truth(moon)).count();
            assert!((1400..1800).contains(&own.len()));
            assert_eq!(flipped, (own.len() as f64 * level) as usize);
        }
    }

    #[test]
    fn a_seed_gives_the_same_points_and_another_seed_others() {
        assert_eq!(two_moons(80, 20, 0.1, 1), two_moons(80, 20, 0.1, 1));
        assert_ne!(two_moons(80, 20, 0.1, 1), two_moons(80, 20, 0.1, 2));
    }

    #[test]
    fn noise_has_the_spread_asked_for() {
        let (train, _) = two_moons(8_000, 2_000, 0.1, 3);
        let radii: Vec<f64> = train
            .iter()
            .filter(|moon| moon.source == 0 && !moon.label && moon.y > 0.3)
            .map(|moon| moon.x.hypot(moon.y) - 1.0)
            .collect();
        let std = (radii.iter().map(|r| r * r).sum::<f64>() / radii.len() as f64).sqrt();
        assert!((std - 0.1).abs() < 0.01, "{std}");
    }
}
