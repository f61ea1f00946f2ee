//! The weighting rule of Loss Adapted Plasticity (LAP): losses and sources in, weights out. Beside it
//! a noise rate per source ([`NoiseRate`]), which tells wrong labels from difficult rows. No
//! framework, no I/O, `no_std`.
//!
//! Data often come from many *sources* (hospitals, devices, annotators), some of which are worse
//! than others. LAP keeps the last *H* mean losses of each source. A source whose mean over this
//! history lies above that of the others by more than λ standard deviations gains one point of
//! *unreliability* C, otherwise it loses one (never below zero), and its samples weigh
//! f(C) = 1 − tanh²(0.005·δ·C) in the training loss. So training uses everybody early and only the
//! reliable sources late, when networks start to memorise noise.
//!
//! ```
//! use lapwing_core::{Lap, LapConfig};
//!
//! let mut lap = Lap::new(LapConfig { history_length: 5, ..LapConfig::default() })?;
//! for step in 0..500 {
//!     // Per-sample losses of a mini-batch, from any framework, and where each sample came from.
//!     let jitter = 0.02 * f64::from(step % 7);
//!     let losses = [0.21 + jitter, 0.90, 0.18, 0.23 - jitter];
//!     let sources = ["ward 1", "ward 2", "ward 3", "ward 1"];
//!     let weights = lap.weigh(&losses, sources)?;
//!     // Train on the mean of weight · loss; no gradient flows through the weights.
//!     let loss: f64 = weights.iter().zip(&losses).map(|(w, l)| w * l).sum::<f64>() / 4.0;
//!     assert!(loss.is_finite());
//! }
//! let status = lap.status("ward 2").unwrap();
//! assert!(status.unreliability > 400 && status.weight < 0.08);
//! # Ok::<(), lapwing_core::LapError>(())
//! ```
//!
//! # What it promises
//!
//! * **Exact.** Windows are f64 and every statistic is built by merging, never by subtracting from
//!   a running sum: nothing drifts, variances are never negative, an enormous loss leaves no trace
//!   once it has left its window.
//! * **Poison-proof.** A loss that is not finite is counted against its source, weighs 0, and
//!   changes nothing for any other source. Weights keep their ratios down to e^−10¹¹, so there is
//!   always somebody to compare with.
//! * **Cheap.** A step costs O(B + S_b·log S) for a batch of B samples from S_b of S sources, and
//!   allocates nothing once every window has come round.
//! * **Portable.** The state is a value ([`State`]) that can be saved, loaded and used as a prior,
//!   and the step comes in two halves ([`BatchSums`], [`Lap::update`]) for training on many
//!   machines, with the [`Message`] that workers send between the two and a door to whatever
//!   carries it ([`Peers`]).

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod consensus;
mod error;
mod lap;
mod leniency;
mod mass;
mod message;
mod moments;
mod noise_rate;
mod parts;
mod peers;
mod source;
mod state;
mod sums;
mod tree;
mod weighting;
mod window;

pub use config::{DISCRETE_AMOUNT, HistoryReading, LapConfig, Ties};
pub use consensus::{Answers, Consensus};
pub use error::LapError;
pub use lap::Lap;
pub use leniency::{false_alarm_rate, leniency_for_false_alarm, student_tail};
pub use message::{MESSAGE_VERSION, Message, MessageError, MessageProblem};
pub use noise_rate::{
    Answer, Estimate, Labels, Likelihoods, NOISE_STATE_VERSION, NoiseModel, NoiseRate,
    NoiseRateConfig, NoiseSourceState, NoiseState, NoiseStatus, NoiseSums, Reading, Values,
    estimate, rate_interval,
};
pub use parts::gather_messages;
pub use peers::{Alone, PeerError, Peers};
pub use source::{Present, Reference, SourceStatus};
pub use state::{STATE_VERSION, SourceState, State};
pub use sums::{BatchSums, LARGEST_LOSS, SourceSum};
pub use weighting::Weighting;
