//! Names from the data: any text at all, made safe to read.
//!
//! Escaping for HTML is the template's work. Here the reader is protected: characters that are invisible or that
//! reorder their surroundings are spelt out, so that two names that differ also look different, and names that do not
//! fit are shortened in the middle, where they tend to differ least.

use crate::number;

/// Longest name in tables and sentences, in characters.
const TABLE: usize = 64;
/// Longest name that is called one in full: a page with two thousand of them is still one to be opened.
const FULL: usize = 1000;
/// Longest beginning of a text.
const PASSAGE: usize = 400;
/// Longest name beside a line of a picture.
const LABEL: usize = 20;

/// Spells out characters that cannot be seen or that change the direction of what follows.
pub fn reveal(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for (i, &c) in chars.iter().enumerate() {
        let at_edge = i == 0 || i + 1 == chars.len();
        // Joiners belong inside words of some scripts and inside emoji; beside plain Latin they only hide.
        let joiner_hides = || at_edge || chars[i - 1].is_ascii() || chars[i + 1].is_ascii();
        match c {
            ' ' if at_edge => out.push('␠'),
            '\u{200C}' | '\u{200D}' if !joiner_hides() => out.push(c),
            c if is_invisible(c) => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180E}'
            | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

fn elide(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let tail = (most - 1) / 3;
    let head = most - 1 - tail;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// For tables and captions.
pub(crate) fn short(name: &str) -> String {
    elide(&reveal(name), TABLE)
}

/// The beginning of a text that may have many lines, on one.
pub fn passage(text: &str) -> String {
    let mut words = text.split_whitespace();
    let mut line = String::new();
    let full = words.by_ref().any(|word| {
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
        line.len() > PASSAGE
    });
    if full && words.next().is_some() {
        line.push_str(" …");
    }
    if line.is_empty() {
        return "(empty)".to_owned();
    }
    let shown = reveal(&line);
    match shown.char_indices().nth(PASSAGE) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

/// The name in full, without what cannot be seen, where the short form leaves something out.
pub(crate) fn in_full(source: &str, short: &str) -> Option<String> {
    Some(elide(&reveal(source), FULL)).filter(|full| full != short)
}

/// For labels inside pictures.
pub(crate) fn label(name: &str) -> String {
    elide(&reveal(name), LABEL)
}

/// In a sentence: in quotation marks, and isolated from it where its script may run the other way.
pub(crate) fn quoted(name: &str) -> String {
    let name = short(name);
    if name.is_ascii() { format!("“{name}”") } else { format!("“\u{2068}{name}\u{2069}”") }
}

/// `“a”, “b” and 3 others`: at most `most` names.
pub(crate) fn list<S: AsRef<str>>(names: &[S], most: usize) -> String {
    list_of(names, names.len(), most)
}

/// The same of `count` names, of which only the first are known.
pub(crate) fn list_of<S: AsRef<str>>(names: &[S], count: usize, most: usize) -> String {
    let shown = if count == most + 1 { count } else { most }.min(names.len());
    let mut parts: Vec<String> = names[..shown].iter().map(|name| quoted(name.as_ref())).collect();
    if count > shown {
        parts.push(format!("{} others", number::words(count - shown)));
    }
    join(&parts)
}

/// `a, b and c`.
pub(crate) fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_one_line_of_bounded_length_in_which_nothing_hides() {
        assert_eq!(passage(" a\n\tb\u{1b}[31m \u{202e}<b> "), "a b⟨U+001B⟩[31m ⟨U+202E⟩<b>");
        assert_eq!(passage(" \n"), "(empty)");
        for long in ["x".repeat(100_000), "é ".repeat(100_000), "\0".repeat(100_000)] {
            let shown = passage(&long);
            assert!(shown.chars().count() <= PASSAGE + 2 && shown.ends_with('…'), "{shown}");
        }
    }

    #[test]
    fn invisible_and_reordering_characters_are_spelt_out() {
        assert_eq!(reveal("a\u{200B}b"), "a⟨U+200B⟩b");
        assert_eq!(reveal("\u{202E}evil"), "⟨U+202E⟩evil");
        assert_eq!(reveal("a\0b\nc"), "a⟨U+0000⟩b⟨U+000A⟩c");
        assert_eq!(reveal("a\u{200D}b"), "a⟨U+200D⟩b");
        assert_eq!(reveal(" a b "), "␠a b␠");
        assert_eq!(reveal(""), "(empty)");
    }

    #[test]
    fn ordinary_scripts_and_emoji_are_left_alone() {
        for name in ["Zürich", "שלום", "می\u{200C}خواهم", "👩\u{200D}🔬", "東京"]
        {
            assert_eq!(reveal(name), name);
        }
    }

    #[test]
    fn long_names_keep_their_beginning_and_end() {
        let name = format!("{}{}", "x".repeat(10_000), "-end");
        let short = short(&name);
        assert_eq!(short.chars().count(), TABLE);
        assert!(short.starts_with("xxx") && short.contains('…') && short.ends_with("-end"));
        assert_eq!(label("a name that is too long").chars().count(), LABEL);
    }

    #[test]
    fn a_foreign_name_cannot_reorder_its_sentence() {
        assert_eq!(quoted("abc"), "“abc”");
        assert_eq!(quoted("שלום"), "“\u{2068}שלום\u{2069}”");
    }

    #[test]
    fn lists_read_as_english() {
        assert_eq!(list(&["a"], 3), "“a”");
        assert_eq!(list(&["a", "b"], 3), "“a” and “b”");
        assert_eq!(list(&["a", "b", "c", "d"], 3), "“a”, “b”, “c” and “d”");
        assert_eq!(list(&["a", "b", "c", "d", "e"], 3), "“a”, “b”, “c” and two others");
        assert_eq!(list_of(&["a", "b"], 1_000_000, 1), "“a” and 999,999 others");
    }
}
