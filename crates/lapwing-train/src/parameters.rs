//! Parameters on the host: named arrays, read from a network and written into one of the same shape.

use std::collections::HashMap;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor, TensorData};
use thiserror::Error;

use crate::moments::Moments;
use crate::network::{MOMENTUM, Network, Touched};

/// A named array of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// Name and shape of an array of a network, known before the network is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArraySpec {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    /// Whether it is learnt, or only kept.
    pub(crate) learnt: bool,
}

impl ArraySpec {
    /// An array that is learnt, of a part of the network.
    pub(crate) fn learnt<const D: usize>(part: &str, name: &str, shape: [usize; D]) -> Self {
        Self { name: format!("{part}.{name}"), shape: shape.to_vec(), learnt: true }
    }

    /// An array that is kept with the model and not learnt.
    pub(crate) fn kept<const D: usize>(part: &str, name: &str, shape: [usize; D]) -> Self {
        Self { learnt: false, ..Self::learnt(part, name, shape) }
    }

    /// Numbers in it.
    pub(crate) fn size(&self) -> usize {
        self.shape.iter().fold(1, |size, &side| size.saturating_mul(side))
    }
}

/// Checks arrays from a file by number, name and shape.
pub(crate) fn check(expected: &[ArraySpec], found: &[Parameter]) -> Result<(), ParameterError> {
    if found.len() != expected.len() {
        return Err(ParameterError::Count { found: found.len(), expected: expected.len() });
    }
    for array in expected {
        find(found, &array.name, &array.shape)?;
    }
    Ok(())
}

/// Arrays that do not fit the network.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// Another number of arrays than the network has parameters.
    #[error("{found} arrays, expected {expected}")]
    Count {
        /// Arrays given.
        found: usize,
        /// Parameters there are.
        expected: usize,
    },
    /// An array missing or of the wrong shape.
    #[error("expected `{name}` of shape {expected:?}, found {found}")]
    Shape {
        /// Name expected.
        name: String,
        /// Shape expected.
        expected: Vec<usize>,
        /// What was found in its place.
        found: String,
    },
    /// An optimiser without the number of its steps.
    #[error("the number of steps is missing")]
    Steps,
}

/// Copies every parameter of `network` to the host, in the network's order.
pub(crate) fn read(network: &Network) -> Vec<Parameter> {
    struct Read {
        path: Vec<String>,
        found: Vec<Parameter>,
    }
    impl ModuleVisitor for Read {
        fn enter_module(&mut self, name: &str, container: &str) {
            // The variant of an enumeration is no part of a parameter's name.
            self.path.push(if container.starts_with("Enum:") {
                String::new()
            } else {
                name.to_owned()
            });
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let parts: Vec<&str> =
                self.path.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            let tensor = param.val();
            self.found.push(Parameter {
                name: parts.join("."),
                shape: tensor.dims().to_vec(),
                values: to_vec(tensor),
            });
        }
    }
    let mut visitor = Read { path: Vec::new(), found: Vec::new() };
    network.visit(&mut visitor);
    visitor.found
}

/// Replaces the parameters of `network` by arrays of the same names and shapes, in any order.
pub(crate) fn write(network: Network, values: &[Parameter]) -> Result<Network, ParameterError> {
    let expected = read(&network);
    if values.len() != expected.len() {
        return Err(ParameterError::Count { found: values.len(), expected: expected.len() });
    }
    let mut ordered = Vec::with_capacity(values.len());
    for expected in &expected {
        ordered.push(find(values, &expected.name, &expected.shape)?);
    }
    struct Write<'a>(std::vec::IntoIter<&'a Parameter>);
    impl ModuleMapper for Write<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let Some(new) = self.0.next() else {
                return param;
            };
            param.map(|old| {
                let data = TensorData::new(new.values.clone(), new.shape.clone());
                Tensor::from_data(data, &old.device()).set_require_grad(old.is_require_grad())
            })
        }
    }
    Ok(network.map(&mut Write(ordered.into_iter())))
}

/// The array of this name, if it has this shape.
pub(crate) fn find<'a>(
    values: &'a [Parameter],
    name: &str,
    shape: &[usize],
) -> Result<&'a Parameter, ParameterError> {
    let found = values.iter().find(|value| value.name == name);
    match found {
        Some(value)
            if value.shape == shape && value.values.len() == shape.iter().product::<usize>() =>
        {
            Ok(value)
        }
        _ => Err(ParameterError::Shape {
            name: name.to_owned(),
            expected: shape.to_vec(),
            found: found.map_or("none".to_owned(), |value| format!("{:?}", value.shape)),
        }),
    }
}

/// Whether every parameter is a finite number.
pub(crate) fn all_finite(network: &Network) -> bool {
    struct Check(bool);
    impl ModuleVisitor for Check {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0 = self.0 && to_vec(param.val()).iter().all(|v| v.is_finite());
        }
    }
    let mut visitor = Check(true);
    network.visit(&mut visitor);
    visitor.0
}

/// The shape of every parameter that is learnt, in the network's order.
pub(crate) fn shapes(network: &Network) -> Vec<Vec<usize>> {
    struct Shapes(Vec<Vec<usize>>);
    impl ModuleVisitor for Shapes {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.is_require_grad() {
                self.0.push(param.dims().to_vec());
            }
        }
    }
    let mut visitor = Shapes(Vec::new());
    network.visit(&mut visitor);
    visitor.0
}

/// Every parameter that is learnt, flat, in the network's order.
pub(crate) fn learnt(network: &Network) -> Vec<Tensor<1>> {
    struct Collect(Vec<Tensor<1>>);
    impl ModuleVisitor for Collect {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.is_require_grad() {
                self.0.push(param.val().inner().reshape([-1]));
            }
        }
    }
    let mut visitor = Collect(Vec::new());
    network.visit(&mut visitor);
    visitor.0
}

/// The gradient of a parameter.
#[derive(Clone, Debug)]
pub enum Gradient {
    /// Of all of its numbers, flat.
    Whole(Tensor<1>),
    /// Of some rows of a table; that of the others is zero, and they do not move.
    Rows {
        /// Which rows, each once.
        rows: Arc<[u32]>,
        /// Their gradients, row by row.
        values: Tensor<2>,
    },
}

/// The gradient of every parameter that is learnt, in the network's order; zero where the loss does not reach.
pub(crate) fn gradients(
    network: &Network,
    touched: &[Touched],
    gradients: &mut Gradients,
) -> Vec<Gradient> {
    struct Collect<'a> {
        touched: &'a [Touched],
        gradients: &'a mut Gradients,
        found: Vec<Gradient>,
    }
    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if !param.is_require_grad() {
                return;
            }
            if let Some(touched) = self.touched.iter().find(|touched| touched.id == param.id) {
                let values = touched.values.grad_remove(self.gradients);
                let zeros = || touched.values.clone().inner().zeros_like();
                let (rows, values) = (touched.rows.clone(), values.unwrap_or_else(zeros));
                self.found.push(Gradient::Rows { rows, values });
                return;
            }
            let tensor = param.val();
            let gradient = tensor.grad_remove(self.gradients);
            let gradient = gradient.unwrap_or_else(|| tensor.inner().zeros_like());
            self.found.push(Gradient::Whole(gradient.reshape([-1])));
        }
    }
    let mut visitor = Collect { touched, gradients, found: Vec::new() };
    network.visit(&mut visitor);
    visitor.found
}

/// Changes every parameter that is learnt, seen flat and with its place in the network's order.
pub(crate) fn update(
    network: Network,
    change: impl FnMut(usize, Tensor<1>) -> Tensor<1>,
) -> Network {
    struct Update<F>(usize, F);
    impl<F: FnMut(usize, Tensor<1>) -> Tensor<1>> ModuleMapper for Update<F> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            if !param.is_require_grad() {
                return param;
            }
            let place = self.0;
            self.0 += 1;
            param.map(|tensor| {
                let shape = tensor.dims();
                let changed = (self.1)(place, tensor.inner().reshape([-1]));
                Tensor::from_inner(changed.reshape(shape)).require_grad()
            })
        }
    }
    network.map(&mut Update(0, change))
}

/// Takes what a batch adds into the parameters that are averages over batches, wherever in the network they are.
pub(crate) fn absorb(network: Network, moments: Vec<Moments>) -> Network {
    struct Absorb(HashMap<ParamId, Tensor<1>>);
    impl ModuleMapper for Absorb {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let Some(batch) = self.0.remove(&param.id) else { return param };
            let running = param.val().inner();
            let batch = batch.inner().reshape(running.dims());
            let mixed = running.mul_scalar(1.0 - MOMENTUM) + batch.mul_scalar(MOMENTUM);
            Param::initialized(param.id, Tensor::from_inner(mixed))
        }
    }
    if moments.is_empty() {
        return network;
    }
    let mut mapper = Absorb(moments.into_iter().flat_map(Moments::statistics).collect());
    let network = network.map(&mut mapper);
    assert!(mapper.0.is_empty(), "statistics are of parameters of the network they were found in");
    network
}

/// The numbers of a tensor.
pub(crate) fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec_as().expect("tensors here are floats, and any float converts")
}
