//! What is trained: one of the networks, or boosted trees.

use std::fmt;
use std::str::FromStr;

use lapwing_train::NetworkKind;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const TREES: &str = "trees";

/// What is trained, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// A network.
    Network(NetworkKind),
    /// Boosted trees.
    Trees,
}

impl ModelKind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NetworkKind::ALL.iter().copied().map(Self::Network).chain([Self::Trees])
    }

    /// What it is called in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Network(kind) => kind.name(),
            Self::Trees => TREES,
        }
    }

    /// What it is, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Network(kind) => kind.about(),
            Self::Trees => "Boosted trees, for tables; an epoch is a round of one tree (per class)",
        }
    }

    /// Which network, if it is one.
    pub fn network(self) -> Option<NetworkKind> {
        match self {
            Self::Network(kind) => Some(kind),
            Self::Trees => None,
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ModelKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|kind| kind.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            format!("no model is called {name:?}; expected one of {}", names.join(", "))
        })
    }
}

impl Serialize for ModelKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ModelKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_an_unknown_one_names_the_others() {
        for kind in ModelKind::all() {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let said = "forest".parse::<ModelKind>().unwrap_err();
        assert!(
            said.contains("forest") && said.contains("mlp") && said.contains("trees"),
            "{said}"
        );
    }
}
