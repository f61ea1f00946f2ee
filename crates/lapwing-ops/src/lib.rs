//! Fast operations for training on a CPU, on ordinary Burn tensors.
//!
//! Each function has two bodies: kernels with hand-written gradients for Burn's CPU backend (`Flex`, f32), and Burn's own
//! operations for every other backend. Both are differentiated by ordinary automatic differentiation; a caller sees no
//! difference but speed. Activations are channels-last: images `[n, height, width, channels]`, sequences
//! `[n, length, channels]`.
//!
//! Kernels pick the widest vector instructions of the machine when they run, spread their work over rayon's threads, and
//! give the same bits with any number of threads.

mod attention;
mod bag;
mod conv;
mod elementwise;
mod kernels;
mod layer_norm;
mod linear;
mod loss;
mod lstm;
mod neighbours;
mod norm;
mod operation;
mod pool;
mod process;
mod step;

pub use attention::{Heads, attention, drop_out};
pub use bag::{Bags, bag_means, rows_of};
pub use conv::{Window1d, Window2d, conv1d, conv2d};
pub use elementwise::{relu, scale, softmax, squash};
pub use kernels::level::{Level, LevelError};
pub use layer_norm::add_layer_norm;
pub use linear::linear;
pub use loss::cross_entropy;
pub use lstm::lstm;
pub use neighbours::{Neighbours, nearest};
pub use norm::{batch_norm, batch_norm_with};
pub use pool::{bias_relu_max_pool, global_average_pool, max_pool2d};
pub use process::{release_memory, tune_process, use_stock};
pub use step::{AdamStep, SgdStep, adam_rows_step, adam_step, sgd_rows_step, sgd_step};
