//! Noise that makes a source unreliable on purpose: for experiments, and for users who want to know what a method
//! does with their data when a part of it is wrong.
//!
//! [`NoiseKind`] names and describes every kind; each is a small value of its own that is given a seed and changes
//! labels, targets or inputs in memory:
//!
//! | kind | value | draws anew for |
//! |---|---|---|
//! | `original` | – | – |
//! | `chunk-shuffle` | [`ChunkShuffle`] | each sample |
//! | `random-label` | [`RandomLabel`] | each source and class |
//! | `random-label-per-sample` | [`RandomLabelPerSample`] | each sample |
//! | `batch-label-shuffle`, `batch-label-flip` | [`BatchLabelShuffle`], [`BatchLabelFlip`] | each training step |
//! | `chunk-label-shuffle`, `chunk-label-flip` | [`ChunkLabelShuffle`], [`ChunkLabelFlip`] | each chunk of one source |
//! | `added-noise`, `replace-with-noise` | [`AddedNoise`], [`ReplaceWithNoise`] | each sample |
//! | `exact-flip` | [`ExactFlip`] | each source |
//! | `uniform-target` | [`UniformTarget`] | each sample |
//! | `human-labels` | [`HumanLabels`] | each data set |
//! | `class-swap` | [`ClassSwap`] | each source |
//! | `token-permutation`, `token-replacement` | [`TokenPermutation`], [`TokenReplacement`] | each sample |
//! | `pixel-noise` | [`PixelNoise`] | each sample |
//! | `signal-noise` | [`SignalNoise`] | each sample |
//!
//! [`TableNoise`] puts them into chosen sources of a table in a file.
//!
//! A draw is a function of the seed and of what it is for (the index of the sample, the step, the source): samples can
//! be asked for in any order, any number of times, and on any number of threads.

mod batch_label;
mod chunk_label;
mod chunk_shuffle;
mod class_swap;
mod draws;
mod error;
mod exact_flip;
mod gaussian;
mod human_labels;
mod kind;
mod level;
mod pixel_noise;
mod random_label;
mod signal_noise;
mod table;
mod tokens;
mod uniform_target;

pub use batch_label::{BatchLabelFlip, BatchLabelShuffle};
pub use chunk_label::{ChunkLabelFlip, ChunkLabelShuffle};
pub use chunk_shuffle::ChunkShuffle;
pub use class_swap::ClassSwap;
pub use error::NoiseError;
pub use exact_flip::ExactFlip;
pub use gaussian::{AddedNoise, Real, ReplaceWithNoise};
pub use human_labels::HumanLabels;
pub use kind::{Changes, NoiseKind, UnknownNoise};
pub use level::Level;
pub use pixel_noise::PixelNoise;
pub use random_label::{RandomLabel, RandomLabelPerSample};
pub use signal_noise::SignalNoise;
pub use table::{Corruption, SourceCount, TableNoise, TableNoiseError, TargetIs};
pub use tokens::{TokenPermutation, TokenReplacement};
pub use uniform_target::UniformTarget;
