//! Texts whose words are not where, or not what, they were.

use lapwing_sample::Draws;

use crate::draws::Purpose;

/// Token Permutation: the places of a sample, padding included, change places. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct TokenPermutation {
    seed: u64,
}

impl TokenPermutation {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Changes the tokens of a sample.
    pub fn apply<T>(&self, index: u64, tokens: &mut [T]) {
        Draws::of(self.seed, Purpose::TokenPermutation, 0, index).shuffle(tokens);
    }
}

/// Token Replacement: each place of a sample, by the throw of a coin, gets a token of the vocabulary, each as likely as any
/// other. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct TokenReplacement {
    seed: u64,
    vocabulary: u32,
}

impl TokenReplacement {
    /// The share of tokens that are replaced.
    pub const SHARE: f64 = 0.5;

    /// Noise of a seed, for tokens below `vocabulary`.
    pub fn new(seed: u64, vocabulary: u32) -> Self {
        Self { seed, vocabulary }
    }

    /// The tokens that take the places of `places` others, where they do.
    pub fn tokens(&self, index: u64, places: usize) -> Vec<Option<u32>> {
        let mut draws = Draws::of(self.seed, Purpose::TokenReplacement, 0, index);
        let mut token = |_| {
            let replaced = draws.unit() < Self::SHARE;
            let token = draws.below(self.vocabulary);
            replaced.then_some(token)
        };
        (0..places).map(&mut token).collect()
    }

    /// Changes the tokens of a sample.
    pub fn apply(&self, index: u64, tokens: &mut [u32]) {
        let new = self.tokens(index, tokens.len());
        for (token, new) in tokens.iter_mut().zip(new) {
            *token = new.unwrap_or(*token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_keeps_the_tokens_and_is_fixed_per_sample() {
        let permuted = |index| {
            let mut tokens: Vec<u32> = (0..256).collect();
            TokenPermutation::new(4).apply(index, &mut tokens);
            tokens
        };
        let mut sorted = permuted(1);
        assert_ne!(sorted, (0..256).collect::<Vec<u32>>());
        sorted.sort_unstable();
        assert_eq!(sorted, (0..256).collect::<Vec<u32>>());
        assert!(permuted(1) == permuted(1) && permuted(1) != permuted(2));
    }

    #[test]
    fn half_of_the_tokens_become_any_token() {
        let noise = TokenReplacement::new(4, 50);
        let mut counts = [0; 50];
        let mut replaced = 0;
        for index in 0..200 {
            for token in noise.tokens(index, 100).into_iter().flatten() {
                replaced += 1;
                counts[token as usize] += 1;
            }
        }
        // Of 20,000 with probability a half: deviation 71. Of 10,000 in 50 places: mean 200, deviation 14.
        assert!((9_600..=10_400).contains(&replaced), "{replaced}");
        assert!(counts.iter().all(|count| (120..=280).contains(count)), "{counts:?}");
        let mut tokens = vec![7; 100];
        noise.apply(3, &mut tokens);
        let expected: Vec<u32> =
            noise.tokens(3, 100).into_iter().map(|token| token.unwrap_or(7)).collect();
        assert_eq!(tokens, expected);
    }
}
