//! Type inference: what a column looks like after all its values went by.

use crate::date::DAY;
use crate::distinct::{Distinct, DistinctCounter};
use crate::error::shortened;
use crate::schema::{Kind, Reason, Storage};
use crate::value::{Lexicon, Raw, Value, has_leading_zero};

/// Fewer values than this do not tell an identifier from a feature.
const MIN_VALUES_FOR_ID: u64 = 20;
/// Share of different values from which on a column names rows rather than describes them.
const ID_SHARE: f64 = 0.9;
/// Levels up to which a column called an identifier is still one of a few groups.
const MAX_GROUPS: u64 = 50;
/// Mean words and characters from which on values are free text.
const TEXT_WORDS: f64 = 6.0;
const TEXT_CHARACTERS: f64 = 50.0;

/// What is remembered of a column in the first pass.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    missing: u64,
    numbers: u64,
    infinite: u64,
    dates: u64,
    texts: u64,
    characters: u64,
    words: u64,
    low: f64,
    high: f64,
    integers: bool,
    /// Every number is the one before plus one.
    sequential: bool,
    last: f64,
    leading_zero: bool,
    with_time: bool,
    first_text: Option<(u64, String)>,
    counter: DistinctCounter,
}

/// What inference says about a column before roles and wishes are known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) unfit: Option<Reason>,
    pub(crate) note: Option<String>,
}

impl Profile {
    pub(crate) fn new() -> Self {
        Self {
            missing: 0,
            numbers: 0,
            infinite: 0,
            dates: 0,
            texts: 0,
            characters: 0,
            words: 0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            integers: true,
            sequential: true,
            last: f64::NAN,
            leading_zero: false,
            with_time: false,
            first_text: None,
            counter: DistinctCounter::default(),
        }
    }

    pub(crate) fn observe(&mut self, lexicon: &Lexicon, raw: Raw<'_>, row: u64) {
        match lexicon.look(raw) {
            Value::Missing => self.missing += 1,
            Value::Infinite => self.infinite += 1,
            Value::Number(number) => {
                self.sequential &= self.numbers == 0 || number - self.last == 1.0;
                self.last = number;
                self.numbers += 1;
                self.integers &= number.fract() == 0.0;
                self.range(number);
                self.counter.observe_number(number);
                if let Raw::Text(text) = raw {
                    self.leading_zero |= has_leading_zero(text);
                }
            }
            Value::Date(moment) => {
                self.dates += 1;
                self.with_time |= moment.has_time;
                self.range(moment.seconds);
                self.counter.observe_number(moment.seconds);
            }
            Value::Text(text) => {
                self.texts += 1;
                self.characters += text.chars().count() as u64;
                self.words += text.split_whitespace().count() as u64;
                if self.first_text.is_none() {
                    self.first_text = Some((row, shortened(text)));
                }
                self.counter.observe_text(text);
            }
        }
    }

    fn range(&mut self, number: f64) {
        self.low = self.low.min(number);
        self.high = self.high.max(number);
    }

    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    pub(crate) fn distinct(&self) -> Distinct {
        self.counter.distinct()
    }

    /// Whether the values are at most `limit` different whole numbers.
    pub(crate) fn is_few_integers(&self, limit: u64) -> bool {
        self.integers && self.distinct().count <= limit
    }

    /// What the column is, judged by its values and its name alone.
    pub(crate) fn finding(&self, name: &str) -> Finding {
        let present = self.numbers + self.infinite + self.dates + self.texts;
        let kind = self.kind(name, present);
        let mut notes = Vec::new();
        if self.infinite > 0 && kind == Kind::Numeric {
            notes.push(format!("{} infinite values count as missing", self.infinite));
        }
        if self.leading_zero && kind == Kind::Categorical && self.texts == 0 {
            notes.push("codes with leading zeros".to_owned());
        }
        if let Some((row, text)) = &self.first_text
            && self.numbers > self.texts
        {
            notes.push(format!(
                "{} of {present} values are not numbers, the first is {text:?} in row {row}",
                self.texts
            ));
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Finding { kind, unfit: self.unfit(name, kind, present), note }
    }

    fn kind(&self, name: &str, present: u64) -> Kind {
        if self.texts == 0 && self.dates == 0 {
            let few_groups = is_id_name(name) && self.is_few_integers(MAX_GROUPS) && present > 0;
            return if self.leading_zero || few_groups { Kind::Categorical } else { Kind::Numeric };
        }
        if self.dates == present {
            return Kind::Date;
        }
        let mean = |total: u64| total as f64 / self.texts.max(1) as f64;
        let long = mean(self.words) >= TEXT_WORDS || mean(self.characters) >= TEXT_CHARACTERS;
        if long && self.distinct().count > MAX_GROUPS { Kind::Text } else { Kind::Categorical }
    }

    fn unfit(&self, name: &str, kind: Kind, present: u64) -> Option<Reason> {
        let distinct = self.distinct().count;
        if present == 0 {
            return Some(Reason::AllMissing);
        }
        // One value beside missing ones still tells rows apart.
        if distinct <= 1 && self.missing == 0 {
            return Some(Reason::Constant);
        }
        let nearly_all_differ = distinct as f64 >= ID_SHARE * present as f64;
        let id_like = present >= MIN_VALUES_FOR_ID
            && match kind {
                Kind::Numeric => {
                    self.integers
                        && (self.sequential || (is_id_name(name) && distinct > MAX_GROUPS))
                }
                Kind::Categorical => {
                    nearly_all_differ || (is_id_name(name) && distinct > MAX_GROUPS)
                }
                Kind::Date | Kind::Text => false,
            };
        if id_like {
            return Some(Reason::IdLike);
        }
        (kind == Kind::Text).then_some(Reason::FreeText)
    }

    /// How to keep numbers or dates of this range in 32 bits.
    pub(crate) fn storage(&self, kind: Kind) -> Storage {
        let unit = if kind == Kind::Date && !self.with_time { DAY } else { 1.0 };
        let (low, high) = (self.low / unit, self.high / unit);
        let far_from_zero = low.abs().max(high.abs()) > 8.0 * (high - low);
        let offset = if low.is_finite() && far_from_zero { low } else { 0.0 };
        Storage { offset, unit, with_time: self.with_time }
    }
}

/// Whether a column is called an identifier: `id`, `user_id`, `WorkerID`, `uuid`, …; but not `paid`.
fn is_id_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    if matches!(
        lower.as_str(),
        "id" | "uuid" | "guid" | "key" | "index" | "idx" | "rowid" | "unnamed: 0"
    ) {
        return true;
    }
    let separated = ["_", "-", " ", "."].iter().any(|mark| {
        ["id", "uuid", "guid", "key"].iter().any(|word| lower.ends_with(&format!("{mark}{word}")))
    });
    let camel = name.strip_suffix("ID").or_else(|| name.strip_suffix("Id"));
    separated || camel.is_some_and(|stem| stem.ends_with(|last: char| last.is_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::MISSING_TOKENS;

    fn finding<T: AsRef<str>>(name: &str, values: impl IntoIterator<Item = T>) -> Finding {
        let lexicon = Lexicon::new(&MISSING_TOKENS.map(str::to_owned));
        let mut profile = Profile::new();
        for (row, value) in values.into_iter().enumerate() {
            profile.observe(&lexicon, Raw::Text(value.as_ref()), row as u64 + 1);
        }
        profile.finding(name)
    }

    fn kinds(name: &str, values: &[&str]) -> (Kind, Option<Reason>) {
        let found = finding(name, values);
        (found.kind, found.unfit)
    }

    #[test]
    fn plain_columns_are_told_by_their_values() {
        assert_eq!(kinds("x", &["1", "2.5", "NA"]), (Kind::Numeric, None));
        assert_eq!(kinds("x", &["red", "blue", "red"]), (Kind::Categorical, None));
        assert_eq!(kinds("x", &["2024-01-01", "", "2024-01-02T10:00"]), (Kind::Date, None));
        assert_eq!(kinds("x", &["2024-01-01", "17"]), (Kind::Categorical, None));
        assert_eq!(kinds("zip", &["02134", "10001"]), (Kind::Categorical, None));
    }

    #[test]
    fn constant_and_empty_columns_are_unfit() {
        assert_eq!(kinds("x", &["7", "7"]), (Kind::Numeric, Some(Reason::Constant)));
        assert_eq!(kinds("x", &["", "NA"]), (Kind::Numeric, Some(Reason::AllMissing)));
        assert_eq!(kinds("x", &["yes", ""]), (Kind::Categorical, None));
    }

    #[test]
    fn identifiers_are_unfit() {
        let id = Some(Reason::IdLike);
        assert_eq!(finding("n", (5..500).map(|i| i.to_string())).unfit, id);
        assert_eq!(finding("user", (0..500).map(|i| format!("u{}", i * 7 % 500))).unfit, id);
        assert_eq!(finding("userId", (0..5000).map(|i| (i * 7 % 700).to_string())).unfit, id);
        assert_eq!(finding("count", (0..5000).map(|i| (i * 7 % 700).to_string())).unfit, None);
        assert_eq!(finding("price", (0..500).map(|i| (i as f64 * 1.5).to_string())).unfit, None);
        let shops = finding("shop_id", (0..5000).map(|i| (i * 7 % 30).to_string()));
        assert_eq!((shops.kind, shops.unfit), (Kind::Categorical, None));
    }

    #[test]
    fn names_of_identifiers_are_recognised() {
        for name in ["id", "ID", "user_id", "WorkerID", "customerId", "Unnamed: 0", "order-id"] {
            assert!(is_id_name(name), "{name}");
        }
        for name in ["paid", "PAID", "grid", "humid", "keyboard", "idle"] {
            assert!(!is_id_name(name), "{name}");
        }
    }

    #[test]
    fn free_text_is_not_categorical() {
        let review = |i| format!("the film number {i} was rather long and not very good");
        assert_eq!(finding("review", (0..100).map(review)).kind, Kind::Text);
        assert_eq!(finding("review", (0..100).map(|i| review(i % 3))).kind, Kind::Categorical);
    }

    #[test]
    fn a_number_column_with_one_word_says_where_the_word_is() {
        let values = (0..100)
            .map(|i| if i == 41 { "oops".to_owned() } else { format!("{}", f64::from(i) / 3.0) });
        assert!(finding("x", values).note.unwrap().contains("\"oops\" in row 42"));
    }
}
