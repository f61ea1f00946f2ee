//! Networks for series and texts beside PyTorch's, for the same parameters: `tests/pytorch/sequences.py` wrote the numbers.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_sample::{Block, Values};
use serde::Deserialize;

use super::tests::{close, fixed, wave};
use super::*;
use crate::loss::cross_entropy;
use crate::parameters::{Gradient, gradients, read, to_vec};

#[derive(Deserialize)]
struct Theirs {
    #[serde(default)]
    evaluated: Vec<f64>,
    outputs: Vec<f64>,
    /// The norm and the first numbers of each.
    gradients: BTreeMap<String, Vec<f64>>,
}

fn theirs(name: &str) -> Theirs {
    let text = include_str!("../../tests/pytorch/sequences.json");
    let mut all: BTreeMap<String, Theirs> = serde_json::from_str(text).unwrap();
    all.remove(name).unwrap()
}

/// All numbers of a gradient, with zeros for rows of a table that the batch does not touch.
fn whole(gradient: &Gradient, size: usize) -> Vec<f32> {
    match gradient {
        Gradient::Whole(values) => to_vec(values.clone()),
        Gradient::Rows { rows, values } => {
            let [_, width] = values.dims();
            let mut all = vec![0.0; size];
            for (row, values) in rows.iter().zip(to_vec(values.clone()).chunks(width)) {
                all[*row as usize * width..][..width].copy_from_slice(values);
            }
            all
        }
    }
}

/// Holds outputs and gradients, of the mean cross-entropy of classes 1 and 0, to PyTorch's.
fn judge(name: &str, architecture: &Architecture, input: &Input, tolerance: f64) {
    let (network, theirs) = (fixed(architecture), theirs(name));
    let mut training = Training::new(Draws::of(0, Purpose::Dropout, 0, 0));
    let outputs = network.forward(input, Some(&mut training)).logits;
    close(name, &to_vec(outputs.clone().inner()), &theirs.outputs, tolerance);
    let labels = Tensor::from_data([1, 0], &outputs.device());
    let mut slopes = cross_entropy(outputs, labels).mean().backward();
    let found = gradients(&network, &training.touched, &mut slopes);
    let learnt = architecture.arrays().unwrap().into_iter().filter(|array| array.learnt);
    let learnt: Vec<_> = learnt.collect();
    assert_eq!((found.len(), learnt.len()), (theirs.gradients.len(), theirs.gradients.len()));
    for (gradient, array) in found.iter().zip(&learnt) {
        let (ours, theirs) = (whole(gradient, array.size()), &theirs.gradients[&array.name]);
        let norm = ours.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let what = format!("{name}: gradient of {}", array.name);
        close(&what, &[norm as f32], &theirs[..1], tolerance);
        close(&what, &ours[..theirs.len() - 1], &theirs[1..], tolerance * (1.0 + norm));
    }
}

#[test]
fn resnet1d_is_pytorchs_in_training_and_in_evaluation() {
    let config = ResNet1dConfig { dropout: 0.0, ..ResNet1dConfig::paper(2) };
    let architecture = Architecture::ResNet1d(config);
    assert_eq!(architecture.parameters(), 291_962);
    let device = Device::flex().autodiff();
    let shape = [2, 1000, 12];
    let numbers: Vec<f32> = (0..shape.iter().product()).map(wave).collect();
    let x = Tensor::<3>::from_data(TensorData::new(numbers, shape), &device);
    let network = fixed(&architecture);
    let input = Input::Series(x.clone().inner(), vec![1000; 2]);
    let evaluated = network.valid().forward(&input, None).logits;
    close("resnet1d", &to_vec(evaluated), &theirs("resnet1d").evaluated, 2e-5);
    judge("resnet1d", &architecture, &Input::Series(x, vec![1000; 2]), 5e-4);
}

const LONGEST: usize = 5;
const WORDS: usize = 11;

fn texts() -> Input {
    let tokens = (0..2 * LONGEST as u32).map(|i| (3 * i + 1) % WORDS as u32).collect();
    let block = Block { values: Values::Tokens(tokens), lengths: Some(vec![5, 3]) };
    let spec = InputSpec::Tokens { longest: LONGEST, vocabulary: WORDS };
    block.check(spec, 2).unwrap();
    Input::of(block, spec, 2, &Device::flex().autodiff())
}

fn lstm(padding: bool) -> LstmConfig {
    LstmConfig {
        longest: LONGEST,
        vocabulary: Some(WORDS),
        width: 6,
        units: vec![8, 8],
        outputs: 3,
        dropout: 0.0,
        padding,
    }
}

fn transformer(padding: bool) -> TransformerConfig {
    TransformerConfig {
        longest: LONGEST,
        vocabulary: Some(WORDS),
        channels: 0,
        width: 8,
        heads: 2,
        units: vec![16, 16],
        outputs: 3,
        dropout: 0.0,
        padding,
        copies: false,
    }
}

#[test]
fn lstm_is_pytorchs_at_the_last_word_and_behind_padding() {
    judge("lstm", &Architecture::Lstm(lstm(false)), &texts(), 2e-5);
    judge("lstm-padding", &Architecture::Lstm(lstm(true)), &texts(), 2e-5);
    // 3.68 million and 256 for each word, as the paper has it.
    let words = 100_000;
    let paper = Architecture::Lstm(LstmConfig::paper(words, 2));
    assert_eq!(paper.parameters(), 3_679_234 + 256 * words);
}

#[test]
fn the_transformer_is_pytorchs_with_a_mask_and_without() {
    judge("transformer", &Architecture::Transformer(transformer(false)), &texts(), 5e-5);
    judge("transformer-padding", &Architecture::Transformer(transformer(true)), &texts(), 5e-5);
    let words = 30_000;
    let paper = Architecture::Transformer(TransformerConfig::paper(words, 28));
    // Two layers of attention (4 · 256² + 4 · 256), feed-forward (2 · 256 · 2048 + 2048 + 256) and norms, and 256 → 28.
    let layer = 4 * 256 * 256 + 4 * 256 + 2 * 256 * 2048 + 2048 + 256 + 4 * 256;
    assert_eq!(paper.parameters(), 2 * layer + 257 * 28 + 256 * words);
}

#[test]
fn the_papers_layers_start_as_copies_and_others_do_not() {
    for copies in [true, false] {
        let config = TransformerConfig { copies, ..transformer(false) };
        let network = Architecture::Transformer(config).init(1, 0, &Device::flex()).unwrap();
        let arrays = read(&network);
        let values = |layer: usize| {
            let name = format!("layers.{layer}.first.weight");
            arrays.iter().find(|array| array.name == name).unwrap().values.clone()
        };
        assert_eq!(values(0) == values(1), copies);
    }
}

#[test]
fn what_is_behind_the_end_of_a_sequence_changes_nothing() {
    let networks = [Architecture::Lstm(lstm(false)), Architecture::Transformer(transformer(false))];
    for architecture in networks {
        let network = architecture.init(1, 0, &Device::flex()).unwrap();
        let spec = architecture.input();
        let with = |behind: u32| {
            let tokens = vec![1, 2, 3, behind, behind, 4, 5, 6, 7, 8];
            let block = Block { values: Values::Tokens(tokens), lengths: Some(vec![3, 5]) };
            to_vec(network.forward(&Input::of(block, spec, 2, &Device::flex()), None).logits)
        };
        assert_eq!(with(0), with(9), "{architecture}");
    }
}
