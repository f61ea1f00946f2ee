//! Fully connected layers.

use burn::tensor::{Tensor, activation};

use crate::kernels::columns::column_sums;
use crate::kernels::product::{Matrix, add_bias, cut, product};
use crate::operation::{Dense, Operation, accelerated, run};

/// `x · weight + bias`, then ReLU if asked: rows `[n, in]`, weight `[in, out]`.
///
/// # Panics
/// When shapes do not fit.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, relu: bool) -> Tensor<2> {
    if !accelerated(&x) {
        return stock(x, weight, bias, relu);
    }
    run(Linear { relu }, [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()])
}

fn stock(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, relu: bool) -> Tensor<2> {
    let y = x.matmul(weight) + bias.unsqueeze();
    if relu { activation::relu(y) } else { y }
}

#[derive(Debug)]
struct Linear {
    relu: bool,
}

impl Operation<3> for Linear {
    type Saved = (Dense, Dense, Option<Dense>);

    fn forward(&self, [x, weight, bias]: [Dense; 3]) -> (Dense, Self::Saved) {
        let ([n, inputs], [rows, outputs]) = (x.shape(), weight.shape());
        assert_eq!(inputs, rows, "a row of weights for each input");
        let (a, b) = (Matrix::new(&x, inputs), Matrix::new(&weight, outputs));
        let mut y = product([n, outputs, inputs], a, b);
        assert_eq!(bias.len(), outputs, "one bias for each output");
        add_bias(&mut y, &bias, self.relu);
        let y = Dense::from_vec(y, &[n, outputs]);
        let seen = self.relu.then(|| y.clone());
        (y, (x, weight, seen))
    }

    fn backward(
        &self,
        (x, weight, y): Self::Saved,
        mut dy: Dense,
        wanted: [bool; 3],
    ) -> [Option<Dense>; 3] {
        let ([n, inputs], [_, outputs]) = (x.shape(), weight.shape());
        if let Some(y) = y {
            cut(dy.make_mut(), &y);
        }
        let gradient = Matrix::new(&dy, outputs);
        let of_x = wanted[0].then(|| {
            let weight = Matrix::new(&weight, outputs).transposed();
            let dx = product([n, inputs, outputs], gradient, weight);
            Dense::from_vec(dx, &[n, inputs])
        });
        let of_weight = wanted[1].then(|| {
            let x = Matrix::new(&x, inputs).transposed();
            let dw = product([inputs, outputs, n], x, gradient);
            Dense::from_vec(dw, &[inputs, outputs])
        });
        let of_bias = wanted[2].then(|| Dense::from_vec(column_sums(&dy, outputs), &[outputs]));
        [of_x, of_weight, of_bias]
    }
}
