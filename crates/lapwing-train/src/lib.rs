//! Training on data from many sources of unknown reliability.
//!
//! Data flows one way: [`Rows`], [`Targets`] and sources into the loop ([`Trainer`]), per-sample losses into a
//! [`Method`], weights back into the loss, a [`Model`] out at the end. Nothing here knows of files of data, reports or
//! command lines.

mod arrays;
mod atomic;
mod checkpoint;
mod config;
mod device;
mod error;
mod loss;
mod method;
mod model;
mod network;
mod observer;
mod optimiser;
mod parameters;
mod plan;
mod random;
mod resume;
mod rows;
mod schedule;
mod train;
mod validation;

pub use arrays::ArraysError;
pub use atomic::replace as replace_file;
pub use checkpoint::{CheckpointDir, CheckpointError};
pub use config::TrainConfig;
pub use device::{DeviceError, DeviceName};
pub use error::TrainError;
pub use loss::{Loss, cross_entropy, huber, squared_error};
pub use method::{Guards, Method, MethodConfig, MethodError, Standing};
pub use model::{Model, ModelError, ModelSpec, Predictions, Task};
pub use network::{Architecture, ArchitectureError, MlpConfig};
pub use observer::{Epoch, Observer, SourceStep, Step};
pub use optimiser::OptimiserConfig;
pub use parameters::ParameterError;
pub use plan::{Plan, TableShape, auto_strength, plan, window_steps};
pub use resume::Resumed;
pub use rows::{Data, DataError, Matrix, Rows, Targets};
pub use schedule::Schedule;
pub use train::{Finish, Trainer};
