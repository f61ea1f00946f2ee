//! Every operation against a slow one in f64: values, gradients against finite differences, all vector instructions of
//! the machine, Burn's own operations, and the same bits with any number of threads.

#![allow(clippy::unwrap_used, reason = "a failure is what a test is for")]

mod attention;
mod bag;
mod conv;
mod elementwise;
mod judge;
mod layer;
mod lstm;
mod neighbours;
mod norm;
mod pool;
mod step;
