//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use lapwing_core::{HistoryReading, LapConfig, Ties, Weighting, leniency_for_false_alarm};

/// Train on data from many sources without trusting all of them alike.
///
/// lapwing keeps a history of the loss on each source of the data (a hospital, a device, an
/// annotator). A source whose loss stays above that of the others loses weight, step by step.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    long_about,
    propagate_version = true,
    after_help = "\
Examples:
  lapwing demo                           see it work, in seconds, without data
  lapwing train data.csv --target label --source hospital
  lapwing sources runs/data-…            the verdicts, worst first
  lapwing rows runs/data-…               the labels to check first
  lapwing replay losses.csv              what the rule makes of a log of losses
  lapwing replay losses.csv --summary    only where each source ends
  lapwing completions bash               shell completions

`lapwing COMMAND --help` says more."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(crate::demo::Arguments),
    Train(Box<crate::train::Arguments>),
    Predict(crate::predict::Arguments),
    Evaluate(crate::evaluate::Arguments),
    Export(crate::export::Arguments),
    Sources(crate::sources::Arguments),
    Rows(crate::rows::Arguments),
    Report(crate::report::Arguments),
    Replay(crate::replay::Arguments),
    Compare(Box<crate::compare::Arguments>),
    Corrupt(crate::corrupt::Arguments),
    Paper(crate::paper::Arguments),
    Completions(crate::completions::Arguments),
}

/// The parameters of the rule, for every command that runs it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Parameters of the rule")]
pub(crate) struct RuleArguments {
    /// How many batch-mean losses of a source are remembered; a source is judged once it has that
    /// many
    #[arg(long, value_name = "H", default_value_t = LapConfig::default().history_length)]
    history: usize,

    /// How many standard deviations above the others a source may lie; `inf` accuses nobody
    #[arg(long, value_name = "λ", default_value_t = LapConfig::default().leniency, allow_negative_numbers = true)]
    leniency: f64,

    /// Chooses the leniency by the probability of accusing a clean source in a step (at most 0.5),
    /// if all sources are clean, mean losses normal and histories complete; where losses fall,
    /// clean sources are accused less often. Reads the log twice, to count the sources first
    #[arg(long, value_name = "P", conflicts_with = "leniency", allow_negative_numbers = true)]
    false_alarm: Option<f64>,

    /// How fast weight falls as unreliability rises: half weight at C = 176/δ
    #[arg(long, value_name = "δ", default_value_t = LapConfig::default().depression_strength, allow_negative_numbers = true)]
    strength: f64,

    /// Steps before the first judgement
    #[arg(long, value_name = "STEPS", default_value_t = LapConfig::default().warmup)]
    warmup: u64,

    /// What happens exactly on the threshold
    #[arg(long, value_enum, default_value_t = TieRule::Paper)]
    ties: TieRule,

    /// From unreliability to weight
    #[arg(long, value_enum, default_value_t = WeightFunction::Tanh2)]
    weighting: WeightFunction,

    /// What a history of losses is read as
    #[arg(long, value_enum, default_value_t = Reading::Mean)]
    reading: Reading,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TieRule {
    /// Equality lowers unreliability
    Paper,
    /// Equality raises it, and a spread of at most 1e-8 leaves it alone
    Package,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WeightFunction {
    /// 1 − tanh²(0.005·δ·C)
    Tanh2,
    /// e^(−0.005·δ·C)
    Exponential,
    /// 1 as long as C < 176/δ, then 0
    Cut,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Reading {
    /// Its mean
    Mean,
    /// −log of the mean of e^−loss, an estimate of the model evidence: spikes hardly count
    Evidence,
}

impl RuleArguments {
    /// The rule; `sources` counts them where the leniency depends on how many there are.
    pub(crate) fn config(
        &self,
        sources: impl FnOnce() -> anyhow::Result<usize>,
    ) -> anyhow::Result<LapConfig> {
        Ok(LapConfig {
            history_length: self.history,
            leniency: match self.false_alarm {
                Some(probability) => {
                    leniency_for_false_alarm(probability, sources()?, self.history)?
                }
                None => self.leniency,
            },
            depression_strength: self.strength,
            warmup: self.warmup,
            ties: match self.ties {
                TieRule::Paper => Ties::Paper,
                TieRule::Package => Ties::Package,
            },
            weighting: match self.weighting {
                WeightFunction::Tanh2 => Weighting::TanhSquared,
                WeightFunction::Exponential => Weighting::Exponential,
                WeightFunction::Cut => Weighting::Cut,
            },
            reading: match self.reading {
                Reading::Mean => HistoryReading::Mean,
                Reading::Evidence => HistoryReading::Evidence,
            },
        })
    }
}
