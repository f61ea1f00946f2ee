//! Wrong labels that people really gave.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;
use crate::level::Level;

/// Samples shared among sources so that each source holds an exact share of labels that a human got wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanLabels {
    /// The source of every sample.
    pub sources: Vec<u32>,
    /// The label of every sample: the human's, wrong one for the chosen samples, the true one for all others.
    pub labels: Vec<u32>,
}

impl HumanLabels {
    /// Shares samples among as many sources as there are levels, each of the same size (to within one sample).
    ///
    /// Of the samples whose human label is wrong, shuffled, source after source takes `int(size · level)` with their
    /// human label; then the sources are filled, one after the other, with the remaining samples in the order of the data
    /// set and with their true label. So a level is the exact share of wrong labels in its source.
    pub fn new(
        seed: u64,
        truth: &[u32],
        human: &[u32],
        levels: &[Level],
    ) -> Result<Self, NoiseError> {
        let samples = truth.len();
        if human.len() != samples {
            return Err(NoiseError::Lengths { expected: samples, found: human.len() });
        }
        if levels.is_empty() || levels.len() > samples {
            return Err(NoiseError::Sources { samples, sources: levels.len() });
        }
        let size =
            |source: usize| (source + 1) * samples / levels.len() - source * samples / levels.len();
        let counts: Vec<usize> =
            levels.iter().enumerate().map(|(source, level)| level.count_of(size(source))).collect();
        let mut wrong: Vec<usize> = (0..samples).filter(|&at| truth[at] != human[at]).collect();
        let needed = counts.iter().sum();
        if needed > wrong.len() {
            return Err(NoiseError::TooFewWrongLabels { needed, available: wrong.len() });
        }
        Draws::of(seed, Purpose::HumanLabels, 0, 0).shuffle(&mut wrong);

        const NOBODY: u32 = u32::MAX;
        let mut sources = vec![NOBODY; samples];
        let mut labels = truth.to_vec();
        let mut wrong = wrong.into_iter();
        for (source, &count) in counts.iter().enumerate() {
            for sample in wrong.by_ref().take(count) {
                sources[sample] = source as u32;
                labels[sample] = human[sample];
            }
        }
        let places = counts
            .iter()
            .enumerate()
            .flat_map(|(source, &count)| std::iter::repeat_n(source as u32, size(source) - count));
        let rest = sources.iter_mut().filter(|source| **source == NOBODY);
        for (place, source) in rest.zip(places) {
            *place = source;
        }
        Ok(Self { sources, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 samples of ten classes; the human is wrong on the first 400 of them.
    fn labels() -> (Vec<u32>, Vec<u32>) {
        let truth: Vec<u32> = (0..1000).map(|at| at % 10).collect();
        let human =
            truth.iter().enumerate().map(|(at, &t)| if at < 400 { (t + 1) % 10 } else { t });
        let human = human.collect();
        (truth, human)
    }

    fn levels(shares: &[f64]) -> Vec<Level> {
        shares.iter().map(|&share| Level::new(share).unwrap()).collect()
    }

    #[test]
    fn sources_are_equal_in_size_and_hold_exactly_their_share_of_human_errors() {
        let (truth, human) = labels();
        let shares = [0.0, 0.25, 0.0, 0.625, 1.0];
        let shared = HumanLabels::new(0, &truth, &human, &levels(&shares)).unwrap();
        for (source, share) in shares.into_iter().enumerate() {
            let of_source: Vec<usize> =
                (0..1000).filter(|&at| shared.sources[at] == source as u32).collect();
            assert_eq!(of_source.len(), 200);
            let wrong: Vec<usize> =
                of_source.into_iter().filter(|&at| shared.labels[at] != truth[at]).collect();
            assert_eq!(wrong.len(), (200.0 * share) as usize);
            assert!(wrong.iter().all(|&at| shared.labels[at] == human[at]));
        }
    }

    #[test]
    fn clean_places_are_filled_in_the_order_of_the_data_set() {
        let (truth, human) = labels();
        let shared = HumanLabels::new(0, &truth, &human, &levels(&[0.5, 0.0])).unwrap();
        let clean: Vec<u32> = (0..1000)
            .filter(|&at| shared.labels[at] == truth[at])
            .map(|at| shared.sources[at])
            .collect();
        assert!(clean.is_sorted(), "contiguous blocks");
        let chosen: Vec<usize> = (0..1000).filter(|&at| shared.labels[at] != truth[at]).collect();
        assert!(chosen[249] > 300, "chosen from all wrong labels, not the first: {}", chosen[249]);
    }

    #[test]
    fn the_seed_decides_who_is_wrong() {
        let (truth, human) = labels();
        let shared =
            |seed| HumanLabels::new(seed, &truth, &human, &levels(&[0.5, 0.0])).unwrap().labels;
        assert_eq!(shared(1), shared(1));
        assert_ne!(shared(1), shared(2));
    }

    #[test]
    fn levels_that_need_more_errors_than_were_made_are_refused() {
        let (truth, human) = labels();
        let refused = HumanLabels::new(0, &truth, &human, &levels(&[1.0, 0.0])).unwrap_err();
        assert_eq!(refused, NoiseError::TooFewWrongLabels { needed: 500, available: 400 });
        assert!(HumanLabels::new(0, &truth, &human[1..], &levels(&[0.0])).is_err());
        assert!(HumanLabels::new(0, &truth, &human, &[]).is_err());
    }
}
