//! Networks as graphs of ONNX's operators.
//!
//! Each network's file says it beside what it does here; this file has the layers. Images and series have their channels
//! before their pixels and moments, as ONNX has them.

use std::collections::HashMap;

use lapwing_onnx::{Attribute, Element, Graph};
use thiserror::Error;

use crate::parameters::Parameter;

/// What goes into a network, by the names of tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnnxInput {
    /// `[rows, width]`.
    Vectors(String),
    /// `[rows, channels, height, width]`.
    Images(String),
    /// `[rows, channels, longest]`, padded behind with zeros, and how long each is, `[rows, 1]`, at least 1.
    Series {
        /// The numbers.
        values: String,
        /// How long each is.
        lengths: String,
    },
    /// Words in their order, `[rows, words]`, padded behind with 0, and how many there are, `[rows, 1]`, at least 1.
    Tokens {
        /// The numbers of the words.
        words: String,
        /// How many there are.
        lengths: String,
    },
    /// A bag of words, `[rows, words]`, in which the size of the vocabulary stands for nothing, and `[rows, width]` beside
    /// it, if there are any numbers.
    Texts {
        /// The numbers of words and word pairs.
        words: String,
        /// What stands beside them.
        numbers: Option<String>,
    },
}

/// A network that cannot be written as ONNX, or not by us.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Inexpressible(pub String);

/// A graph that is being drawn, and the numbers of the network.
pub(crate) struct Drawing<'a> {
    pub(crate) graph: &'a mut Graph,
    arrays: HashMap<&'a str, &'a Parameter>,
}

/// A square window over images.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) side: usize,
    pub(crate) stride: usize,
    pub(crate) padding: usize,
}

impl<'a> Drawing<'a> {
    pub(crate) fn new(graph: &'a mut Graph, arrays: &'a [Parameter]) -> Self {
        let arrays = arrays.iter().map(|array| (array.name.as_str(), array)).collect();
        Self { graph, arrays }
    }

    /// An array by its name.
    pub(crate) fn array(&self, name: &str) -> Result<&'a Parameter, Inexpressible> {
        let found = self.arrays.get(name).copied();
        found.ok_or_else(|| Inexpressible(format!("the network has no array {name}")))
    }

    /// The same as a constant.
    pub(crate) fn constant(&mut self, name: &str) -> Result<String, Inexpressible> {
        let array = self.array(name)?;
        Ok(self.graph.floats(&array.values, &array.shape))
    }

    /// `x · weight + bias` of rows, or of rows of rows.
    pub(crate) fn linear(&mut self, name: &str, x: &str) -> Result<String, Inexpressible> {
        let weight = self.constant(&format!("{name}.weight"))?;
        let bias = self.constant(&format!("{name}.bias"))?;
        let product = self.graph.node("MatMul", &[x, &weight]);
        Ok(self.graph.node("Add", &[&product, &bias]))
    }

    pub(crate) fn relu(&mut self, x: &str) -> String {
        self.graph.node("Relu", &[x])
    }

    /// Numbers bent smoothly into ±`bound`.
    pub(crate) fn squash(&mut self, x: &str, bound: f32) -> String {
        let (bound, one) = (self.graph.floats(&[bound], &[1]), self.graph.floats(&[1.0], &[1]));
        let share = self.graph.node("Div", &[x, &bound]);
        let square = self.graph.node("Mul", &[&share, &share]);
        let sum = self.graph.node("Add", &[&square, &one]);
        let root = self.graph.node("Sqrt", &[&sum]);
        self.graph.node("Div", &[x, &root])
    }

    /// A convolution with a bias.
    pub(crate) fn conv(
        &mut self,
        name: &str,
        x: &str,
        frame: Frame,
    ) -> Result<String, Inexpressible> {
        let weight = self.array(&format!("{name}.weight"))?;
        let bias = self.constant(&format!("{name}.bias"))?;
        let kernel = kernel(weight, |_| 1.0);
        Ok(self.convolve(x, &kernel, Some(&bias), &[frame.side; 2], frame.stride, frame.padding))
    }

    /// A convolution and batch normalisation, which is folded into it.
    pub(crate) fn norm_conv(
        &mut self,
        name: &str,
        x: &str,
        frame: Frame,
    ) -> Result<String, Inexpressible> {
        let weight = self.array(&format!("{name}.weight"))?;
        let part = |part: &str| self.array(&format!("{name}.norm.{part}"));
        let [gamma, beta] = [part("gamma")?, part("beta")?];
        let (factors, shifts) = normal(part("mean")?, part("variance")?);
        let gammas = gamma.values.iter().map(|&gamma| f64::from(gamma));
        let factors: Vec<f64> = factors.iter().zip(gammas.clone()).map(|(f, g)| f * g).collect();
        let shifts = shifts.iter().zip(gammas).zip(&beta.values);
        let shifts: Vec<f32> = shifts.map(|((s, g), &b)| (s * g + f64::from(b)) as f32).collect();
        let kernel = kernel(weight, |channel| factors[channel]);
        let bias = self.graph.floats(&shifts, &[shifts.len()]);
        Ok(self.convolve(x, &kernel, Some(&bias), &[frame.side; 2], frame.stride, frame.padding))
    }

    /// A convolution of series without bias.
    pub(crate) fn conv1d(
        &mut self,
        name: &str,
        x: &str,
        stride: usize,
        padding: usize,
    ) -> Result<String, Inexpressible> {
        let weight = self.array(&format!("{name}.weight"))?;
        let side = weight.shape[0];
        Ok(self.convolve(x, &kernel(weight, |_| 1.0), None, &[side], stride, padding))
    }

    fn convolve(
        &mut self,
        x: &str,
        (values, shape): &(Vec<f32>, Vec<usize>),
        bias: Option<&str>,
        sides: &[usize],
        stride: usize,
        padding: usize,
    ) -> String {
        let weight = self.graph.floats(values, shape);
        let inputs: Vec<&str> = [x, &weight].into_iter().chain(bias).collect();
        let ints = |value: usize, count: usize| vec![value as i64; count];
        let sides: Vec<i64> = sides.iter().map(|&side| side as i64).collect();
        let strides = ints(stride, sides.len());
        let pads = ints(padding, 2 * sides.len());
        let attributes = [
            ("kernel_shape", Attribute::Ints(&sides)),
            ("strides", Attribute::Ints(&strides)),
            ("pads", Attribute::Ints(&pads)),
        ];
        self.graph.node_with("Conv", &inputs, &attributes)
    }

    /// Each channel less its mean, over its deviation; for `[rows, channels, moments]`.
    pub(crate) fn normalised(&mut self, name: &str, x: &str) -> Result<String, Inexpressible> {
        let part = |part: &str| self.array(&format!("{name}.{part}"));
        let (factors, shifts) = normal(part("mean")?, part("variance")?);
        let shape = [1, factors.len(), 1];
        let single = |values: Vec<f64>| values.iter().map(|&value| value as f32).collect();
        let [factors, shifts]: [Vec<f32>; 2] = [factors, shifts].map(single);
        let factors = self.graph.floats(&factors, &shape);
        let shifts = self.graph.floats(&shifts, &shape);
        let x = self.graph.node("Mul", &[x, &factors]);
        Ok(self.graph.node("Add", &[&x, &shifts]))
    }

    /// The largest of each window, over `axes` axes.
    pub(crate) fn max_pool(&mut self, x: &str, frame: Frame, axes: usize) -> String {
        let ints = |value: usize, count: usize| vec![value as i64; count];
        let (sides, strides) = (ints(frame.side, axes), ints(frame.stride, axes));
        let pads = ints(frame.padding, 2 * axes);
        let attributes = [
            ("kernel_shape", Attribute::Ints(&sides)),
            ("strides", Attribute::Ints(&strides)),
            ("pads", Attribute::Ints(&pads)),
        ];
        self.graph.node_with("MaxPool", &[x], &attributes)
    }

    /// The mean of each channel, `[rows, channels]`.
    pub(crate) fn channel_means(&mut self, x: &str) -> String {
        let x = self.graph.node("GlobalAveragePool", &[x]);
        self.graph.node_with("Flatten", &[&x], &[("axis", Attribute::Int(1))])
    }

    pub(crate) fn transpose(&mut self, x: &str, axes: &[i64]) -> String {
        self.graph.node_with("Transpose", &[x], &[("perm", Attribute::Ints(axes))])
    }

    /// Numbers in another shape, in which 0 stands for what an axis has.
    pub(crate) fn reshape(&mut self, x: &str, shape: &[i64]) -> String {
        let shape = self.graph.ints(shape, &[shape.len()]);
        self.graph.node("Reshape", &[x, &shape])
    }

    /// The sums over an axis, which is gone then.
    pub(crate) fn sum(&mut self, x: &str, axis: i64) -> String {
        let axes = self.graph.ints(&[axis], &[1]);
        self.graph.node_with("ReduceSum", &[x, &axes], &[("keepdims", Attribute::Int(0))])
    }

    /// 0, 1, … as far as an axis goes.
    pub(crate) fn places(&mut self, x: &str, axis: i64) -> String {
        let (zero, one) = (self.graph.ints(&[0], &[]), self.graph.ints(&[1], &[]));
        let axis = self.graph.ints(&[axis], &[]);
        let shape = self.graph.node("Shape", &[x]);
        let length = self.graph.node("Gather", &[&shape, &axis]);
        self.graph.node("Range", &[&zero, &length, &one])
    }

    /// The sum over moments of `[rows, moments, width]`, each of which counts for what `counts`, truths `[rows, moments]`,
    /// say.
    pub(crate) fn sum_where(&mut self, x: &str, counts: &str) -> String {
        let counts = self.graph.cast(counts, Element::Float);
        let axes = self.graph.ints(&[2], &[1]);
        let counts = self.graph.node("Unsqueeze", &[&counts, &axes]);
        let x = self.graph.node("Mul", &[x, &counts]);
        self.sum(&x, 1)
    }

    /// The mean over the first moments of `[rows, moments, width]`, as many as `lengths`, `[rows, 1]`, say.
    pub(crate) fn mean_of_moments(&mut self, x: &str, lengths: &str) -> String {
        let places = self.places(x, 1);
        let counts = self.graph.node("Less", &[&places, lengths]);
        let sum = self.sum_where(x, &counts);
        let lengths = self.graph.cast(lengths, Element::Float);
        self.graph.node("Div", &[&sum, &lengths])
    }
}

/// What the numbers of a channel are multiplied by, and what is added then, to have mean 0 and deviation 1.
fn normal(mean: &Parameter, variance: &Parameter) -> (Vec<f64>, Vec<f64>) {
    let spread = |&variance: &f32| 1.0 / (f64::from(variance) + super::layers::EPSILON).sqrt();
    let factors: Vec<f64> = variance.values.iter().map(spread).collect();
    let shifts = mean.values.iter().zip(&factors).map(|(&mean, factor)| -f64::from(mean) * factor);
    let shifts = shifts.collect();
    (factors, shifts)
}

/// Kernels `[…sides, inputs, outputs]` as `[outputs, inputs, …sides]`, each output times its factor.
fn kernel(weight: &Parameter, factor: impl Fn(usize) -> f64) -> (Vec<f32>, Vec<usize>) {
    let (sides, channels) = weight.shape.split_at(weight.shape.len() - 2);
    let [inputs, outputs] = [channels[0], channels[1]];
    let window: usize = sides.iter().product();
    let mut values = Vec::with_capacity(weight.values.len());
    for output in 0..outputs {
        for input in 0..inputs {
            values.extend((0..window).map(|place| {
                let value = weight.values[(place * inputs + input) * outputs + output];
                (f64::from(value) * factor(output)) as f32
            }));
        }
    }
    (values, [&[outputs, inputs], sides].concat())
}

impl OnnxInput {
    pub(super) fn vectors(&self) -> Result<&str, Inexpressible> {
        match self {
            Self::Vectors(x) => Ok(x),
            _ => Err(self.misfit()),
        }
    }

    pub(super) fn images(&self) -> Result<&str, Inexpressible> {
        match self {
            Self::Images(x) => Ok(x),
            _ => Err(self.misfit()),
        }
    }

    pub(super) fn misfit(&self) -> Inexpressible {
        Inexpressible(format!("the network does not take {self:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_their_channels_first() {
        // Two places, two inputs, three outputs.
        let values: Vec<f32> = (0..12).map(|at| at as f32).collect();
        let weight = Parameter { name: String::new(), shape: vec![2, 2, 3], values };
        let (values, shape) = kernel(&weight, |output| if output == 2 { 2.0 } else { 1.0 });
        assert_eq!(shape, [3, 2, 2]);
        assert_eq!(values, [0.0, 6.0, 3.0, 9.0, 1.0, 7.0, 4.0, 10.0, 4.0, 16.0, 10.0, 22.0]);
    }
}
