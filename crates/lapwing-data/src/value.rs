//! A single value of a table: as stored in the file, and as what it looks like.

use std::fmt::Write;

use crate::date::{self, Moment};
use crate::numeral::Numerals;

/// A value as the file stores it. Text formats have text only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Raw<'a> {
    Null,
    Bool(bool),
    Integer(i128),
    Single(f32),
    Double(f64),
    Date(Moment),
    Text(&'a str),
    /// A list of numbers, as Parquet has them; NaN where one is missing.
    List(&'a [f32]),
}

/// A value as what it looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Missing,
    Infinite,
    Number(f64),
    Date(Moment),
    Text(&'a str),
}

/// Numbers of a list that are written where people read them.
const LISTED: usize = 4;

/// The texts that stand for a missing value when nothing else is asked for.
pub const MISSING_TOKENS: [&str; 24] = [
    "", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "-nan", "-NaN", "null", "NULL", "Null", "None",
    "NaT", "<NA>", "?", "\\N", "#N/A", "#NA", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "1.#QNAN",
];

/// Tells what values look like.
#[derive(Debug, Clone)]
pub(crate) struct Lexicon {
    missing: Vec<String>,
    /// Bit n: some token has n bytes (31: 31 or more). Most values are told from every token by their length.
    lengths: u32,
}

impl Lexicon {
    pub(crate) fn new(missing: &[String]) -> Self {
        let lengths = missing.iter().fold(0, |bits, token| bits | 1 << token.len().min(31));
        Self { missing: missing.to_vec(), lengths }
    }

    pub(crate) fn is_missing(&self, text: &str) -> bool {
        text.is_empty()
            || (self.lengths >> text.len().min(31) & 1 == 1
                && self.missing.iter().any(|token| token == text))
    }

    /// What a value looks like; white space around it does not count.
    pub(crate) fn look<'a>(&self, raw: Raw<'a>) -> Value<'a> {
        match raw {
            Raw::Null => Value::Missing,
            Raw::Bool(true) => Value::Text("true"),
            Raw::Bool(false) => Value::Text("false"),
            Raw::Integer(number) => Value::Number(number as f64),
            Raw::Single(number) => finite(f64::from(number)),
            Raw::Double(number) => finite(number),
            Raw::Date(moment) => Value::Date(moment),
            Raw::Text(text) => self.look_at_text(trimmed(text)),
            // Whoever cannot use lists has refused the column.
            Raw::List(_) => Value::Text("(list)"),
        }
    }

    fn look_at_text<'a>(&self, text: &'a str) -> Value<'a> {
        if self.is_missing(text) {
            return Value::Missing;
        }
        // Only what starts like a number is given to the number parser: it also knows words such as "nan".
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        match digits.as_bytes().first() {
            Some(b'0'..=b'9' | b'.') => match text.parse::<f64>() {
                Ok(number) => finite(number),
                Err(_) => date::parse(text).map_or(Value::Text(text), Value::Date),
            },
            Some(b'i' | b'I')
                if digits.eq_ignore_ascii_case("inf")
                    || digits.eq_ignore_ascii_case("infinity") =>
            {
                Value::Infinite
            }
            _ => Value::Text(text),
        }
    }

    /// What a value looks like in a column whose numbers are written in a certain way.
    pub(crate) fn look_as<'a>(&self, raw: Raw<'a>, numerals: Numerals) -> Value<'a> {
        let value = self.look(raw);
        match (numerals, value, raw) {
            (Numerals::Point | Numerals::Comma, Value::Text(text), _) => {
                numerals.read(text).map_or(value, Value::Number)
            }
            // Where the comma is decimal, a point separates thousands.
            (Numerals::Comma, Value::Number(_), Raw::Text(text)) if text.contains('.') => {
                let text = trimmed(text);
                numerals.read(text).map_or(Value::Text(text), Value::Number)
            }
            _ => value,
        }
    }

    /// The value as a name, `None` when missing. Names do not depend on who wrote the file: `True`, `TRUE` and a
    /// Parquet boolean are `true`; `3.0` is `3`, as a data frame writes whole numbers in either way; `03` is a code of
    /// its own.
    pub(crate) fn text<'a>(&self, raw: Raw<'a>, buffer: &'a mut String) -> Option<&'a str> {
        match raw {
            Raw::Text(text) => {
                let text = trimmed(text);
                (!self.is_missing(text)).then(|| spelt(text))
            }
            raw if self.look(raw) == Value::Missing => None,
            raw => {
                buffer.clear();
                write_raw(raw, buffer);
                Some(buffer)
            }
        }
    }
}

/// The one spelling of a name.
pub(crate) fn spelt(text: &str) -> &str {
    match text.len() {
        4 if text.eq_ignore_ascii_case("true") => "true",
        5 if text.eq_ignore_ascii_case("false") => "false",
        _ if text.ends_with(['0', '.']) => whole(text).unwrap_or(text),
        _ => text,
    }
}

/// A whole number without the zeros behind its point; not a code, which may begin with a zero.
fn whole(text: &str) -> Option<&str> {
    let (number, zeros) = text.split_once('.')?;
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_number = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    (is_number && zeros.bytes().all(|byte| byte == b'0')).then_some(number)
}

/// Without white space at its ends; the common case, none, is told by two bytes.
fn trimmed(text: &str) -> &str {
    let is_ink = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    let bytes = text.as_bytes();
    if is_ink(bytes.first()) && is_ink(bytes.last()) { text } else { text.trim() }
}

fn finite(number: f64) -> Value<'static> {
    if number.is_nan() {
        Value::Missing
    } else if number.is_infinite() {
        Value::Infinite
    } else {
        Value::Number(number)
    }
}

/// Appends the value as it would stand in a text file.
pub(crate) fn write_raw(raw: Raw<'_>, buffer: &mut String) {
    // Writing to a string cannot fail.
    let _ = match raw {
        Raw::Null => Ok(()),
        Raw::Bool(truth) => write!(buffer, "{truth}"),
        Raw::Integer(number) => write!(buffer, "{number}"),
        Raw::Single(number) => write!(buffer, "{number}"),
        Raw::Double(number) => write!(buffer, "{number}"),
        Raw::Date(moment) => write!(buffer, "{}", date::format(moment.seconds, moment.has_time)),
        Raw::Text(text) => write!(buffer, "{text}"),
        Raw::List(numbers) => {
            let shown: Vec<String> = numbers.iter().take(LISTED).map(ToString::to_string).collect();
            let more = if numbers.len() > LISTED { ", …" } else { "" };
            write!(buffer, "[{}{more}]", shown.join(", "))
        }
    };
}

/// Digits only, more than one, the first a zero: a code such as a postal code, not a quantity.
pub(crate) fn has_leading_zero(text: &str) -> bool {
    let bytes = trimmed(text).as_bytes();
    bytes.len() > 1 && bytes[0] == b'0' && bytes.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon() -> Lexicon {
        Lexicon::new(&MISSING_TOKENS.map(str::to_owned))
    }

    #[test]
    fn values_are_told_apart() {
        let lexicon = lexicon();
        let look = |text| lexicon.look(Raw::Text(text));
        for (text, number) in
            [("1", 1.0), (" -2.5 ", -2.5), ("+3", 3.0), (".5", 0.5), ("1e3", 1000.0), ("007", 7.0)]
        {
            assert_eq!(look(text), Value::Number(number), "{text}");
        }
        for text in ["", "  ", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"] {
            assert_eq!(look(text), Value::Missing, "{text}");
        }
        for text in ["inf", "-Infinity", "+INF", "1e999"] {
            assert_eq!(look(text), Value::Infinite, "{text}");
        }
        for text in
            ["a", "1,5", "5%", "0x1f", "1_000", "-", "+nan", "Nantes", "infra", "2024-13-01", "--1"]
        {
            assert_eq!(look(text), Value::Text(text), "{text}");
        }
        assert!(matches!(look("2024-01-31"), Value::Date(Moment { has_time: false, .. })));
    }

    #[test]
    fn a_name_has_one_spelling_whoever_wrote_it() {
        let lexicon = lexicon();
        fn text(lexicon: &Lexicon, raw: Raw<'_>) -> Option<String> {
            lexicon.text(raw, &mut String::new()).map(str::to_owned)
        }
        let text = |raw: Raw<'_>| text(&lexicon, raw);
        let name = |value: &str| text(Raw::Text(value)).unwrap();
        for truth in ["True", "TRUE", "true", " True "] {
            assert_eq!(Some(name(truth)), text(Raw::Bool(true)));
        }
        for three in ["3", "3.0", "3.", "3.000"] {
            assert_eq!(Some(name(three)), text(Raw::Double(3.0)), "{three}");
        }
        assert_eq!(name("-7.0"), text(Raw::Integer(-7)).unwrap());
        assert_eq!(name("0.0"), text(Raw::Single(0.0)).unwrap());
        for other in ["03", "03.0", "1.10", "3.5", "x.0", ".0", "1.0.0", "-", "truer"] {
            assert_eq!(name(other), other);
        }
    }

    #[test]
    fn tokens_for_missing_values_can_be_chosen() {
        let lexicon = Lexicon::new(&["-999".to_owned()]);
        assert_eq!(lexicon.look(Raw::Text("-999")), Value::Missing);
        assert_eq!(lexicon.look(Raw::Text("NA")), Value::Text("NA"));
    }

    #[test]
    fn codes_with_leading_zeros_are_not_quantities() {
        assert!(has_leading_zero("02134") && has_leading_zero("00"));
        assert!(!has_leading_zero("0") && !has_leading_zero("0.5") && !has_leading_zero("10"));
    }
}
