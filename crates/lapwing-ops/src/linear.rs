//! Fully connected layers.

use burn::tensor::{Tensor, activation};

/// `x · weight + bias`, then ReLU if asked: rows `[n, in]`, weight `[in, out]`.
///
/// # Panics
/// When shapes do not fit.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, relu: bool) -> Tensor<2> {
    stock(x, weight, bias, relu)
}

fn stock(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, relu: bool) -> Tensor<2> {
    let y = x.matmul(weight) + bias.unsqueeze();
    if relu { activation::relu(y) } else { y }
}
