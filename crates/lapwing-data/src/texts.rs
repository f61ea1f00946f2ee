//! A column of texts in memory: its words by number, and the beginning of each text for people.

use indexmap::IndexSet;

use crate::words::{beginning, words};

/// Different words that are kept by name in a column; a further one is [`NO_WORD`].
const MOST_DIFFERENT: usize = 1 << 22;
/// Number of a word that is not kept.
pub(crate) const NO_WORD: u32 = u32::MAX;
/// Bytes of a text that people are shown.
const SHOWN: usize = 600;

/// Texts, one after another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    words: IndexSet<Box<str>>,
    numbers: Vec<u32>,
    /// Where each text ends among the numbers.
    ends: Vec<usize>,
    shown: String,
    /// Where each text ends in what is shown.
    shown_ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        for word in words(text) {
            let known = self.words.get_index_of(word.as_ref());
            let number = match known {
                Some(number) => number as u32,
                None if self.words.len() < MOST_DIFFERENT => {
                    self.words.insert_full(word.into()).0 as u32
                }
                None => NO_WORD,
            };
            self.numbers.push(number);
        }
        self.ends.push(self.numbers.len());
        let shown = beginning(text, SHOWN);
        self.shown.push_str(shown);
        if shown.len() < text.len() {
            self.shown.push('…');
        }
        self.shown_ends.push(self.shown.len());
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.words.shrink_to_fit();
        self.numbers.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.shown.shrink_to_fit();
        self.shown_ends.shrink_to_fit();
    }

    /// The different words, by number.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.words.iter().map(AsRef::as_ref)
    }

    /// The words of a text by number, in their order.
    pub(crate) fn of(&self, row: u32) -> &[u32] {
        &self.numbers[part(&self.ends, row)]
    }

    /// Whether there is nothing in a text, not even what is no word.
    pub(crate) fn is_blank(&self, row: u32) -> bool {
        part(&self.shown_ends, row).is_empty()
    }

    /// The beginning of a text; nothing where there is no such row.
    pub(crate) fn shown(&self, row: u32) -> &str {
        if (row as usize) < self.shown_ends.len() {
            &self.shown[part(&self.shown_ends, row)]
        } else {
            ""
        }
    }
}

fn part(ends: &[usize], row: u32) -> std::ops::Range<usize> {
    let begin = row.checked_sub(1).map_or(0, |before| ends[before as usize]);
    begin..ends[row as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_as_words_and_by_their_beginning() {
        let mut texts = Texts::default();
        for text in ["Good, good film", "", &"é".repeat(SHOWN)] {
            texts.push(text);
        }
        let words: Vec<&str> = texts.words().collect();
        assert_eq!(words[..2], ["good", "film"]);
        assert_eq!((texts.of(0), texts.of(1), texts.of(2)), (&[0, 0, 1][..], &[][..], &[2][..]));
        assert_eq!((texts.shown(0), texts.shown(1), texts.shown(7)), ("Good, good film", "", ""));
        assert_eq!(texts.shown(2), format!("{}…", "é".repeat(SHOWN / 2)));
        assert!(texts.is_blank(1) && !texts.is_blank(0));
    }
}
