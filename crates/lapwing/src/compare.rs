//! `lapwing compare`: which method is better on a table, and by how much.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use lapwing_run::{
    Choice, Comparison, Difference, Job, Metrics, ModelKind, Outcome, Prepared, Settings, Spread,
    Watch,
};
use lapwing_train::MethodKind;
use serde_json::{Map, Value, json};

use crate::method_flags::method_parser;
use crate::output::count;
use crate::progress::Progress;
use crate::say::{counted, say};
use crate::table::TextTable;
use crate::table_flags::TableFlags;
use crate::training::warn;
use crate::{names, words};

/// Parts into which the progress of one training is cut.
const PARTS: u64 = 1000;

/// Train with several methods or models on the same splits and say whether LAP is worth it
///
/// Each repeat splits the table anew and trains every method on the same rows, from the same first
/// parameters, in the same order. Shown are mean and sample standard deviation over the repeats, and
/// the difference to the first method, repeat by repeat, with its 95 % interval (Student's t).
/// Repeats share rows, so the interval says how much chance of split and training matters, not how
/// another table would turn out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing compare visits.csv --target outcome --source hospital
  lapwing compare visits.csv --target outcome --source hospital --test checked.csv --repeats 10
  lapwing compare visits.csv --target outcome --source hospital --model trees,mlp
  lapwing compare visits.csv --target outcome --source hospital --methods standard,lap --json

Wrong labels among the rows that are tested on count against every method; --test with a table of
checked rows is the better judge.")]
pub(crate) struct Arguments {
    /// The table: CSV, TSV or Parquet (.gz and .zst, too)
    data: PathBuf,

    #[command(flatten)]
    table: TableFlags,

    /// The methods, the one that others are compared with first
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "standard,lap", value_parser = method_parser())]
    methods: Vec<&'static dyn MethodKind>,

    /// The models, each with all methods; trees have lap and standard [default: the network that suits the data]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = words::model_named())]
    model: Vec<ModelKind>,

    /// How often each method is trained
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,

    /// Most epochs [default: chosen for the table]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// How fast LAP lowers weights [default: auto]
    #[arg(long, value_name = "δ", allow_negative_numbers = true)]
    strength: Option<Choice<f64>>,

    /// Further settings from a file, such as the config.toml of a run; flags win
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,

    /// The seed of the first repeat; the others count on [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Threads to compute with; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Results as one JSON object, every metric of every repeat included
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// No progress and no remarks but warnings
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(threads) = arguments.threads {
        crate::train::set_threads(threads)?;
    }
    for (at, method) in arguments.methods.iter().enumerate() {
        ensure!(
            !arguments.methods[..at].contains(method),
            "--methods names {} twice",
            method.name()
        );
    }
    for (at, model) in arguments.model.iter().enumerate() {
        ensure!(!arguments.model[..at].contains(model), "--model names {model} twice");
    }
    let mut settings = arguments.settings()?.for_folder();
    names::columns(&mut settings)?;
    let mut prepared = Prepared::read(&settings)?;
    ensure!(prepared.test_rows() > 0, "there is no row to test on; see --test-fraction and --test");
    warn(&prepared.dataset);

    let last = settings.seed().checked_add(u64::from(arguments.repeats) - 1);
    last.context("--seed is too large")?;
    let models = &arguments.model;
    let each = arguments.methods.len() * models.len().max(1);
    let trainings = u64::from(arguments.repeats) * each as u64;
    let mut progress = TrainingsProgress {
        progress: Progress::new("compare", Some(trainings * PARTS), arguments.quiet),
        started: 0,
        trainings,
        name: String::new(),
    };
    let methods = &arguments.methods;
    let repeats = arguments.repeats;
    let comparison =
        Comparison::run(&mut prepared, &settings, models, methods, repeats, &mut progress)?;
    progress.progress.finish();

    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{}", object(&comparison, settings.seed()))?;
    } else {
        write!(out, "{}", table(&comparison))?;
        writeln!(out, "{}", conclusion(&comparison))?;
    }
    if !arguments.quiet {
        say!(
            "{} trainings, each tested on {} rows{}",
            count(trainings),
            count(prepared.test_rows() as u64),
            match arguments.table.test {
                Some(_) => "",
                None => " of the table itself; wrong labels among them count against every method",
            }
        );
    }
    Ok(())
}

impl Arguments {
    fn settings(&self) -> anyhow::Result<Settings> {
        let flags = Settings {
            data: Some(self.data.clone()),
            epochs: self.epochs,
            strength: self.strength,
            seed: self.seed,
            ..self.table.settings()
        };
        Ok(match &self.config {
            None => flags,
            Some(path) => {
                let mut file = Settings::read(path)?;
                if flags.test.is_some() {
                    file.test_fraction = None;
                }
                if flags.test_fraction.is_some() {
                    file.test = None;
                }
                flags.over(file)
            }
        })
    }
}

fn table(comparison: &Comparison) -> String {
    let mut table = TextTable::new(&["method", ">mean", ">std", ">difference", "95 % interval"]);
    let differences = comparison.differences();
    for (at, outcome) in comparison.outcomes.iter().enumerate() {
        let Spread { mean, std } = Spread::of(&outcome.primary());
        let difference = at.checked_sub(1).map(|at| differences[at]);
        table.row([
            name(outcome),
            digits(mean),
            std.map(|std| format!("±{}", digits(std))).unwrap_or_default(),
            difference.map(|difference| signed(difference.mean)).unwrap_or_default(),
            difference.and_then(|difference| difference.interval).map(interval).unwrap_or_default(),
        ]);
    }
    let repeats = comparison.outcomes.first().map_or(0, |outcome| outcome.metrics.len());
    let repeats = counted(repeats as u64, "repeat");
    let better = if comparison.lower_is_better { "lower is better" } else { "higher is better" };
    format!("test {} over {repeats}, {better}\n{}", comparison.metric, table.render())
}

fn object(comparison: &Comparison, seed: u64) -> Value {
    let differences = comparison.differences();
    let methods: Vec<Value> = comparison
        .outcomes
        .iter()
        .enumerate()
        .map(|(at, outcome)| {
            let difference = at.checked_sub(1).map(|at| differences[at]);
            json!({
                "method": outcome.method.name(),
                "model": outcome.model,
                "metrics": metrics_object(&outcome.metrics),
                "difference": difference.map(|difference| json!({
                    "mean": difference.mean,
                    "low": difference.interval.map(|(low, _)| low),
                    "high": difference.interval.map(|(_, high)| high),
                })),
            })
        })
        .collect();
    json!({
        "metric": comparison.metric,
        "lower_is_better": comparison.lower_is_better,
        "repeats": comparison.outcomes.first().map_or(0, |outcome| outcome.metrics.len()),
        "seed": seed,
        "methods": methods,
        "conclusion": conclusion(comparison),
    })
}

/// Mean, spread and values of every metric. A metric that is not to be had in some repeat has no mean.
fn metrics_object(repeats: &[Metrics]) -> Value {
    let named: Vec<Vec<(&str, Option<f64>)>> = repeats.iter().map(Metrics::named).collect();
    let mut object = Map::new();
    for (at, (name, _)) in named.first().into_iter().flatten().enumerate() {
        let values: Vec<Option<f64>> =
            named.iter().map(|metrics| metrics.get(at).and_then(|(_, value)| *value)).collect();
        let all: Option<Vec<f64>> = values.iter().copied().collect();
        let spread = all.map(|all| Spread::of(&all));
        object.insert(
            (*name).to_owned(),
            json!({
                "mean": spread.map(|spread| spread.mean),
                "std": spread.and_then(|spread| spread.std),
                "values": values,
            }),
        );
    }
    Value::Object(object)
}

/// A method, with its model where models were named.
fn name(outcome: &Outcome) -> String {
    match outcome.model {
        Some(model) => format!("{model}, {}", outcome.method.name()),
        None => outcome.method.name().to_owned(),
    }
}

/// The answer in a sentence, or in one for each question.
fn conclusion(comparison: &Comparison) -> String {
    let (metric, lower_is_better) = (comparison.metric, comparison.lower_is_better);
    let several = comparison.outcomes.iter().any(|o| o.model != comparison.outcomes[0].model);
    let sentence = |(candidate, reference): (&Outcome, &Outcome)| {
        let difference = Difference::of(&candidate.primary(), &reference.primary());
        let worth = |name, beside| worth(name, beside, metric, lower_is_better, difference);
        match (candidate.model, reference.model) {
            (Some(model), Some(other)) if model != other => {
                let with = candidate.method.name();
                worth(&format!("With {with} the model {model}"), other.name())
            }
            (Some(model), _) if several => {
                let method = told(candidate.method.name());
                worth(&format!("With {model}, {method}"), reference.method.name())
            }
            _ => worth(told(candidate.method.name()), reference.method.name()),
        }
    };
    match comparison.pairs() {
        pairs if pairs.is_empty() => {
            let only = comparison.outcomes.first().map_or_else(|| "none".to_owned(), name);
            format!("There is one method only, {only}: nothing to compare.")
        }
        pairs => pairs.into_iter().map(sentence).collect::<Vec<_>>().join(" "),
    }
}

/// A method in a sentence.
fn told(method: &str) -> &str {
    if method == "lap" { "LAP" } else { method }
}

/// Whether a method is worth it beside another.
fn worth(
    name: &str,
    reference: &str,
    metric: &str,
    lower_is_better: bool,
    difference: Difference,
) -> String {
    let change = match difference.mean {
        0.0 => format!("its {metric} is that of {reference}"),
        mean => format!(
            "its {metric} is {} {} than that of {reference}",
            digits(mean.abs()),
            if mean < 0.0 { "lower" } else { "higher" }
        ),
    };
    let (low, high) = match difference.interval {
        Some((low, high)) if low < high => (low, high),
        Some((0.0, 0.0)) => return format!("{name} makes no difference here: {change}."),
        // Repeats that differ by exactly the same number of test rows say nothing of what others would differ by.
        _ => {
            return format!(
                "So few repeats cannot tell merit from chance ({change}): use --repeats 5 or more."
            );
        }
    };
    let (worst, best) = if lower_is_better { (-high, -low) } else { (low, high) };
    let shown = interval((low, high));
    if worst > 0.0 {
        format!("{name} is worth it here: {change} (95 % interval of the difference {shown}).")
    } else if best < 0.0 {
        format!("{name} is not worth it here: {change} (95 % interval of the difference {shown}).")
    } else {
        format!(
            "{name} makes no clear difference here: the 95 % interval of the difference in {metric} \
             to {reference}, {shown}, holds 0."
        )
    }
}

/// Four digits that mean something.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (1e-3..1e4).contains(&size) => {
            let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.decimals$}")
        }
        _ => format!("{value:.3e}"),
    }
}

fn signed(value: f64) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, digits(value))
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", signed(low), signed(high))
}

/// How far all trainings together have come.
struct TrainingsProgress {
    progress: Progress,
    /// Trainings begun.
    started: u64,
    trainings: u64,
    name: String,
}

impl Watch for TrainingsProgress {
    fn training(&mut self, job: &Job<'_>) {
        self.started += 1;
        self.name = format!("{}, {}", job.model(), job.method().kind().name());
    }

    fn step(&mut self, run: &lapwing_run::Progress<'_>) -> ControlFlow<()> {
        let part = run.step * PARTS / run.steps.max(1);
        let (started, trainings, name) = (self.started, self.trainings, &self.name);
        let before = started.saturating_sub(1) * PARTS;
        self.progress.set(before + part.min(PARTS), || {
            format!("training {started} of {trainings}, {name}, epoch {}", run.epoch + 1)
        });
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lower_is_better: bool, mean: f64, interval: Option<(f64, f64)>) -> String {
        let metric = if lower_is_better { "mse" } else { "accuracy" };
        worth(told("lap"), "standard", metric, lower_is_better, Difference { mean, interval })
    }

    #[test]
    fn lap_is_worth_it_when_the_whole_interval_is_on_the_better_side() {
        assert_eq!(
            said(false, 0.05, Some((0.03, 0.07))),
            "LAP is worth it here: its accuracy is 0.05000 higher than that of standard \
             (95 % interval of the difference +0.03000 to +0.07000)."
        );
        assert!(
            said(true, -0.2, Some((-0.3, -0.1))).starts_with("LAP is worth it here: its mse is")
        );
        assert!(said(true, 0.2, Some((0.1, 0.3))).contains("not worth it"));
        assert!(said(false, -0.05, Some((-0.07, -0.03))).contains("not worth it"));
        for lower_is_better in [false, true] {
            let text = said(lower_is_better, 0.05, Some((-0.01, 0.11)));
            assert!(text.contains("no clear difference"), "{text}");
        }
        assert!(said(false, 0.05, None).contains("--repeats"));
        // Two repeats that happened to differ by as many test rows.
        assert!(said(false, 0.05, Some((0.05, 0.05))).starts_with("So few repeats"));
        assert_eq!(
            said(false, 0.0, Some((0.0, 0.0))),
            "LAP makes no difference here: its accuracy is that of standard."
        );
    }

    #[test]
    fn numbers_are_shown_with_four_digits() {
        let shown = [0.0, 0.71234, 12.3456, 1234.56, -0.012345, 1e-9, 1.0, 123456.0].map(digits);
        let expected = ["0", "0.7123", "12.35", "1235", "-0.01235", "1.000e-9", "1.000", "1.235e5"];
        assert_eq!(shown, expected);
    }
}
