//! Noise rates against a slow oracle, and what must not change their answers.

#![allow(clippy::unwrap_used, clippy::panic)]

mod estimate;
mod oracle;
mod properties;
