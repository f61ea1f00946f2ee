//! The flags of `lapwing train`, and the settings that they are.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lapwing_run::{Choice, LossName, ModelKind, OptimiserName, Settings};
use lapwing_train::MethodKind;

use crate::method_flags::{MethodFlags, method_parser};
use crate::table_flags::TableFlags;
use crate::words;

/// Train on a table whose rows come from many sources, and judge the sources
///
/// DATA is a CSV, TSV or Parquet file (.gz and .zst, too) with a header, or a folder with a folder of pictures per class
/// and a sources.csv. The run directory holds the model, a verdict
/// per source (sources.csv), metrics, the course of every source's loss and weight, and report.html.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing train visits.csv --target outcome --source hospital
  lapwing train visits.csv --target outcome --source hospital --test checked.csv --out runs/visits
  lapwing train visits.csv --target outcome --source hospital --trust \"St. Mary\" --floor 0.05
  lapwing train answers.csv --target label --source annotator --item question
  lapwing train photos.csv --target species --source camera --image file --augment
  lapwing train --resume runs/visits")]
pub(crate) struct Arguments {
    /// The table
    data: Option<PathBuf>,

    #[command(flatten)]
    table: TableFlags,
    #[command(flatten)]
    pub(super) training: TrainingFlags,
    #[command(flatten)]
    rule: RuleFlags,
    #[command(flatten)]
    pub(super) output: OutputFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Training (defaults are chosen for the table)")]
pub(super) struct TrainingFlags {
    /// How sources are treated [default: noise-rate for classes, lap for values and with parameters of its rule]
    #[arg(long, value_parser = method_parser())]
    method: Option<&'static dyn MethodKind>,

    /// What is trained [default: auto]
    #[arg(long, value_parser = words::model())]
    model: Option<Choice<ModelKind>>,

    /// What is made small [default: auto]
    #[arg(long, value_parser = words::loss())]
    loss: Option<Choice<LossName>>,

    /// With --loss huber: where its linear part begins, in standard deviations of the target [default: 1]
    #[arg(long, value_name = "DELTA", allow_negative_numbers = true)]
    huber_delta: Option<f64>,

    /// Units of the hidden layers; of resnet18, resnet50 and preact-resnet18 the channels of the first stage [theirs: 64]
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    hidden: Option<Vec<usize>>,

    /// Share of hidden units dropped at each step
    #[arg(long, value_name = "SHARE")]
    dropout: Option<f64>,

    /// What moves the parameters [default: adam]
    #[arg(long, value_enum)]
    optimiser: Option<OptimiserWord>,

    /// Share of the last step that sgd carries into the next [default: 0.9]
    #[arg(long, value_name = "SHARE")]
    momentum: Option<f64>,

    /// How strongly parameters are drawn to zero
    #[arg(long, value_name = "RATE")]
    weight_decay: Option<f64>,

    /// Most epochs; of trees, rounds
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Epochs without a better validation loss before training ends
    #[arg(long, value_name = "N")]
    patience: Option<usize>,

    /// Rows per step
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// Highest learning rate
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,

    /// Decides split, first parameters and order; the same seed gives the same bytes [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Memory to keep to, such as 2GB: rows that do not fit are trained on from disk, in another order. Without it, a table
    /// that does not fit is refused
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory_limit: Option<u64>,

    /// With --memory-limit: keep the rows on disk in this file, and begin with them next time, if the table is the same
    /// and read in the same way [default: they are gone at the end]
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,

    /// Shards of each batch, whose gradients are added in a fixed tree: with the same shards the same bytes on any number
    /// of processes [default: 1, or with MPI the processes rounded up to a power of two]
    #[arg(long, value_name = "N")]
    shards: Option<usize>,

    /// Where to compute: cpu, wgpu, cuda or cuda:N [default: cpu]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,

    /// Threads to compute with; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Sources")]
struct RuleFlags {
    /// How many batch-mean losses of a source are remembered [default: 25]
    #[arg(long, value_name = "H")]
    history: Option<usize>,

    /// How many standard deviations above the others a source may lie [default: 0.8]
    #[arg(long, value_name = "λ", allow_negative_numbers = true)]
    leniency: Option<f64>,

    /// Chooses the leniency by the probability of accusing a clean source in a step (at most 0.5), if losses of a batch
    /// are normal and all sources alike; training accuses less often
    #[arg(long, value_name = "P", conflicts_with = "leniency", allow_negative_numbers = true)]
    false_alarm: Option<f64>,

    /// How fast weight falls; auto: half weight after a tenth of the steps above the threshold [default: auto]
    #[arg(long, value_name = "δ", allow_negative_numbers = true)]
    strength: Option<Choice<f64>>,

    /// Steps before the first judgement [default: 0]
    #[arg(long, value_name = "STEPS")]
    warmup: Option<u64>,

    #[command(flatten)]
    method: MethodFlags,

    /// Least weight of a source that is not blocked [default: 0]
    #[arg(long, value_name = "WEIGHT")]
    floor: Option<f64>,

    /// Sources that are never down-weighted; give the flag once per source where names hold commas
    #[arg(long, value_name = "A,B")]
    trust: Option<Vec<String>>,

    /// Sources that count for nothing; likewise
    #[arg(long, value_name = "A,B")]
    block: Option<Vec<String>>,

    /// Networks that judge labels, each those that it has not seen [default: 3 for classes]
    #[arg(long, value_name = "N")]
    folds: Option<usize>,

    /// No such networks: verdicts rest on the losses alone, no row is judged, and noise rates are found while training
    #[arg(long, conflicts_with = "folds")]
    no_folds: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(super) struct OutputFlags {
    /// Settings from a file, such as the config.toml of a run; flags win
    #[arg(long, value_name = "FILE.toml")]
    pub(super) config: Option<PathBuf>,

    /// The run directory [default: runs/DATA-TIME]
    #[arg(long, value_name = "RUN")]
    pub(super) out: Option<PathBuf>,

    /// Go on with a run that was interrupted, named here or by --out
    #[arg(long, value_name = "RUN", num_args = 0..=1, conflicts_with = "force")]
    resume: Option<Option<PathBuf>>,

    /// Replace the run in the directory given by --out, once this one is finished
    #[arg(long)]
    pub(super) force: bool,

    /// Seconds between two checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(super) checkpoint_every: u64,

    /// Results as one JSON object on standard output
    #[arg(long)]
    pub(super) json: bool,

    /// No progress and no remarks but warnings
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OptimiserWord {
    /// Adam
    Adam,
    /// Stochastic gradient descent with momentum
    Sgd,
}

/// `500MB`, `2GB`, `2GiB`, or a number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "tb" | "t" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("{unit:?} is no unit: expected MB, GB, MiB or GiB")),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && (number * unit).is_finite() => Ok((number * unit) as u64),
        _ => Err("expected a size such as 500MB or 2GB".to_owned()),
    }
}

impl Arguments {
    /// The flags as settings.
    pub(super) fn settings(&self) -> Settings {
        let Self { data, table, training, rule, .. } = self;
        Settings {
            data: data.clone(),
            method: training.method,
            parameters: rule.method.0.clone(),
            model: training.model,
            model_reason: None,
            loss: training.loss,
            huber_delta: training.huber_delta,
            hidden: training.hidden.clone(),
            dropout: training.dropout,
            optimiser: training.optimiser.map(|optimiser| match optimiser {
                OptimiserWord::Adam => OptimiserName::Adam,
                OptimiserWord::Sgd => OptimiserName::Sgd,
            }),
            momentum: training.momentum,
            weight_decay: training.weight_decay,
            epochs: training.epochs,
            patience: training.patience,
            batch_size: training.batch_size,
            learning_rate: training.learning_rate,
            history: rule.history,
            leniency: rule.leniency,
            false_alarm: rule.false_alarm,
            strength: rule.strength,
            warmup: rule.warmup,
            floor: rule.floor,
            trust: rule.trust.clone(),
            block: rule.block.clone(),
            folds: if rule.no_folds { Some(0) } else { rule.folds },
            memory_limit: training.memory_limit,
            cache: training.cache.clone(),
            shards: training.shards,
            seed: training.seed,
            device: training.device.clone(),
            ..table.settings()
        }
    }

    /// The run to go on with, if one is asked for.
    pub(super) fn resumed(&self) -> anyhow::Result<Option<&Path>> {
        match (&self.output.resume, &self.output.out) {
            (None, _) => Ok(None),
            (Some(Some(run)), Some(out)) if run != out => {
                anyhow::bail!("--resume and --out name different directories")
            }
            (Some(Some(run)), _) | (Some(None), Some(run)) => Ok(Some(run)),
            (Some(None), None) => {
                anyhow::bail!("--resume needs a run: --resume RUN, or --resume with --out RUN")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_given_with_their_unit() {
        let sizes = ["1GB", "1.5 gb", "512MiB", "4096", "20k"].map(|text| bytes(text).unwrap());
        assert_eq!(sizes, [1_000_000_000, 1_500_000_000, 536_870_912, 4096, 20_000]);
        for wrong in ["", "GB", "-1GB", "1XB", "0", "nan"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
