//! The words and word pairs that a model knows, and their numbers.
//!
//! Number 0 is `<unk>`, any word that is not known; then come the words, those first that are in most texts, then the
//! pairs of words that follow each other. A pair that is not known has no number: its words have.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use crate::texts::{NO_WORD, Texts};
use crate::words::{LONGEST_WORD, MOST_WORDS};

/// Most words, and most pairs.
pub(crate) const MOST_KEPT: usize = 50_000;
/// Training rows a word or pair must be in: with one, a network learns the row rather than the word.
const FEWEST_ROWS: u32 = 2;
/// Different pairs that are counted at a time. Beyond, those that are rarest so far are forgotten.
const MOST_COUNTED: usize = 1 << 22;
/// Number of every word that is not known.
const UNKNOWN: u32 = 0;

type Counts = HashMap<u64, Count, FixedState>;

/// Rows, and the last of them plus 1, so that a row counts once.
#[derive(Clone, Copy, Default)]
struct Count(u32, u32);

impl Count {
    fn see(&mut self, row: u32) {
        if self.1 != row + 1 {
            *self = Self(self.0 + 1, row + 1);
        }
    }
}

/// What is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vocabulary {
    words: Vec<String>,
    /// Places of two words that follow each other.
    pairs: Vec<[u32; 2]>,
}

impl Vocabulary {
    /// Of these rows, and of nothing else.
    pub(crate) fn fit(columns: &[&Texts], rows: &[u32]) -> Self {
        let mut vocabulary = Self::of_words(columns, rows);
        vocabulary.pairs = vocabulary.fit_pairs(columns, rows);
        vocabulary
    }

    /// The same without pairs.
    pub(crate) fn of_words(columns: &[&Texts], rows: &[u32]) -> Self {
        // Columns have numberings of their own.
        let mut counts: HashMap<&str, u32, FixedState> = HashMap::default();
        for texts in columns {
            let mut of_column = vec![Count::default(); texts.words().len()];
            for &row in rows {
                for &word in texts.of(row) {
                    if let Some(count) = of_column.get_mut(word as usize) {
                        count.see(row);
                    }
                }
            }
            for (word, Count(rows, _)) in texts.words().zip(of_column) {
                *counts.entry(word).or_default() += rows;
            }
        }
        let mut words: Vec<(&str, u32)> =
            counts.into_iter().filter(|&(_, rows)| rows >= FEWEST_ROWS).collect();
        words.sort_unstable_by_key(|&(word, rows)| (Reverse(rows), word));
        words.truncate(MOST_KEPT);
        let words = words.into_iter().map(|(word, _)| word.to_owned()).collect();
        Self { words, pairs: Vec::new() }
    }

    fn fit_pairs(&self, columns: &[&Texts], rows: &[u32]) -> Vec<[u32; 2]> {
        let mut counts = Counts::default();
        let mut forgotten = 0;
        let numbers: Vec<Vec<u32>> = columns.iter().map(|texts| self.numbers(texts)).collect();
        for &row in rows {
            for (texts, numbers) in columns.iter().zip(&numbers) {
                for pair in texts.of(row).windows(2) {
                    if let Some(key) = key(number(numbers, pair[0]), number(numbers, pair[1])) {
                        counts.entry(key).or_default().see(row);
                    }
                }
            }
            while counts.len() > MOST_COUNTED {
                forgotten += 1;
                counts.retain(|_, count| count.0 > forgotten);
            }
        }
        let mut pairs: Vec<(u32, u64)> = counts
            .into_iter()
            .map(|(key, Count(rows, _))| (rows, key))
            .filter(|&(rows, _)| rows >= FEWEST_ROWS)
            .collect();
        pairs.sort_unstable_by_key(|&(rows, key)| (Reverse(rows), key));
        pairs.truncate(MOST_KEPT);
        let place = |number: u64| number as u32 - 1;
        pairs.into_iter().map(|(_, key)| [place(key >> 32), place(key & 0xffff_ffff)]).collect()
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        1 + self.words.len() + self.pairs.len()
    }

    /// The words, from number 1 on.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// The pairs, each by the places of its words, with numbers behind those of the words.
    pub(crate) fn pairs(&self) -> &[[u32; 2]] {
        &self.pairs
    }

    /// Words and pairs, each.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.words.len(), self.pairs.len())
    }

    /// The number of every word of a column.
    fn numbers(&self, texts: &Texts) -> Vec<u32> {
        let known: HashMap<&str, u32, FixedState> =
            self.words.iter().map(String::as_str).zip(1..).collect();
        texts.words().map(|word| known.get(word).copied().unwrap_or(UNKNOWN)).collect()
    }

    /// What is found in each row, row after row, and where each ends.
    pub(crate) fn tokens(&self, columns: &[&Texts], rows: u32) -> (Vec<u32>, Vec<usize>) {
        let first = 1 + self.words.len() as u32;
        let pairs = self.pairs.iter().zip(first..);
        let pairs: HashMap<u64, u32, FixedState> = pairs
            .filter_map(|(&[one, other], number)| Some((key(one + 1, other + 1)?, number)))
            .collect();
        let numbers: Vec<Vec<u32>> = columns.iter().map(|texts| self.numbers(texts)).collect();
        let (mut tokens, mut ends) = (Vec::new(), Vec::with_capacity(rows as usize));
        for row in 0..rows {
            for (texts, numbers) in columns.iter().zip(&numbers) {
                let words = texts.of(row);
                tokens.extend(words.iter().map(|&word| number(numbers, word)));
                let following = words.windows(2).filter_map(|pair| {
                    pairs.get(&key(number(numbers, pair[0]), number(numbers, pair[1]))?).copied()
                });
                tokens.extend(following);
            }
            ends.push(tokens.len());
        }
        (tokens, ends)
    }

    /// What may be found in a row, at most.
    pub(crate) fn longest(columns: usize) -> usize {
        columns * (2 * MOST_WORDS - 1)
    }

    /// That it is one that could have been written here; what is wrong with it otherwise.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.words.len() > MOST_KEPT || self.pairs.len() > MOST_KEPT {
            return Err("the vocabulary has more than 50,000 words or word pairs");
        }
        if self.words.iter().any(|word| word.is_empty() || word.len() > LONGEST_WORD) {
            return Err("the vocabulary has a word of no bytes or of more than 64");
        }
        let mut words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        words.sort_unstable();
        let mut pairs = self.pairs.clone();
        pairs.sort_unstable();
        if words.windows(2).any(|pair| pair[0] == pair[1])
            || pairs.windows(2).any(|pair| pair[0] == pair[1])
        {
            return Err("the vocabulary has a word or a word pair twice");
        }
        let known = |place: &u32| (*place as usize) < self.words.len();
        if !self.pairs.iter().flatten().all(known) {
            return Err("the vocabulary has a pair of words that it does not have");
        }
        Ok(())
    }
}

/// The number of a word of a column.
fn number(numbers: &[u32], word: u32) -> u32 {
    debug_assert!(word == NO_WORD || (word as usize) < numbers.len());
    numbers.get(word as usize).copied().unwrap_or(UNKNOWN)
}

/// Two words that are known, in one number.
fn key(one: u32, other: u32) -> Option<u64> {
    (one != UNKNOWN && other != UNKNOWN).then_some(u64::from(one) << 32 | u64::from(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &[&str]) -> Texts {
        let mut texts = Texts::default();
        rows.iter().for_each(|row| texts.push(row));
        texts
    }

    fn example() -> (Texts, Vocabulary) {
        let texts =
            texts(&["a good film", "A good good book", "bad film", "never bad film bad film"]);
        let vocabulary = Vocabulary::fit(&[&texts], &[0, 1, 2]);
        (texts, vocabulary)
    }

    #[test]
    fn it_knows_what_is_in_two_training_rows_and_nothing_of_others() {
        let (_, vocabulary) = example();
        // "good" is in two rows, however often; "bad" is in one of the three.
        assert_eq!(vocabulary.words, ["a", "film", "good"]);
        assert_eq!(vocabulary.pairs, [[0, 2]]);
        assert_eq!((vocabulary.len(), vocabulary.counts()), (5, (3, 1)));
    }

    #[test]
    fn a_row_is_its_words_then_its_pairs() {
        let (column, vocabulary) = example();
        let (tokens, ends) = vocabulary.tokens(&[&column], 4);
        assert_eq!(tokens[..ends[0]], [1, 3, 2, 4]);
        assert_eq!(tokens[ends[0]..ends[1]], [1, 3, 3, 0, 4]);
        assert_eq!(tokens[ends[2]..], [0, 0, 2, 0, 2]);
        let other = texts(&["", "unknown words", "good"]);
        assert_eq!(vocabulary.tokens(&[&other], 3), (vec![0, 0, 3], vec![0, 2, 3]));
        assert_eq!(vocabulary.tokens(&[&column, &column], 1).0, [1, 3, 2, 4, 1, 3, 2, 4]);
    }

    #[test]
    fn one_that_could_not_have_been_written_is_refused() {
        let (_, good) = example();
        assert_eq!(good.check(), Ok(()));
        let with = |change: fn(&mut Vocabulary)| {
            let mut vocabulary = good.clone();
            change(&mut vocabulary);
            vocabulary.check()
        };
        assert!(with(|v| v.words[0] = "film".to_owned()).is_err());
        assert!(with(|v| v.words[0] = String::new()).is_err());
        assert!(with(|v| v.words[0] = "x".repeat(LONGEST_WORD + 1)).is_err());
        assert!(with(|v| v.pairs.push([0, 3])).is_err());
        assert!(with(|v| v.pairs.push([0, 2])).is_err());
        assert!(with(|v| v.pairs = vec![[0, 0]; MOST_KEPT + 1]).is_err());
        assert!(with(|v| v.words = (0..=MOST_KEPT).map(|n| n.to_string()).collect()).is_err());
    }
}
