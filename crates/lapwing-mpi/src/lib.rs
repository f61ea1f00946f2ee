//! Workers that are processes of MPI, started by `mpirun` or `srun`.
//!
//! Everything is behind the feature `engine`, which needs an MPI library and libclang to build; without it this crate is
//! empty. Numbers are sent and never summed up here: see [`Peers`](lapwing_core::Peers).
//!
//! A process of MPI that ends by itself while the others wait for it hangs the whole job. So a panic, an error
//! (`Mpi::abort`) and a silence that is too long (the watchdog) end all of them, with the rank and the host of whoever
//! noticed.

#[cfg(feature = "engine")]
mod engine;
#[cfg(feature = "engine")]
mod watchdog;

#[cfg(feature = "engine")]
pub use engine::{Mpi, MpiError};
