//! A run: from a table to a model, a verdict per source, and a directory that holds everything about it.
//!
//! ```text
//! Settings ─ Prepared::read ─▶ dataset, split, test ─ Job::new ─▶ plan ─ Job::run ─▶ Fit ─ Results::new ─▶ RunDirectory
//! ```

mod demo;
mod directory;
mod error;
mod evidence;
mod fit;
mod metrics;
mod model_file;
mod prepare;
mod recorder;
mod results;
mod settings;
mod sources_file;
mod trajectory_file;
mod verdict;

pub use demo::{DEMO_LEVELS, Moon, two_moons};
pub use directory::RunDirectory;
pub use error::RunError;
pub use fit::{Checkpoints, Fit, Glance, Job, Watch};
pub use metrics::Metrics;
pub use model_file::{Evaluation, Predicted, Predictor};
pub use prepare::Prepared;
pub use recorder::{MOST_POINTS, Recorder, TrajectoryPoint};
pub use results::Results;
pub use settings::{MethodName, ModelName, OptimiserName, Settings, Strength, TaskName};
pub use sources_file::SourceRecord;
pub use verdict::{Facts, LabelError, label_error, verdict, wilson};
