//! Kernels on slices. They know nothing of Burn.
//!
//! No result depends on the number of threads: sums are grouped by the size of the problem alone.

pub(crate) mod attention;
pub(crate) mod bag;
pub(crate) mod chance;
pub(crate) mod columns;
pub(crate) mod conv;
pub(crate) mod conv_product;
pub(crate) mod conv_weight;
pub(crate) mod curves;
pub(crate) mod elementwise;
pub(crate) mod fresh;
pub(crate) mod lanes;
pub(crate) mod layer_norm;
pub(crate) mod level;
pub(crate) mod loss;
pub(crate) mod lstm;
pub(crate) mod norm;
pub(crate) mod panels;
pub(crate) mod pool;
pub(crate) mod product;
pub(crate) mod step;
pub(crate) mod tile;
pub(crate) mod winograd;
pub(crate) mod winograd_planes;
pub(crate) mod winograd_weight;
