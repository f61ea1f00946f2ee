//! One test per fault that was found in the program, named after what went wrong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../tables/mod.rs"]
mod tables;

mod messages;
mod methods;
mod output;
mod runs;
mod signals;
#[path = "tables.rs"]
mod ugly_tables;
