//! The experiments of the paper on Loss Adapted Plasticity.
//!
//! An experiment is a [`Recipe`]: a readable file that names data set, sources, noise, model, training, methods and the
//! paper's numbers. A recipe unfolds into cells (condition × method × run); each is run with seeds of its own and leaves
//! one record; tables, figures and the summary are made from records alone.

mod data;
mod error;
mod recipe;

pub use data::{DataDir, DataSet};
pub use error::PaperError;
pub use recipe::{
    Condition, FigureKind, Kind, MethodKind, MethodRecipe, Recipe, Version, recipe, recipes,
};
