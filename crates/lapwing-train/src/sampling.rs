//! Which rows an epoch is made of.

use lapwing_sample::Draws;

use crate::random::Purpose;

/// Which rows an epoch is made of, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Every row once, shuffled.
    #[default]
    Shuffled,
    /// As many rows as there are, drawn with replacement, so that every source is expected as often as any other: each draw
    /// takes a source, then a row of it.
    SourceBalanced,
}

impl Sampling {
    /// The rows of an epoch; `sources` are those of all rows.
    pub(crate) fn order(self, train: &[u32], sources: &[u32], seed: u64, epoch: u64) -> Vec<u32> {
        match self {
            Self::Shuffled => {
                let mut order = train.to_vec();
                Draws::of(seed, Purpose::Order, 0, epoch).shuffle(&mut order);
                order
            }
            Self::SourceBalanced => {
                let mut by_source: Vec<u32> = train.to_vec();
                by_source.sort_by_key(|&row| sources[row as usize]);
                let groups: Vec<&[u32]> = by_source
                    .chunk_by(|&a, &b| sources[a as usize] == sources[b as usize])
                    .collect();
                let mut draws = Draws::of(seed, Purpose::Sample, 0, epoch);
                let mut draw = |_: &u32| {
                    let group = groups[draws.below(groups.len() as u32) as usize];
                    group[draws.below(group.len() as u32) as usize]
                };
                train.iter().map(&mut draw).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_epochs_hold_every_source_as_often_and_all_rows_of_it_alike() {
        // Source 0 has 900 rows, source 1 has 90, source 2 has 10; every seventh row does not train.
        let source = |row: u32| {
            if row < 900 {
                0
            } else if row < 990 {
                1
            } else {
                2
            }
        };
        let sources: Vec<u32> = (0..1000).map(source).collect();
        let train: Vec<u32> = (0..1000).filter(|row| row % 7 != 3).collect();
        let mut counts = vec![0_u32; 1000];
        let epochs = 200;
        for epoch in 0..epochs {
            let order = Sampling::SourceBalanced.order(&train, &sources, 5, epoch);
            assert_eq!(order.len(), train.len());
            order.iter().for_each(|&row| counts[row as usize] += 1);
        }
        assert!((0..1000).all(|row| row % 7 != 3 || counts[row] == 0));
        for wanted in 0..3 {
            let rows: Vec<usize> = train
                .iter()
                .map(|&row| row as usize)
                .filter(|&row| sources[row] == wanted)
                .collect();
            let total: u32 = rows.iter().map(|&row| counts[row]).sum();
            let expected = train.len() as f64 * epochs as f64 / 3.0;
            // Six deviations of a binomial draw.
            let far = 6.0 * (expected * 2.0 / 3.0).sqrt();
            assert!((f64::from(total) - expected).abs() < far, "source {wanted}: {total}");
            let each = expected / rows.len() as f64;
            let far = 6.0 * each.sqrt();
            assert!(rows.iter().all(|&row| (f64::from(counts[row]) - each).abs() < far.max(30.0)));
        }
        let order = |epoch| Sampling::SourceBalanced.order(&train, &sources, 5, epoch);
        assert!(order(1) == order(1) && order(1) != order(2));
    }
}
