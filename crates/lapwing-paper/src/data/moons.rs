//! Two moons: points on two half circles that reach into each other.

use lapwing_sample::Draws;

/// Points, the moon of each, and the source that reported it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moons {
    /// Two numbers per point.
    pub points: Vec<f32>,
    /// 0 for the upper moon, 1 for the lower.
    pub labels: Vec<u32>,
    /// The source of each point.
    pub sources: Vec<u32>,
    /// Where the labels of the paper's own run are known: those, with its flips.
    pub flipped: Option<Vec<u32>>,
}

/// The paper's own points: 8,000 to train on and 2,000 to test on. They come from scikit-learn 1.9.1 and NumPy with
/// the seeds of the authors' notebook:
///
/// ```python
/// x, y = make_moons(n_samples=10000, noise=0.1, random_state=42)
/// source = default_rng(43).integers(0, 5, 10000)
/// train_test_split(…, test_size=0.2, random_state=44)
/// ```
///
/// with flips of 2.5, 5, 25 and 100 % in the sources 2, 0, 1 and 3.
pub(crate) fn of_the_paper() -> Result<(Moons, Moons), csv::Error> {
    Ok((
        table(include_str!("../../moons/train.csv"))?,
        table(include_str!("../../moons/test.csv"))?,
    ))
}

fn table(text: &str) -> Result<Moons, csv::Error> {
    let mut moons = Moons::default();
    let mut flipped = Vec::new();
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Vec<f32> = row?;
        moons.points.extend(row.iter().take(2));
        moons.labels.extend(row.get(2).map(|&label| label as u32));
        flipped.extend(row.get(3).map(|&label| label as u32));
        moons.sources.push(row.get(4).map_or(0, |&source| source as u32));
    }
    moons.flipped = (!flipped.is_empty()).then_some(flipped);
    Ok(moons)
}

/// Fresh points, as scikit-learn's `make_moons` makes them: evenly spaced on both moons, moved by normal noise of
/// standard deviation `noise`, shuffled; each from one of `sources` sources, drawn independently.
pub(crate) fn generate(points: usize, noise: f64, sources: u32, seed: u64) -> Moons {
    let upper = points / 2;
    let mut draws = Draws::free(seed, 0);
    let mut order: Vec<usize> = (0..points).collect();
    draws.shuffle(&mut order);
    let mut moons = Moons::default();
    for at in order {
        let lower = at >= upper;
        let (place, of) = if lower { (at - upper, points - upper) } else { (at, upper) };
        let angle = std::f64::consts::PI * place as f64 / (of.max(2) - 1) as f64;
        let (sin, cos) = angle.sin_cos();
        let (x, y) = if lower { (1.0 - cos, 0.5 - sin) } else { (cos, sin) };
        let (dx, dy) = draws.two_normals();
        moons.points.extend([(x + noise * dx) as f32, (y + noise * dy) as f32]);
        moons.labels.push(u32::from(lower));
        moons.sources.push(draws.below(sources));
    }
    moons
}

impl Moons {
    /// Takes the points from `at` on away.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        Self {
            points: self.points.split_off(2 * at),
            labels: self.labels.split_off(at),
            sources: self.sources.split_off(at),
            flipped: self.flipped.as_mut().map(|labels| labels.split_off(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_points_hold_its_shares_of_flips() {
        let (train, test) = of_the_paper().unwrap();
        assert_eq!((train.labels.len(), test.labels.len()), (8000, 2000));
        assert_eq!(&train.points[..2], [0.263_022_5, -0.161_558_88]);
        assert!(test.flipped.is_none());
        let flipped = train.flipped.as_ref().unwrap();
        for (source, level) in [0.05, 0.25, 0.025, 1.0, 0.0].into_iter().enumerate() {
            let own = || (0..8000).filter(|&at| train.sources[at] == source as u32);
            let wrong = own().filter(|&at| flipped[at] != train.labels[at]).count();
            assert_eq!(wrong, (own().count() as f64 * level) as usize, "source {source}");
        }
    }

    /// Moments of a class: means, variances and the covariance.
    fn moments(moons: &Moons, class: u32) -> [f64; 5] {
        let own: Vec<[f64; 2]> = moons
            .points
            .chunks(2)
            .zip(&moons.labels)
            .filter(|(_, label)| **label == class)
            .map(|(point, _)| [f64::from(point[0]), f64::from(point[1])])
            .collect();
        let mean = |f: &dyn Fn(&[f64; 2]) -> f64| own.iter().map(f).sum::<f64>() / own.len() as f64;
        let (x, y) = (mean(&|p| p[0]), mean(&|p| p[1]));
        let var = |i: usize, m: f64| mean(&|p| (p[i] - m).powi(2));
        [x, y, var(0, x), var(1, y), mean(&|p| (p[0] - x) * (p[1] - y))]
    }

    #[test]
    fn fresh_points_are_distributed_like_the_papers() {
        let (paper, _) = of_the_paper().unwrap();
        let fresh = generate(10_000, 0.1, 5, 3);
        for class in [0, 1] {
            let (ours, theirs) = (moments(&fresh, class), moments(&paper, class));
            for (a, b) in ours.into_iter().zip(theirs) {
                // Standard errors are below 0.016 for 4,000 points; the paper's points are a random 80 %.
                assert!((a - b).abs() < 0.04, "class {class}: {ours:?} against {theirs:?}");
            }
        }
        let shares = (0..5).map(|s| fresh.sources.iter().filter(|&&x| x == s).count());
        assert!(shares.into_iter().all(|count| (1800..2200).contains(&count)));
        assert_eq!(fresh.labels.iter().sum::<u32>(), 5000);
        assert_eq!(fresh, generate(10_000, 0.1, 5, 3));
        assert_ne!(fresh, generate(10_000, 0.1, 5, 4));
    }

    #[test]
    fn without_noise_points_lie_on_their_moons() {
        let moons = generate(501, 0.0, 5, 0);
        for (point, label) in moons.points.chunks(2).zip(&moons.labels) {
            let (x, y) = match label {
                0 => (point[0], point[1]),
                _ => (1.0 - point[0], 0.5 - point[1]),
            };
            assert!((x.hypot(y) - 1.0).abs() < 1e-5 && y > -1e-5);
        }
    }
}
