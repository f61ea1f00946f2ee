//! The words of a text, by Unicode's rules of where words end (UAX #29).
//!
//! A word is what stands between two such borders and has a letter or a digit in it, in small letters; so `Don't!` is
//! `don't`. Exclamation and question marks and signs such as emoji are words, too; white space and other marks are none.
//! Languages that write no spaces are cut where these rules cut them: Chinese into characters, Thai hardly at all.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use unicode_segmentation::UnicodeSegmentation;

/// Words of a text that are looked at; the rest is cut off.
pub(crate) const MOST_WORDS: usize = 1_000;
/// Bytes of a word that tell it from others.
pub(crate) const LONGEST_WORD: usize = 64;
/// Signs: arrows, mathematics, boxes, and emoji. Between them and behind them come scripts with punctuation of their own.
const SIGNS: [RangeInclusive<char>; 2] = ['\u{2190}'..='\u{2bff}', '\u{1f000}'..='\u{1faff}'];

/// The first 1,000 words of a text, in small letters, as models of texts see them.
pub fn words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split_word_bounds().filter(|piece| is_word(piece)).take(MOST_WORDS).map(spelt)
}

fn is_word(piece: &str) -> bool {
    matches!(piece, "!" | "?" | "！" | "？")
        || piece
            .chars()
            .any(|c| c.is_alphanumeric() || SIGNS.iter().any(|signs| signs.contains(&c)))
}

/// The one spelling of a word.
fn spelt(word: &str) -> Cow<'_, str> {
    let word = beginning(word, LONGEST_WORD);
    if word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(word);
    }
    let mut lower = word.to_lowercase();
    // Some letters take more bytes when they are small.
    lower.truncate(beginning(&lower, LONGEST_WORD).len());
    Cow::Owned(lower)
}

/// So many bytes of a text, or a few less where a letter would be cut.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        words(text).map(Cow::into_owned).collect()
    }

    #[test]
    fn words_end_where_unicode_says() {
        assert_eq!(
            found("Don't  PANIC, it's 3.5 km!"),
            ["don't", "panic", "it's", "3.5", "km", "!"]
        );
        assert_eq!(found("Ça va ? ÉTÉ—naïve"), ["ça", "va", "?", "été", "naïve"]);
        assert_eq!(found("so 😂😂 ♥ (really…)"), ["so", "😂", "😂", "♥", "really"]);
        assert_eq!(found("我爱你。"), ["我", "爱", "你"]);
        assert_eq!(found("a\0b\u{1b}[31m<script>"), ["a", "b", "31m", "script"]);
        assert!(found("").is_empty() && found(" \t\u{a0}\u{3000}.,-…").is_empty());
    }

    #[test]
    fn long_texts_and_long_words_are_cut() {
        assert_eq!(found(&"a ".repeat(MOST_WORDS + 5)).len(), MOST_WORDS);
        let long = found(&"İ".repeat(1_000_000));
        assert!(long.len() == 1 && long[0].len() <= LONGEST_WORD, "{}", long[0].len());
        assert_eq!(found(&"X".repeat(100)), ["x".repeat(LONGEST_WORD)]);
    }
}
