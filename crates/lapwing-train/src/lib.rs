//! Training on data from many sources of unknown reliability.
//!
//! Data flows one way: [`Samples`], [`Targets`] and sources into the loop ([`Trainer`]), batches into a [`Method`], which
//! teaches a [`Learner`], a [`Model`] out at the end. Nothing here knows of files of data, reports or
//! command lines.
//!
//! Does a point lie above the diagonal? Two sources know, the third says the contrary:
//!
//! ```
//! use lapwing_train::*;
//!
//! let point = |row: u32| [(row * 37 % 101) as f32 / 50.0 - 1.0, (row * 53 % 97) as f32 / 48.0 - 1.0];
//! let samples = Matrix::new((0..900).flat_map(point).collect(), 2)?;
//! let sources: Vec<u32> = (0..900).map(|row| row % 3).collect();
//! let above = |row: u32| point(row)[1] > point(row)[0];
//! let labels = (0..900).map(|row| u32::from(above(row) != (row % 3 == 2))).collect();
//! let targets = Targets::Classes { labels, classes: 2 };
//! let (valid, train): (Vec<u32>, Vec<u32>) = (0..900).partition(|row| row % 10 == 0);
//! let (samples, targets, sources) = (&samples, &targets, &sources);
//! let data = Data { samples, targets, sources, train: &train, valid: &valid, relabel: None, items: None };
//!
//! let wishes = Wishes { epochs: Some(60), ..Wishes::default() };
//! let config = plan(&DataShape::of(&data, 3), 25, &wishes)?.config(0);
//! let mut trainer = Trainer::new(config, &MethodConfig::named("lap")?, data, DeviceName::Cpu)?;
//! trainer.run(&mut (), None)?; // `()` looks on and never interrupts
//!
//! assert!(trainer.standing(0).weight > 0.9 && trainer.standing(2).weight < 0.1);
//! let Predictions::Classes { probabilities, .. } = trainer.model()?.predict(samples, &valid)? else { return Ok(()) };
//! let right = valid.iter().zip(probabilities.chunks(2)).filter(|(row, p)| (p[1] > 0.5) == above(**row));
//! assert!(right.count() > 85); // of 90
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod moments;
mod network;
mod observer;
mod optimiser;
mod order;
mod parameters;
mod plan;
mod random;
mod resume;
mod sampling;
mod saved;
mod schedule;
mod shards;
mod train;

pub use arrays::ArraysError;
pub use batch::Batch;
pub use checkpoint::{CheckpointDir, CheckpointError};
pub use config::TrainConfig;
pub use device::{DeviceError, DeviceName, kernels};
pub use error::TrainError;
pub use lapwing_sample::{
    Block, Data, DataError, Exhibit, InputSpec, Loss, Matrix, Predictions, Relabel, SampleError,
    Samples, Scale, TargetSpec, Targets, Task, Values, View, negative_log_probability, probability,
};
pub use learner::{Learner, Pass, ShardPass};
pub use loss::{cross_entropy, huber, squared_error};
pub use method::{
    Audience, Guards, METHODS, Method, MethodConfig, MethodError, MethodKind, Observed, Parameter,
    Range, Seen, Standing, Start, Weighs, method_named, owners,
};
pub use model::{Model, ModelError, ModelSpec};
pub use network::*;
pub use observer::{Epoch, Observer, SourceStep, Step};
pub use optimiser::{OptimiserConfig, Pace};
pub use parameters::{Gradient, ParameterError};
pub use plan::{DataShape, Plan, Wishes, auto_strength, plan, window_steps};
pub use resume::Resumed;
pub use sampling::Sampling;
pub use saved::Saved;
pub use schedule::Schedule;
pub use shards::Workers;
pub use train::{Finish, Trainer};
