//! ISO 8601 dates and date-times as numbers.

/// Seconds in a day.
pub(crate) const DAY: f64 = 86_400.0;

/// A moment, in seconds since 1970-01-01 UTC; a time without zone is taken as UTC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moment {
    pub(crate) seconds: f64,
    /// Whether a time of day was written.
    pub(crate) has_time: bool,
}

/// Reads `YYYY-MM-DD`, `YYYY/MM/DD` or `DD.MM.YYYY`, optionally followed by `T` or a space, `HH:MM[:SS[.fraction]]` and `Z`
/// or `±HH[[:]MM]`. What has day or month first depending on the country, as `01/02/2024`, is no date here.
pub(crate) fn parse(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    if bytes.len() < 10 {
        return None;
    }
    let (year, month, day) = match (bytes[4], bytes[7]) {
        (b'-', b'-') | (b'/', b'/') => (&bytes[..4], &bytes[5..7], &bytes[8..10]),
        _ if bytes[2] == b'.' && bytes[5] == b'.' => (&bytes[6..10], &bytes[3..5], &bytes[..2]),
        _ => return None,
    };
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let midnight = days_from_civil(year, month, day) as f64 * DAY;
    match bytes.get(10) {
        None => Some(Moment { seconds: midnight, has_time: false }),
        Some(b'T' | b't' | b' ') => {
            let seconds = midnight + time_of_day(&bytes[11..])?;
            Some(Moment { seconds, has_time: true })
        }
        Some(_) => None,
    }
}

/// Whether a text is a date whose day or month comes first depending on the country: `1/2/2024`, `01-02-24`.
pub(crate) fn is_ambiguous(text: &str) -> bool {
    let text = text.split([' ', 'T']).next().unwrap_or_default();
    let mut parts = text.split(['/', '-', '.']);
    let mut part = |lengths: std::ops::RangeInclusive<usize>| {
        parts.next().is_some_and(|part| {
            lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    part(1..=2) && part(1..=2) && part(2..=4) && parts.next().is_none()
}

/// Seconds since midnight UTC of `HH:MM[:SS[.fraction]]` with an optional zone.
fn time_of_day(bytes: &[u8]) -> Option<f64> {
    if bytes.len() < 5 || bytes[2] != b':' {
        return None;
    }
    let (hour, minute) = (digits(&bytes[..2])?, digits(&bytes[3..5])?);
    let mut seconds = (hour * 3600 + minute * 60) as f64;
    let mut rest = &bytes[5..];
    let mut second = 0;
    if let [b':', a, b, tail @ ..] = rest {
        second = digits(&[*a, *b])?;
        seconds += second as f64;
        rest = tail;
        if let [b'.' | b',', tail @ ..] = rest {
            let length = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if length == 0 {
                return None;
            }
            let mut unit = 0.1;
            for &digit in &tail[..length.min(18)] {
                seconds += f64::from(digit - b'0') * unit;
                unit /= 10.0;
            }
            rest = &tail[length..];
        }
    }
    // 60 is a leap second; 24:00 is the end of the day.
    if hour > 24 || minute > 59 || second > 60 || (hour == 24 && (minute > 0 || second > 0)) {
        return None;
    }
    Some(seconds - zone(rest)?)
}

/// Seconds east of UTC.
fn zone(bytes: &[u8]) -> Option<f64> {
    let (sign, rest) = match bytes {
        [] | [b'Z' | b'z'] => return Some(0.0),
        [b'+', rest @ ..] => (1.0, rest),
        [b'-', rest @ ..] => (-1.0, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [a, b] => (digits(&[*a, *b])?, 0),
        [a, b, c, d] | [a, b, b':', c, d] => (digits(&[*a, *b])?, digits(&[*c, *d])?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then(|| sign * (hours * 3600 + minutes * 60) as f64)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0_i64, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days before the first of January of `year`, counted from the year 0 (proleptic Gregorian).
fn days_before_year(year: i64) -> i64 {
    // The year 0 is itself a leap year, hence the year before is what is divided.
    let past = year - 1;
    365 * year + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) + 1
}

/// Days since 1970-01-01.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let before_month: i64 = (1..month).map(|m| days_in_month(year, m)).sum();
    days_before_year(year) - days_before_year(1970) + before_month + day - 1
}

/// Writes seconds since 1970-01-01 as a date, and with its time where asked for.
pub(crate) fn format(seconds: f64, with_time: bool) -> String {
    let seconds = seconds.clamp(-6.0e10, 2.5e11);
    let days = (seconds / DAY).floor();
    let mut left = days as i64 + days_before_year(1970);
    let mut year = left.div_euclid(366);
    while days_before_year(year + 1) <= left {
        year += 1;
    }
    left -= days_before_year(year);
    let mut month = 1;
    while left >= days_in_month(year, month) {
        left -= days_in_month(year, month);
        month += 1;
    }
    let date = format!("{year:04}-{month:02}-{:02}", left + 1);
    if !with_time {
        return date;
    }
    let second = (seconds - days * DAY).floor() as u32;
    format!("{date}T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<f64> {
        parse(text).map(|moment| moment.seconds)
    }

    #[test]
    fn known_moments_are_read() {
        // python: datetime.fromisoformat(text).timestamp(), zone UTC where none is given
        assert_eq!(seconds("1970-01-01"), Some(0.0));
        assert_eq!(seconds("2024-02-29"), Some(1_709_164_800.0));
        assert_eq!(seconds("1899-12-31"), Some(-2_209_075_200.0));
        assert_eq!(seconds("2024-02-29T12:34:56Z"), Some(1_709_210_096.0));
        assert_eq!(seconds("2024-02-29 12:34"), Some(1_709_210_040.0));
        assert_eq!(seconds("2024/02/29 12:34"), Some(1_709_210_040.0));
        assert_eq!(seconds("29.02.2024 12:34"), Some(1_709_210_040.0));
        assert_eq!(seconds("2024-02-29T12:34:56.5+02:00"), Some(1_709_202_896.5));
        assert_eq!(seconds("2024-02-29T12:34:56-0330"), Some(1_709_222_696.0));
    }

    #[test]
    fn what_is_not_a_date_is_refused() {
        for text in [
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-1-1",
            "20240101",
            "2024-01-01x",
            "2024-01-01T",
            "2024-01-01T25:00",
            "2024-01-01T10:60",
            "2024-01-01T10:00:00+",
            "2024-01-01T10:00:00.",
            "01/01/2024",
            "2024/01-01",
            "01.13.2024",
            "1.1.2024",
            "é24-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn dates_that_differ_between_countries_are_recognised() {
        for text in ["1/2/2024", "31/12/2024 10:30", "01-02-24", "1.2.2024"] {
            assert!(is_ambiguous(text) && parse(text).is_none(), "{text}");
        }
        for text in ["2024-01-02", "1/2", "1/2/3/4", "a/b/2024", "1.2.3", "", "12:30"] {
            assert!(!is_ambiguous(text), "{text}");
        }
    }

    #[test]
    fn every_day_of_eight_centuries_is_written_as_it_was_read() {
        for day in -100_000_i64..200_000 {
            let text = format(day as f64 * DAY, false);
            assert_eq!(
                parse(&text),
                Some(Moment { seconds: day as f64 * DAY, has_time: false }),
                "{text}"
            );
        }
    }

    #[test]
    fn time_of_day_is_written_as_it_was_read() {
        for text in ["2024-02-29T12:34:56", "1969-12-31T23:59:59", "2000-01-01T00:00:00"] {
            assert_eq!(format(seconds(text).unwrap(), true), text);
        }
    }
}
