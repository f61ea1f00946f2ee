//! Long short-term memory.

use std::sync::Arc;

use burn::tensor::{Tensor, activation};

use crate::kernels::lstm::{Lstm, Slopes, States};
use crate::operation::{Dense, Operation, accelerated, run};

/// What a layer of long short-term memory hides at every moment: sequences `[n, moments, in]`, weights of inputs
/// `[in, 4 · units]` and of what was hidden before `[units, 4 · units]`, biases `[4 · units]`, to `[n, moments, units]`. The
/// gates are those of inputs, of forgetting, of cells and of outputs, in this order, as in PyTorch.
///
/// # Panics
/// When shapes do not fit.
pub fn lstm(x: Tensor<3>, inputs: Tensor<2>, memory: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let [samples, moments, width] = x.dims();
    let [units, columns] = memory.dims();
    assert_eq!(columns, 4 * units, "four gates for each unit");
    assert_eq!(inputs.dims(), [width, columns], "weights for each input and gate");
    assert_eq!(bias.dims(), [columns], "a bias for each gate");
    if !accelerated(&x) {
        return stock(x, inputs, memory, bias);
    }
    let sizes = Lstm { samples, moments, inputs: width, units };
    let tensors = [x.into_dispatch(), inputs.into_dispatch(), memory.into_dispatch()];
    let [x, inputs, memory] = tensors;
    run(sizes, [x, inputs, memory, bias.into_dispatch()])
}

fn stock(x: Tensor<3>, inputs: Tensor<2>, memory: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let [samples, moments, width] = x.dims();
    let [units, columns] = memory.dims();
    let device = x.device();
    let of_inputs = x.reshape([samples * moments, width]).matmul(inputs) + bias.unsqueeze();
    let of_inputs = of_inputs.reshape([samples, moments, columns]);
    let mut hidden = Tensor::<2>::zeros([samples, units], &device);
    let mut cells = hidden.clone();
    let mut all = Vec::with_capacity(moments);
    for moment in 0..moments {
        let own = of_inputs.clone().narrow(1, moment, 1).reshape([samples, columns]);
        let sums = own + hidden.matmul(memory.clone());
        let gate = |at: usize| sums.clone().narrow(1, at * units, units);
        let kept = activation::sigmoid(gate(1)) * cells;
        cells = kept + activation::sigmoid(gate(0)) * activation::tanh(gate(2));
        hidden = activation::sigmoid(gate(3)) * activation::tanh(cells.clone());
        all.push(hidden.clone().reshape([samples, 1, units]));
    }
    if all.is_empty() {
        return Tensor::zeros([samples, 0, units], &device);
    }
    Tensor::cat(all, 1)
}

/// What the way back needs. Gates are large and become gradients in place, so they are shared, and taken at the end.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    x: Dense,
    inputs: Dense,
    memory: Dense,
    hidden: Dense,
    gates_and_cells: Arc<(Vec<f32>, Vec<f32>)>,
}

impl Operation<4> for Lstm {
    type Saved = Kept;

    fn forward(&self, [x, inputs, memory, bias]: [Dense; 4]) -> (Dense, Kept) {
        let States { gates, cells, hidden } = Lstm::forward(self, &x, &inputs, &memory, &bias);
        let hidden = Dense::from_vec(hidden, &[self.samples, self.moments, self.units]);
        let gates_and_cells = Arc::new((gates, cells));
        (hidden.clone(), Kept { x, inputs, memory, hidden, gates_and_cells })
    }

    fn backward(&self, kept: Kept, dy: Dense, wanted: [bool; 4]) -> [Option<Dense>; 4] {
        let Kept { x, inputs, memory, hidden, gates_and_cells } = kept;
        let taken = Arc::unwrap_or_clone(gates_and_cells);
        let slopes = Lstm::backward(self, &x, &inputs, &memory, taken, &hidden, &dy, wanted[0]);
        let Slopes { x: of_x, inputs: of_inputs, memory: of_memory, bias } = slopes;
        let of = |values: Vec<f32>, like: &Dense| Dense::from_vec(values, &like.shape::<2>());
        [
            of_x.map(|slopes| Dense::from_vec(slopes, &x.shape::<3>())),
            wanted[1].then(|| of(of_inputs, &inputs)),
            wanted[2].then(|| of(of_memory, &memory)),
            wanted[3].then(|| Dense::from_vec(bias, &[4 * self.units])),
        ]
    }
}
