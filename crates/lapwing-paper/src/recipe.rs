//! Recipes: what an experiment consists of, as data.

mod method;
mod setup;

use lapwing_core::{LapConfig, Ties};
use lapwing_noise::NoiseKind;
use serde::Deserialize;
use serde::de::Error as _;
use toml::{Table, Value};

pub use self::method::{BatchLabels, MethodKeys, MethodRecipe};
pub use self::setup::{Layout, Model, ModelKind, OptimiserKind, ScheduleKind, Sources, Training};

use crate::claim::{Claim, Count};
use crate::data::DataSet;
use crate::error::PaperError;
use crate::search::Grid;

/// The recipes, in the order in which they are listed.
const TEXTS: &[&str] = &[
    include_str!("../recipes/toy.toml"),
    include_str!("../recipes/sensitivity.toml"),
    include_str!("../recipes/california.toml"),
    include_str!("../recipes/table-1-fashion-mnist.toml"),
    include_str!("../recipes/table-1-cifar-10.toml"),
    include_str!("../recipes/table-1-cifar-100.toml"),
    include_str!("../recipes/percentage-difference.toml"),
    include_str!("../recipes/untuned.toml"),
    include_str!("../recipes/parameter-search.toml"),
    include_str!("../recipes/table-2-rrl.toml"),
    include_str!("../recipes/table-7-rrl.toml"),
    include_str!("../recipes/table-7-gain.toml"),
    include_str!("../recipes/figure-5b.toml"),
    include_str!("../recipes/many-sources.toml"),
    include_str!("../recipes/cifar-10n.toml"),
    include_str!("../recipes/difficult-data.toml"),
    include_str!("../recipes/difficult-data-leniency.toml"),
    include_str!("../recipes/imdb.toml"),
    include_str!("../recipes/goemotions.toml"),
    include_str!("../recipes/ptb-xl.toml"),
    include_str!("../recipes/tiny-imagenet.toml"),
    include_str!("../recipes/imagenet64.toml"),
    include_str!("../recipes/compute.toml"),
    include_str!("../recipes/figure-2.toml"),
    include_str!("../recipes/figure-3.toml"),
    include_str!("../recipes/no-parameters.toml"),
    include_str!("../recipes/breakdown.toml"),
    include_str!("../recipes/arithmetic.toml"),
    include_str!("../recipes/ablation.toml"),
    include_str!("../recipes/epoch-choice.toml"),
];

/// Whom to follow where the paper's text and its authors' code differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The code, which made the paper's numbers.
    #[default]
    Code,
    /// The text.
    Paper,
}

/// An experiment: a table or a figure of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    /// Its name on the command line.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// The table or figure.
    pub shows: String,
    /// What is done.
    #[serde(default)]
    pub kind: Kind,
    /// The experiments whose records it is derived from.
    #[serde(default)]
    pub from: Vec<String>,
    /// The method over which others gain, where that is derived: those that stand behind it are compared with it.
    #[serde(default = "standard")]
    pub over: String,
    /// The data set.
    pub data: Option<DataSet>,
    /// Whether all runs use the same data, and only the noise is drawn anew.
    #[serde(default)]
    pub same_data: bool,
    /// Whether all cells of one run share their draws, first parameters and order, whatever their row and column.
    #[serde(default)]
    pub paired: bool,
    /// How often each cell is run, with other seeds.
    pub runs: usize,
    /// About how long a run takes on two cores, where one was made.
    pub seconds: Option<f64>,
    /// What the table shows.
    pub metric: String,
    /// What else is shown.
    #[serde(default)]
    pub also: Vec<String>,
    /// The share of the training set that is used.
    #[serde(default = "all")]
    pub keep: f64,
    /// The share of these that is not trained on but measured after every epoch, as noisy as the rest.
    #[serde(default)]
    pub hold_out: f64,
    /// The figure beside the table.
    pub figure: Option<FigureKind>,
    /// What a reader of the table should know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The sources.
    pub sources: Option<Sources>,
    /// The network.
    pub model: Option<Model>,
    /// How it is trained.
    pub training: Option<Training>,
    /// The parameters of the rule.
    #[serde(default)]
    pub lap: Rule,
    /// The rows of the table: kinds of noise, or settings.
    #[serde(default, rename = "condition")]
    pub conditions: Vec<Condition>,
    /// Rows that are combinations of parameters.
    pub grid: Option<Grid>,
    /// The columns of the table.
    #[serde(default, rename = "method")]
    pub methods: Vec<MethodRecipe>,
    /// The paper's numbers.
    pub paper: PaperNumbers,
    /// What the paper concludes from them.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// Runs that are counted beside them.
    #[serde(default, rename = "count")]
    pub counts: Vec<Count>,
}

fn all() -> f64 {
    1.0
}

fn standard() -> String {
    "standard".to_owned()
}

/// What is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Networks are trained and tested.
    #[default]
    Training,
    /// Nothing; other experiments' records say it.
    Derived,
    /// Something is timed.
    Timing,
    /// Numbers are drawn and shown.
    Demonstration,
    /// Noise is drawn and estimated.
    Estimation,
}

/// The kinds of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Weights of sources over steps, a panel for each setting.
    Weights,
    /// A box for each setting.
    Boxes,
    /// Accuracy over the number of noisy sources.
    Curve,
    /// What the last method gains over the first, a line for everything that is shown.
    Gains,
    /// Losses of sources, a panel for each time.
    Histograms,
    /// What is measured after each epoch, a line for each method.
    Epochs,
    /// How many samples sources have.
    Sizes,
}

/// Parameters of the rule; what is missing is as in the part of the recipe above.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// H.
    pub history: Option<usize>,
    /// δ.
    pub strength: Option<f64>,
    /// λ.
    pub leniency: Option<f64>,
    /// Steps before the first judgement.
    pub warmup: Option<u64>,
}

impl Rule {
    /// This rule, with what `other` says instead.
    fn with(self, other: Rule) -> Rule {
        Rule {
            history: other.history.or(self.history),
            strength: other.strength.or(self.strength),
            leniency: other.leniency.or(self.leniency),
            warmup: other.warmup.or(self.warmup),
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Condition {
    /// Its name on the command line.
    pub id: String,
    /// Its name in the table.
    pub name: String,
    /// The noise in the noisy sources.
    #[serde(default = "no_noise", deserialize_with = "noise")]
    pub noise: NoiseKind,
    /// The noise of each noisy source, where they differ, in the order in which they are chosen.
    #[serde(default, deserialize_with = "noises")]
    pub mixed: Vec<NoiseKind>,
    /// The share of wrong labels in each noisy source, instead of the experiment's.
    #[serde(default)]
    pub levels: Vec<f64>,
    /// Random labels are of the first so many classes.
    pub random_classes: Option<u32>,
    /// Parameters of the rule.
    #[serde(default)]
    pub lap: Rule,
    /// Samples per step, where that is what is varied.
    pub batch: Option<usize>,
    /// Mean losses of sources.
    #[serde(default)]
    pub means: Vec<f64>,
    /// The standard deviation of losses.
    #[serde(default)]
    pub deviation: f64,
    /// Numbers of losses of sources.
    #[serde(default)]
    pub counts: Vec<usize>,
}

impl Condition {
    /// A row with nothing but its noise.
    pub(crate) fn new(id: String, name: String, noise: NoiseKind) -> Self {
        Self {
            id,
            name,
            noise,
            mixed: Vec::new(),
            levels: Vec::new(),
            random_classes: None,
            lap: Rule::default(),
            batch: None,
            means: Vec::new(),
            deviation: 0.0,
            counts: Vec::new(),
        }
    }
}

fn no_noise() -> NoiseKind {
    NoiseKind::Original
}

pub(crate) fn noise<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<NoiseKind, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn noises<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<NoiseKind>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    names.into_iter().map(|name| name.parse().map_err(D::Error::custom)).collect()
}

/// The paper's numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PaperNumbers {
    /// Runs behind a number.
    pub runs: usize,
    /// The numbers.
    pub numbers: Vec<PaperNumber>,
    /// What it draws over epochs.
    #[serde(default, rename = "curve")]
    pub curves: Vec<PaperCurve>,
}

/// A curve of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PaperCurve {
    /// Whose it is.
    pub method: String,
    /// What was measured, by its name in records.
    pub series: String,
    /// The mean over runs after each epoch.
    pub mean: Vec<f64>,
}

/// A number of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PaperNumber {
    /// The experiment, where it is not the one that holds the number.
    pub of: Option<String>,
    /// Its row.
    pub condition: String,
    /// Its column.
    pub method: String,
    /// What it is, if not the experiment's metric.
    pub metric: Option<String>,
    /// The mean over runs.
    pub mean: f64,
    /// The sample standard deviation over runs.
    pub std: Option<f64>,
    /// Runs, if not the experiment's.
    pub runs: Option<usize>,
    /// Least, lower quartile, median, upper quartile and greatest.
    #[serde(rename = "box")]
    pub five: Option<[f64; 5]>,
}

/// All recipes.
pub fn recipes(version: Version) -> Result<Vec<Recipe>, PaperError> {
    TEXTS.iter().map(|text| Recipe::read(text, version)).collect()
}

/// The recipe of a name.
pub fn recipe(id: &str, version: Version) -> Result<Recipe, PaperError> {
    let recipes = recipes(version)?;
    let ids: Vec<String> = recipes.iter().map(|recipe| recipe.id.clone()).collect();
    recipes.into_iter().find(|recipe| recipe.id == id).ok_or_else(|| PaperError::Unknown {
        what: "experiment".to_owned(),
        word: id.to_owned(),
        expected: ids.join(", "),
    })
}

impl Recipe {
    /// Reads a recipe, with what it says of the text where that is wanted.
    fn read(text: &str, version: Version) -> Result<Self, PaperError> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            PaperError::Recipe { id: "?".to_owned(), problem: error.to_string() }
        })?;
        let id = table.get("id").and_then(Value::as_str).unwrap_or("?").to_owned();
        let refuse = |problem| PaperError::Recipe { id: id.clone(), problem };
        if let Some(changes) = table.remove("as-paper")
            && version == Version::Paper
        {
            let mut whole = Value::Table(table);
            merge(&mut whole, changes);
            let Value::Table(merged) = whole else { return Err(refuse("no table".to_owned())) };
            table = merged;
        }
        let mut recipe: Recipe = table.try_into().map_err(|error| refuse(error.to_string()))?;
        if let Some(grid) = &recipe.grid {
            recipe.conditions.extend(grid.conditions());
        }
        recipe.check().map_err(refuse)?;
        Ok(recipe)
    }

    fn check(&self) -> Result<(), String> {
        for method in &self.methods {
            let kind = method.kind()?;
            if kind.networks() > 1 && self.training.as_ref().is_some_and(|how| how.raw_values) {
                return Err(format!("{}: raw values are for methods of one network", method.id));
            }
            let linear = self.model.as_ref().is_some_and(|model| model.kind == ModelKind::Mlp);
            if method.init.is_some() && !linear {
                return Err(format!("{}: init is for networks of linear layers", method.id));
            }
            let held = method.hold_out.unwrap_or(self.hold_out);
            if !(0.0..1.0).contains(&held) {
                return Err(format!("{}: hold-out is a share from 0 to below 1", method.id));
            }
            for named in method.conditions.iter().flatten().chain(&method.noise_rate_zero) {
                self.condition(named).ok_or_else(|| format!("no condition {named}"))?;
            }
        }
        self.claims.iter().try_for_each(|claim| claim.check(self))?;
        for number in &self.paper.numbers {
            if number.of.is_none()
                && (self.condition(&number.condition).is_none()
                    || self.method(&number.method).is_none())
            {
                return Err(format!("a number of {} by {}", number.condition, number.method));
            }
        }
        for PaperCurve { method, series, mean } in &self.paper.curves {
            if self.method(method).is_none() {
                return Err(format!("a curve of {series} by {method}"));
            }
            if mean.is_empty() {
                return Err(format!("a curve of {series} by {method} without numbers"));
            }
        }
        Ok(())
    }

    /// Whether it is ours, and not the paper's.
    pub fn is_beyond(&self) -> bool {
        self.shows == "beyond the paper"
    }

    /// The row of a name.
    pub fn condition(&self, id: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.id == id)
    }

    /// The column of a name.
    pub fn method(&self, id: &str) -> Option<&MethodRecipe> {
        self.methods.iter().find(|method| method.id == id)
    }

    /// What is shown, first what the table is about.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.metric).chain(&self.also).map(String::as_str)
    }

    /// The paper's number for a cell.
    pub fn number(&self, condition: &str, method: &str, metric: &str) -> Option<&PaperNumber> {
        self.paper.numbers.iter().find(|number| {
            number.condition == condition
                && number.method == method
                && number.metric.as_deref().unwrap_or(&self.metric) == metric
        })
    }

    /// The rule of a cell: the experiment's, the condition's and the method's, the last that speaks.
    pub fn rule(&self, condition: &Condition, method: &MethodRecipe) -> LapConfig {
        let rule = self.lap.with(condition.lap).with(method.lap);
        let default = LapConfig::default();
        LapConfig {
            history_length: rule.history.unwrap_or(default.history_length),
            leniency: rule.leniency.unwrap_or(default.leniency),
            depression_strength: rule.strength.unwrap_or(default.depression_strength),
            warmup: rule.warmup.unwrap_or(default.warmup),
            // The authors' code, in which equality raises C.
            ties: Ties::Package,
            ..default
        }
    }
}

/// Puts changes into a value: tables key by key, lists of things with an `id` thing by thing.
fn merge(value: &mut Value, changes: Value) {
    match (value, changes) {
        // A table of another kind takes the place of the old one.
        (Value::Table(table), Value::Table(changes))
            if changes.get("kind").is_none_or(|kind| table.get("kind") == Some(kind)) =>
        {
            for (key, change) in changes {
                match table.get_mut(&key) {
                    Some(old) => merge(old, change),
                    None => {
                        table.insert(key, change);
                    }
                }
            }
        }
        (Value::Array(items), Value::Array(changes))
            if changes.iter().all(|change| change.get("id").is_some()) =>
        {
            for change in changes {
                match items.iter_mut().find(|item| item.get("id") == change.get("id")) {
                    Some(item) => merge(item, change),
                    None => items.push(change),
                }
            }
        }
        (value, change) => *value = change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_read_in_both_versions_under_its_own_name() {
        for version in [Version::Code, Version::Paper] {
            let recipes = recipes(version).unwrap();
            assert_eq!(recipes.len(), TEXTS.len());
            for recipe in &recipes {
                let found = super::recipe(&recipe.id, version).unwrap();
                assert_eq!(found.title, recipe.title);
                let numbers = &recipe.paper.numbers;
                // What the authors searched through they did not print.
                let none = recipe.is_beyond() || recipe.grid.is_some();
                assert_eq!(numbers.is_empty(), none, "{}", recipe.id);
            }
        }
        let said = recipe("table-99", Version::Code).unwrap_err().to_string();
        assert!(said.contains("table-99") && said.contains("sensitivity"), "{said}");
    }

    #[test]
    fn the_papers_tables_are_complete() {
        let count = |id: &str| recipe(id, Version::Code).unwrap().paper.numbers.len();
        assert_eq!(["10", "100"].map(|n| count(&format!("table-1-cifar-{n}"))), [49, 49]);
        assert_eq!(count("table-1-fashion-mnist"), 49);
        assert_eq!(count("percentage-difference"), 126);
        assert_eq!(count("table-7-gain"), 12);
        assert_eq!(count("many-sources"), 56 + 21);
        assert_eq!((count("imdb"), count("goemotions"), count("ptb-xl")), (18, 24, 16));
        assert_eq!((count("untuned"), count("difficult-data-leniency")), (14, 12));
        let of_rrl = ["table-2-rrl", "table-7-rrl", "figure-5b"].map(count);
        assert_eq!(of_rrl, [14, 32, 10]);
        assert_eq!((count("toy"), count("sensitivity")), (95, 60));
        let toy = recipe("toy", Version::Code).unwrap();
        assert_eq!(toy.conditions.len(), 19);
        assert_eq!(recipe("sensitivity", Version::Code).unwrap().conditions.len(), 20);
    }

    #[test]
    fn curves_of_the_paper_are_of_methods_and_have_numbers() {
        let imagenet = recipe("imagenet64", Version::Code).unwrap();
        let curves = &imagenet.paper.curves;
        assert_eq!((curves.len(), curves.iter().all(|curve| curve.mean.len() == 90)), (6, true));
        // They are what the tables say: the greatest mean is about the mean of the greatest.
        for curve in curves.iter().filter(|curve| curve.series == "top-5") {
            let number =
                |metric| imagenet.number("input-and-label", &curve.method, metric).unwrap().mean;
            let greatest = curve.mean.iter().copied().fold(0.0, f64::max);
            assert!((greatest - number("max-top-5")).abs() < 0.1, "{}", curve.method);
            let late = curve.mean[80..].iter().sum::<f64>() / 10.0;
            assert!((late - number("late-top-5")).abs() < 0.01, "{}", curve.method);
        }
        let read = |from: &str, to: &str| {
            let text = TEXTS.iter().find(|text| text.contains("id = \"imagenet64\"")).unwrap();
            Recipe::read(&text.replacen(from, to, 1), Version::Code).map_err(|e| e.to_string())
        };
        let curve = "[[paper.curve]]\nmethod = \"standard\"";
        let said = read(curve, "[[paper.curve]]\nmethod = \"nobody\"").unwrap_err();
        assert!(said.contains("train-loss by nobody"), "{said}");
        let empty = "[[paper.curve]]\nmethod = \"lap\"\nseries = \"top-5\"\nmean = []\n\n";
        let said = read("[[paper.curve]]", &format!("{empty}[[paper.curve]]")).unwrap_err();
        assert!(said.contains("without numbers"), "{said}");
    }

    #[test]
    fn the_last_that_speaks_decides_on_the_rule() {
        let difficult = recipe("difficult-data", Version::Code).unwrap();
        let rule = |condition, method| {
            let rule = difficult
                .rule(difficult.condition(condition).unwrap(), difficult.method(method).unwrap());
            (rule.history_length, rule.leniency)
        };
        assert_eq!(rule("original", "lap"), (50, 4.0));
        assert_eq!(rule("random-label", "lap"), (50, 0.1));
        assert_eq!(rule("original", "lap-leniency-1"), (50, 1.0));
    }

    #[test]
    fn the_text_changes_what_it_speaks_of_and_nothing_else() {
        let (code, text) = (
            recipe("table-1-fashion-mnist", Version::Code).unwrap(),
            recipe("table-1-fashion-mnist", Version::Paper).unwrap(),
        );
        let noise = |recipe: &Recipe| recipe.condition("random-label").unwrap().noise;
        assert_eq!(noise(&code), NoiseKind::RandomLabel);
        assert_eq!(noise(&text), NoiseKind::RandomLabelPerSample);
        assert_eq!((code.keep, text.keep), (0.75, 1.0));
        assert!(!text.model.as_ref().unwrap().softmax);
        assert_eq!(text.conditions.len(), 7);
        let cdr = text.method("cdr").unwrap();
        assert_eq!((cdr.noise_rate_zero.len(), cdr.weight_decay), (1, Some(0.0)));
        let boxes = recipe("sensitivity", Version::Paper).unwrap();
        assert_eq!((boxes.lap.history, boxes.lap.warmup), (Some(50), Some(0)));
        let many = recipe("many-sources", Version::Paper).unwrap();
        assert_eq!(many.method("lap-50000").unwrap().chunk, Some(1));
        let hearts = |version| recipe("ptb-xl", version).unwrap().training.unwrap().schedule;
        assert_eq!(hearts(Version::Paper), Some(ScheduleKind::Constant));
        assert!(matches!(hearts(Version::Code), Some(ScheduleKind::EpochCosine { .. })));
    }

    #[test]
    fn the_text_has_no_slips_of_the_scripts_in_texts_and_many_sources() {
        for id in ["imdb", "goemotions", "many-sources"] {
            for (version, twice, decay) in
                [(Version::Code, 1.0, Some(1e-4)), (Version::Paper, 0.0, Some(0.0))]
            {
                let recipe = recipe(id, version).unwrap();
                let method = |name| recipe.method(name).unwrap();
                assert_eq!(method("co-teaching").parameters["divide-twice"], twice, "{id}");
                if id != "many-sources" {
                    assert_eq!(method("cdr").weight_decay, decay, "{id}");
                }
                // What the text does not speak of stays.
                assert_eq!(method("co-teaching").parameters["forget-rate"], 0.2, "{id}");
                assert_eq!(method("cdr").parameters["noise-rate"], 0.4, "{id}");
            }
        }
        // A rate that falls from the last epoch on does not fall.
        let many = recipe("many-sources", Version::Paper).unwrap();
        let from = many.method("co-teaching").unwrap().parameters["decay-from"];
        assert_eq!(from as usize, many.training.unwrap().epochs);
        let hidden = |version| recipe("goemotions", version).unwrap().model.unwrap().hidden;
        assert_eq!(hidden(Version::Code), [2048, 2048]);
        assert_eq!(hidden(Version::Paper), [256, 256]);
    }

    #[test]
    fn as_many_pictures_are_trained_on_as_the_authors_and_the_text_have() {
        let trained = |id, version, all: usize| {
            let Recipe { keep, hold_out, .. } = recipe(id, version).unwrap();
            let kept = (all as f64 * keep).round() as usize;
            kept - (kept as f64 * hold_out) as usize
        };
        assert_eq!(trained("imagenet64", Version::Code, 1_281_167), 1_153_051);
        assert_eq!(trained("imagenet64", Version::Paper, 1_281_167), 1_231_167);
        // The text has the same split.
        assert_eq!(trained("tiny-imagenet", Version::Code, 100_000), 90_000);
        assert_eq!(trained("tiny-imagenet", Version::Paper, 100_000), 90_000);
    }
}
