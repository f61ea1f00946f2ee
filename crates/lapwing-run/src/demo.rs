//! The toy data of the paper's Figure 4: two moons from five sources, of which four flip labels.

use lapwing_sample::{Draws, box_muller};

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
