//! Type inference: what a column looks like after all its values went by.

use std::fmt;

use crate::date::{self, DAY};
use crate::distinct::{Distinct, DistinctCounter};
use crate::error::shortened;
use crate::file::Record;
use crate::numeral::Numerals;
use crate::schema::{Kind, Reason, Storage};
use crate::value::{Lexicon, Raw, Value, has_leading_zero, write_raw};

/// Fewer values than this do not tell an identifier from a feature.
const MIN_VALUES_FOR_ID: u64 = 20;
/// Share of different values from which on a column names rows rather than describes them.
const ID_SHARE: f64 = 0.9;
/// Levels up to which a column called an identifier is still one of a few groups.
const MAX_GROUPS: u64 = 50;
/// Mean words and characters from which on values are free text.
const TEXT_WORDS: f64 = 6.0;
const TEXT_CHARACTERS: f64 = 50.0;
/// Share of values of one kind from which on the others are more likely mistakes than names.
const NEARLY_ALL: f64 = 0.95;
/// Whole numbers from here on have neighbours that are the same in 64 bits.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

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
    /// Of numbers and dates.
    range: Range,
    integers: bool,
    /// Whole numbers that 64 bits of a float cannot tell from their neighbours.
    beyond: u64,
    /// Every number is the one before plus one.
    sequential: bool,
    last: f64,
    leading_zero: bool,
    /// Some number is written with a point.
    points: bool,
    /// Texts that are numbers when read in either way, and whether the two ways differ.
    as_point: Dressed,
    as_comma: Dressed,
    ambiguous: bool,
    /// Texts such as 01/02/2024.
    slashed_dates: u64,
    with_time: bool,
    first_text: Option<Sighting>,
    first_number: Option<Sighting>,
    first_dressed: Option<Sighting>,
    /// Lists of numbers, and the length of the first, the shortest and the longest.
    lists: u64,
    width: usize,
    shortest: usize,
    longest: usize,
    counter: DistinctCounter,
}

/// Where a value stands, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sighting {
    pub(crate) line: Option<u64>,
    pub(crate) row: u64,
    pub(crate) value: String,
}

impl Sighting {
    fn new(record: &Record<'_>, value: &str) -> Self {
        Self { line: record.line, row: record.row, value: shortened(value) }
    }
}

impl fmt::Display for Sighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{:?} in line {line}", self.value),
            None => write!(f, "{:?} in row {}", self.value, self.row),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    const EMPTY: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };

    fn observe(&mut self, number: f64) {
        self.low = self.low.min(number);
        self.high = self.high.max(number);
    }

    fn and(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// Texts that are numbers in one of the ways of writing them.
#[derive(Debug, Clone, Copy)]
struct Dressed {
    count: u64,
    range: Range,
    integers: bool,
}

impl Dressed {
    const NONE: Self = Self { count: 0, range: Range::EMPTY, integers: true };

    fn observe(&mut self, number: Option<f64>) {
        if let Some(number) = number {
            self.count += 1;
            self.range.observe(number);
            self.integers &= number.fract() == 0.0;
        }
    }
}

/// What inference says about a column before roles and wishes are known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) unfit: Option<Reason>,
    pub(crate) note: Option<String>,
    pub(crate) doubt: Option<Doubt>,
}

/// Why a column may be something else than inference says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Doubt {
    /// Nearly all values are of this kind, and the rest turns all of them into names.
    Nearly { kind: Kind, strays: u64, present: u64, first: Sighting },
    /// The numbers may be a thousand times larger.
    Thousands(Sighting),
    /// A few texts among a few whole numbers, which may well be names.
    AmongCodes { strays: u64, present: u64, first: Sighting },
    /// Dates with day or month first.
    Dates(Sighting),
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
            range: Range::EMPTY,
            integers: true,
            beyond: 0,
            sequential: true,
            last: f64::NAN,
            leading_zero: false,
            points: false,
            as_point: Dressed::NONE,
            as_comma: Dressed::NONE,
            ambiguous: false,
            slashed_dates: 0,
            with_time: false,
            first_text: None,
            first_number: None,
            first_dressed: None,
            lists: 0,
            width: 0,
            shortest: usize::MAX,
            longest: 0,
            counter: DistinctCounter::default(),
        }
    }

    pub(crate) fn observe(&mut self, lexicon: &Lexicon, raw: Raw<'_>, record: &Record<'_>) {
        if let Raw::List(numbers) = raw {
            if self.lists == 0 {
                self.width = numbers.len();
            }
            self.lists += 1;
            self.shortest = self.shortest.min(numbers.len());
            self.longest = self.longest.max(numbers.len());
            return;
        }
        match lexicon.look(raw) {
            Value::Missing => self.missing += 1,
            Value::Infinite => self.infinite += 1,
            Value::Number(number) => self.observe_number(number, raw, record),
            Value::Date(moment) => {
                self.dates += 1;
                self.with_time |= moment.has_time;
                self.range.observe(moment.seconds);
                self.counter.observe_number(moment.seconds);
                if self.first_text.is_none() && self.numbers > 0 {
                    let date = date::format(moment.seconds, moment.has_time);
                    self.first_text = Some(Sighting::new(record, &date));
                }
            }
            Value::Text(text) => self.observe_text(text, record),
        }
    }

    fn observe_number(&mut self, number: f64, raw: Raw<'_>, record: &Record<'_>) {
        self.sequential &= self.numbers == 0 || number - self.last == 1.0;
        self.last = number;
        self.numbers += 1;
        self.integers &= number.fract() == 0.0;
        self.range.observe(number);
        if number.abs() >= EXACT_INTEGERS && number.fract() == 0.0 {
            self.beyond += 1;
            let mut text = String::new();
            write_raw(raw, &mut text);
            self.counter.observe_text(text.trim());
        } else {
            self.counter.observe_number(number);
        }
        if let Raw::Text(text) = raw {
            self.leading_zero |= has_leading_zero(text);
            self.points |= text.contains('.');
            if self.first_number.is_none() && self.dates > 0 {
                self.first_number = Some(Sighting::new(record, text));
            }
        }
    }

    fn observe_text(&mut self, text: &str, record: &Record<'_>) {
        self.texts += 1;
        self.characters += text.chars().count() as u64;
        self.words += text.split_whitespace().count() as u64;
        self.counter.observe_text(text);
        // Most texts hold no digit: they are told at a glance.
        let (point, comma) = match text.bytes().any(|byte| byte.is_ascii_digit()) {
            true => (Numerals::Point.read(text), Numerals::Comma.read(text)),
            false => (None, None),
        };
        self.as_point.observe(point);
        self.as_comma.observe(comma);
        self.ambiguous |= point.is_some() && comma.is_some() && point != comma;
        let is_date = date::is_ambiguous(text);
        self.slashed_dates += u64::from(is_date);
        let first = match point.is_some() || comma.is_some() || is_date {
            true => &mut self.first_dressed,
            false => &mut self.first_text,
        };
        if first.is_none() {
            *first = Some(Sighting::new(record, text));
        }
    }

    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    pub(crate) fn distinct(&self) -> Distinct {
        self.counter.distinct()
    }

    fn present(&self) -> u64 {
        self.numbers + self.infinite + self.dates + self.texts
    }

    /// How all its numbers are written, if all its values are numbers.
    pub(crate) fn numerals(&self) -> Option<Numerals> {
        let point = self.as_point.count == self.texts;
        let comma = self.as_comma.count == self.texts && !self.points;
        match (point, comma) {
            _ if self.dates > 0 => None,
            _ if self.texts == 0 => Some(Numerals::Plain),
            (true, true) if self.ambiguous => None,
            (true, _) => Some(Numerals::Point),
            (false, true) => Some(Numerals::Comma),
            (false, false) => None,
        }
    }

    fn dressed(&self, numerals: Numerals) -> Dressed {
        match numerals {
            Numerals::Plain => Dressed::NONE,
            Numerals::Point => self.as_point,
            Numerals::Comma => self.as_comma,
        }
    }

    /// Whether the values are at most `limit` different whole numbers.
    pub(crate) fn is_few_integers(&self, limit: u64) -> bool {
        let dressed = self.dressed(self.numerals().unwrap_or_default());
        self.integers && dressed.integers && self.distinct().count <= limit
    }

    /// How long series are, in words.
    pub(crate) fn moments(&self) -> String {
        match (self.shortest, self.longest) {
            (shortest, longest) if shortest == longest => format!("{longest} moments"),
            (shortest, longest) => format!("{shortest} to {longest} moments"),
        }
    }

    /// What the column is, judged by its values and its name alone.
    /// The first value that is neither a number nor a date.
    pub(crate) fn first_text(&self) -> Option<&Sighting> {
        self.first_text.as_ref()
    }

    pub(crate) fn finding(&self, name: &str) -> Finding {
        if self.lists > 0 {
            let note = Some(format!("{} numbers", self.width));
            return Finding { kind: Kind::Vector, unfit: None, note, doubt: None };
        }
        let kind = self.kind(name);
        let mut notes = Vec::new();
        if self.infinite > 0 && kind == Kind::Numeric {
            notes.push(format!("{} infinite values count as missing", self.infinite));
        }
        if self.beyond > 0 && kind == Kind::Numeric {
            notes.push("whole numbers beyond 2^53 lose their last digits".to_owned());
        }
        if self.leading_zero && kind == Kind::Categorical && self.texts == 0 {
            notes.push("codes with leading zeros".to_owned());
        }
        if kind == Kind::Numeric
            && let Some(first) = &self.first_dressed
        {
            notes.push(format!("numbers written as {:?}", first.value));
        }
        if let Some(first) = &self.first_text
            && self.numbers > self.texts
        {
            notes.push(format!(
                "{} of {} values are not numbers, the first is {first}",
                self.texts,
                self.present(),
            ));
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Finding { kind, unfit: self.unfit(name, kind), note, doubt: self.doubt(name, kind) }
    }

    fn kind(&self, name: &str) -> Kind {
        if self.numerals().is_some() {
            let few_groups =
                is_id_name(name) && self.is_few_integers(MAX_GROUPS) && self.present() > 0;
            return if self.leading_zero || few_groups { Kind::Categorical } else { Kind::Numeric };
        }
        if self.dates == self.present() {
            return Kind::Date;
        }
        let mean = |total: u64| total as f64 / self.texts.max(1) as f64;
        let long = mean(self.words) >= TEXT_WORDS || mean(self.characters) >= TEXT_CHARACTERS;
        if long && self.distinct().count > MAX_GROUPS { Kind::Text } else { Kind::Categorical }
    }

    /// What a person would want to be asked about.
    fn doubt(&self, name: &str, kind: Kind) -> Option<Doubt> {
        if matches!(kind, Kind::Numeric | Kind::Date) || self.leading_zero || is_id_name(name) {
            return None;
        }
        let present = self.present();
        let numbers = self.numbers + self.as_point.count.max(self.as_comma.count);
        let nearly = |fitting: u64| {
            fitting >= MIN_VALUES_FOR_ID && fitting as f64 >= NEARLY_ALL * present as f64
        };
        if nearly(self.slashed_dates) {
            return self.first_dressed.clone().map(Doubt::Dates);
        }
        if nearly(numbers) {
            let strays = present - numbers;
            let few_codes =
                self.integers && self.texts == strays && self.distinct().count <= MAX_GROUPS;
            return match (self.first_text.clone(), self.first_dressed.clone()) {
                (Some(first), _) if few_codes => Some(Doubt::AmongCodes { strays, present, first }),
                (Some(first), _) => {
                    Some(Doubt::Nearly { kind: Kind::Numeric, strays, present, first })
                }
                (None, Some(first)) => Some(Doubt::Thousands(first)),
                (None, None) => None,
            };
        }
        if nearly(self.dates) {
            let first = self.first_text.clone().or_else(|| self.first_dressed.clone());
            let first = first.or_else(|| self.first_number.clone())?;
            let strays = present - self.dates;
            return Some(Doubt::Nearly { kind: Kind::Date, strays, present, first });
        }
        None
    }

    fn unfit(&self, name: &str, kind: Kind) -> Option<Reason> {
        let distinct = self.distinct().count;
        let present = self.present();
        if present == 0 {
            return Some(Reason::AllMissing);
        }
        if present == self.infinite {
            return Some(Reason::AllInfinite);
        }
        // One value beside missing ones still tells rows apart.
        if distinct <= 1 && self.missing == 0 && self.infinite == 0 {
            return Some(Reason::Constant);
        }
        if kind == Kind::Numeric && self.beyond > 0 && self.range.low == self.range.high {
            return Some(Reason::BeyondPrecision);
        }
        let nearly_all_differ = distinct as f64 >= ID_SHARE * present as f64;
        let id_like = present >= MIN_VALUES_FOR_ID
            && match kind {
                Kind::Numeric => {
                    self.integers
                        && ((self.sequential && self.texts == 0)
                            || (self.beyond > 0 && nearly_all_differ)
                            || (is_id_name(name) && distinct > MAX_GROUPS))
                }
                Kind::Categorical => {
                    nearly_all_differ || (is_id_name(name) && distinct > MAX_GROUPS)
                }
                Kind::Date | Kind::Text | Kind::Vector | Kind::Image | Kind::Series => false,
            };
        if id_like {
            return Some(Reason::IdLike);
        }
        (kind == Kind::Text).then_some(Reason::FreeText)
    }

    /// How to keep numbers or dates of this range in 32 bits.
    pub(crate) fn storage(&self, kind: Kind) -> Storage {
        let numerals = match kind {
            Kind::Numeric => self.numerals().unwrap_or_default(),
            _ => Numerals::Plain,
        };
        let unit = if kind == Kind::Date && !self.with_time { DAY } else { 1.0 };
        let range = self.range.and(self.dressed(numerals).range);
        let (low, high) = (range.low / unit, range.high / unit);
        let far_from_zero = low.abs().max(high.abs()) > 8.0 * (high - low);
        let width = if kind == Kind::Series { self.longest } else { self.width };
        let offset = if low.is_finite() && far_from_zero { low } else { 0.0 };
        Storage { offset, unit, with_time: self.with_time, numerals, width }
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
            let record = Record::example(row as u64 + 1);
            profile.observe(&lexicon, Raw::Text(value.as_ref()), &record);
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
        let found = finding("x", values);
        assert!(found.note.unwrap().contains("\"oops\" in line 43"));
        let first = Sighting { line: Some(43), row: 42, value: "oops".to_owned() };
        assert_eq!(
            found.doubt,
            Some(Doubt::Nearly { kind: Kind::Numeric, strays: 1, present: 100, first })
        );
    }

    #[test]
    fn a_date_column_with_one_word_or_number_is_doubted() {
        for stray in ["never", "0"] {
            let values = (1..29)
                .map(|day| if day == 9 { stray.to_owned() } else { format!("2024-02-{day:02}") });
            let doubt = finding("seen", values).doubt;
            assert!(
                matches!(doubt, Some(Doubt::Nearly { kind: Kind::Date, strays: 1, .. })),
                "{doubt:?}"
            );
        }
    }

    #[test]
    fn words_among_many_others_and_in_identifiers_are_not_doubted() {
        let third = |i: i32| if i % 3 == 0 { format!("w{i}") } else { format!("{i}.5") };
        assert_eq!(finding("x", (0..300).map(third)).doubt, None);
        let rare = |i: i32| if i == 7 { "none yet".to_owned() } else { format!("{i}.5") };
        assert_eq!(finding("order_id", (0..300).map(rare)).doubt, None);
        let codes = |i: i32| if i == 7 { "x".to_owned() } else { (i % 4).to_string() };
        assert!(matches!(
            finding("grade", (0..300).map(codes)).doubt,
            Some(Doubt::AmongCodes { .. })
        ));
    }

    #[test]
    fn numbers_in_the_ways_of_people_are_numbers() {
        let comma = |i: i32| format!("{},{}", i % 17, i % 10);
        let found = finding("x", (0..300).map(comma));
        assert_eq!((found.kind, found.unfit, found.doubt), (Kind::Numeric, None, None));
        let dollars = |i: i32| format!("${},{:03}.{:02}", 1 + i % 9, i * 7 % 1000, i % 100);
        assert_eq!(finding("x", (0..300).map(dollars)).kind, Kind::Numeric);
        let thousands = |i: i32| format!("{},{:03}", 1 + i % 9, i * 7 % 1000);
        let found = finding("x", (0..300).map(thousands));
        assert!(matches!(found.doubt, Some(Doubt::Thousands(_))), "{found:?}");
        let slashes = |i: i32| format!("{:02}/{:02}/2024", 1 + i % 12, 1 + i % 28);
        assert!(matches!(finding("x", (0..300).map(slashes)).doubt, Some(Doubt::Dates(_))));
    }

    #[test]
    fn a_column_without_finite_or_exact_numbers_says_so() {
        assert_eq!(finding("x", vec!["inf"; 30]).unfit, Some(Reason::AllInfinite));
        let mixed = (0..40).map(|i| if i % 2 == 0 { "inf" } else { "NaN" });
        assert_eq!(finding("x", mixed).unfit, Some(Reason::AllInfinite));
        let close = (0..5000).map(|i| (9_007_199_254_740_992_i64 * 64 + i % 3).to_string());
        assert_eq!(finding("x", close).unfit, Some(Reason::BeyondPrecision));
        let ids = (0..5000).map(|i| (9_007_199_254_740_993_i64 * 64 + i * 7777).to_string());
        assert_eq!(finding("x", ids).unfit, Some(Reason::IdLike));
    }
}
