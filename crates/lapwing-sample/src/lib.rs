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

mod data;
mod draws;
mod input;
mod matrix;
mod png;
mod samples;
mod scale;
mod target;

pub use data::{Data, DataError, Relabel};
pub use draws::{Draws, box_muller};
pub use input::InputSpec;
pub use matrix::Matrix;
pub use png::png;
pub use samples::{Block, Exhibit, SampleError, Samples, Values, View};
pub use scale::{Scale, Spread};
pub use target::{TargetSpec, Targets, Task, UNSEEN_CLASS, UnknownTask};
