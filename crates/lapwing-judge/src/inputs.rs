//! The features of every source beside those of the others, column by column.
//!
//! Sources with few rows are left out, and where there are very many, all but the largest. Of large tables some rows of every source are looked at, evenly chosen: a fault that
//! takes half a million rows to show is none that anybody would look for.

use crate::chance::{ln_apart, ln_squares_at_least};
use crate::{Answers, Column, Rows};

/// Rows below which a source is not compared.
const ENOUGH: usize = 20;
/// Most sources that are compared.
const MOST_SOURCES: usize = 1000;
/// Cells that are looked at.
const MOST_CELLS: usize = 1 << 21;
/// Columns that are looked at, the first ones.
const MOST_COLUMNS: usize = 4096;
/// Fewest rows expected in a level for it to be counted by itself.
const FEWEST_EXPECTED: f64 = 5.0;
/// Sources from which on something can be usual among them.
const MANY: usize = 4;

/// The columns of a run, by source.
#[derive(Default)]
pub(crate) struct Inputs {
    /// Where each source stands among those that are compared.
    slots: Vec<Option<usize>>,
    /// Rows that are looked at, source after source, and where each source begins.
    places: Vec<u32>,
    starts: Vec<usize>,
    pub(crate) columns: Vec<InputColumn>,
    /// What is to be predicted, where it is a number.
    target: Option<InputColumn>,
}

/// A column as it lies in the sources.
pub(crate) struct InputColumn {
    /// Nothing for the target.
    name: Option<String>,
    /// Names of the levels, where these are the values.
    levels: Option<Vec<String>>,
    /// Values in the order of the rows, NaN where one is missing.
    values: Vec<f64>,
    /// Those that are there: of all sources, and source after source; sorted.
    all: Vec<f64>,
    own: Vec<f64>,
    starts: Vec<usize>,
    /// How far each source is from the others, and how far they usually are.
    distances: Vec<Distance>,
    usual: f64,
    /// Sources in which it has one value only.
    constant: usize,
}

#[derive(Clone, Copy)]
struct Distance {
    distance: f64,
    ln_chance: f64,
}

impl Inputs {
    pub(crate) fn new(rows: &Rows<'_>, places: &[Vec<u32>]) -> Self {
        let names: Vec<String> = rows.features.map_or_else(Vec::new, crate::Features::names);
        let given = match rows.answered.answers {
            Answers::Values { given, .. } => Some(given),
            Answers::Classes { .. } => None,
        };
        let least = enough_rows(places);
        let enough = |own: &&Vec<u32>| own.len() >= least;
        let count = places.iter().filter(enough).count();
        let width = names.len().min(MOST_COLUMNS) + usize::from(given.is_some());
        if count < 2 || width == 0 {
            return Self::default();
        }
        let most = (MOST_CELLS / width / count).max(ENOUGH);
        let mut inputs = Self { starts: vec![0], ..Self::default() };
        for own in places {
            let slot = enough(&own).then(|| inputs.starts.len() - 1);
            inputs.slots.push(slot);
            if slot.is_some() {
                let rows = own.len().min(most);
                inputs.places.extend((0..rows).map(|at| own[at * own.len() / rows]));
                inputs.starts.push(inputs.places.len());
            }
        }
        let chosen = |values: &[f64]| -> Vec<f64> {
            inputs.places.iter().map(|&place| values[place as usize]).collect()
        };
        let target = given.map(|given| InputColumn::new(None, None, chosen(given), &inputs.starts));
        let column = |name: String| {
            let (levels, values) = match rows.features?.column(&name)? {
                Column::Numbers(values) => (None, chosen(&values)),
                Column::Levels { names, codes } => {
                    let code = |&place: &u32| codes[place as usize].map_or(f64::NAN, f64::from);
                    (Some(names.into_owned()), inputs.places.iter().map(code).collect())
                }
            };
            Some(InputColumn::new(Some(name), levels, values, &inputs.starts))
        };
        let columns = names.into_iter().take(MOST_COLUMNS).filter_map(column).collect();
        inputs.columns = columns;
        inputs.target = target;
        inputs
    }

    /// Sources that are compared.
    pub(crate) fn sources(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// How often something is looked for: in each column of each source.
    pub(crate) fn looks(&self) -> usize {
        self.sources() * (self.columns.len() + usize::from(self.target.is_some()))
    }

    /// Where a source stands among those that are compared.
    pub(crate) fn slot(&self, source: usize) -> Option<usize> {
        *self.slots.get(source)?
    }

    /// The sources that are compared.
    pub(crate) fn compared(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(source, slot)| Some((source, (*slot)?)))
    }

    /// Which of the rows that are looked at are those of a source.
    pub(crate) fn range(&self, slot: usize) -> std::ops::Range<usize> {
        self.starts[slot]..self.starts[slot + 1]
    }

    /// The rows that are looked at.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places
    }

    /// The features of a source, and then its targets, where they are numbers.
    pub(crate) fn of(&self, source: usize) -> impl Iterator<Item = ColumnOf<'_>> {
        let slot = self.slot(source);
        let all = self.columns.iter().chain(&self.target);
        all.filter_map(move |column| Some(ColumnOf { inputs: self, column, slot: slot? }))
    }
}

impl InputColumn {
    fn new(
        name: Option<String>,
        levels: Option<Vec<String>>,
        values: Vec<f64>,
        rows: &[usize],
    ) -> Self {
        let (mut own, mut starts) = (Vec::with_capacity(values.len()), vec![0]);
        for bounds in rows.windows(2) {
            let from = own.len();
            own.extend(values[bounds[0]..bounds[1]].iter().copied().filter(|v| v.is_finite()));
            own[from..].sort_by(f64::total_cmp);
            starts.push(own.len());
        }
        let mut all = own.clone();
        all.sort_by(f64::total_cmp);
        let mut column = Self {
            name,
            levels,
            values,
            all,
            own,
            starts,
            distances: Vec::new(),
            usual: 0.0,
            constant: 0,
        };
        let slots = column.starts.len() - 1;
        column.distances = (0..slots).map(|slot| column.distance(slot)).collect();
        if slots >= MANY {
            let mut sorted: Vec<f64> = column.distances.iter().map(|d| d.distance).collect();
            sorted.sort_by(f64::total_cmp);
            column.usual = sorted[slots / 2];
        }
        let is_constant =
            |slot: &usize| matches!(column.own(*slot), [first, .., last] if first == last);
        column.constant = (0..slots).filter(is_constant).count();
        column
    }

    fn own(&self, slot: usize) -> &[f64] {
        &self.own[self.starts[slot]..self.starts[slot + 1]]
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn is_numeric(&self) -> bool {
        self.levels.is_none()
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Median and half of the range that holds two thirds of all values.
    pub(crate) fn middle(&self) -> (f64, f64) {
        middle(&self.all)
    }

    fn distance(&self, slot: usize) -> Distance {
        let own = self.own(slot);
        let others = self.all.len() - own.len();
        if own.len() < ENOUGH || others == 0 {
            return Distance { distance: 0.0, ln_chance: 0.0 };
        }
        match self.levels {
            None => {
                let distance = apart(own, &self.all);
                let ln_chance = ln_apart(distance, own.len() as f64, others as f64);
                Distance { distance, ln_chance }
            }
            Some(_) => self.distance_of_levels(own),
        }
    }

    /// The total variation between the levels of a source and those of the others, levels that are rare taken as one.
    fn distance_of_levels(&self, own: &[f64]) -> Distance {
        let (n, m) = (own.len() as f64, (self.all.len() - own.len()) as f64);
        let (mut distance, mut squares, mut cells) = (0.0, 0.0, 0.0);
        let mut add = |own: f64, others: f64| {
            let expected = (own + others) * n / (n + m);
            if expected > 0.0 {
                distance += 0.5 * (own / n - others / m).abs();
                // Of both rows of the table that has own and others as its rows.
                squares += (own - expected).powi(2) / expected * (n + m) / m;
                cells += 1.0;
            }
        };
        let mut rest = (0.0, 0.0);
        for (value, count) in runs(&self.all) {
            let mine = (upto(own, value) - below(own, value)) as f64;
            let others = count as f64 - mine;
            if count as f64 * n / (n + m) >= FEWEST_EXPECTED {
                add(mine, others);
            } else {
                rest = (rest.0 + mine, rest.1 + others);
            }
        }
        if rest.0 + rest.1 > 0.0 {
            add(rest.0, rest.1);
        }
        Distance { distance, ln_chance: ln_squares_at_least(squares, cells - 1.0) }
    }
}

/// A column of one source beside the others.
#[derive(Clone, Copy)]
pub(crate) struct ColumnOf<'a> {
    inputs: &'a Inputs,
    column: &'a InputColumn,
    slot: usize,
}

impl<'a> ColumnOf<'a> {
    /// Its name; nothing for the target.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.column.name()
    }

    pub(crate) fn is_numeric(&self) -> bool {
        self.column.is_numeric()
    }

    /// The name of a level.
    pub(crate) fn level(&self, value: f64) -> Option<&'a str> {
        self.column.levels.as_ref()?.get(value as usize).map(String::as_str)
    }

    /// Its values, sorted, without those that are missing.
    pub(crate) fn own(&self) -> &'a [f64] {
        self.column.own(self.slot)
    }

    /// Those of all sources.
    pub(crate) fn all(&self) -> &'a [f64] {
        &self.column.all
    }

    /// How many values the others have.
    pub(crate) fn others(&self) -> usize {
        self.all().len() - self.own().len()
    }

    /// How many values of the others are below one.
    pub(crate) fn others_below(&self, value: f64) -> usize {
        below(self.all(), value) - below(self.own(), value)
    }

    /// How many values of the others are at most this one.
    pub(crate) fn others_upto(&self, value: f64) -> usize {
        upto(self.all(), value) - upto(self.own(), value)
    }

    /// The share of the others' values that are this one, rather too large where they are few: what chance is reckoned with.
    pub(crate) fn others_share_at(&self, value: f64) -> f64 {
        at_most(self.others_at(value), self.others() as f64)
    }

    /// That share as it is: what people are told.
    pub(crate) fn others_seen_at(&self, value: f64) -> f64 {
        self.others_at(value) / self.others().max(1) as f64
    }

    fn others_at(&self, value: f64) -> f64 {
        (self.others_upto(value) - self.others_below(value)) as f64
    }

    /// Rows that are looked at, and how many have no value: of the source, and of the others.
    pub(crate) fn missing(&self) -> [(u64, u64); 2] {
        let rows = self.inputs.range(self.slot).len();
        let (own, all) = (self.own().len(), self.all().len());
        let all_rows = self.inputs.places.len();
        let others = ((all_rows - rows - (all - own)) as u64, (all_rows - rows) as u64);
        [((rows - own) as u64, rows as u64), others]
    }

    /// How far its values are from the others', 0 to 1, how far those of all sources usually are, and how probable as much
    /// is by chance.
    pub(crate) fn distance(&self) -> (f64, f64, f64) {
        let Distance { distance, ln_chance } = self.column.distances[self.slot];
        (distance, self.column.usual, ln_chance)
    }

    /// Whether several sources have one value each.
    pub(crate) fn is_often_constant(&self) -> bool {
        4 * self.column.constant > self.inputs.sources().max(4)
    }

    /// Places of the rows whose values are chosen; missing ones are NaN.
    pub(crate) fn places(&self, chosen: impl Fn(f64) -> bool) -> Vec<u32> {
        let range = self.inputs.range(self.slot);
        let chosen = range.filter(|&at| chosen(self.column.values[at]));
        chosen.map(|at| self.inputs.places[at]).collect()
    }

    /// Places of its rows, largest value first, or smallest.
    pub(crate) fn outermost(&self, largest: bool) -> Vec<u32> {
        let range = self.inputs.range(self.slot).filter(|&at| self.column.values[at].is_finite());
        let mut order: Vec<usize> = range.collect();
        let value = |at: usize| self.column.values[at];
        order.sort_by(|&a, &b| match largest {
            true => value(b).total_cmp(&value(a)).then(a.cmp(&b)),
            false => value(a).total_cmp(&value(b)).then(a.cmp(&b)),
        });
        order.into_iter().map(|at| self.inputs.places[at]).collect()
    }

    /// The median of the others' values.
    pub(crate) fn others_median(&self) -> f64 {
        let half = self.others().div_ceil(2);
        let (mut low, mut high) = (0, self.all().len());
        while low < high {
            let middle = (low + high) / 2;
            match self.others_upto(self.all()[middle]) < half {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        self.all().get(low).copied().unwrap_or(f64::NAN)
    }

    /// The most frequent value, and how often it is there; of equals the smallest.
    pub(crate) fn most_frequent(&self) -> Option<(f64, usize)> {
        runs(self.own()).reduce(|best, run| if run.1 > best.1 { run } else { best })
    }
}

/// How many rows a source needs so that not too many are compared.
fn enough_rows(places: &[Vec<u32>]) -> usize {
    let mut sizes: Vec<usize> = places.iter().map(Vec::len).filter(|&n| n >= ENOUGH).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.get(MOST_SOURCES).map_or(ENOUGH, |&beyond| beyond + 1)
}

/// A share among others, as if three more had been found: of none that were seen, there may be some.
pub(crate) fn at_most(count: f64, of: f64) -> f64 {
    (count + 3.0) / (of + 3.0)
}

/// Median, and half of the range of the middle two thirds, of sorted values.
pub(crate) fn middle(sorted: &[f64]) -> (f64, f64) {
    let at = |share: f64| match sorted.len() {
        0 => f64::NAN,
        count => sorted[((count - 1) as f64 * share).round() as usize],
    };
    (at(0.5), 0.5 * (at(0.8413) - at(0.1587)))
}

/// The largest difference between the distribution functions of a source and of the others; both lists sorted, the
/// source's values among all.
pub(crate) fn apart(own: &[f64], all: &[f64]) -> f64 {
    let (n, m) = (own.len() as f64, (all.len() - own.len()) as f64);
    let mut distance = 0.0f64;
    let mut before = 0;
    for (value, count) in runs(own) {
        // A step of the one lies between two steps of the other: just before and at its own values it is furthest off.
        let (low, high) = (below(all, value) - before, upto(all, value) - before - count);
        distance = distance.max((before as f64 / n - low as f64 / m).abs());
        before += count;
        distance = distance.max((before as f64 / n - high as f64 / m).abs());
    }
    distance
}

/// Values with how often each stands in a sorted list.
fn runs(sorted: &[f64]) -> impl Iterator<Item = (f64, usize)> + '_ {
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()))
}

fn below(sorted: &[f64], value: f64) -> usize {
    sorted.partition_point(|v| *v < value)
}

fn upto(sorted: &[f64], value: f64) -> usize {
    sorted.partition_point(|v| *v <= value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// At every value of either.
    fn slow_apart(own: &[f64], others: &[f64]) -> f64 {
        let share = |list: &[f64], v: f64| {
            list.iter().filter(|x| **x <= v).count() as f64 / list.len() as f64
        };
        let all = own.iter().chain(others);
        all.map(|&v| (share(own, v) - share(others, v)).abs()).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn distances_are_those_of_the_slow_oracle(
            own in prop::collection::vec(-5i8..5, 1..30),
            others in prop::collection::vec(-5i8..5, 1..30),
        ) {
            let sorted = |list: &[i8]| {
                let mut list: Vec<f64> = list.iter().map(|&v| f64::from(v)).collect();
                list.sort_by(f64::total_cmp);
                list
            };
            let (own, others) = (sorted(&own), sorted(&others));
            let mut all = [own.clone(), others.clone()].concat();
            all.sort_by(f64::total_cmp);
            prop_assert!((apart(&own, &all) - slow_apart(&own, &others)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_distance_of_levels_is_their_total_variation_and_its_chance_that_of_chi_squared() {
        // 40 of one level and 10 of another, against 50 and 100.
        let values: Vec<f64> = [(0.0, 40), (1.0, 10), (0.0, 50), (1.0, 100)]
            .iter()
            .flat_map(|&(v, n)| vec![v; n])
            .collect();
        let column = InputColumn::new(
            Some("a".into()),
            Some(vec!["x".into(), "y".into()]),
            values,
            &[0, 50, 200],
        );
        let Distance { distance, ln_chance } = column.distances[0];
        assert!((distance - (0.8 - 1.0 / 3.0)).abs() < 1e-12);
        // Checked by hand: the chi² of [[40, 10], [50, 100]] is 32.997.
        assert!((ln_chance - ln_squares_at_least(32.996_632_996_633, 1.0)).abs() < 1e-9);
    }
}
