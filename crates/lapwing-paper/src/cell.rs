//! Cells: an experiment, taken apart into pieces that are run one by one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::PaperError;
use crate::recipe::{Kind, Recipe, Version};

/// One run of one method in one condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment.
    pub experiment: String,
    /// The row of the table.
    pub condition: String,
    /// The column of the table.
    pub method: String,
    /// The number of the run, from 0.
    pub run: usize,
}

impl Cell {
    /// The cell whose seeds it is drawn with: its own, or one for all cells of the run.
    pub(crate) fn drawn(&self, paired: bool) -> Self {
        let mut drawn = self.clone();
        if paired {
            drawn.condition.clear();
            drawn.method.clear();
        }
        drawn
    }

    /// The seed of what all methods share: split, sources, noise.
    pub(crate) fn data_seed(&self) -> u64 {
        seed(&["data", &self.experiment, &self.condition, &self.run.to_string()])
    }

    /// The seed of the training: first parameters, order, dropout.
    pub(crate) fn training_seed(&self) -> u64 {
        let Self { experiment, condition, method, run } = self;
        seed(&["training", experiment, condition, method, &run.to_string()])
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { experiment, condition, method, run } = self;
        write!(f, "{experiment}, {condition}, {method}, run {}", run + 1)
    }
}

/// A seed that belongs to words.
fn seed(words: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Whether an experiment is run as the paper has it, or smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Only so many samples to train on.
    pub limit_train: Option<usize>,
    /// Only so many epochs.
    pub epochs: Option<usize>,
    /// Only so many channels in the first stage of a network that has stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Only so many moments of every sequence, from its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
    /// Only a part of the data set, or another in its layout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excerpt: bool,
}

impl Form {
    /// Nothing is smaller than in the paper.
    pub const FULL: Self =
        Self { limit_train: None, epochs: None, width: None, length: None, excerpt: false };
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("limit", self.limit_train),
            ("epochs", self.epochs),
            ("width", self.width),
            ("length", self.length),
        ];
        let given = parts.iter().filter_map(|(name, size)| Some(format!("{name}-{}", (*size)?)));
        let excerpt = self.excerpt.then(|| "excerpt".to_owned());
        let words: Vec<String> = excerpt.into_iter().chain(given).collect();
        f.write_str(if words.is_empty() { "full".to_owned() } else { words.join("-") }.as_str())
    }
}

/// Which cells of an experiment are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Runs per cell; the recipe's, if none is given.
    pub runs: Option<usize>,
    /// Conditions by name, or by the name of their noise; all, if empty.
    pub conditions: Vec<String>,
    /// Methods by name; all, if empty.
    pub methods: Vec<String>,
    /// The `i`-th of `n` equal parts, from 1.
    pub shard: Option<(usize, usize)>,
}

impl Selection {
    /// The cells of an experiment, run by run, so that whole tables with few runs come first.
    pub fn cells(&self, recipe: &Recipe) -> Result<Vec<Cell>, PaperError> {
        if recipe.kind == Kind::Derived {
            return Ok(Vec::new());
        }
        let wanted = |words: &[String], names: &[&str]| {
            words.is_empty() || words.iter().any(|word| names.contains(&word.as_str()))
        };
        let conditions: Vec<_> = recipe
            .conditions
            .iter()
            .filter(|c| wanted(&self.conditions, &[&c.id, c.noise.name()]))
            .collect();
        let methods: Vec<_> =
            recipe.methods.iter().filter(|m| wanted(&self.methods, &[&m.id])).collect();
        let runs = |method: &crate::MethodRecipe| self.runs.or(method.runs).unwrap_or(recipe.runs);
        let most = methods.iter().map(|method| runs(method)).max().unwrap_or(0);
        let mut cells = Vec::new();
        for run in 0..most {
            for condition in &conditions {
                for method in &methods {
                    let allowed = method
                        .conditions
                        .as_ref()
                        .is_none_or(|conditions| conditions.contains(&condition.id));
                    if allowed && run < runs(method) {
                        cells.push(Cell {
                            experiment: recipe.id.clone(),
                            condition: condition.id.clone(),
                            method: method.id.clone(),
                            run,
                        });
                    }
                }
            }
        }
        if let Some((part, parts)) = self.shard {
            let all = std::mem::take(&mut cells).into_iter().enumerate();
            cells = all.filter(|(at, _)| at % parts == part - 1).map(|(_, cell)| cell).collect();
        }
        Ok(cells)
    }

    /// Checks that every word names something in one of the experiments.
    pub fn check(&self, recipes: &[Recipe]) -> Result<(), PaperError> {
        if self.shard.is_some_and(|(part, parts)| part == 0 || part > parts) {
            return Err(PaperError::Usage(
                "--shard I/N: expected I from 1 to N, such as 2/8".to_owned(),
            ));
        }
        let known = |what: &str, words: &[String], names: Vec<String>| match words
            .iter()
            .find(|word| !names.contains(word))
        {
            None => Ok(()),
            Some(word) => {
                let mut expected: Vec<String> = Vec::new();
                for name in names {
                    if !expected.contains(&name) {
                        expected.push(name);
                    }
                }
                Err(PaperError::Unknown {
                    what: what.to_owned(),
                    word: word.clone(),
                    expected: expected.join(", "),
                })
            }
        };
        let conditions = recipes.iter().flat_map(|recipe| &recipe.conditions);
        let names = conditions.flat_map(|c| [c.id.clone(), c.noise.name().to_owned()]).collect();
        known("noise or setting of these experiments", &self.conditions, names)?;
        let methods = recipes.iter().flat_map(|recipe| &recipe.methods);
        let names = methods.map(|method| method.id.clone()).collect();
        known("method of these experiments", &self.methods, names)
    }
}

/// Where the records of an experiment are kept: reduced runs and other versions apart from full ones.
pub(crate) fn folder(form: Form, version: Version) -> String {
    match version {
        Version::Code => form.to_string(),
        Version::Paper => format!("{form}-as-paper"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::recipe;

    fn cells(selection: &Selection, id: &str) -> Vec<Cell> {
        selection.cells(&recipe(id, Version::Code).unwrap()).unwrap()
    }

    #[test]
    fn an_experiment_unfolds_into_conditions_methods_and_runs() {
        let all = Selection::default();
        assert_eq!(cells(&all, "table-1-fashion-mnist").len(), 7 * 7 * 5);
        assert_eq!(cells(&all, "sensitivity").len(), 20 * 10);
        assert_eq!(cells(&all, "many-sources").len(), 7 * (9 * 5 + 2 * 10));
        assert_eq!(cells(&all, "difficult-data").len(), (2 + 2 + 1) * 5);
        assert!(cells(&all, "percentage-difference").is_empty());
        let some = Selection {
            runs: Some(2),
            conditions: vec!["random-label".to_owned()],
            methods: vec!["lap".to_owned(), "standard".to_owned()],
            shard: None,
        };
        let names: Vec<String> =
            cells(&some, "table-1-cifar-10").iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 4);
        assert_eq!(names[3], "table-1-cifar-10, random-label, lap, run 2");
    }

    #[test]
    fn shards_are_all_cells_each_once() {
        let mut united = Vec::new();
        for part in 1..=3 {
            let shard = Selection { shard: Some((part, 3)), ..Selection::default() };
            united.extend(cells(&shard, "california"));
        }
        united.sort();
        let mut all = cells(&Selection::default(), "california");
        all.sort();
        assert_eq!(united, all);
    }

    #[test]
    fn seeds_belong_to_the_cell_and_methods_share_their_data() {
        let all = cells(&Selection::default(), "table-1-fashion-mnist");
        let mut training: Vec<u64> = all.iter().map(Cell::training_seed).collect();
        let mut data: Vec<u64> = all.iter().map(Cell::data_seed).collect();
        for seeds in [&mut training, &mut data] {
            seeds.sort_unstable();
            seeds.dedup();
        }
        assert_eq!((training.len(), data.len()), (245, 35));
    }

    #[test]
    fn unknown_words_are_answered_with_the_known_ones() {
        let recipes = [recipe("california", Version::Code).unwrap()];
        let check = |selection: Selection| selection.check(&recipes).map_err(|e| e.to_string());
        let noise = Selection { conditions: vec!["salt".to_owned()], ..Selection::default() };
        assert!(check(noise).unwrap_err().contains("random-target"));
        let method = Selection { methods: vec!["magic".to_owned()], ..Selection::default() };
        assert!(check(method).unwrap_err().contains("standard, lap"));
        let shard = Selection { shard: Some((3, 2)), ..Selection::default() };
        assert!(check(shard).is_err());
    }
}
