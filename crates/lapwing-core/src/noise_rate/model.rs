//! What noise is drawn from.

use core::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Likelihoods;
use crate::LapError;

/// Keeps the list of models here: [`NoiseRate`](crate::NoiseRate) relies on sums that add up in any
/// order.
pub trait Sealed {}

/// What noise is drawn from: [`Labels`](super::Labels) for classes, [`Values`](super::Values) for
/// numbers.
pub trait NoiseModel: Sealed + Clone + Debug + Serialize + DeserializeOwned {
    /// One row of a batch.
    type Row: Copy;
    /// What a batch adds to what is known.
    type Sums: Clone + Debug + Default + Serialize + DeserializeOwned;

    /// Refuses a row that cannot be.
    ///
    /// # Errors
    /// Where its label is no class.
    fn check_row(&self, row: Self::Row) -> Result<(), LapError>;
    /// What a row is worth as the truth and as noise; `None` where it holds a number that is not
    /// finite.
    fn likelihoods(&self, row: Self::Row) -> Option<Likelihoods>;
    /// Adds a row, which is the truth with this probability.
    fn add(sums: &mut Self::Sums, row: Self::Row, truth: f64);
    /// Adds another worker's part of the batch.
    fn merge(sums: &mut Self::Sums, other: &Self::Sums);
    /// Refuses sums that belong to another model.
    ///
    /// # Errors
    /// Where a label is no class.
    fn check_sums(&self, sums: &Self::Sums) -> Result<(), LapError>;
    /// Takes a batch in.
    fn update(&mut self, sums: &Self::Sums, decay: f64);
    /// Refuses a saved model that cannot take this one's place.
    ///
    /// # Errors
    /// Says why.
    fn check_state(&self, loaded: &Self) -> Result<(), &'static str>;
}
