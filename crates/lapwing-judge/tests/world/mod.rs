//! Made-up sources that are all alike, to be given one fault each.
#![allow(dead_code, reason = "each test file uses its part")]

use lapwing_judge::{
    Answered, Answers, Case, Column, Features, Finding, Rows, SourceRow, Times, Verdict, examine,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rows of a few sources: numbers that hang together, one that is skewed, one with gaps, and a category.
#[derive(Clone)]
pub struct World {
    pub sources: Vec<u32>,
    pub columns: Vec<(String, Vec<f64>)>,
    pub levels: Vec<u32>,
    /// Classes, what a network says of each row, and the target and its prediction in regression.
    pub labels: Vec<u32>,
    pub probabilities: Vec<f64>,
    pub targets: Vec<f64>,
    pub predictions: Vec<f64>,
    pub times: Option<Vec<f64>>,
    pub draws: ChaCha8Rng,
    regression: bool,
}

pub const CLASSES: [&str; 4] = ["ash", "beech", "cedar", "oak"];
const LEVELS: [&str; 3] = ["low", "mid", "high"];
/// How often the network is right of a row that it has not seen.
const RIGHT: f64 = 0.9;

pub fn normal(draws: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (draws.random_range(f64::EPSILON..1.0), draws.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

impl World {
    pub fn classes(seed: u64, sources: usize, rows: usize) -> Self {
        Self::new(seed, sources, rows, false)
    }

    pub fn values(seed: u64, sources: usize, rows: usize) -> Self {
        Self::new(seed, sources, rows, true)
    }

    fn new(seed: u64, sources: usize, rows: usize, regression: bool) -> Self {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let names = ["height", "weight", "age", "income", "pulse"];
        let mut world = Self {
            sources: Vec::new(),
            columns: names.map(|name| (name.to_owned(), Vec::new())).to_vec(),
            levels: Vec::new(),
            labels: Vec::new(),
            probabilities: Vec::new(),
            targets: Vec::new(),
            predictions: Vec::new(),
            times: None,
            draws: ChaCha8Rng::seed_from_u64(seed + 1),
            regression,
        };
        for row in 0..sources * rows {
            // Sources take turns in the file.
            world.sources.push((row % sources) as u32);
            let height = normal(&mut draws);
            let weight = 0.8 * height + 0.6 * normal(&mut draws);
            let age = (40.0 + 12.0 * normal(&mut draws)).round();
            let income = (0.5 * normal(&mut draws) + 0.4 * height).exp();
            let pulse =
                if draws.random_bool(0.1) { f64::NAN } else { 70.0 + 8.0 * normal(&mut draws) };
            for (column, value) in
                world.columns.iter_mut().zip([height, weight, age, income, pulse])
            {
                column.1.push(value);
            }
            world.levels.push(draws.random_range(0..3));
            // Unequal classes: 0.4, 0.3, 0.2, 0.1.
            let drawn: f64 = draws.random();
            let class = [0.4, 0.7, 0.9].iter().filter(|limit| drawn >= **limit).count() as u32;
            world.labels.push(class);
            let said = match draws.random_bool(RIGHT) {
                true => class,
                false => (class + draws.random_range(1..4)) % 4,
            };
            world.probabilities.extend((0..4).map(|c| if c == said { 0.85 } else { 0.05 }));
            let truth = 2.0 * height + weight;
            world.targets.push(truth + 0.5 * normal(&mut draws));
            world.predictions.push(truth);
        }
        world
    }

    /// With so many columns that have nothing to do with each other in place of its own.
    pub fn unrelated(seed: u64, sources: usize, rows: usize, columns: usize) -> Self {
        let mut world = Self::classes(seed, sources, rows);
        let draws = &mut world.draws;
        let mut column = || (0..sources * rows).map(|_| normal(draws)).collect();
        world.columns = (0..columns).map(|at| (format!("x{at}"), column())).collect();
        world
    }

    /// Rows of a source, in the order of the file.
    pub fn rows_of(&self, source: u32) -> Vec<usize> {
        (0..self.sources.len()).filter(|&row| self.sources[row] == source).collect()
    }

    /// Changes a column of a source.
    pub fn change(
        &mut self,
        source: u32,
        column: &str,
        with: impl Fn(f64, &mut ChaCha8Rng) -> f64,
    ) {
        for row in self.rows_of(source) {
            let (_, values) = self.columns.iter_mut().find(|(name, _)| name == column).unwrap();
            values[row] = with(values[row], &mut self.draws);
        }
    }

    /// Changes the labels of a source.
    pub fn relabel(&mut self, source: u32, with: impl Fn(u32, &mut ChaCha8Rng) -> u32) {
        for row in self.rows_of(source) {
            self.labels[row] = with(self.labels[row], &mut self.draws);
        }
    }

    /// Changes the targets of a source.
    pub fn retarget(&mut self, source: u32, with: impl Fn(f64, &mut ChaCha8Rng) -> f64) {
        for row in self.rows_of(source) {
            self.targets[row] = with(self.targets[row], &mut self.draws);
        }
    }

    /// What is found on every source, where the first has this verdict and the others are reliable.
    pub fn findings(&self, verdict: Verdict) -> Vec<Vec<Finding>> {
        let count = 1 + *self.sources.iter().max().unwrap() as usize;
        let row = |at| SourceRow {
            source: format!("s{at}"),
            verdict: if at == 0 { verdict } else { Verdict::Reliable },
            ..SourceRow::default()
        };
        let judged: Vec<SourceRow> = (0..count).map(row).collect();
        let names = CLASSES.map(str::to_owned);
        // The model itself has learnt its labels by heart; what counts is what was said of rows that were not seen.
        let learnt: Vec<f32> = self.probabilities.iter().map(|&p| p as f32).collect();
        let numbers: Vec<u64> = (1..=self.sources.len() as u64).collect();
        let answers = match self.regression {
            false => {
                Answers::Classes { names: &names, given: &self.labels, probabilities: &learnt }
            }
            true => Answers::Values { given: &self.targets, predicted: &self.predictions },
        };
        let rows = Rows {
            features: Some(self),
            out_of_sample: (!self.regression).then_some(self.probabilities.as_slice()),
            times: self
                .times
                .as_deref()
                .map(|values| Times { values, text: &|time| time.to_string() }),
            ..Rows::new(Answered { sources: &self.sources, answers }, &numbers)
        };
        examine(&Case::new(&judged, Some(rows)).unwrap())
    }

    /// What is found on the first source.
    pub fn found(&self, verdict: Verdict) -> Vec<Finding> {
        self.findings(verdict).remove(0)
    }
}

impl Features for World {
    fn names(&self) -> Vec<String> {
        let numbers = self.columns.iter().map(|(name, _)| name.clone());
        numbers.chain(["grade".to_owned()]).collect()
    }

    fn column(&self, name: &str) -> Option<Column<'_>> {
        if name == "grade" {
            let names: Vec<String> = LEVELS.map(str::to_owned).to_vec();
            let codes = self.levels.iter().map(|&code| Some(code)).collect();
            return Some(Column::Levels { names: names.into(), codes });
        }
        let (_, values) = self.columns.iter().find(|(own, _)| own == name)?;
        Some(Column::Numbers(values.as_slice().into()))
    }

    fn digests(&self) -> Option<Vec<u64>> {
        let digest = |row: usize| {
            let bits = self.columns.iter().map(|(_, values)| values[row].to_bits());
            bits.chain([u64::from(self.levels[row])]).fold(17u64, |sum, bits| {
                sum.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ bits
            })
        };
        Some((0..self.sources.len()).map(digest).collect())
    }
}

/// The words for what was found.
pub fn words(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.fault.word()).collect()
}
