//! The way from Burn's tensors to kernels on slices, and back through automatic differentiation.

use std::fmt::Debug;
use std::ops::Deref;

use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, BackendTensor, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind, Flex,
};
use burn::tensor::{Bytes, DType, Device, Shape, Tensor};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::{FlexTensor, Layout};

/// A tensor with its place in the graph of the backward pass.
type Tracked = FloatTensor<Autodiff<Flex>>;

/// A function of `N` tensors with a gradient of its own.
pub(crate) trait Operation<const N: usize>: Debug + Send + 'static {
    /// What the gradient needs of the forward pass.
    type Saved: Clone + Debug + Send + 'static;

    fn forward(&self, inputs: [Dense; N]) -> (Dense, Self::Saved);

    /// The gradients of the inputs that are wanted; the rest may be `None`.
    fn backward(
        &self,
        saved: Self::Saved,
        gradient: Dense,
        wanted: [bool; N],
    ) -> [Option<Dense>; N];
}

/// Whether kernels, not Burn's own operations, do the work on `tensor`.
pub(crate) fn accelerated<const D: usize>(tensor: &Tensor<D>) -> bool {
    !crate::process::stock() && tensor.dtype() == DType::F32 && tensor.device() == Device::flex()
}

/// Runs `operation` on tensors that are [`accelerated`], recording it for the backward pass if any of them is tracked.
pub(crate) fn run<const N: usize, const D: usize>(
    operation: impl Operation<N>,
    inputs: [DispatchTensor; N],
) -> Tensor<D> {
    let context = inputs
        .iter()
        .fold(DispatchAutodiffContext::Disabled, |context, tensor| context.merge(tensor.autodiff));
    if context == DispatchAutodiffContext::Disabled {
        let (output, _) = operation.forward(inputs.map(|input| Dense::new(plain(input))));
        return Tensor::from_primitive::<Flex>(output.tensor);
    }
    let inputs = inputs.map(tracked);
    let nodes = inputs.each_ref().map(Tracked::node);
    let (output, saved) = operation.forward(inputs.map(|input| Dense::new(input.into_primitive())));
    let output =
        match Recorded(operation).prepare::<NoCheckpointing>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(saved, output.tensor),
            OpsKind::UnTracked(prepared) => prepared.finish(output.tensor),
        };
    let kind = DispatchTensorKind::Flex(BackendTensor::Autodiff(output));
    let kind = DispatchTensorKind::Autodiff(Box::new(kind));
    Tensor::from_dispatch(DispatchTensor { kind, autodiff: context })
}

/// The tensor's storage, for kernels that need no gradient.
pub(crate) fn plain(tensor: DispatchTensor) -> FlexTensor {
    match tensor.kind {
        DispatchTensorKind::Flex(tensor) => tensor.float(),
        _ => unreachable!("tensors of one operation are on one device"),
    }
}

fn tracked(tensor: DispatchTensor) -> Tracked {
    match tensor.kind {
        DispatchTensorKind::Autodiff(kind) => match *kind {
            DispatchTensorKind::Flex(tensor) => tensor.autodiff(),
            _ => unreachable!("tensors of one operation are on one device"),
        },
        // A constant of the operation.
        kind => Tracked::new(plain(DispatchTensor { kind, ..tensor })),
    }
}

#[derive(Debug)]
struct Recorded<O>(O);

impl<O: Operation<N>, const N: usize> Backward<Flex, N> for Recorded<O> {
    type State = O::Saved;

    fn backward(self, ops: Ops<O::Saved, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = Dense::new(gradients.consume::<Flex>(&ops.node));
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = self.0.backward(ops.state, gradient, wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                gradients.register::<Flex>(parent.id, gradient.tensor);
            }
        }
    }
}

/// A tensor of f32 that is one contiguous slice.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    tensor: FlexTensor,
}

impl Dense {
    /// Copies only what is not contiguous already.
    pub(crate) fn new(tensor: FlexTensor) -> Self {
        let tensor =
            if tensor.as_slice::<f32>().is_some() { tensor } else { tensor.to_contiguous() };
        assert_eq!(tensor.dtype(), DType::F32, "tensors of one operation are of one type");
        Self { tensor }
    }

    pub(crate) fn from_vec(values: Vec<f32>, shape: &[usize]) -> Self {
        let layout = Layout::contiguous(Shape::from(shape));
        Self { tensor: FlexTensor::new(Bytes::from_elems(values), layout, DType::F32) }
    }

    pub(crate) fn zeros(&self) -> Self {
        let shape = self.tensor.layout().shape().clone();
        Self { tensor: FlexTensor::zeros(shape, DType::F32) }
    }

    pub(crate) fn into_tensor<const D: usize>(self) -> Tensor<D> {
        Tensor::from_primitive::<Flex>(self.tensor)
    }

    pub(crate) fn shape<const D: usize>(&self) -> [usize; D] {
        let shape = self.tensor.layout().shape();
        assert_eq!(shape.num_dims(), D, "a tensor of {D} dimensions");
        std::array::from_fn(|axis| shape[axis])
    }

    /// The values for writing: the same buffer if nobody else holds it, a copy otherwise.
    pub(crate) fn make_mut(&mut self) -> &mut [f32] {
        let whole =
            self.tensor.layout().start_offset() == 0 && self.tensor.bytes().len() == 4 * self.len();
        if !whole {
            let copy = self.to_vec();
            let layout = Layout::contiguous(self.tensor.layout().shape().clone());
            self.tensor = FlexTensor::new(Bytes::from_elems(copy), layout, DType::F32);
        }
        self.tensor.storage_mut()
    }
}

impl Deref for Dense {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // `new` has checked that it is there.
        self.tensor.as_slice().unwrap_or_default()
    }
}
