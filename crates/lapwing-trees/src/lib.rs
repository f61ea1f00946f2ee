//! Boosted trees on data from many sources of unknown reliability.
//!
//! A round of boosting is a step of the rule: a few rows of each source are judged by trees that have not seen them, then
//! gradient and curvature of a row count for what its source weighs. These trees have learnt from everybody, so they are
//! thrown away once it is known whom to believe, and others are grown in their place. The trees are XGBoost's, grown by
//! `hessboost`; nothing here knows of networks, tables or command lines.
//!
//! Two sources know where the step is, the third says anything:
//!
//! ```
//! use std::ops::ControlFlow;
//! use lapwing_sample::{Data, Loss, Matrix, Predictions, Targets};
//! use lapwing_trees::{Say, TreesConfig, boost};
//!
//! let samples = Matrix::new((0..900).map(|row| (row * 37 % 101) as f32).collect(), 1)?;
//! let sources: Vec<u32> = (0..900).map(|row| row % 3).collect();
//! let truth = |row: u32| if row * 37 % 101 > 50 { 5.0 } else { 1.0 };
//! let said = |row: u32| if row % 3 == 2 { f64::from(row * 7919 % 97) / 10.0 } else { truth(row) };
//! let targets = Targets::Values((0..900).map(said).collect());
//! let (valid, train): (Vec<u32>, Vec<u32>) = (0..900).partition(|row| row % 10 == 0);
//! let (train, valid) = (&train[..], &valid[..]);
//! let data = Data { samples: &samples, targets: &targets, sources: &sources, train, valid, relabel: None, items: None };
//!
//! let config = TreesConfig {
//!     rehearsal: 100,
//!     rounds: 200,
//!     ..TreesConfig::new(Loss::SquaredError, vec![false], vec![Say::Rule { floor: 0.0 }; 3])
//! };
//! let grown = boost(&config, &data, &mut |_| ControlFlow::Continue(()))?;
//! let Some(grown) = grown else { return Ok(()) }; // nobody interrupted it
//! assert!(grown.weights[0] > 0.9 && grown.weights[2] < 0.1, "{:?}", grown.weights);
//! let Predictions::Values(values) = grown.forest.predict(&samples, &[0, 2])? else { return Ok(()) };
//! assert!((values[0] - 1.0).abs() < 0.2 && (values[1] - 5.0).abs() < 0.2, "{values:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod boost;
mod config;
mod error;
mod forest;
mod objective;
mod onnx;
mod rounds;

pub use boost::{Grown, Round, Valid, boost};
pub use config::TreesConfig;
pub use error::TreesError;
pub use forest::{Forest, ForestSpec};
pub use rounds::{Say, SourceRound};
