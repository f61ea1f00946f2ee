//! The rule on rounds of boosting.
//!
//! Trees learn by heart what weighs much: judged by rows that they were grown on, a source that has lost some weight by
//! chance departs further and further. So the rows of every source are dealt out to two halves; trees are grown on one, and
//! sources judged by the other.
//!
//! After a round the losses of all rows are known, so the mean of a source has hardly any noise, and a clean source that
//! is a little harder than the others stays above the threshold for ever. Batches, for which the rule was made, have that
//! noise. So a round is judged by a batch: a few rows of each source, as many of a small one as of a large one, so that the
//! means of all are equally uncertain.

use lapwing_core::{BatchSums, Lap, LapConfig, LapError};
use lapwing_sample::Draws;

/// Rows of each source that a round is judged by, drawn with replacement: at most so many, and fewer where sources are
/// so small that they would be most of it, as the noise that the rule needs comes from those that are not drawn.
const ROWS: usize = 32;
const FEWEST_ROWS: usize = 4;
const SHARE: usize = 16;
/// Most rows of all sources together; of a million sources one row each.
const MOST_ROWS: usize = 1 << 18;
/// What random numbers are drawn for.
const PURPOSE: u64 = 24;

/// Who decides what a source weighs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Say {
    /// The rule, but it weighs no less than this.
    Rule {
        /// Least weight.
        floor: f64,
    },
    /// It weighs 1, whatever the rule finds.
    Full,
    /// It weighs nothing, is not trained on, and the rule does not see it.
    Blocked,
}

impl Say {
    fn weight(self, found: f64) -> f64 {
        match self {
            Self::Rule { floor } => found.max(floor),
            Self::Full => 1.0,
            Self::Blocked => 0.0,
        }
    }
}

/// A source in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceRound {
    /// The source.
    pub source: u32,
    /// The mean of its finite losses among the rows that the round was judged by.
    pub loss: Option<f64>,
    /// C after the round.
    pub unreliability: u64,
    /// What its rows weigh after the round.
    pub weight: f64,
}

/// The rule, fed with rounds.
#[derive(Debug)]
pub(crate) struct Rounds {
    lap: Lap<u32>,
    say: Vec<Say>,
    seed: u64,
    /// Places of the training rows that sources are judged by, for sources that have some.
    places: Vec<(u32, Vec<u32>)>,
    /// How many rows of each are drawn.
    rows: usize,
    weights: Vec<f64>,
    /// Which training rows these are.
    judged: Vec<bool>,
}

impl Rounds {
    /// For training rows of these sources, each below the length of `say`; none of them is blocked.
    pub(crate) fn new(
        rule: LapConfig,
        say: &[Say],
        sources: &[u32],
        seed: u64,
    ) -> Result<Self, LapError> {
        let mut of_source: Vec<Vec<u32>> = vec![Vec::new(); say.len()];
        for (place, &source) in (0..).zip(sources) {
            of_source[source as usize].push(place);
        }
        let mut judged = vec![false; sources.len()];
        let mut places: Vec<(u32, Vec<u32>)> = Vec::new();
        for (source, mut all) in (0..).zip(of_source) {
            Draws::of(seed, PURPOSE, 1, u64::from(source)).shuffle_wide(&mut all);
            // The odd row is for judging in every other source, so that single ones are not all for the same.
            let own: Vec<u32> = all.into_iter().skip(source as usize % 2).step_by(2).collect();
            own.iter().for_each(|&place| judged[place as usize] = true);
            if !own.is_empty() {
                places.push((source, own));
            }
        }
        let rows = rows_of_each(places.iter().map(|(_, places)| places.len()).collect());
        let weights = say.iter().map(|say| say.weight(1.0)).collect();
        Ok(Self { lap: Lap::new(rule)?, say: say.to_vec(), seed, places, rows, weights, judged })
    }

    /// Judges by the losses of all training rows. Returns those of the rows that were drawn, and where sources stand.
    pub(crate) fn step(
        &mut self,
        round: usize,
        losses: &[f32],
    ) -> Result<(Vec<f32>, Vec<SourceRound>), LapError> {
        let rows = self.rows;
        let mut draws = Draws::of(self.seed, PURPOSE, 0, round as u64);
        let mut sums = BatchSums::new();
        let mut drawn = Vec::with_capacity(rows * self.places.len());
        for (source, places) in &self.places {
            for _ in 0..rows {
                let loss = losses[places[draws.below_wide(places.len())] as usize];
                sums.add(source, f64::from(loss));
                drawn.push(loss);
            }
        }
        self.lap.update(&sums)?;
        let seen = self.lap.present().map(|present| {
            let source = *present.source;
            let weight = self.say[source as usize].weight(present.weight);
            let (loss, unreliability) = (present.loss, present.unreliability);
            SourceRound { source, loss, unreliability, weight }
        });
        let seen: Vec<SourceRound> = seen.collect();
        for source in &seen {
            self.weights[source.source as usize] = source.weight;
        }
        Ok((drawn, seen))
    }

    /// Which training rows sources are judged by.
    pub(crate) fn judged(&self) -> &[bool] {
        &self.judged
    }

    /// What rows of a source weigh now.
    pub(crate) fn weight(&self, source: u32) -> f64 {
        self.weights[source as usize]
    }

    /// What all sources weigh now.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The rule.
    pub(crate) fn lap(&self) -> &Lap<u32> {
        &self.lap
    }
}

/// How many rows of each source are drawn, by the sizes of the sources.
fn rows_of_each(mut sizes: Vec<usize>) -> usize {
    sizes.sort_unstable();
    let usual = sizes.get(sizes.len() / 2).map_or(0, |median| median / SHARE);
    usual.clamp(FEWEST_ROWS, ROWS).min(MOST_ROWS / sizes.len().max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> LapConfig {
        LapConfig { history_length: 5, depression_strength: 6.0, ..LapConfig::default() }
    }

    #[test]
    fn a_round_is_judged_by_as_many_rows_of_a_small_source_as_of_a_large_one_and_always_the_same() {
        // 3 rows of source 2, 600 of source 0, none of source 1.
        const ROWS: usize = 18;
        assert_eq!(rows_of_each(vec![300, 3]), ROWS);
        assert_eq!((rows_of_each(vec![9; 5]), rows_of_each(vec![1_000; 5])), (4, 32));
        assert_eq!((rows_of_each(vec![9; 1 << 19]), rows_of_each(Vec::new())), (1, 4));
        let sources: Vec<u32> = (0..603).map(|row| if row < 3 { 2 } else { 0 }).collect();
        let losses: Vec<f32> = (0..603).map(|row| row as f32).collect();
        let say = [Say::Rule { floor: 0.0 }; 3];
        let run = |round| {
            let mut rounds = Rounds::new(rule(), &say, &sources, 7).unwrap();
            rounds.step(round, &losses).unwrap()
        };
        let (drawn, seen) = run(4);
        assert_eq!((drawn.len(), seen.len()), (2 * ROWS, 2));
        assert!(drawn[..ROWS].iter().all(|&loss| loss >= 3.0));
        assert!(drawn[ROWS..].iter().all(|&loss| loss < 3.0));
        assert_eq!(run(4), (drawn.clone(), seen));
        assert_ne!(run(5).0, drawn);
        let rounds = Rounds::new(rule(), &say, &sources, 7).unwrap();
        let judged = rounds.judged().iter().filter(|judged| **judged).count();
        assert_eq!((judged, rounds.judged()[..3].iter().filter(|j| **j).count()), (302, 2));
        let judged = |loss: &f32| rounds.judged()[*loss as usize];
        assert!(drawn.iter().all(judged), "only rows of that half");
    }

    #[test]
    fn a_bad_source_falls_and_guards_hold() {
        let sources: Vec<u32> = (0..800).map(|row| row % 8).collect();
        let losses: Vec<f32> = (0..800_u32)
            .map(|row| if row % 8 >= 5 { 3.0 } else { 0.2 + 0.01 * (row % 7) as f32 })
            .collect();
        let mut say = [Say::Rule { floor: 0.0 }; 8];
        say[6] = Say::Rule { floor: 0.25 };
        say[7] = Say::Full;
        let mut rounds = Rounds::new(crate::TreesConfig::rule(), &say, &sources, 1).unwrap();
        (0..400).for_each(|round| drop(rounds.step(round, &losses).unwrap()));
        let weights = rounds.weights();
        assert!(weights[..5].iter().all(|&weight| weight > 0.9), "{weights:?}");
        assert!(weights[5] < 0.05, "{weights:?}");
        assert_eq!(weights[6..], [0.25, 1.0]);
        assert!(rounds.lap().unreliability(&7) > 0, "who is trusted is judged all the same");
    }

    #[test]
    fn losses_that_are_no_numbers_change_nothing_for_others() {
        let sources: Vec<u32> = (0..90).map(|row| row % 3).collect();
        let losses: Vec<f32> =
            (0..90_u32).map(|row| if row % 3 == 2 { f32::NAN } else { 0.5 }).collect();
        let say = [Say::Rule { floor: 0.0 }; 3];
        let mut rounds = Rounds::new(rule(), &say, &sources, 1).unwrap();
        for round in 0..50 {
            let (_, seen) = rounds.step(round, &losses).unwrap();
            assert_eq!(seen[2].loss, None);
        }
        assert_eq!(rounds.weights(), [1.0; 3]);
    }
}
