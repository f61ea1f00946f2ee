//! The rule against the authors' traces, against a slow oracle, and over a million steps.

#![allow(clippy::unwrap_used, clippy::panic)]

mod ablation;
mod drift;
mod false_alarm;
mod golden;
mod oracle;
mod properties;
