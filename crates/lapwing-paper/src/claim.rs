//! The paper's conclusions, held against our own runs.

use std::collections::BTreeMap;

use lapwing_core::student_tail;
use serde::Deserialize;

use crate::recipe::Recipe;
use crate::record::Record;
use crate::section::shown;
use crate::table::{FEWEST, Statistics};

/// What could be chance once in so many times is not called shown.
pub(crate) const LEVEL: f64 = 0.05;

/// A conclusion: how two cells of a table compare.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Claim {
    /// The conclusion, in words.
    pub says: String,
    /// What is compared.
    pub of: Side,
    /// How it compares.
    pub is: Relation,
    /// What it is compared with.
    pub than: Side,
    /// How far apart two may be that are called equal.
    #[serde(default)]
    pub within: f64,
}

/// A cell, or one of its metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Side {
    /// The row.
    pub condition: String,
    /// The column.
    pub method: String,
    /// What of it, if not the experiment's metric.
    pub metric: Option<String>,
}

/// How two cells compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The first is greater.
    Greater,
    /// The first is less.
    Less,
    /// They are equal, within a margin.
    Equal,
}

/// What our runs say to a conclusion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    /// Nothing, because one of the cells has no run that the other has, too.
    NotRun,
    /// Too few pairs to say: the means.
    TooFew { pairs: usize, of: f64, than: f64 },
    /// That it holds, or that the contrary does, or neither.
    Said { holds: Option<bool>, difference: Statistics },
}

impl Claim {
    /// What is wrong with it in a recipe, if anything is.
    pub(crate) fn check(&self, recipe: &Recipe) -> Result<(), String> {
        for side in [&self.of, &self.than] {
            if recipe.condition(&side.condition).is_none() || recipe.method(&side.method).is_none()
            {
                return Err(format!("a claim on {} by {}", side.condition, side.method));
            }
        }
        if (self.is == Relation::Equal) != (self.within > 0.0) {
            return Err(format!("{:?}: `within` is for claims of equality", self.says));
        }
        Ok(())
    }

    /// What our runs say to it. Runs are compared pair by pair: those of one number share their data.
    pub(crate) fn answer(&self, recipe: &Recipe, records: &[Record]) -> Answer {
        let [of, than] = [&self.of, &self.than].map(|side| side.runs(recipe, records));
        let both: Vec<(f64, f64)> =
            of.iter().filter_map(|(run, a)| Some((*a, *than.get(run)?))).collect();
        let differences: Vec<f64> = both.iter().map(|(a, b)| a - b).collect();
        let Some(difference) = Statistics::of(&differences) else { return Answer::NotRun };
        let pairs = both.len();
        let mean = |side: fn(&(f64, f64)) -> f64| both.iter().map(side).sum::<f64>() / pairs as f64;
        match difference.std {
            Some(std) if pairs >= FEWEST => {
                let error = std / (pairs as f64).sqrt();
                let holds = self.decide(difference.mean, error, (pairs - 1) as f64);
                Answer::Said { holds, difference }
            }
            _ => Answer::TooFew { pairs, of: mean(|pair| pair.0), than: mean(|pair| pair.1) },
        }
    }

    /// Whether a mean difference with this standard error decides it.
    fn decide(&self, mean: f64, error: f64, degrees: f64) -> Option<bool> {
        // The probability of so high a mean where the true one is `border`.
        let above = |border: f64| tail((mean - border) / error, degrees);
        let below = |border: f64| tail((border - mean) / error, degrees);
        let (greater, less) = (above(0.0) < LEVEL / 2.0, below(0.0) < LEVEL / 2.0);
        match self.is {
            Relation::Greater => (greater || less).then_some(greater),
            Relation::Less => (greater || less).then_some(less),
            // Two one-sided tests; outside, either of two.
            Relation::Equal if above(-self.within) < LEVEL && below(self.within) < LEVEL => {
                Some(true)
            }
            Relation::Equal => {
                let outside = above(self.within) < LEVEL / 2.0 || below(-self.within) < LEVEL / 2.0;
                outside.then_some(false)
            }
        }
    }

    /// The answer in words; none where nothing was run.
    pub(crate) fn words(&self, recipe: &Recipe, records: &[Record]) -> Option<String> {
        let metric = self.of.metric.as_ref().unwrap_or(&recipe.metric);
        Some(match self.answer(recipe, records) {
            Answer::NotRun => return None,
            Answer::TooFew { pairs, of, than } => {
                let number = |mean| {
                    let text = shown(&Statistics { mean, std: None, runs: pairs }, metric);
                    text.split(" (").next().unwrap_or_default().to_owned()
                };
                format!("{} against {} in {}", number(of), number(than), in_pairs(pairs))
            }
            Answer::Said { holds, difference } => {
                let verdict = match holds {
                    Some(true) => "**holds**",
                    Some(false) => "**does not hold**",
                    None => "**not shown**",
                };
                format!("{verdict}: difference {}", shown(&difference, metric))
            }
        })
    }
}

fn in_pairs(pairs: usize) -> String {
    match pairs {
        1 => "one run, too few to say".to_owned(),
        pairs => format!("{pairs} runs, too few to say"),
    }
}

/// P(T > t) for any t.
fn tail(t: f64, degrees: f64) -> f64 {
    match t {
        t if t.is_nan() => 1.0,
        t if t < 0.0 => 1.0 - student_tail(-t, degrees),
        t => student_tail(t, degrees),
    }
}

impl Side {
    /// The numbers by run.
    fn runs(&self, recipe: &Recipe, records: &[Record]) -> BTreeMap<usize, f64> {
        let metric = self.metric.as_ref().unwrap_or(&recipe.metric);
        records
            .iter()
            .filter(|r| r.cell.condition == self.condition && r.cell.method == self.method)
            .filter_map(|record| Some((record.cell.run, record.metric(metric)?)))
            .collect()
    }
}

/// Runs of a row that come to less than a border, counted.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Count {
    /// What is counted, in words.
    pub says: String,
    /// The row.
    pub condition: String,
    /// The columns.
    pub methods: Vec<String>,
    /// The border.
    pub below: f64,
    /// What the authors' files have.
    pub theirs: String,
}

impl Count {
    /// The count as a sentence; none where nothing was run.
    pub(crate) fn words(&self, recipe: &Recipe, records: &[Record]) -> Option<String> {
        let counted = records
            .iter()
            .filter(|r| r.cell.condition == self.condition && self.methods.contains(&r.cell.method))
            .filter_map(|record| record.metric(&recipe.metric));
        let numbers: Vec<f64> = counted.collect();
        let few = numbers.iter().filter(|number| **number < self.below).count();
        let all = (!numbers.is_empty()).then_some(numbers.len())?;
        Some(format!("{}: {few} of {all} here, {}.", self.says, self.theirs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, Form};
    use crate::recipe::{Version, recipe};

    fn records(method: &str, numbers: &[f64]) -> Vec<Record> {
        let record = |(run, number): (usize, &f64)| {
            let cell = Cell {
                experiment: "california".to_owned(),
                condition: "random-target".to_owned(),
                method: method.to_owned(),
                run,
            };
            let mut record = Record::new(cell, Version::Code, Form::FULL, ().into());
            record.series.insert("mse".to_owned(), vec![99.0, *number]);
            record
        };
        numbers.iter().enumerate().map(record).collect()
    }

    fn answer(is: Relation, within: f64, lap: &[f64], standard: &[f64]) -> Answer {
        let california = recipe("california", Version::Code).unwrap();
        let side = |method: &str| Side {
            condition: "random-target".to_owned(),
            method: method.to_owned(),
            metric: None,
        };
        let claim =
            Claim { says: String::new(), of: side("lap"), is, than: side("standard"), within };
        claim.check(&california).unwrap();
        claim.answer(&california, &[records("lap", lap), records("standard", standard)].concat())
    }

    #[test]
    fn a_conclusion_holds_is_refuted_or_is_left_open() {
        let holds = |answer| match answer {
            Answer::Said { holds, .. } => holds,
            other => unreachable!("{other:?}"),
        };
        // Pairs that differ by about −1, while the runs differ by much more.
        let (lap, standard) = ([10.0, 50.1, 29.9, 70.0], [11.0, 51.0, 31.0, 71.1]);
        assert_eq!(holds(answer(Relation::Less, 0.0, &lap, &standard)), Some(true));
        assert_eq!(holds(answer(Relation::Greater, 0.0, &lap, &standard)), Some(false));
        assert_eq!(holds(answer(Relation::Equal, 0.2, &lap, &standard)), Some(false));
        assert_eq!(holds(answer(Relation::Equal, 1.0, &lap, &standard)), None);
        assert_eq!(holds(answer(Relation::Equal, 2.0, &lap, &standard)), Some(true));
        let open = [11.5, 50.0, 32.0, 70.0];
        assert_eq!(holds(answer(Relation::Less, 0.0, &open, &standard)), None);
    }

    #[test]
    fn what_was_not_run_in_pairs_decides_nothing() {
        assert_eq!(answer(Relation::Less, 0.0, &[1.0, 2.0, 3.0], &[]), Answer::NotRun);
        let few = answer(Relation::Less, 0.0, &[1.0, 2.0, 3.0], &[2.0, 3.0]);
        assert_eq!(few, Answer::TooFew { pairs: 2, of: 1.5, than: 2.5 });
    }

    #[test]
    fn runs_below_a_border_are_counted() {
        let california = recipe("california", Version::Code).unwrap();
        let count = Count {
            says: "Runs below 2".to_owned(),
            condition: "random-target".to_owned(),
            methods: vec!["lap".to_owned()],
            below: 2.0,
            theirs: "none there".to_owned(),
        };
        let said = count.words(&california, &records("lap", &[1.0, 2.0, 3.0]));
        assert_eq!(said.as_deref(), Some("Runs below 2: 1 of 3 here, none there."));
        assert_eq!(count.words(&california, &records("standard", &[1.0])), None);
    }
}
