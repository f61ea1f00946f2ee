//! What networks say of labels that they have not seen: two numbers and a word per source, and for every row the
//! probability that its label is wrong.
//!
//! A network believes the labels it was trained on. So rows are split into folds, and each row is judged by a network
//! that was trained on the others. Two numbers of a source then bound the truth from two sides: its *noise rate* is right
//! where errors are random, and too low where like classes are confused; its *disagreement* with the network is right
//! where the network is, and too high where rows are difficult.
//!
//! | verdict | when |
//! |---|---|
//! | `insufficient` | fewer than [`FEWEST_ROWS`](crate::FEWEST_ROWS) rows, or an interval wider than one half of a source that is not `unreliable` |
//! | `unreliable` | noise rate at least 0.2, its interval from 0.12 on (for a source with one label only, from 0.7 on), and a disagreement of 2.6 standard errors beyond what is expected; or two classes exchanged |
//! | `hard` | disagreement above that of the others, by 0.1 and by chance, and the network doubts its own answers there as well, by 0.05 and by chance |
//! | `suspect` | an interval from 0.05 on, and a disagreement of 2 standard errors beyond what is expected; or one as of `hard` without doubt |
//! | `different` | other classes than the others', by the network's own word |
//! | `reliable` | everything else |
//!
//! Expected of a source is the network's doubt of its rows, and as much more as it is wrong by on a quarter of the other sources
//! at most: where outcomes are a matter of chance, every label looks like noise, and no source is to blame.
//!
//! The limits were found on handwritten digits with sources of known kinds, and hold on others: the tests simulate sources
//! with random labels, one label, and a third of the labels exchanged, which must be `unreliable`, beside clean ones that
//! are hard or of two classes only, which must not.

mod exchange;
mod fit;
mod word;

use lapwing_core::Labels;
use serde::{Deserialize, Serialize};

use crate::{Interval, JudgeError, Reason, Verdict};
use fit::Fit;

/// Rows with labels, and what networks that have not seen them say. Lists are as long as there are rows.
#[derive(Clone, Copy, Debug)]
pub struct Unseen<'a> {
    /// The number of each row's source.
    pub sources: &'a [u32],
    /// How many sources there are.
    pub source_count: usize,
    /// The label given to each row.
    pub labels: &'a [u32],
    /// How many classes there are.
    pub classes: usize,
    /// The probability of every class, row after row; NaN where a network cannot judge a row.
    pub probabilities: &'a [f32],
}

/// What is known of labels from networks that have not seen them.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelNoise {
    /// By how much the networks' logits were divided, so that their probabilities are as they come true.
    pub temperature: f64,
    /// Per source.
    pub sources: Vec<JudgedSource>,
    /// Per row.
    pub rows: Vec<RowNoise>,
}

/// A source with its verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedSource {
    /// What is known of its labels.
    pub noise: SourceNoise,
    /// The verdict.
    pub verdict: Verdict,
    /// Why this verdict; nothing where nothing speaks against the source.
    pub reasons: Vec<Reason>,
}

/// What is known of the labels of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceNoise {
    /// Rows that networks could judge.
    pub rows: u64,
    /// The share of its labels that is noise, drawn towards a prior of 0.1 as if ten more rows said so, but within the
    /// 95 % interval of the noise rate, which knows no prior.
    pub noise_rate: Interval,
    /// The share of its labels that the network would not have given: the probability of all other labels, on average.
    pub disagreement: f64,
    /// The disagreement that the network expects: what it would be, were labels drawn from its probabilities.
    pub doubt: f64,
    /// How far the classes of its rows are from those of the others, by the network's word: 0 alike, 1 entirely other.
    pub class_mix: f64,
    /// Whether it gives the same label to all rows.
    pub one_label: bool,
}

impl SourceNoise {
    /// Whether its noise rate alone would speak against its labels; whether it does depends on how far they are contradicted.
    pub fn looks_noisy(&self) -> bool {
        self.noise_rate.low >= word::UNRELIABLE
    }
}

/// What is known of the label of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowNoise {
    /// The probability that the label is wrong, by the network and by the noise rate of its source; `None` where the
    /// network gave no probability.
    pub wrong: Option<f64>,
    /// The probability of the label, by the network alone; likewise.
    pub label: Option<f64>,
    /// The most probable other label, and its probability.
    pub suggestion: (u32, f64),
}

/// Judges labels by networks that have not seen them.
///
/// # Errors
/// Where lists differ in length, or a source or a label has no place.
pub fn unseen(rows: &Unseen<'_>) -> Result<LabelNoise, JudgeError> {
    check(rows)?;
    let mut counts = vec![0.0; rows.classes];
    rows.labels.iter().for_each(|&label| counts[label as usize] += 1.0);
    // Without rows there is nothing to say, and no frequency.
    let Ok(model) = Labels::given(&counts) else {
        return Ok(LabelNoise {
            temperature: 1.0,
            sources: vec![JudgedSource::default(); rows.source_count],
            rows: Vec::new(),
        });
    };
    let temperature = fit::temperature(rows, &model);
    Ok(Fit::new(*rows, &model, temperature).told())
}

fn check(rows: &Unseen<'_>) -> Result<(), JudgeError> {
    let count = rows.labels.len();
    let lengths = |what, expected, found| {
        if expected == found { Ok(()) } else { Err(JudgeError::Lengths { what, expected, found }) }
    };
    lengths("sources", count, rows.sources.len())?;
    lengths("probabilities", count * rows.classes, rows.probabilities.len())?;
    for (row, (&source, &label)) in rows.sources.iter().zip(rows.labels).enumerate() {
        for (what, code, count) in
            [("source", source, rows.source_count), ("class", label, rows.classes)]
        {
            if code as usize >= count {
                return Err(JudgeError::Code { row, what, code, count });
            }
        }
    }
    Ok(())
}
