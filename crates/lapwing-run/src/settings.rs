//! Everything a run needs, under the names of the flags; `config.toml` is its written form.
//!
//! Values that are not given are `None`; [`Job::new`](crate::Job::new) fills them in from the table, so that the file in
//! a run directory has a value for every key that the run depended on.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use lapwing_core::{LapConfig, LapError, leniency_for_false_alarm};
use lapwing_data::{Kind, PictureOptions, ReadOptions, SplitConfig};
use lapwing_sample::{Change, InputSpec, Task};
use lapwing_train::{
    Audience, Guards, Loss, METHODS, MethodConfig, MethodError, MethodKind, Parameter, Weighs,
    Wishes,
};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::choice::Choice;
use crate::{FOLDS, MOST_FOLDS, ModelKind, RunError};

const MOMENTUM: f64 = 0.9;
/// The method for classes.
const NOISE_RATE: &str = "noise-rate";
/// Largest configuration read: a run's own is a few kilobytes.
const LARGEST_FILE: u64 = 1 << 24;

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// Settings as asked for; what is `None` is chosen for the table.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings {
            /// Parameters of the method, by name.
            pub parameters: Parameters,
            $($(#[$doc])* pub $name: Option<$kind>,)*
        }

        impl Serialize for Settings {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(
                    if stringify!($name) == "trust" {
                        for (name, value) in &self.parameters {
                            map.serialize_entry(name, value)?;
                        }
                    }
                    if let Some(value) = &self.$name {
                        map.serialize_entry(&stringify!($name).replace('_', "-"), value)?;
                    }
                )*
                map.end()
            }
        }

        impl Settings {
            /// These settings, and those of `lower` where these say nothing. Parameters of a method go with it, and so
            /// does the momentum with its optimiser: they are not taken from below where another one was chosen. Nor is
            /// what was chosen for another model, or the leniency, where a rate of false alarms was, or the other way
            /// round.
            #[must_use]
            pub fn over(self, mut lower: Settings) -> Settings {
                if let Some(model) = self.model.and_then(Choice::chosen) {
                    lower.leave_for(model);
                }
                if self.method.is_some_and(|method| method != lower.method()) {
                    lower.parameters.clear();
                }
                if self.leniency.is_some() || self.false_alarm.is_some() {
                    (lower.leniency, lower.false_alarm) = (None, None);
                }
                if self.optimiser.is_some_and(|own| own != lower.optimiser.unwrap_or_default()) {
                    lower.momentum = None;
                }
                lower.parameters.extend(self.parameters);
                Settings { parameters: lower.parameters, $($name: self.$name.or(lower.$name),)* }
            }
        }

        /// The keys but for the parameters of methods.
        fn keys() -> Vec<String> {
            vec![$(stringify!($name).replace('_', "-"),)*]
        }

        impl<'de> Visitor<'de> for SettingsVisitor {
            type Value = Settings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of settings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut settings = Settings::default();
                while let Some(key) = map.next_key::<Key>()? {
                    match key {
                        Key::Parameter(name) => {
                            settings.parameters.insert(name.to_owned(), map.next_value()?);
                        }
                        Key::Field(name) => match name.replace('-', "_").as_str() {
                            $(stringify!($name) => settings.$name = Some(map.next_value()?),)*
                            _ => return Err(A::Error::custom(format!("unknown key {name:?}"))),
                        },
                    }
                }
                Ok(settings)
            }
        }
    };
}

/// Parameters of a method, by name.
pub type Parameters = BTreeMap<String, f64>;

struct SettingsVisitor;

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SettingsVisitor)
    }
}

/// A key that is known. Whoever reads a file learns of an unknown one where it stands.
enum Key {
    Field(String),
    Parameter(&'static str),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        if let Some(parameter) = method_parameters().find(|parameter| parameter.name == key) {
            return Ok(Self::Parameter(parameter.name));
        }
        let keys = keys();
        if keys.contains(&key) {
            return Ok(Self::Field(key));
        }
        let parameters = method_parameters().map(|parameter| parameter.name.to_owned());
        let mut known: Vec<String> = keys.into_iter().chain(parameters).collect();
        known.sort();
        known.dedup();
        Err(D::Error::custom(format!("unknown key `{key}`, expected one of {}", known.join(", "))))
    }
}

/// The parameters that users can set, of every method.
pub fn method_parameters() -> impl Iterator<Item = &'static Parameter> {
    let all = METHODS.iter().flat_map(|kind| kind.parameters());
    all.filter(|parameter| parameter.audience == Audience::Everybody)
}

settings! {
    /// The table.
    data: PathBuf,
    /// Column to predict.
    target: String,
    /// Column that says where a row came from.
    source: String,
    /// Column that says what a row is an answer to.
    item: String,
    /// Whether rows with the same inputs are taken for answers on one item, where no column says what they answer.
    find_items: bool,
    /// Use these columns and no other.
    features: Vec<String>,
    /// Do not use these columns.
    ignore: Vec<String>,
    /// Columns of text to learn from.
    text: Vec<String>,
    /// Channels of series to learn from.
    series: Vec<String>,
    /// Column that says when a row was taken.
    time: String,
    /// Pixels of a side of pictures.
    image_size: usize,
    /// Megabytes of pictures that are held in memory.
    image_memory: u64,
    /// What becomes of pictures at random while training.
    augment: Vec<Change>,
    /// What is done about a row whose picture cannot be read.
    on_bad_row: BadRow,
    /// What is learnt.
    task: Choice<Task>,
    /// Table to test on.
    test: PathBuf,
    /// Share of rows to test on.
    test_fraction: f64,
    /// Share of rows to stop by.
    validation_fraction: f64,
    /// How sources are treated.
    method: &'static dyn MethodKind,
    /// What is trained.
    model: Choice<ModelKind>,
    /// Why, where nobody asked for it.
    model_reason: String,
    /// Which loss.
    loss: Choice<LossName>,
    /// Where the linear part of Huber's loss begins, in standard deviations of the target.
    huber_delta: f64,
    /// Units of each hidden layer.
    hidden: Vec<usize>,
    /// Share of hidden units dropped at each step.
    dropout: f64,
    /// What moves the parameters.
    optimiser: OptimiserName,
    /// Share of the last step that SGD carries into the next.
    momentum: f64,
    /// How strongly parameters are drawn to zero.
    weight_decay: f64,
    /// Most epochs.
    epochs: usize,
    /// Epochs without a better validation loss after which training ends.
    patience: usize,
    /// Rows per step.
    batch_size: usize,
    /// Highest learning rate.
    learning_rate: f64,
    /// History length H: how many batch-mean losses of a source are remembered.
    history: usize,
    /// Leniency λ: how many standard deviations above the others a source may lie.
    leniency: f64,
    /// The probability of accusing a clean source in a step, by which the leniency is chosen.
    false_alarm: f64,
    /// Depression strength δ: how fast weight falls.
    strength: Choice<f64>,
    /// Steps before the first judgement.
    warmup: u64,
    /// Least weight of a source.
    floor: f64,
    /// Sources that are never down-weighted.
    trust: Vec<String>,
    /// Sources that weigh nothing.
    block: Vec<String>,
    /// Networks that judge labels which they have not seen; 0 for none.
    folds: usize,
    /// Bytes of memory; rows that do not fit are on disk.
    memory_limit: u64,
    /// The file in which rows on disk stay for the next time.
    cache: PathBuf,
    /// Shards of each batch, whose gradients are added in a fixed tree.
    shards: usize,
    /// Decides split, first parameters and order.
    seed: u64,
    /// Where tensors live.
    device: String,
    /// Kinds of columns that override inference.
    types: BTreeMap<String, Kind>,
}

/// Which loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// For classes.
    CrossEntropy,
    /// For values.
    SquaredError,
    /// For values, of which some are far off.
    Huber,
}

/// Half a square up to here is as good as least squares where errors are normal, and bounds what a wild value does.
const HUBER_DELTA: f64 = 1.0;

impl LossName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::CrossEntropy, Self::SquaredError, Self::Huber];

    /// The word in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross-entropy",
            Self::SquaredError => "squared-error",
            Self::Huber => "huber",
        }
    }

    /// What it is, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::CrossEntropy => {
                "Minus the logarithm of the probability of the class (classification)"
            }
            Self::SquaredError => "The square of the error (regression)",
            Self::Huber => "Half the square of small errors, linear in large ones (regression)",
        }
    }

    /// The name of a loss, and its parameter.
    pub(crate) fn of(loss: Loss) -> (Self, Option<f64>) {
        match loss {
            Loss::CrossEntropy => (Self::CrossEntropy, None),
            Loss::SquaredError => (Self::SquaredError, None),
            Loss::Huber { delta } => (Self::Huber, Some(delta)),
        }
    }

    fn with(self, delta: Option<f64>) -> Loss {
        match self {
            Self::CrossEntropy => Loss::CrossEntropy,
            Self::SquaredError => Loss::SquaredError,
            Self::Huber => Loss::Huber { delta: delta.unwrap_or(HUBER_DELTA) },
        }
    }
}

impl std::str::FromStr for LossName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|loss| loss.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("there is no loss {name:?}; expected one of {}", names()))
    }
}

/// What is done about a row that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadRow {
    /// It is an error.
    #[default]
    Fail,
    /// It is left out, counted and reported.
    Skip,
}

/// What moves the parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserName {
    /// Adam.
    #[default]
    Adam,
    /// Stochastic gradient descent.
    Sgd,
}

impl Settings {
    /// Reads a file of settings. A key that is not known is an error.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let text = String::from_utf8(lapwing_store::read(path, LARGEST_FILE)?).map_err(|_| {
            RunError::Damaged { path: path.to_owned(), reason: "not UTF-8 text".to_owned() }
        })?;
        toml::from_str(&text)
            .map_err(|source| RunError::Config { path: path.to_owned(), source: Box::new(source) })
    }

    /// Reads the [written form](Self::to_toml).
    pub fn from_toml(text: &str) -> Result<Self, RunError> {
        toml::from_str(text).map_err(|source| RunError::Config {
            path: "the settings of the run".into(),
            source: Box::new(source),
        })
    }

    /// The written form.
    pub fn to_toml(&self) -> Result<String, RunError> {
        toml::to_string(self).map_err(|source| RunError::Unwritable(Box::new(source)))
    }

    /// Keys and values in the order of the file, for showing.
    pub fn entries(&self) -> Vec<(String, String)> {
        // One value per line, tables inline: read back from the written form, so that the two cannot differ.
        let Ok(toml::Value::Table(table)) = toml::Value::try_from(self) else { return Vec::new() };
        let Ok(text) = self.to_toml() else { return Vec::new() };
        let place = |key: &str| text.find(&format!("\n{key} =")).map_or(0, |at| at + 1);
        let mut entries: Vec<(String, String)> =
            table.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
        entries.sort_by_key(|(key, _)| if key == "types" { usize::MAX } else { place(key) });
        entries
    }

    /// The first key in which two settings differ, with both values.
    pub fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        let (mine, theirs): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (self.entries().into_iter().collect(), other.entries().into_iter().collect());
        let absent = || "nothing".to_owned();
        mine.keys().chain(theirs.keys()).find_map(|key| {
            let (a, b) = (mine.get(key), theirs.get(key));
            (a != b).then(|| {
                let shown = |value: Option<&String>| value.cloned().unwrap_or_else(absent);
                (key.clone(), shown(a), shown(b))
            })
        })
    }

    /// The table, or an error that says that it is missing.
    pub fn data(&self) -> Result<&Path, RunError> {
        self.data.as_deref().ok_or(RunError::Missing("table"))
    }

    /// These settings for a folder of pictures, where the table is one: what its columns are called need not be said.
    #[must_use]
    pub fn for_folder(mut self) -> Self {
        if self.data.as_deref().is_some_and(Path::is_dir) {
            self.target.get_or_insert_with(|| "class".to_owned());
            self.source.get_or_insert_with(|| "source".to_owned());
            let types = self.types.get_or_insert_default();
            if !types.values().any(|kind| *kind == Kind::Image) {
                types.insert("file".to_owned(), Kind::Image);
            }
        }
        self
    }

    /// The target column, or an error that says that it is missing.
    pub fn target(&self) -> Result<&str, RunError> {
        self.target.as_deref().ok_or(RunError::Missing("target column"))
    }

    /// The source column, or an error that says that it is missing.
    pub fn source(&self) -> Result<&str, RunError> {
        self.source.as_deref().ok_or(RunError::Missing("source column"))
    }

    /// The method: LAP, unless another is asked for or [chosen for a task](Self::for_task).
    pub fn method(&self) -> &'static dyn MethodKind {
        self.method.unwrap_or(METHODS[0])
    }

    /// These settings with a method. Where none is asked for, classes are learnt with noise rates, since a loss cannot
    /// tell difficult rows from wrong labels, and values with LAP; whoever sets a parameter of LAP's rule wants LAP.
    #[must_use]
    pub fn for_task(&self, task: Task) -> Self {
        let Self { history, leniency, strength, warmup, .. } = self;
        let strength = strength.and_then(Choice::chosen);
        let rule =
            history.is_some() || leniency.is_some() || strength.is_some() || warmup.is_some();
        let noise_rate = METHODS.iter().copied().find(|kind| kind.name() == NOISE_RATE);
        let usual = match task {
            Task::Classification if !rule => noise_rate.unwrap_or(METHODS[0]),
            _ => METHODS[0],
        };
        Self { method: Some(self.method.unwrap_or(usual)), ..self.clone() }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// What to read, and as what.
    pub fn read_options(&self) -> Result<ReadOptions, RunError> {
        let mut options = ReadOptions::new(self.target()?, self.source()?);
        options.item.clone_from(&self.item);
        options.find_items = self.find_items.unwrap_or(true);
        options.features.clone_from(&self.features);
        options.ignore = self.ignore.clone().unwrap_or_default();
        options.text = self.text.clone().unwrap_or_default();
        options.text_alone = self.reads_words();
        options.series = self.series.clone().unwrap_or_default();
        options.types = self.types.clone().unwrap_or_default();
        options.time.clone_from(&self.time);
        options.pictures = PictureOptions {
            side: self.image_size,
            most_held: self.image_memory.map(|megabytes| megabytes.saturating_mul(1_000_000)),
            skip_unreadable: self.on_bad_row.unwrap_or_default() == BadRow::Skip,
        };
        options.task = self.task.and_then(Choice::chosen);
        Ok(options)
    }

    /// Whether the network that is asked for reads texts word by word, and nothing beside them.
    pub(crate) fn reads_words(&self) -> bool {
        let network = self.model.and_then(Choice::chosen).and_then(ModelKind::network);
        network.is_some_and(|kind| kind.takes(&InputSpec::Tokens { longest: 1, vocabulary: 2 }))
    }

    /// How rows are split: a fifth is for testing where there is no table for it.
    pub fn split(&self) -> Result<SplitConfig, RunError> {
        if self.test.is_some() && self.test_fraction.is_some_and(|share| share > 0.0) {
            return Err(RunError::TwoTests);
        }
        let fallback = SplitConfig::default();
        let test = if self.test.is_some() { 0.0 } else { fallback.test };
        Ok(SplitConfig {
            validation: self.validation_fraction.unwrap_or(fallback.validation),
            test: self.test_fraction.unwrap_or(test),
            seed: self.seed(),
        })
    }

    /// These settings for another method: parameters that are not its own, and a floor that it could not hold, are
    /// left out.
    #[must_use]
    pub fn for_method(&self, kind: &'static dyn MethodKind) -> Self {
        let mut settings = Self { method: Some(kind), ..self.clone() };
        let own = |name: &String| kind.parameters().iter().any(|parameter| parameter.name == name);
        settings.parameters.retain(|name, _| own(name));
        if kind.weighs() != Weighs::Sources {
            settings.floor = None;
        }
        settings
    }

    /// These settings for another model, without what was chosen for the one before.
    #[must_use]
    pub fn for_model(&self, kind: ModelKind) -> Self {
        Self { model: Some(Choice::Is(kind)), ..Self::default() }.over(self.clone())
    }

    /// Forgets what was chosen for the model, where it is to be another: trees and networks have nothing in common but
    /// table and sources, networks the way in which they are trained.
    fn leave_for(&mut self, kind: ModelKind) {
        let Some(before) = self.model.and_then(Choice::chosen).filter(|&before| before != kind)
        else {
            return;
        };
        (self.model_reason, self.hidden, self.dropout) = (None, None, None);
        if before.network().is_some() != kind.network().is_some() {
            (self.optimiser, self.momentum, self.weight_decay) = (None, None, None);
            (self.epochs, self.patience, self.batch_size) = (None, None, None);
            (self.learning_rate, self.history, self.leniency) = (None, None, None);
            (self.strength, self.shards) = (None, None);
        }
    }

    /// The parameters of the method, those that were not asked for included.
    pub(crate) fn all_parameters(&self) -> Parameters {
        let own = self.method().parameters().iter();
        let shown = own.filter(|parameter| parameter.audience == Audience::Everybody);
        let defaults = shown.filter_map(|own| Some((own.name.to_owned(), own.default?)));
        defaults.chain(self.parameters.clone()).collect()
    }

    /// The momentum, where the optimiser has one.
    pub(crate) fn used_momentum(&self) -> Option<f64> {
        let sgd = self.optimiser.unwrap_or_default() == OptimiserName::Sgd;
        sgd.then(|| self.momentum.unwrap_or(MOMENTUM)).or(self.momentum)
    }

    /// How many networks judge labels, where there are labels.
    pub(crate) fn used_folds(&self, task: Task) -> Result<Option<usize>, RunError> {
        match (self.folds, task) {
            (Some(folds), _) if folds == 1 || folds > MOST_FOLDS => Err(RunError::Folds(folds)),
            (None | Some(0), Task::Regression) => Ok(self.folds),
            (Some(_), Task::Regression) => Err(RunError::FoldsOfValues),
            (folds, Task::Classification) => Ok(Some(folds.unwrap_or(FOLDS))),
        }
    }

    /// What is wanted otherwise than planned.
    pub(crate) fn wishes(&self) -> Result<Wishes, RunError> {
        let loss = self.loss.and_then(Choice::chosen);
        if self.huber_delta.is_some() && loss != Some(LossName::Huber) {
            return Err(RunError::HuberDelta);
        }
        Ok(Wishes {
            network: self
                .model
                .and_then(Choice::chosen)
                .and_then(ModelKind::network)
                .or_else(|| self.method().network()),
            hidden: self.hidden.clone(),
            dropout: self.dropout.map(|dropout| dropout as f32),
            loss: loss.map(|loss| loss.with(self.huber_delta)),
            sgd_momentum: match self.optimiser.unwrap_or_default() {
                OptimiserName::Adam if self.momentum.is_some() => return Err(RunError::Momentum),
                OptimiserName::Adam => None,
                OptimiserName::Sgd => Some(self.momentum.unwrap_or(MOMENTUM)),
            },
            weight_decay: self.weight_decay,
            learning_rate: self.learning_rate,
            batch_size: self.batch_size,
            epochs: self.epochs,
            patience: self.patience,
            depression_strength: self.strength.and_then(Choice::chosen),
        })
    }

    /// The method with its parameters. Whatever it is, the rule looks on, so that sources are judged.
    pub(crate) fn method_config(
        &self,
        rule: LapConfig,
        guards: &Guards,
    ) -> Result<MethodConfig, MethodError> {
        let set = |method: MethodConfig, (name, &value): (&String, &f64)| method.with(name, value);
        let method = self.parameters.iter().try_fold(MethodConfig::new(self.method()), set)?;
        Ok(method.judged_by(rule).within(guards.clone()))
    }

    /// With the leniency that a rate of false alarms stands for, if one is given.
    ///
    /// # Errors
    /// Where no leniency has this rate.
    pub(crate) fn with_leniency(self, sources: usize) -> Result<Self, LapError> {
        let Some(probability) = self.false_alarm else { return Ok(self) };
        let history_length = self.rule().history_length;
        let leniency = leniency_for_false_alarm(probability, sources, history_length)?;
        Ok(Self { leniency: Some(leniency), false_alarm: None, ..self })
    }

    /// The parameters of the rule but for its strength.
    pub fn rule(&self) -> LapConfig {
        let fallback = LapConfig::default();
        LapConfig {
            history_length: self.history.unwrap_or(fallback.history_length),
            leniency: self.leniency.unwrap_or(fallback.leniency),
            warmup: self.warmup.unwrap_or(fallback.warmup),
            ..fallback
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Settings {
        Settings {
            data: Some("a.csv".into()),
            target: Some("y".into()),
            strength: Some(Choice::Auto),
            leniency: Some(f64::INFINITY),
            types: Some(BTreeMap::from([("a b".to_owned(), Kind::Numeric)])),
            trust: Some(vec!["x\"\n".to_owned()]),
            ..Settings::default()
        }
    }

    #[test]
    fn a_rate_of_false_alarms_and_a_leniency_exclude_each_other() {
        let rate = Settings { false_alarm: Some(0.01), ..Settings::default() };
        let leniency = Settings { leniency: Some(2.0), ..Settings::default() };
        assert_eq!(rate.clone().over(leniency.clone()), rate);
        assert_eq!(leniency.clone().over(rate.clone()), leniency);
        let chosen = rate.clone().with_leniency(10).unwrap();
        assert_eq!(chosen.false_alarm, None);
        assert!((chosen.leniency.unwrap() - 0.49507).abs() < 1e-5);
        assert!(rate.with_leniency(1).is_err());
        assert_eq!(leniency.clone().with_leniency(1).unwrap(), leniency);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for strength in [Choice::Auto, Choice::Is(0.25), Choice::Is(2.0)] {
            let settings = Settings { strength: Some(strength), ..example() };
            let text = settings.to_toml().unwrap();
            assert_eq!(toml::from_str::<Settings>(&text).unwrap(), settings, "{text}");
        }
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let error = toml::from_str::<Settings>("batchsize = 3").unwrap_err().to_string();
        assert!(error.contains("batchsize") && error.contains("batch-size"), "{error}");
        assert!(toml::from_str::<Settings>("strength = \"much\"").is_err());
        assert!(toml::from_str::<Settings>("strength = 2").is_ok());
    }

    #[test]
    fn parameters_of_methods_are_keys_like_the_others() {
        let settings: Settings =
            toml::from_str("method = \"co-teaching\"\nforget-rate = 0.3\nepochs = 4").unwrap();
        assert_eq!(settings.method().name(), "co-teaching");
        assert_eq!(settings.parameters["forget-rate"], 0.3);
        assert!(settings.to_toml().unwrap().contains("forget-rate = 0.3\n"));
        // Only recipes set it.
        let error = toml::from_str::<Settings>("ramp-epochs = 3").unwrap_err().to_string();
        assert!(error.contains("ramp-epochs") && error.contains("forget-rate"), "{error}");
        let error = toml::from_str::<Settings>("epochs = 3\nmethod = \"magic\"").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("magic") && error.contains("line 2"), "{error}");
    }

    #[test]
    fn no_parameter_of_a_method_has_the_name_of_another_setting() {
        let keys = keys();
        let clash = method_parameters().find(|parameter| keys.iter().any(|k| k == parameter.name));
        assert_eq!(clash, None);
    }

    #[test]
    fn parameters_go_with_their_method_and_the_momentum_with_its_optimiser() {
        let lower: Settings = toml::from_str(
            "method = \"cdr\"\nnoise-rate = 0.3\noptimiser = \"sgd\"\nmomentum = 0.5\nfloor = 0.2",
        )
        .unwrap();
        let same = Settings { epochs: Some(3), ..Settings::default() }.over(lower.clone());
        assert_eq!((same.parameters["noise-rate"], same.momentum), (0.3, Some(0.5)));
        let other = Settings {
            method: Some(METHODS[0]),
            optimiser: Some(OptimiserName::Adam),
            ..Settings::default()
        };
        let other = other.over(lower.clone());
        assert_eq!((other.parameters.len(), other.momentum), (0, None));
        let standard = lower.for_method(lapwing_train::method_named("standard").unwrap());
        assert_eq!((standard.parameters.len(), standard.floor), (0, None));
        assert_eq!(lower.for_method(METHODS[0]).floor, Some(0.2));
    }

    #[test]
    fn what_was_chosen_for_a_model_goes_with_it() {
        let of = |text: &str| toml::from_str::<Settings>(text).unwrap();
        let network = of(
            "model = \"mlp\"\nmodel-reason = \"few rows\"\nhidden = [8]\nepochs = 20\nstrength = 0.1\nseed = 3",
        );
        let asked = |text: &str| of(text).over(network.clone());
        assert_eq!(asked("model = \"mlp\""), network);
        assert_eq!(asked("model = \"trees\""), of("model = \"trees\"\nseed = 3"));
        let linear = of("model = \"linear\"\nepochs = 20\nstrength = 0.1\nseed = 3");
        assert_eq!(asked("model = \"linear\""), linear);
        let trees = of("model = \"trees\"\nstrength = 6\nepochs = 9");
        assert_eq!(of("epochs = 5").over(trees.clone()).strength, Some(Choice::Is(6.0)));
        let any = Settings { model: None, ..network.clone() };
        assert_eq!(
            of("model = \"trees\"").over(any).epochs,
            Some(20),
            "nobody chose it for a model"
        );
        assert_eq!(trees.for_model(ModelKind::Trees), trees);
    }

    #[test]
    fn classes_are_learnt_with_noise_rates_values_with_lap_and_so_is_what_has_parameters_of_its_rule()
     {
        let method = |settings: &Settings, task| settings.for_task(task).method().name();
        let none = Settings::default();
        assert_eq!(method(&none, Task::Classification), "noise-rate");
        assert_eq!(method(&none, Task::Regression), "lap");
        let lenient = Settings { leniency: Some(2.0), ..none.clone() };
        assert_eq!(method(&lenient, Task::Classification), "lap");
        let planned = Settings { strength: Some(Choice::Auto), ..none.clone() };
        assert_eq!(method(&planned, Task::Classification), "noise-rate");
        let asked = none.for_method(lapwing_train::method_named("standard").unwrap());
        assert_eq!(method(&asked, Task::Regression), "standard");
    }

    #[test]
    fn the_upper_settings_win() {
        let upper = Settings { seed: Some(1), ..Settings::default() };
        let lower = Settings { seed: Some(2), epochs: Some(3), ..Settings::default() };
        let both = upper.over(lower);
        assert_eq!((both.seed, both.epochs), (Some(1), Some(3)));
    }

    #[test]
    fn entries_come_in_the_order_of_the_file_and_differences_are_named() {
        let keys: Vec<String> = example().entries().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["data", "target", "leniency", "strength", "trust", "types"]);
        let other = Settings { target: Some("z".into()), ..example() };
        let (key, a, b) = example().difference(&other).unwrap();
        assert_eq!((key.as_str(), a.as_str(), b.as_str()), ("target", "\"y\"", "\"z\""));
        assert!(example().difference(&example()).is_none());
    }

    #[test]
    fn a_fifth_is_for_testing_unless_there_is_a_table_for_it() {
        let mut settings = Settings::default();
        assert_eq!(settings.split().unwrap().test, 0.2);
        settings.test = Some("t.csv".into());
        assert_eq!(settings.split().unwrap().test, 0.0);
        settings.test_fraction = Some(0.3);
        assert!(settings.split().is_err());
    }
}
