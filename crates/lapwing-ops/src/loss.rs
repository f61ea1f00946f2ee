//! Losses, one per sample.

use burn::tensor::{Int, Tensor, activation};

use crate::kernels::loss;
use crate::operation::{Dense, Operation, accelerated, run};

/// Cross-entropy of each row of `logits` `[n, classes]` against its class.
///
/// # Panics
/// When shapes do not fit or a class is not below the number of columns.
pub fn cross_entropy(logits: Tensor<2>, classes: Tensor<1, Int>) -> Tensor<1> {
    if !accelerated(&logits) {
        return stock(logits, classes);
    }
    // A class below zero becomes one that is too large.
    let classes = classes.into_data().iter::<i64>().map(|class| class as usize).collect();
    run(CrossEntropy { classes }, [logits.into_dispatch()])
}

fn stock(logits: Tensor<2>, classes: Tensor<1, Int>) -> Tensor<1> {
    let [n] = classes.dims();
    activation::log_softmax(logits, 1).gather(1, classes.reshape([n, 1])).reshape([n]).neg()
}

#[derive(Debug)]
struct CrossEntropy {
    classes: Vec<usize>,
}

impl Operation<1> for CrossEntropy {
    /// The softmax of each row.
    type Saved = Dense;

    fn forward(&self, [logits]: [Dense; 1]) -> (Dense, Dense) {
        let [n, columns] = logits.shape();
        let (losses, softmax) = loss::cross_entropy(&logits, columns, &self.classes);
        (Dense::from_vec(losses, &[n]), Dense::from_vec(softmax, &[n, columns]))
    }

    fn backward(&self, mut softmax: Dense, dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        let [_, columns] = softmax.shape();
        loss::backward(softmax.make_mut(), columns, &self.classes, &dy);
        [Some(softmax)]
    }
}
