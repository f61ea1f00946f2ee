//! What one sample looks like to a network.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The form of one sample. Data has one, a network takes one, and the two are compared once, when they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum InputSpec {
    /// Equally many numbers, in no order: the features of a table.
    Vector {
        /// Numbers per sample.
        width: usize,
    },
    /// An image, pixel by pixel, the channels of a pixel together.
    Image {
        /// Pixels from top to bottom.
        height: usize,
        /// Pixels from left to right.
        width: usize,
        /// Numbers per pixel.
        channels: usize,
    },
    /// Numbers over time, moment by moment, padded behind.
    Series {
        /// Most moments of a sample.
        longest: usize,
        /// Numbers per moment.
        channels: usize,
    },
    /// A text as numbers of its pieces, padded behind.
    Tokens {
        /// Most pieces of a sample.
        longest: usize,
        /// Pieces there are.
        vocabulary: usize,
    },
    /// A text as what is found in it (words and pairs of words, say), as much as there is, and numbers beside it.
    Text {
        /// Most that is found in a sample.
        longest: usize,
        /// What there is to be found.
        vocabulary: usize,
        /// Numbers per sample.
        width: usize,
    },
}

impl InputSpec {
    /// Numbers or tokens per sample, padding included.
    pub fn size(&self) -> usize {
        match *self {
            Self::Vector { width } => width,
            Self::Image { height, width, channels } => {
                height.saturating_mul(width).saturating_mul(channels)
            }
            Self::Series { longest, channels } => longest.saturating_mul(channels),
            Self::Tokens { longest, .. } => longest,
            Self::Text { longest, width, .. } => longest.saturating_add(width),
        }
    }
}

impl fmt::Display for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vector { width } => write!(f, "rows of {width} numbers"),
            Self::Image { height, width, channels } => {
                write!(f, "images of {height} × {width} pixels of {channels} numbers")
            }
            Self::Series { longest, channels } => {
                write!(f, "series of up to {longest} moments of {channels} numbers")
            }
            Self::Tokens { longest, vocabulary } => {
                write!(f, "texts of up to {longest} tokens, out of {vocabulary}")
            }
            Self::Text { longest, vocabulary, width: 0 } => {
                write!(f, "texts with up to {longest} of {vocabulary} words and word pairs")
            }
            Self::Text { longest, vocabulary, width } => write!(
                f,
                "texts with up to {longest} of {vocabulary} words and word pairs, and {width} numbers"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_has_a_size_a_sentence_and_a_written_form() {
        let image = InputSpec::Image { height: 32, width: 16, channels: 3 };
        assert_eq!(image.size(), 1536);
        assert_eq!(image.to_string(), "images of 32 × 16 pixels of 3 numbers");
        let json = serde_json::to_string(&image).unwrap();
        assert_eq!(json, r#"{"kind":"image","height":32,"width":16,"channels":3}"#);
        assert_eq!(serde_json::from_str::<InputSpec>(&json).unwrap(), image);
        assert_eq!(InputSpec::Tokens { longest: 9, vocabulary: 100 }.size(), 9);
        assert_eq!(InputSpec::Text { longest: 9, vocabulary: 100, width: 2 }.size(), 11);
        assert_eq!(InputSpec::Series { longest: usize::MAX, channels: 2 }.size(), usize::MAX);
    }
}
