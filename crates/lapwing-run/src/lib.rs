//! A run: from a table to a model, a verdict per source, and a directory that holds everything about it.
//!
//! ```text
//! Settings ─ Prepared::read ─▶ dataset, split, test ─ Job::new ─▶ plan ─ Job::run ─▶ Fit ─ Results::new ─▶ RunDirectory
//! ```
//!
//! [`train_and_test`] is the short form for comparisons: nothing is written, test metrics come back.

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
mod rows;
mod settings;
mod sources_file;
mod trajectory_file;
mod verdict;

pub use demo::{DEMO_LEVELS, Moon, two_moons};
pub use directory::RunDirectory;
pub use error::RunError;
pub use fit::{Checkpoints, Fit, Glance, Job, Watch, train_and_test};
pub use metrics::Metrics;
pub use model_file::{Evaluation, Predicted, Predictor};
pub use prepare::Prepared;
pub use recorder::{MOST_POINTS, Recorder, TrajectoryPoint};
pub use results::Results;
pub use settings::{MethodName, ModelName, OptimiserName, Settings, Strength, TaskName};
pub use sources_file::SourceRecord;
pub use verdict::{Facts, LabelError, label_error, verdict, wilson};
