//! Two classes that change places.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;
use crate::random_label::at_least;

/// Class swap: in each source two classes, drawn once, change places, as where the classes were coded in another order.
/// All samples of both get the other's label; the other classes keep theirs.
#[derive(Clone, Copy, Debug)]
pub struct ClassSwap {
    seed: u64,
    classes: u32,
}

impl ClassSwap {
    /// Noise of a seed over so many classes, at least two.
    pub fn new(seed: u64, classes: u32) -> Result<Self, NoiseError> {
        Ok(Self { seed, classes: at_least(2, classes)? })
    }

    /// The two classes that change places in a source, the lower one first.
    pub fn pair(&self, source: u64) -> (u32, u32) {
        let mut draws = Draws::of(self.seed, Purpose::ClassSwap, source, 0);
        let first = draws.below(self.classes);
        let other = draws.below(self.classes - 1);
        let second = if other >= first { other + 1 } else { other };
        (first.min(second), first.max(second))
    }

    /// The label that a label becomes in a source.
    pub fn label(&self, source: u64, label: u32) -> u32 {
        match self.pair(source) {
            (low, high) if label == low => high,
            (low, high) if label == high => low,
            _ => label,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_two_classes_change_places_and_a_second_swap_puts_them_back() {
        let noise = ClassSwap::new(3, 10).unwrap();
        for source in 0..100 {
            let new: Vec<u32> = (0..10).map(|label| noise.label(source, label)).collect();
            assert_eq!((0..10).filter(|&label| new[label as usize] != label).count(), 2);
            assert!((0..10).all(|label| noise.label(source, new[label as usize]) == label));
        }
    }

    #[test]
    fn every_pair_is_drawn_equally_often_and_a_seed_draws_the_same() {
        let noise = ClassSwap::new(0, 4).unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for source in 0..6000 {
            assert_eq!(noise.pair(source), ClassSwap::new(0, 4).unwrap().pair(source));
            *counts.entry(noise.pair(source)).or_insert(0) += 1;
        }
        // Six pairs: mean 1,000, standard deviation 29.
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (850..=1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn one_class_has_nothing_to_change_places_with() {
        assert!(matches!(ClassSwap::new(0, 1), Err(NoiseError::TooFewClasses { needed: 2, .. })));
        assert_eq!(ClassSwap::new(0, 2).unwrap().pair(7), (0, 1));
    }
}
