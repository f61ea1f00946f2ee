//! Flags whose values are words of a registry.

use std::fmt::Display;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lapwing_run::{Choice, LossName, ModelKind};
use lapwing_train::Task;

/// Reads one of these words, each with a line of help.
fn words<T>(words: Vec<(&'static str, &'static str)>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    let value = |(word, about)| PossibleValue::new(word).help(about);
    PossibleValuesParser::new(words.into_iter().map(value))
        .try_map(|word: String| word.parse().map_err(|error: T::Err| error.to_string()))
}

/// What is learnt.
pub(crate) fn task() -> impl TypedValueParser<Value = Choice<Task>> {
    words(vec![
        ("auto", "Inferred from the target"),
        ("classification", "A class"),
        ("regression", "A number"),
    ])
}

/// The models there are.
pub(crate) fn model() -> impl TypedValueParser<Value = Choice<ModelKind>> {
    let models = ModelKind::all().map(|kind| (kind.name(), kind.about()));
    let auto = "Trees or the network that suits the data, whichever does better on validation rows";
    words([("auto", auto)].into_iter().chain(models).collect())
}

/// The same, where one has to be named.
pub(crate) fn model_named() -> impl TypedValueParser<Value = ModelKind> {
    words(ModelKind::all().map(|kind| (kind.name(), kind.about())).collect())
}

/// The losses there are.
pub(crate) fn loss() -> impl TypedValueParser<Value = Choice<LossName>> {
    let losses = LossName::ALL.iter().map(|loss| (loss.name(), loss.about()));
    words([("auto", "Cross-entropy or squared error")].into_iter().chain(losses).collect())
}
