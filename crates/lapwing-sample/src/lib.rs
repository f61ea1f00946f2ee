//! What a sample is: what goes into a network, what is to come out, and who said so.
//!
//! ```text
//! file ─▶ Samples ─ gather ─▶ Block ─▶ network ─▶ losses ─▶ weights
//!           │                   ▲
//!           └ spec: InputSpec ──┘ compared once, when data and network meet
//! ```
//!
//! Whoever reads data implements [`Samples`]; whoever trains asks for [`Block`]s. Neither knows the other, and this crate
//! knows neither files nor tensors.

mod augment;
mod augmix;
mod data;
mod draws;
mod input;
mod loss;
mod matrix;
mod png;
mod predictions;
mod samples;
mod scale;
mod softmax;
mod source_losses;
mod target;

pub use augment::{Augmented, Change, UnknownChange};
pub use augmix::augmix;
pub use data::{Data, DataError, Relabel};
pub use draws::{Draws, box_muller};
pub use input::InputSpec;
pub use loss::Loss;
pub use matrix::Matrix;
pub use png::png;
pub use predictions::Predictions;
pub use samples::{Block, Blocks, Exhibit, SampleError, Samples, Values, View};
pub use scale::{Scale, Spread};
pub use softmax::{negative_log_probability, probability, softmax};
pub use source_losses::SourceLosses;
pub use target::{TargetSpec, Targets, Task, UNSEEN_CLASS, UnknownTask};
