//! Training on data from many sources of unknown reliability.
//!
//! Data flows one way: [`Samples`], [`Targets`] and sources into the loop ([`Trainer`]), batches into a [`Method`], which
//! teaches a [`Learner`], a [`Model`] out at the end. Nothing here knows of files of data, reports or
//! command lines.

mod agreement;
mod arrays;
mod batch;
mod checkpoint;
mod config;
mod device;
mod digest;
mod error;
mod learner;
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
mod saved;
mod schedule;
mod softmax;
mod train;
mod validation;

pub use arrays::ArraysError;
pub use batch::Batch;
pub use checkpoint::{CheckpointDir, CheckpointError};
pub use config::TrainConfig;
pub use device::{DeviceError, DeviceName, kernels};
pub use error::TrainError;
pub use lapwing_sample::{
    Block, Data, DataError, Exhibit, InputSpec, Matrix, Relabel, SampleError, Samples, Scale,
    TargetSpec, Targets, Task, Values, View,
};
pub use learner::{Learner, Pass};
pub use loss::{Loss, cross_entropy, huber, squared_error};
pub use method::{
    Audience, Guards, METHODS, Method, MethodConfig, MethodError, MethodKind, Observed, Parameter,
    Range, Seen, Standing, Start, Weighs, method_named, owners,
};
pub use model::{Model, ModelError, ModelSpec, Predictions};
pub use network::*;
pub use observer::{Epoch, Observer, SourceStep, Step};
pub use optimiser::{OptimiserConfig, Pace};
pub use parameters::ParameterError;
pub use plan::{DataShape, Plan, Wishes, auto_strength, plan, window_steps};
pub use resume::Resumed;
pub use saved::Saved;
pub use schedule::Schedule;
pub use softmax::{negative_log_probability, probability};
pub use train::{Finish, Trainer};
