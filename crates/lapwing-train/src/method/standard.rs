//! Standard training: every sample counts the same.

use super::{Method, MethodConfig, MethodKind, Start};
use crate::error::TrainError;

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "standard"
    }

    fn about(&self) -> &'static str {
        "All sources count the same; they are judged all the same"
    }

    fn sentence(&self, _: &MethodConfig) -> String {
        "all sources count the same".to_owned()
    }

    fn runs_in_shards(&self) -> bool {
        true
    }

    fn start<'a>(&self, _: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(Box::new(Standard))
    }
}

#[derive(Debug)]
pub(super) struct Standard;

impl Method for Standard {}

#[cfg(test)]
mod tests {
    use super::super::Observed;
    use super::*;

    #[test]
    fn everybody_weighs_the_same() {
        assert_eq!(Standard.weigh(&Observed::new(&[0.1, 9.0], &[0, 1])).unwrap(), [1.0, 1.0]);
        assert_eq!(Standard.standing(3).weight, 1.0);
    }
}
