//! Layer normalisation behind a residual sum.

use std::sync::Arc;

use burn::tensor::Tensor;

use crate::attention::drop_out;
use crate::kernels::chance::Chance;
use crate::kernels::layer_norm::{Normal, Slopes, backward, forward};
use crate::operation::{Dense, Operation, accelerated, run};

/// Normalises each row of `x + y` to mean 0 and variance 1, scales by `gamma` and shifts by `beta`. With `dropout`, a share
/// and a seed, numbers of `y` are zeroed by chance before, as [`drop_out`] does it.
///
/// # Panics
/// When shapes do not fit.
pub fn add_layer_norm(
    x: Tensor<2>,
    y: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f32,
    dropout: Option<(f32, u64)>,
) -> Tensor<2> {
    assert_eq!(x.dims(), y.dims(), "summands of one shape");
    if !accelerated(&x) {
        let y = match dropout {
            Some((share, seed)) => drop_out(y, share, seed),
            None => y,
        };
        let sum = x + y;
        let centred = sum.clone() - sum.mean_dim(1);
        let variance = centred.clone().square().mean_dim(1);
        let scale = variance.add_scalar(epsilon).sqrt();
        return centred / scale * gamma.unsqueeze() + beta.unsqueeze();
    }
    let chance = dropout.map(|(share, seed)| Chance::new(share, seed));
    let tensors = [x.into_dispatch(), y.into_dispatch()];
    let [x, y] = tensors;
    run(AddNorm { chance, epsilon }, [x, y, gamma.into_dispatch(), beta.into_dispatch()])
}

#[derive(Debug)]
struct AddNorm {
    chance: Option<Chance>,
    epsilon: f32,
}

impl Operation<4> for AddNorm {
    type Saved = (Arc<Normal>, Dense);

    fn forward(&self, [x, y, gamma, beta]: [Dense; 4]) -> (Dense, Self::Saved) {
        let (out, normal) = forward(&x, &y, self.chance, &gamma, &beta, self.epsilon);
        (Dense::from_vec(out, &x.shape::<2>()), (Arc::new(normal), gamma))
    }

    fn backward(
        &self,
        (normal, gamma): Self::Saved,
        dy: Dense,
        wanted: [bool; 4],
    ) -> [Option<Dense>; 4] {
        let Slopes { sum, gamma: of_gamma, beta } = backward(&dy, &normal, &gamma);
        let of_x = Dense::from_vec(sum, &dy.shape::<2>());
        let mut of_y = of_x.clone();
        if let (Some(chance), true) = (self.chance, wanted[1]) {
            chance.apply(of_y.make_mut());
        }
        let width = gamma.len();
        [
            wanted[0].then_some(of_x),
            wanted[1].then_some(of_y),
            wanted[2].then(|| Dense::from_vec(of_gamma, &[width])),
            wanted[3].then(|| Dense::from_vec(beta, &[width])),
        ]
    }
}
