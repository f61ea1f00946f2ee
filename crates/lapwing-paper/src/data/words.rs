//! Texts as tokens, as torchtext's `basic_english` has them, and the vocabulary of a set of texts.

use std::collections::HashMap;

/// Stands behind a text that is shorter than the others.
pub(crate) const PAD: u32 = 0;
/// Stands for a word that the vocabulary does not hold.
pub(crate) const UNKNOWN: u32 = 1;
/// Tokens that are no words.
const SPECIAL: u32 = 2;

/// The words of a text: lower case, punctuation apart, quotation marks left out, line breaks of HTML, semicolons and colons as
/// spaces.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len() + 16);
    let text = text.to_lowercase().replace("<br />", " ");
    for letter in text.chars() {
        match letter {
            '\'' | '.' | ',' | '(' | ')' | '!' | '?' => spaced.extend([' ', letter, ' ']),
            '"' => {}
            ';' | ':' => spaced.push(' '),
            letter => spaced.push(letter),
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// The words of some texts, by how often they occur.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    places: HashMap<String, u32>,
}

impl Vocabulary {
    /// All words of the texts, the most frequent first, and among equally frequent ones in the order of their letters.
    pub(crate) fn of<'a>(texts: impl Iterator<Item = &'a Vec<String>>) -> Self {
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for word in texts.flatten() {
            *counts.entry(word).or_default() += 1;
        }
        let mut words: Vec<(&str, u64)> = counts.into_iter().collect();
        words.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let places = (SPECIAL..).zip(words).map(|(place, (word, _))| (word.to_owned(), place));
        Self { places: places.collect() }
    }

    /// Tokens there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() + SPECIAL as usize
    }

    /// The first `longest` words of a text as tokens, padded behind.
    pub(crate) fn encode(&self, words: &[String], longest: usize) -> impl Iterator<Item = u32> {
        let token = |word: &String| self.places.get(word).copied().unwrap_or(UNKNOWN);
        let found: Vec<u32> = words.iter().take(longest).map(token).collect();
        found.into_iter().chain(std::iter::repeat(PAD)).take(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_as_torchtext_cuts_them() {
        // from torchtext.data.utils import get_tokenizer; get_tokenizer("basic_english")(…)
        let found = tokens("It's \"GOOD\" (really!); 3.5<br />stars: isn't it?  Yes...");
        let expected = [
            "it", "'", "s", "good", "(", "really", "!", ")", "3", ".", "5", "stars", "isn", "'",
            "t", "it", "?", "yes", ".", ".", ".",
        ];
        assert_eq!(found, expected);
        assert!(tokens(" \n ").is_empty());
    }

    #[test]
    fn a_vocabulary_is_ordered_by_count_then_by_letters() {
        let texts = [tokens("b a c b"), tokens("c b d")];
        let vocabulary = Vocabulary::of(texts.iter());
        assert_eq!(vocabulary.len(), 6);
        let encoded: Vec<u32> = vocabulary.encode(&tokens("a b c d e"), 7).collect();
        assert_eq!(encoded, [4, 2, 3, 5, UNKNOWN, PAD, PAD]);
        assert_eq!(vocabulary.encode(&tokens("a b"), 1).collect::<Vec<_>>(), [4]);
    }
}
