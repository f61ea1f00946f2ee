//! The data sets of the experiments, read from their official files.
//!
//! A file is found below the directory of the data sets by its official name, packed with gzip or not. What is not the
//! official file, by magic number, size or checksum, is an error that says where the official one comes from. Nothing in
//! a file is ever executed: CIFAR-10N's labels are a pickle, which is read by a machine that knows arrays only.

mod california;
mod cifar;
mod files;
mod goemotions;
mod grey;
mod human;
mod idx;
mod imagenet64;
mod images;
mod imdb;
mod moons;
mod npz;
mod pickle;
mod ptb_xl;
mod sequences;
mod tiny_imagenet;
mod wfdb;
mod words;
mod zip;

use std::sync::Arc;

use lapwing_sample::Draws;
use serde::{Deserialize, Serialize};

pub use california::Houses;
pub use files::DataDir;
pub use images::{Images, Pixels};
pub use moons::Moons;
pub use sequences::Sequences;

use crate::error::PaperError;

/// A data set that a recipe may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataSet {
    /// CIFAR-10.
    Cifar10,
    /// CIFAR-100.
    Cifar100,
    /// Fashion-MNIST.
    FashionMnist,
    /// CIFAR-10 with the labels of CIFAR-10N.
    Cifar10n,
    /// MNIST, and two classes of CIFAR-10 made grey and small.
    MnistAndCifar,
    /// California Housing.
    California,
    /// Reviews of films.
    Imdb,
    /// Comments with the emotions that raters saw.
    Goemotions,
    /// Electrocardiograms.
    PtbXl,
    /// Tiny-Imagenet.
    TinyImagenet,
    /// Imagenet in 64 × 64 pixels.
    Imagenet64,
    /// The paper's two moons; in runs after the first, fresh ones.
    TwoMoons,
}

/// A data set in memory.
#[derive(Debug)]
pub enum Loaded {
    /// Images to train on and to test on.
    Images {
        /// To train on.
        train: Arc<Images>,
        /// To test on.
        test: Arc<Images>,
        /// Number of classes.
        classes: u32,
        /// The labels people gave, where they are known.
        human: Option<Vec<u32>>,
    },
    /// Images of two data sets; which classes of the second are taken changes from run to run.
    Mixed {
        /// Digits to train on and to test on.
        digits: Box<[Images; 2]>,
        /// Colour images to train on and to test on.
        colour: Box<[Images; 2]>,
    },
    /// Sequences to train on and to test on.
    Sequences {
        /// To train on.
        train: Arc<Sequences>,
        /// To test on.
        test: Arc<Sequences>,
        /// Number of classes.
        classes: u32,
    },
    /// Houses, to be split.
    Houses(Houses),
    /// Nothing to read.
    Moons,
}

impl DataSet {
    /// Reads it.
    pub fn load(self, data: &DataDir) -> Result<Loaded, PaperError> {
        let images = |(train, test), classes, human| {
            let (train, test) = (Arc::new(train), Arc::new(test));
            Loaded::Images { train, test, classes, human }
        };
        let sequences = |(train, test), classes| {
            let (train, test) = (Arc::new(train), Arc::new(test));
            Loaded::Sequences { train, test, classes }
        };
        Ok(match self {
            Self::Imdb => sequences(imdb::imdb(data)?, 2),
            Self::Goemotions => sequences(goemotions::goemotions(data)?, 28),
            Self::PtbXl => sequences(ptb_xl::ptb_xl(data)?, 2),
            Self::TinyImagenet => {
                let (parts, classes) = tiny_imagenet::tiny_imagenet(data)?;
                images(parts, classes, None)
            }
            Self::Imagenet64 => images(imagenet64::imagenet64(data)?, 1000, None),
            Self::Cifar10 => images(cifar::cifar_10(data)?, 10, None),
            Self::Cifar100 => images(cifar::cifar_100(data)?, 100, None),
            Self::FashionMnist => {
                let files = &idx::FASHION_MNIST;
                let (mut train, mut test) = (files.train(data)?, files.test(data)?);
                // A network without convolutions sees a flat vector, and so does the noise.
                for images in [&mut train, &mut test] {
                    images.shape = [1, images.width(), 1];
                }
                images((train, test), 10, None)
            }
            Self::Cifar10n => {
                let (train, test) = cifar::cifar_10(data)?;
                let human = human::worse_labels(data, &train.labels)?;
                images((train, test), 10, Some(human))
            }
            Self::MnistAndCifar => {
                let digits = Box::new([idx::MNIST.train(data)?, idx::MNIST.test(data)?]);
                let colour = cifar::cifar_10(data)?;
                Loaded::Mixed { digits, colour: Box::new([colour.0, colour.1]) }
            }
            Self::California => Loaded::Houses(california::houses(data)?),
            Self::TwoMoons => Loaded::Moons,
        })
    }
}

impl Loaded {
    /// The same with the first moments of every sequence only, where it has sequences.
    pub(crate) fn cut(self, length: usize) -> Option<Self> {
        let Self::Sequences { train, test, classes } = self else { return None };
        let [train, test] =
            [train, test].map(|part| Arc::new(Arc::unwrap_or_clone(part).cut(length)));
        Some(Self::Sequences { train, test, classes })
    }
}

/// Digits and two classes of colour images, made grey and as small as digits, as classes 10 and 11.
pub(crate) fn mixed(digits: &Images, colour: &Images, classes: [u32; 2]) -> Images {
    let [side, ..] = colour.shape;
    let to = digits.shape[0];
    let mut values = vec![0.0; digits.len() * digits.width()];
    for (image, out) in values.chunks_exact_mut(digits.width()).enumerate() {
        digits.copy(image, out);
    }
    let mut labels = digits.labels.clone();
    if let Pixels::Bytes(bytes) = &colour.pixels {
        for (image, label) in bytes.chunks_exact(colour.width()).zip(&colour.labels) {
            if let Some(class) = classes.iter().position(|class| class == label) {
                values.extend(grey::small_and_grey(image, side, to));
                labels.push(10 + class as u32);
            }
        }
    }
    Images { pixels: Pixels::Floats(values), labels, shape: digits.shape }
}

/// Points to train on and to test on: the paper's own in the first run, fresh ones of the same kind in others.
pub(crate) fn two_moons(run: usize, seed: u64) -> Result<(Moons, Moons), PaperError> {
    if run == 0 {
        return moons::of_the_paper().map_err(|error| PaperError::Recipe {
            id: "two moons".to_owned(),
            problem: error.to_string(),
        });
    }
    let mut train = moons::generate(10_000, 0.1, 5, seed);
    let test = train.split_off(8_000);
    Ok((train, test))
}

/// The numbers below `count` in random order.
pub(crate) fn shuffled(count: usize, draws: &mut Draws) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    draws.shuffle(&mut order);
    order
}
