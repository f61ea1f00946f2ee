//! Searches: the rule in all combinations of some parameters, and which of them is chosen.

use serde::Deserialize;

use lapwing_noise::NoiseKind;

use crate::recipe::{Condition, Rule, noise};
use crate::section::shown;
use crate::table::{Entry, Results, Statistics};

/// Parameters of the rule, each combination of which is a row.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grid {
    /// The noise in the noisy sources.
    #[serde(deserialize_with = "noise")]
    pub noise: NoiseKind,
    /// Lengths of histories.
    pub history: Vec<usize>,
    /// Strengths.
    pub strength: Vec<f64>,
    /// Leniencies.
    pub leniency: Vec<f64>,
    /// A strength that the authors did not choose from.
    pub left_out_strength: Option<f64>,
    /// What the authors chose.
    pub chosen: Point,
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Point {
    /// H.
    pub history: usize,
    /// δ.
    pub strength: f64,
    /// λ.
    pub leniency: f64,
}

impl Point {
    /// Its name on the command line: `h25-d0.5-l0.8`.
    pub(crate) fn id(&self) -> String {
        let Self { history, strength, leniency } = self;
        format!("h{history}-d{strength}-l{leniency}")
    }

    /// Its name, in two parts: rows and columns of its table.
    pub(crate) fn names(&self) -> [String; 2] {
        let Self { history, strength, leniency } = self;
        [format!("H = {history}, δ = {strength}"), format!("λ = {leniency}")]
    }

    fn name(&self) -> String {
        self.names().join(", ")
    }
}

impl Grid {
    /// All combinations.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for &history in &self.history {
            for &strength in &self.strength {
                for &leniency in &self.leniency {
                    points.push(Point { history, strength, leniency });
                }
            }
        }
        points
    }

    /// A row for each combination.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = Condition> {
        self.points().into_iter().map(|point| {
            let lap = Rule {
                history: Some(point.history),
                strength: Some(point.strength),
                leniency: Some(point.leniency),
                warmup: None,
            };
            Condition { lap, ..Condition::new(point.id(), point.name(), self.noise) }
        })
    }
}

/// A point that was run often enough to be chosen.
struct Tried {
    point: Point,
    /// What is chosen by.
    valid: Statistics,
    /// What it is worth.
    test: Option<Statistics>,
}

impl Tried {
    /// Mean less standard deviation: what the authors chose by.
    fn merit(&self) -> f64 {
        self.valid.mean - self.valid.std.unwrap_or_default()
    }

    fn words(&self) -> String {
        let test = match &self.test {
            Some(test) => shown(test, "top-1"),
            None => "not run".to_owned(),
        };
        let valid = shown(&self.valid, "top-1");
        format!("{} (validation {valid}, test {test})", self.point.name())
    }
}

/// What the search chooses, in sentences; none where fewer than two points were run twice or more.
pub(crate) fn choice(results: &Results) -> Vec<String> {
    let Some(grid) = &results.recipe.grid else { return Vec::new() };
    let (Some(searched), Some(last)) =
        (results.recipe.methods.first(), results.recipe.methods.last())
    else {
        return Vec::new();
    };
    let found = |point: &Point, method: &str, metric: &str| {
        let is_it = |entry: &&Entry| {
            entry.condition == point.id() && entry.method == method && entry.metric == metric
        };
        results.entries.iter().find(is_it)?.ours
    };
    let tested = results.recipe.also.first().map_or("", String::as_str);
    let tried = |point: Point| {
        let valid = found(&point, &searched.id, &results.recipe.metric)?;
        valid.std?;
        Some(Tried { valid, test: found(&point, &last.id, tested), point })
    };
    let mut tried: Vec<Tried> = grid.points().into_iter().filter_map(tried).collect();
    if tried.len() < 2 {
        return Vec::new();
    }
    tried.sort_by(|a, b| b.merit().total_cmp(&a.merit()));
    let all = tried.len();
    let mut lines = vec![format!(
        "Chosen of {all} points by mean less standard deviation of the validation accuracy, as the authors chose: {}.",
        tried[0].words()
    )];
    let left_out = |tried: &&Tried| Some(tried.point.strength) != grid.left_out_strength;
    if let (Some(strength), Some(best)) = (grid.left_out_strength, tried.iter().find(left_out)) {
        lines.push(format!(
            "Without δ = {strength}, which the authors left out by hand: {}.",
            best.words()
        ));
    }
    if let Some(place) = tried.iter().position(|tried| tried.point == grid.chosen) {
        let words = tried[place].words();
        lines.push(format!("The authors' choice is number {} of {all} here: {words}.", place + 1));
    }
    let test = |tried: &&Tried| tried.test.map(|test| test.mean);
    let best = tried
        .iter()
        .filter(|tried| tried.test.is_some())
        .max_by(|a, b| test(a).unwrap_or_default().total_cmp(&test(b).unwrap_or_default()));
    if let Some(best) = best {
        lines.push(format!("Best on the test set, which nobody may choose by: {}.", best.words()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, Form, Selection};
    use crate::recipe::{Version, recipe};
    use crate::record::{Record, Records};
    use crate::run::settings;

    #[test]
    fn the_search_has_48_points_that_share_their_draws() {
        let search = recipe("parameter-search", Version::Code).unwrap();
        assert_eq!(search.conditions.len(), 48);
        let all = Selection::default().cells(&search).unwrap();
        assert_eq!(all.len(), 48 * 2 * 5);
        let point = search.condition("h50-d0.5-l0.8").unwrap();
        assert_eq!(point.name, "H = 50, δ = 0.5, λ = 0.8");
        let rule = search.rule(point, search.method("all").unwrap());
        assert_eq!(
            (rule.history_length, rule.depression_strength, rule.leniency, rule.warmup),
            (50, 0.5, 0.8, 100)
        );
        let mut seeds: Vec<u64> = all.iter().map(|cell| cell.drawn(true).training_seed()).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 5);
        let text = recipe("parameter-search", Version::Paper).unwrap();
        assert_eq!(text.conditions[0].noise, NoiseKind::RandomLabelPerSample);
        assert_eq!(text.conditions.len(), 48);
    }

    /// Records of two runs: accuracies in per cent, on held-out rows and on the test set.
    fn record(out: &std::path::Path, point: &str, valid: [f64; 2], test: f64) {
        let search = recipe("parameter-search", Version::Code).unwrap();
        for (run, valid) in valid.into_iter().enumerate() {
            for method in ["search", "all"] {
                let cell = Cell {
                    experiment: search.id.clone(),
                    condition: point.to_owned(),
                    method: method.to_owned(),
                    run,
                };
                let settings = settings(&search, &cell, Form::FULL).unwrap();
                let mut record = Record::new(cell, Version::Code, Form::FULL, settings);
                record.series.insert("top-1".to_owned(), vec![test]);
                if method == "search" {
                    record.series.insert("valid-top-1".to_owned(), vec![10.0, valid, 11.0]);
                }
                Records::new(out).write(&record, Version::Code).unwrap();
            }
        }
    }

    #[test]
    fn what_is_steady_is_chosen_and_told_with_what_it_is_worth() {
        let dir = tempfile::tempdir().unwrap();
        record(dir.path(), "h25-d0.1-l0.5", [50.0, 50.1], 60.0);
        record(dir.path(), "h25-d0.5-l0.5", [48.0, 48.1], 80.0);
        // The highest mean, but of runs that differ.
        record(dir.path(), "h100-d2-l2", [70.0, 40.0], 85.0);
        let search = recipe("parameter-search", Version::Code).unwrap();
        let results =
            Results::gather(&search, Version::Code, Form::FULL, &Records::new(dir.path())).unwrap();
        let lines = choice(&results);
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("Chosen of 3 points"), "{}", lines[0]);
        let chosen =
            "H = 25, δ = 0.1, λ = 0.5 (validation 50.05 ± 0.07 (2), test 60.00 ± 0.00 (2))";
        assert!(lines[0].contains(chosen), "{}", lines[0]);
        assert!(lines[1].contains("Without δ = 0.1") && lines[1].contains("δ = 0.5, λ = 0.5 ("));
        assert!(lines[2].contains("number 2 of 3 here: H = 25, δ = 0.5"), "{}", lines[2]);
        assert!(lines[3].contains("H = 100, δ = 2, λ = 2 ("), "{}", lines[3]);

        let mut text = String::new();
        crate::section::section(&mut text, &results, &[], dir.path()).unwrap();
        assert!(text.contains("\n- Chosen of 3 points"), "{text}");
        let head = "| greatest validation accuracy, %: LAP on three quarters | λ = 0.5 | λ = 2 |";
        assert!(text.contains(head), "{text}");
        let row = "| H = 100, δ = 2 | – | **55.00 ± 21.21 (2)** |";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn one_run_of_each_point_chooses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let search = recipe("parameter-search", Version::Code).unwrap();
        let results =
            Results::gather(&search, Version::Code, Form::FULL, &Records::new(dir.path())).unwrap();
        assert!(choice(&results).is_empty());
    }
}
