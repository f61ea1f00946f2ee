//! `lapwing._lapwing`, the part of the Python package that is written in Rust.
//!
//! It is thin: arrays, names and errors are translated here, and everything else is a call to a
//! library. What users see is in `python/lapwing`, which is also where it is documented.

mod batch;
mod column;
mod findings;
mod fit;
mod model;
mod name;
mod noise;
mod program;
mod replay;
mod report;
mod rule;
mod sources;
mod table;
mod train;
mod words;

use pyo3::prelude::*;

/// The part of lapwing that is written in Rust; use `lapwing` instead.
#[pymodule]
mod _lapwing {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::model::{_restore_network, _restore_trees, Network};
    #[pymodule_export]
    use crate::noise::{_restore_noise, Noise};
    #[pymodule_export]
    use crate::program::program;
    #[pymodule_export]
    use crate::replay::{replay_arrays, replay_file, replay_stream};
    #[pymodule_export]
    use crate::report::render_report;
    #[pymodule_export]
    use crate::rule::{_restore, Rule, false_alarm_rate, leniency_for_false_alarm};
    #[pymodule_export]
    use crate::table::{_restore_table, Table};
    #[pymodule_export]
    use crate::train::{Trained, methods, train_network};
    #[pymodule_export]
    use crate::words::words;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
