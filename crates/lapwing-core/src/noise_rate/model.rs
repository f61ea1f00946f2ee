//! What noise is drawn from.

use core::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Likelihoods;
use crate::{BatchSums, LapError};

/// Keeps the list of models here: [`NoiseRate`](crate::NoiseRate) relies on sums that add up in any
/// order.
pub trait Sealed {}

/// What noise is drawn from: [`Labels`](super::Labels) for classes, [`Values`](super::Values) for
/// numbers.
pub trait NoiseModel: Sealed + Clone + Debug + Serialize + DeserializeOwned {
    /// One row of a batch.
    type Row: Copy;

    /// Refuses a row that cannot be.
    ///
    /// # Errors
    /// Where its label is no class.
    fn check_row(&self, row: Self::Row) -> Result<(), LapError>;
    /// What a row is worth as the truth and as noise; `None` where it holds a number that is not
    /// finite.
    fn likelihoods(&self, row: Self::Row) -> Option<Likelihoods>;
    /// Adds a row, which is the truth with this probability, to the sums of a batch. What they are
    /// sums of, numbers tell.
    fn add(sums: &mut BatchSums<u32>, row: Self::Row, truth: f64);
    /// Refuses sums that belong to another model.
    ///
    /// # Errors
    /// Where a label is no class.
    fn check_sums(&self, sums: &BatchSums<u32>) -> Result<(), LapError>;
    /// Takes a batch in.
    fn update(&mut self, sums: &BatchSums<u32>, decay: f64);
    /// Refuses a saved model that cannot take this one's place.
    ///
    /// # Errors
    /// Says why.
    fn check_state(&self, loaded: &Self) -> Result<(), &'static str>;
}
