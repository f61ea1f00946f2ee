//! Losses, one per sample.

use burn::tensor::{Int, Tensor, activation};

/// Cross-entropy of each row of `logits` `[n, classes]` against its class.
///
/// # Panics
/// When shapes do not fit or a class is not below the number of columns.
pub fn cross_entropy(logits: Tensor<2>, classes: Tensor<1, Int>) -> Tensor<1> {
    stock(logits, classes)
}

fn stock(logits: Tensor<2>, classes: Tensor<1, Int>) -> Tensor<1> {
    let [n] = classes.dims();
    activation::log_softmax(logits, 1).gather(1, classes.reshape([n, 1])).reshape([n]).neg()
}
