//! Standard training: every sample counts the same.

use super::Method;

#[derive(Debug)]
pub(crate) struct Standard;

impl Method for Standard {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_weighs_the_same() {
        assert_eq!(Standard.weigh(&[0.1, 9.0], &[0, 1]).unwrap(), [1.0, 1.0]);
        assert_eq!(Standard.standing(3).weight, 1.0);
    }
}
