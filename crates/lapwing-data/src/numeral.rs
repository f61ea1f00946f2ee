//! Numbers as people write them: with a decimal comma, thousands in groups, a currency or a per cent sign.
//!
//! `1,234` is a thousand in one country and a little more than one in another, so how a column is written is decided once,
//! from all its values, and kept with the model.

use serde::{Deserialize, Serialize};

/// How the numbers of a column are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Numerals {
    /// As programs write them: `1234.5`.
    #[default]
    Plain,
    /// `1,234.5`, `$12`, `5 %`.
    Point,
    /// `1.234,5`, `12 €`.
    Comma,
}

const CURRENCIES: [char; 11] = ['$', '€', '£', '¥', '₹', '₽', '₩', '₺', '₴', '₪', '฿'];
const SIGNS: [char; 2] = ['%', '‰'];
/// What stands between groups of three digits everywhere.
const GAPS: [char; 4] = ['\'', '’', '\u{a0}', '\u{202f}'];

impl Numerals {
    /// The number that a text stands for. A per cent sign is a unit like any other: `5 %` is 5.
    pub(crate) fn read(self, text: &str) -> Option<f64> {
        let (point, groups) = match self {
            Self::Plain => return None,
            Self::Point => ('.', ','),
            Self::Comma => (',', '.'),
        };
        let (negative, body) = undressed(text)?;
        let (whole, fraction) = body.split_once(point).unwrap_or((body, ""));
        let digits_only = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits_only(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let mut plain = String::with_capacity(body.len() + 2);
        let mut parts = whole.split(|mark: char| mark == groups || GAPS.contains(&mark));
        let first = parts.next().unwrap_or_default();
        let mut grouped = false;
        plain.push_str(first);
        for part in parts {
            if part.len() != 3 {
                return None;
            }
            grouped = true;
            plain.push_str(part);
        }
        // Groups begin with one to three digits that are no zero: 0,125 is an eighth.
        if !digits_only(&plain)
            || (grouped && (first.is_empty() || first.len() > 3 || first.starts_with('0')))
        {
            return None;
        }
        plain.push('.');
        plain.push_str(fraction);
        let number: f64 = plain.parse().ok()?;
        Some(if negative { -number } else { number }).filter(|number| number.is_finite())
    }
}

/// The sign, and what is left without sign, currency and per cent.
fn undressed(text: &str) -> Option<(bool, &str)> {
    let (negative, text) = signed(text);
    let symbols = |mark: char| CURRENCIES.contains(&mark) || SIGNS.contains(&mark);
    let text = match text.strip_prefix(|mark| CURRENCIES.contains(&mark)) {
        Some(rest) => rest.trim_start(),
        None => text,
    };
    let text = text.strip_suffix(symbols).map_or(text, str::trim_end);
    let (inner, text) = signed(text);
    let twice = negative && inner;
    (!text.is_empty() && !twice).then_some((negative || inner, text))
}

fn signed(text: &str) -> (bool, &str) {
    // Typographers write a minus sign of its own.
    match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (text, number) in [
            ("1,234", 1234.0),
            ("1,234,567.5", 1_234_567.5),
            ("$12", 12.0),
            ("-$1,000.25", -1000.25),
            ("$-3", -3.0),
            ("€ 5", 5.0),
            ("5%", 5.0),
            ("−5 %", -5.0),
            ("1'234.5", 1234.5),
            (".5%", 0.5),
        ] {
            assert_eq!(Numerals::Point.read(text), Some(number), "{text}");
        }
        for (text, number) in [
            ("1,5", 1.5),
            ("1.234,5", 1234.5),
            ("0,125", 0.125),
            ("12 €", 12.0),
            ("-7,25 %", -7.25),
            ("1\u{a0}234,5", 1234.5),
            ("3", 3.0),
        ] {
            assert_eq!(Numerals::Comma.read(text), Some(number), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_stays_text() {
        for text in [
            "",
            "-",
            "$",
            "%",
            "1,5",
            "1,2345",
            "0,125",
            "12,34,567",
            ",5",
            "1,234,",
            "a5",
            "5a",
            "1.2.3",
            "5 kg",
            "--5",
            "-$-5",
            "2024-01-01",
            "12:30",
            "1 234",
            "5%%",
            "u17",
        ] {
            assert_eq!(Numerals::Point.read(text), None, "{text}");
        }
        for text in ["1.5", "192.168.0.1", "1.2.3", "1,234,5", ",", "1,5,", "5a"] {
            assert_eq!(Numerals::Comma.read(text), None, "{text}");
        }
    }
}
