//! A choice that can be left to the plan.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const AUTO: &str = "auto";

/// `auto`, or what somebody chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice<T> {
    /// What suits the data.
    #[default]
    Auto,
    /// This.
    Is(T),
}

impl<T> Choice<T> {
    /// What somebody chose.
    pub fn chosen(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Is(choice) => Some(choice),
        }
    }
}

impl<T: FromStr<Err: fmt::Display>> FromStr for Choice<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            AUTO => Ok(Self::Auto),
            _ => text
                .parse()
                .map(Self::Is)
                .map_err(|error: T::Err| format!("{error}; {AUTO} leaves it to the plan")),
        }
    }
}

impl<T: Serialize> Serialize for Choice<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str(AUTO),
            Self::Is(choice) => choice.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Choice<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{AUTO}\" or a value")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Choice<T>, E> {
                match text {
                    AUTO => Ok(Choice::Auto),
                    _ => T::deserialize(text.into_deserializer()).map(Choice::Is),
                }
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Choice<T>, E> {
                T::deserialize(number.into_deserializer()).map(Choice::Is)
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Choice<T>, E> {
                T::deserialize(number.into_deserializer()).map(Choice::Is)
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Choice<T>, E> {
                T::deserialize(number.into_deserializer()).map(Choice::Is)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_sample::Task;
    use std::collections::BTreeMap;

    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<Choice<T>, String> {
        let table: BTreeMap<String, Choice<T>> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        table.into_values().next().ok_or_else(|| "nothing".to_owned())
    }

    #[test]
    fn words_and_numbers_are_read_and_others_refused_with_what_there_is() {
        assert_eq!(read("a = \"auto\""), Ok(Choice::<f64>::Auto));
        assert_eq!(read("a = 2"), Ok(Choice::Is(2.0)));
        assert_eq!(read("a = 0.25"), Ok(Choice::Is(0.25)));
        assert_eq!(read("a = \"regression\""), Ok(Choice::Is(Task::Regression)));
        assert!(read::<f64>("a = \"much\"").is_err());
        let error = read::<Task>("a = \"ranking\"").unwrap_err();
        assert!(error.contains("classification"), "{error}");
        assert_eq!("auto".parse::<Choice<f64>>(), Ok(Choice::Auto));
        assert_eq!("1.5".parse::<Choice<f64>>(), Ok(Choice::Is(1.5)));
        let error = "much".parse::<Choice<Task>>().unwrap_err();
        assert!(error.contains("classification") && error.contains("auto"), "{error}");
    }
}
