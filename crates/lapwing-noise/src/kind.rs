//! The names of the kinds of noise.

use std::fmt;
use std::str::FromStr;

/// A kind of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoiseKind {
    /// Nothing changes.
    Original,
    /// See [`ChunkShuffle`](crate::ChunkShuffle).
    ChunkShuffle,
    /// See [`RandomLabel`](crate::RandomLabel).
    RandomLabel,
    /// See [`RandomLabelPerSample`](crate::RandomLabelPerSample).
    RandomLabelPerSample,
    /// See [`BatchLabelShuffle`](crate::BatchLabelShuffle).
    BatchLabelShuffle,
    /// See [`BatchLabelFlip`](crate::BatchLabelFlip).
    BatchLabelFlip,
    /// See [`ChunkLabelShuffle`](crate::ChunkLabelShuffle).
    ChunkLabelShuffle,
    /// See [`ChunkLabelFlip`](crate::ChunkLabelFlip).
    ChunkLabelFlip,
    /// See [`AddedNoise`](crate::AddedNoise).
    AddedNoise,
    /// See [`ReplaceWithNoise`](crate::ReplaceWithNoise).
    ReplaceWithNoise,
    /// See [`ExactFlip`](crate::ExactFlip).
    ExactFlip,
    /// See [`UniformTarget`](crate::UniformTarget).
    UniformTarget,
    /// See [`HumanLabels`](crate::HumanLabels).
    HumanLabels,
    /// See [`ClassSwap`](crate::ClassSwap).
    ClassSwap,
    /// See [`TokenPermutation`](crate::TokenPermutation).
    TokenPermutation,
    /// See [`TokenReplacement`](crate::TokenReplacement).
    TokenReplacement,
    /// See [`PixelNoise`](crate::PixelNoise).
    PixelNoise,
    /// See [`SignalNoise`](crate::SignalNoise).
    SignalNoise,
}

/// What noise changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing.
    Nothing,
    /// What a model sees.
    Inputs,
    /// The words of what a model reads.
    Texts,
    /// Classes.
    Labels,
    /// Numbers that are to be predicted.
    Numbers,
}

impl NoiseKind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::Original,
        Self::ChunkShuffle,
        Self::RandomLabel,
        Self::RandomLabelPerSample,
        Self::BatchLabelShuffle,
        Self::BatchLabelFlip,
        Self::ChunkLabelShuffle,
        Self::ChunkLabelFlip,
        Self::AddedNoise,
        Self::ReplaceWithNoise,
        Self::ExactFlip,
        Self::UniformTarget,
        Self::HumanLabels,
        Self::ClassSwap,
        Self::TokenPermutation,
        Self::TokenReplacement,
        Self::PixelNoise,
        Self::SignalNoise,
    ];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::ChunkShuffle => "chunk-shuffle",
            Self::RandomLabel => "random-label",
            Self::RandomLabelPerSample => "random-label-per-sample",
            Self::BatchLabelShuffle => "batch-label-shuffle",
            Self::BatchLabelFlip => "batch-label-flip",
            Self::ChunkLabelShuffle => "chunk-label-shuffle",
            Self::ChunkLabelFlip => "chunk-label-flip",
            Self::AddedNoise => "added-noise",
            Self::ReplaceWithNoise => "replace-with-noise",
            Self::ExactFlip => "exact-flip",
            Self::UniformTarget => "uniform-target",
            Self::HumanLabels => "human-labels",
            Self::ClassSwap => "class-swap",
            Self::TokenPermutation => "token-permutation",
            Self::TokenReplacement => "token-replacement",
            Self::PixelNoise => "pixel-noise",
            Self::SignalNoise => "signal-noise",
        }
    }

    /// What it does, in a line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Original => "nothing changes",
            Self::ChunkShuffle => {
                "the inputs are cut into ten pieces per axis, which change places"
            }
            Self::RandomLabel => "each class of a source becomes one random class, maybe itself",
            Self::RandomLabelPerSample => "each sample gets a random class, maybe its own",
            Self::BatchLabelShuffle => {
                "in each training batch, noisy samples get labels of a shuffle of the batch"
            }
            Self::BatchLabelFlip => {
                "in each training batch, noisy samples all get one label of the batch"
            }
            Self::ChunkLabelShuffle => "labels change places within chunks of one source",
            Self::ChunkLabelFlip => "all samples of a chunk of one source get one of its labels",
            Self::AddedNoise => "normal noise of standard deviation 1 is added to the inputs",
            Self::ReplaceWithNoise => "normal noise of standard deviation 1 replaces the inputs",
            Self::ExactFlip => "an exact number of labels of a source becomes another class",
            Self::UniformTarget => "the target becomes a uniform number between its extremes",
            Self::HumanLabels => "an exact number of samples gets the wrong label a human gave it",
            Self::ClassSwap => "two classes of a source change places",
            Self::TokenPermutation => "the words of a text change places",
            Self::TokenReplacement => "half of the words of a text become any word of the column",
            Self::PixelNoise => "a number from -64 to 63 is added to every byte of a picture",
            Self::SignalNoise => {
                "normal noise is added to a signal, and a label of two becomes the other"
            }
        }
    }

    /// Why it cannot be had in a table, where it cannot.
    pub fn unfit_for_tables(self) -> Option<&'static str> {
        match self {
            Self::BatchLabelShuffle => Some(
                "it is drawn anew in every training batch; chunk-label-shuffle is its fixed form",
            ),
            Self::BatchLabelFlip => {
                Some("it is drawn anew in every training batch; chunk-label-flip is its fixed form")
            }
            Self::HumanLabels => Some("it needs labels that people gave beside the true ones"),
            Self::PixelNoise => {
                Some("it changes the pictures themselves, not the table of their paths")
            }
            Self::SignalNoise => Some("added-noise and exact-flip are its two halves"),
            _ => None,
        }
    }

    /// What it changes.
    pub fn changes(self) -> Changes {
        match self {
            Self::Original => Changes::Nothing,
            Self::ChunkShuffle | Self::AddedNoise | Self::ReplaceWithNoise => Changes::Inputs,
            Self::PixelNoise | Self::SignalNoise => Changes::Inputs,
            Self::TokenPermutation | Self::TokenReplacement => Changes::Texts,
            Self::UniformTarget => Changes::Numbers,
            Self::RandomLabel
            | Self::RandomLabelPerSample
            | Self::BatchLabelShuffle
            | Self::BatchLabelFlip
            | Self::ChunkLabelShuffle
            | Self::ChunkLabelFlip
            | Self::ExactFlip
            | Self::HumanLabels
            | Self::ClassSwap => Changes::Labels,
        }
    }
}

impl fmt::Display for NoiseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no kind of noise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kind of noise; expected one of {names}", names = NoiseKind::ALL.map(NoiseKind::name).join(", "))]
pub struct UnknownNoise(pub String);

impl FromStr for NoiseKind {
    type Err = UnknownNoise;

    fn from_str(word: &str) -> Result<Self, UnknownNoise> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == word)
            .ok_or_else(|| UnknownNoise(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_are_distinct_kebab_case() {
        for (position, kind) in NoiseKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(kind as usize, position, "ALL holds every kind once, in order");
            assert!(kind.name().chars().all(|c| c.is_ascii_lowercase() || c == '-'));
            assert!(!kind.description().is_empty());
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let error = "salt".parse::<NoiseKind>().unwrap_err().to_string();
        assert!(NoiseKind::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    }
}
