//! Series: which columns are channels, and that the channels of a row are equally long and without gaps.
//!
//! A channel is a column of lists, or one column per moment. A series may be shorter than others: its list is, or its last
//! columns are empty.

use std::cmp::Ordering;

use crate::error::DataError;
use crate::file::{Record, TableFile};
use crate::schema::Schema;
use crate::table::ColumnBuilder;

/// Most moments of a series.
pub(crate) const MOST_MOMENTS: usize = 1 << 16;
/// Most channels.
pub(crate) const MOST_CHANNELS: usize = 1 << 10;

/// The positions of the columns of each channel that is asked for: by the name of a column of lists, or by a pattern in
/// which `*` stands for anything. A pattern that fits lists names a channel each; one that fits numbers names the moments of
/// one channel, in natural order (`t2` before `t10`). Patterns leave out the columns that are `taken`.
pub(crate) fn channels(
    file: &TableFile,
    asked: &[String],
    taken: &[usize],
) -> Result<Vec<Vec<usize>>, DataError> {
    let mut channels = Vec::new();
    for name in asked {
        let column = match file.position(name) {
            Ok(column) => Some(column),
            Err(error) if !name.contains('*') => return Err(error),
            Err(_) => None,
        };
        if let Some(column) = column {
            check_list(file, column)?;
            channels.push(vec![column]);
            continue;
        }
        let mut found: Vec<usize> = (0..file.columns().len())
            .filter(|column| !taken.contains(column) && fits(name, &file.columns()[*column]))
            .collect();
        found.sort_by(|&a, &b| natural(&file.columns()[a], &file.columns()[b]));
        match found.iter().find(|&&column| file.is_list(column)) {
            None if found.is_empty() => return file.position(name).map(|_| Vec::new()),
            None => {
                found.iter().try_for_each(|&column| file.check_usable(column))?;
                channels.push(found);
            }
            Some(_) => {
                found.iter().try_for_each(|&column| check_list(file, column))?;
                channels.extend(found.into_iter().map(|column| vec![column]));
            }
        }
    }
    let mut all: Vec<usize> = channels.iter().flatten().copied().collect();
    all.sort_unstable();
    if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(not_series(file, twice[0], "is named twice".to_owned()));
    }
    if channels.len() > MOST_CHANNELS {
        let what = format!("is one of {} channels; at most {MOST_CHANNELS}", channels.len());
        return Err(not_series(file, all[0], what));
    }
    if let Some(long) = channels.iter().find(|channel| channel.len() > MOST_MOMENTS) {
        let what = format!("is one of {} moments; at most {MOST_MOMENTS}", long.len());
        return Err(not_series(file, long[0], what));
    }
    Ok(channels)
}

fn check_list(file: &TableFile, column: usize) -> Result<(), DataError> {
    file.check_usable(column)?;
    if file.is_list(column) {
        return Ok(());
    }
    let what = "holds no lists of numbers, as Parquet has them; where each moment has a column of its own, name them \
                by a pattern such as 'ecg_*'";
    Err(not_series(file, column, what.to_owned()))
}

fn not_series(file: &TableFile, column: usize, problem: String) -> DataError {
    let column = file.columns()[column].clone();
    DataError::NotSeries { path: file.path().to_owned(), column, problem }
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The order of names in which numbers count as numbers.
fn natural(a: &str, b: &str) -> Ordering {
    fn pieces(name: &str) -> impl Iterator<Item = (Option<u128>, &str)> {
        let of_digit = |c: char| c.is_ascii_digit();
        let mut rest = name;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = rest.find(|c| of_digit(c) != of_digit(first)).unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            rest = behind;
            Some((piece.parse().ok(), piece))
        })
    }
    let by_number =
        |(number, piece): (Option<u128>, &str), (other, its): (Option<u128>, &str)| match (
            number, other,
        ) {
            (Some(number), Some(other)) => number.cmp(&other),
            _ => piece.cmp(its),
        };
    let (mut of_a, mut of_b) = (pieces(a), pieces(b));
    loop {
        let order = match (of_a.next(), of_b.next()) {
            (None, None) => return a.cmp(b),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => by_number(a, b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The channels of a table that is being read, by the places of their columns among the features.
pub(crate) struct Channels(Vec<Vec<usize>>);

impl Channels {
    pub(crate) fn of(schema: &Schema) -> Self {
        let names: Vec<&str> = schema.features().map(|column| column.name.as_str()).collect();
        let place = |name: &String| names.iter().position(|feature| feature == name);
        // A schema that names other columns is refused where it is read.
        Self(schema.series.iter().map(|names| names.iter().filter_map(place).collect()).collect())
    }

    /// That the channels of the row that was just filled in are equally long and have no gaps.
    pub(crate) fn check(
        &self,
        columns: &[ColumnBuilder],
        record: &Record<'_>,
    ) -> Result<(), DataError> {
        let error = |column: usize, problem: String| DataError::Series {
            place: record.place(),
            column: columns[column].name().to_owned(),
            problem,
        };
        let mut first: Option<(usize, usize)> = None;
        for channel in &self.0 {
            let Some(&named) = channel.first() else { continue };
            let length = match columns[named].last_moments() {
                Some(moments) => moments,
                None => {
                    let present = |&&column: &&usize| columns[column].last_is_number();
                    let length = channel.iter().take_while(present).count();
                    if channel[length..].iter().any(|column| present(&column)) {
                        let problem = "the number is missing or not finite, and later ones are not: a series may end \
                                       early, but has no gaps";
                        return Err(error(channel[length], problem.to_owned()));
                    }
                    length
                }
            };
            if length == 0 {
                return Err(error(named, "the series has no numbers".to_owned()));
            }
            match first {
                Some((other, its)) if its != length => {
                    let other = columns[other].name();
                    let problem = format!(
                        "the series has {length} moments here and {its} in column {other:?}"
                    );
                    return Err(error(named, problem));
                }
                _ => first = Some((named, length)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name) in
            [("ecg_*", "ecg_1"), ("*", ""), ("a*c*e", "abcde"), ("a*a", "aa"), ("*.*", "1.2")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("ecg_*", "eeg_1"), ("a*c*e", "abcd"), ("a*a", "a"), ("a", "ab"), ("a*b*b", "ab")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn numbers_in_names_are_ordered_as_numbers() {
        let mut names = ["t10", "t9", "t", "t2b", "t2", "s100", "t02", "t2a10", "t2a9"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["s100", "t", "t02", "t2", "t2a9", "t2a10", "t2b", "t9", "t10"]);
    }
}
