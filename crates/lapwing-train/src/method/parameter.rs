//! A parameter of a method: everything that flags, help, configuration files, recipes and Python need to know of it.

use std::fmt;

use super::MethodError;

/// A number that a method can be given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in flags, configuration files and recipes (`forget-rate`); with underscores in Python and in records.
    pub name: &'static str,
    /// What its value is called in help (`SHARE`).
    pub value_name: &'static str,
    /// What it does, in one line that goes on after "With METHOD:".
    pub about: &'static str,
    /// What it is where nothing is asked for; without, the method does without.
    pub default: Option<f64>,
    /// What it may be.
    pub range: Range,
    /// Who is told of it.
    pub audience: Audience,
}

/// Who is told of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// It is a flag and a key of configuration files.
    Everybody,
    /// Only recipes of experiments set it, to repeat what somebody else did.
    Recipes,
}

/// What a parameter may be. All of them are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// From the first to the second, both included.
    Within(f64, f64),
    /// From the first to below the second.
    Below(f64, f64),
    /// Above this.
    Above(f64),
    /// This or more.
    AtLeast(f64),
    /// A whole number, this or more.
    Whole(u32),
    /// No or yes: 0 or 1.
    Switch,
}

impl Range {
    /// Whether a value lies in it.
    pub fn holds(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Within(least, most) => (least..=most).contains(&value),
                Self::Below(least, end) => (least..end).contains(&value),
                Self::Above(least) => value > least,
                Self::AtLeast(least) => value >= least,
                Self::Whole(least) => {
                    value >= f64::from(least)
                        && value.fract() == 0.0
                        && value <= f64::from(u32::MAX)
                }
                Self::Switch => value == 0.0 || value == 1.0,
            }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within(least, most) => write!(f, "from {least} to {most}"),
            Self::Below(least, end) => write!(f, "from {least} to below {end}"),
            Self::Above(least) => write!(f, "above {least}"),
            Self::AtLeast(least) => write!(f, "at least {least}"),
            Self::Whole(least) => write!(f, "a whole number from {least}"),
            Self::Switch => write!(f, "0 or 1"),
        }
    }
}

impl Parameter {
    /// Refuses a value that is out of range.
    pub fn check(&self, value: f64) -> Result<(), MethodError> {
        if self.range.holds(value) {
            return Ok(());
        }
        Err(MethodError::Range { parameter: self.name, value, range: self.range })
    }

    /// Its name as an identifier.
    pub fn identifier(&self) -> String {
        self.name.replace('-', "_")
    }

    /// A value as JSON, in the form that suits the range.
    pub(super) fn json(&self, value: f64) -> serde_json::Value {
        match self.range {
            Range::Whole(_) => (value as u64).into(),
            Range::Switch => (value == 1.0).into(),
            _ => value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_their_ends_or_not_and_nothing_that_is_not_finite() {
        let cases: [(Range, &[f64], &[f64]); 6] = [
            (Range::Within(0.0, 1.0), &[0.0, 0.5, 1.0], &[-0.1, 1.1]),
            (Range::Below(0.0, 1.0), &[0.0, 0.999], &[-0.1, 1.0]),
            (Range::Above(0.0), &[1e-300, 9.0], &[0.0, -1.0]),
            (Range::AtLeast(0.0), &[0.0, 9.0], &[-1e-300]),
            (Range::Whole(1), &[1.0, 7.0], &[0.0, 1.5, 1e300]),
            (Range::Switch, &[0.0, 1.0], &[0.5, 2.0]),
        ];
        for (range, inside, outside) in cases {
            assert!(inside.iter().all(|&value| range.holds(value)), "{range}");
            assert!(!outside.iter().any(|&value| range.holds(value)), "{range}");
            assert!(![f64::NAN, f64::INFINITY].iter().any(|&value| range.holds(value)), "{range}");
        }
    }
}
