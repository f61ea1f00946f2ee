//! Seeded, stratified parts for training, validation and test.

use lapwing_sample::{Draws, Targets};

use crate::error::DataError;

/// Quantile bins by which a numeric target is stratified.
const BINS: usize = 20;

/// How large the parts are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitConfig {
    /// Share of rows for validation.
    pub validation: f64,
    /// Share of rows for test.
    pub test: f64,
    /// Seed: the same seed, target and shares give the same parts on every machine.
    pub seed: u64,
}

impl Default for SplitConfig {
    fn default() -> Self {
        Self { validation: 0.1, test: 0.2, seed: 0 }
    }
}

/// Row indices of the three parts, each in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from; holds at least one row of every class.
    pub train: Vec<u32>,
    /// Rows to stop by.
    pub validation: Vec<u32>,
    /// Rows to judge by.
    pub test: Vec<u32>,
}

impl Split {
    /// Splits the rows of a target: within every class, or within quantile bins of a number, each part gets its share.
    pub fn new(target: &Targets, config: &SplitConfig) -> Result<Self, DataError> {
        let shares = config.shares()?;
        let mut draws = Draws::seeded(config.seed);
        let mut parts = [const { Vec::new() }; 3];
        // What each part is owed. It carries over from one stratum to the next, so that many small strata do not all
        // round the same way and the parts have their size to within a row.
        let mut owed = [0.0; 3];
        for mut stratum in strata(target) {
            draws.shuffle_wide(&mut stratum);
            for (index, row) in stratum.into_iter().enumerate() {
                for (owed, share) in owed.iter_mut().zip(shares) {
                    *owed += share;
                }
                // The first row of a stratum is for training, whatever is owed: a class has to be seen to be learnt.
                let part = if index == 0 { 0 } else { most_owed(&owed) };
                owed[part] -= 1.0;
                parts[part].push(row);
            }
        }
        Ok(Self::of(parts))
    }

    /// The same where rows are answers to `items`, numbered row by row: all rows of an item are in one part, by the label
    /// that most of them have (the first of equals).
    ///
    /// # Errors
    /// Where shares cannot be.
    pub fn by_item(
        target: &Targets,
        items: &[u32],
        config: &SplitConfig,
    ) -> Result<Self, DataError> {
        let Targets::Classes { labels, classes } = target else { return Self::new(target, config) };
        let shares = config.shares()?;
        let mut order: Vec<u32> = (0..items.len() as u32).collect();
        order.sort_by_key(|&row| (items[row as usize], labels[row as usize]));
        let mut strata = vec![Vec::new(); classes + 1];
        for rows in order.chunk_by(|&a, &b| items[a as usize] == items[b as usize]) {
            let runs = rows.chunk_by(|&a, &b| labels[a as usize] == labels[b as usize]);
            let longest = runs.fold(&rows[..0], |longest, run| match run.len() > longest.len() {
                true => run,
                false => longest,
            });
            let label = longest.first().map_or(0, |&row| labels[row as usize]);
            strata[(label as usize).min(*classes)].push(rows);
        }
        let mut draws = Draws::seeded(config.seed);
        let (mut parts, mut owed) = ([const { Vec::new() }; 3], [0.0; 3]);
        let mut learnt = vec![false; classes + 1];
        let class = |row: u32| (labels[row as usize] as usize).min(*classes);
        for mut stratum in strata {
            draws.shuffle_wide(&mut stratum);
            for rows in stratum {
                let count = rows.len() as f64;
                owed.iter_mut().zip(shares).for_each(|(owed, share)| *owed += share * count);
                // As above: every class has to be seen, whoever gave it.
                let part = match rows.iter().all(|&row| learnt[class(row)]) {
                    true => most_owed(&owed),
                    false => 0,
                };
                if part == 0 {
                    rows.iter().for_each(|&row| learnt[class(row)] = true);
                }
                owed[part] -= count;
                parts[part].extend_from_slice(rows);
            }
        }
        Ok(Self::of(parts))
    }

    fn of(parts: [Vec<u32>; 3]) -> Self {
        let [mut train, mut validation, mut test] = parts;
        for part in [&mut train, &mut validation, &mut test] {
            part.sort_unstable();
        }
        Self { train, validation, test }
    }
}

impl SplitConfig {
    /// What each part gets.
    fn shares(&self) -> Result<[f64; 3], DataError> {
        let Self { validation, test, .. } = *self;
        let valid = |share: f64| (0.0..1.0).contains(&share);
        if !valid(validation) || !valid(test) || validation + test >= 1.0 {
            return Err(DataError::BadFractions { validation, test });
        }
        Ok([1.0 - validation - test, validation, test])
    }
}

fn most_owed(owed: &[f64; 3]) -> usize {
    (1..owed.len()).fold(0, |most, part| if owed[part] > owed[most] { part } else { most })
}

/// Rows by class, or by bins of equal size in the order of the values.
fn strata(target: &Targets) -> Vec<Vec<u32>> {
    match target {
        Targets::Classes { labels, classes } => {
            let mut strata = vec![Vec::new(); classes + 1];
            for (row, &label) in labels.iter().enumerate() {
                strata[(label as usize).min(*classes)].push(row as u32);
            }
            strata
        }
        Targets::Values(values) => {
            let mut order: Vec<u32> = (0..values.len() as u32).collect();
            order.sort_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
            let size = order.len().div_ceil(BINS).max(1);
            order.chunks(size).map(<[u32]>::to_vec).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    fn classes(labels: Vec<u32>, classes: usize) -> Targets {
        Targets::Classes { labels, classes }
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_part_and_every_class_in_train(
            codes in prop::collection::vec(0_u32..6, 1..300), validation in 0.0..0.5, test in 0.0..0.49, seed: u64,
        ) {
            let split = Split::new(&classes(codes.clone(), 6), &SplitConfig { validation, test, seed }).unwrap();
            let mut all = [split.train.clone(), split.validation, split.test].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..codes.len() as u32).collect::<Vec<_>>());
            for code in &codes {
                prop_assert!(split.train.iter().any(|&row| codes[row as usize] == *code));
            }
        }

        #[test]
        fn rows_of_an_item_stay_together_and_every_class_is_in_train(
            rows in prop::collection::vec((0_u32..40, 0_u32..5), 1..300), validation in 0.0..0.5, test in 0.0..0.49, seed: u64,
        ) {
            let (items, codes): (Vec<u32>, Vec<u32>) = rows.into_iter().unzip();
            let config = SplitConfig { validation, test, seed };
            let split = Split::by_item(&classes(codes.clone(), 5), &items, &config).unwrap();
            let parts = [&split.train, &split.validation, &split.test];
            let mut all = parts.map(Vec::as_slice).concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..codes.len() as u32).collect::<Vec<_>>());
            let of = |rows: &[u32]| rows.iter().map(|&row| items[row as usize]).collect::<BTreeSet<_>>();
            let [train, valid, test] = parts.map(|rows| of(rows));
            prop_assert!(train.is_disjoint(&valid) && train.is_disjoint(&test) && valid.is_disjoint(&test));
            for code in &codes {
                prop_assert!(split.train.iter().any(|&row| codes[row as usize] == *code));
            }
        }

        #[test]
        fn items_are_split_in_shares(seed: u64) {
            let codes: Vec<u32> = (0..1000).map(|i| u32::from(i % 10 == 0)).collect();
            let items: Vec<u32> = (0..1000).map(|row| row / 2).collect();
            let split = Split::by_item(&classes(codes, 2), &items, &SplitConfig { validation: 0.1, test: 0.2, seed }).unwrap();
            prop_assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (700, 100, 200));
        }

        #[test]
        fn parts_have_their_share_in_every_class(seed: u64) {
            let codes: Vec<u32> = (0..1000).map(|i| u32::from(i % 10 == 0)).collect();
            let split = Split::new(&classes(codes.clone(), 2), &SplitConfig { validation: 0.1, test: 0.2, seed }).unwrap();
            prop_assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (700, 100, 200));
            let rare = |rows: &[u32]| rows.iter().filter(|&&row| codes[row as usize] == 1).count() as i64;
            for (rows, expected) in [(&split.train, 70), (&split.validation, 10), (&split.test, 20)] {
                prop_assert!((rare(rows) - expected).abs() <= 1, "{} of {}", rare(rows), expected);
            }
        }
    }

    #[test]
    fn numbers_are_stratified_by_quantile() {
        let values = Targets::Values((0..1000).map(|i| f64::from(i * 7 % 1000)).collect());
        let split =
            Split::new(&values, &SplitConfig { validation: 0.0, test: 0.2, seed: 1 }).unwrap();
        let Targets::Values(values) = values else { unreachable!() };
        let top = split.test.iter().filter(|&&row| values[row as usize] >= 900.0).count();
        assert!((19..=21).contains(&top), "{top}");
    }

    #[test]
    fn the_seed_decides() {
        let target = Targets::Values((0..100).map(f64::from).collect());
        let split =
            |seed| Split::new(&target, &SplitConfig { seed, ..SplitConfig::default() }).unwrap();
        assert_eq!(split(3), split(3));
        assert_ne!(split(3), split(4));
    }

    #[test]
    fn shares_that_leave_nothing_for_training_are_refused() {
        let target = Targets::Values(vec![1.0, 2.0]);
        for (validation, test) in [(0.5, 0.5), (-0.1, 0.2), (f64::NAN, 0.1), (0.0, 1.0)] {
            let config = SplitConfig { validation, test, seed: 0 };
            assert!(matches!(Split::new(&target, &config), Err(DataError::BadFractions { .. })));
        }
    }
}
