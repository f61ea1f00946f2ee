//! The experiments of the paper on Loss Adapted Plasticity.
//!
//! An experiment is a [`Recipe`]: a readable file that names data set, sources, noise, model, training, methods and the
//! paper's numbers. A recipe unfolds into cells (condition × method × run); each is [`run`] with seeds of its own and
//! leaves one [`Record`]; tables, figures and the [`summary`] are made from records alone.

mod axes;
mod cell;
mod claim;
mod cost;
mod data;
mod demonstration;
mod error;
mod estimation;
mod faults;
mod figure;
mod measure;
mod merge;
mod picture;
mod plan;
mod prepare;
mod recipe;
mod record;
mod run;
mod search;
mod section;
mod sequence_store;
mod store;
mod summary;
mod table;
mod timing;

pub use cell::{Cell, Form, Selection};
pub use claim::{Claim, Count, Relation, Side};
pub use cost::{Cost, cost};
pub use data::{DataDir, DataSet};
pub use error::PaperError;
pub use merge::merge;
pub use recipe::{
    Condition, FigureKind, Kind, MethodKeys, MethodRecipe, Recipe, Version, recipe, recipes,
};
pub use record::{Record, Records};
pub use run::{Request, Watch, run};
pub use search::{Grid, Point};
pub use summary::{shown, summary, write_figures};
pub use table::{Entry, Results, Statistics, Welch, metric_name};
