//! Attention, and dropout as attention and others use it.

use burn::tensor::{Tensor, TensorData, activation};

use crate::kernels::attention::Attention as Sizes;
use crate::kernels::chance::Chance;
use crate::operation::{Dense, Operation, accelerated, run};

/// Zeroes numbers by chance and scales the others up, so that the expectation stays. What is zeroed is a pure function of
/// the seed and of the places: the same forward and backward, with kernels and without.
///
/// # Panics
/// When the share is not from 0 to below 1.
pub fn drop_out<const D: usize>(x: Tensor<D>, share: f32, seed: u64) -> Tensor<D> {
    let chance = Chance::new(share, seed);
    if accelerated(&x) {
        return run(chance, [x.into_dispatch()]);
    }
    let factors = factors(chance, x.dims(), &x);
    x * factors
}

/// The factors of a chance as a tensor where another is.
fn factors<const D: usize, const E: usize>(
    chance: Chance,
    shape: [usize; D],
    beside: &Tensor<E>,
) -> Tensor<D> {
    let count = shape.iter().product::<usize>();
    let factors: Vec<f32> = (0..count as u32).map(|place| chance.factor(place)).collect();
    Tensor::from_data(TensorData::new(factors, shape), &beside.device())
}

impl Operation<1> for Chance {
    type Saved = ();

    fn forward(&self, [mut x]: [Dense; 1]) -> (Dense, ()) {
        self.apply(x.make_mut());
        (x, ())
    }

    fn backward(&self, (): (), mut dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        self.apply(dy.make_mut());
        [Some(dy)]
    }
}

/// Who looks at whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Heads {
    /// Parts of a sample's numbers that look by themselves.
    pub count: usize,
    /// How many moments of each sample are looked at, from the first on; 0 counts as 1.
    pub lengths: Vec<u32>,
    /// Share of weights that are zeroed by chance, and the seed of that.
    pub dropout: Option<(f32, u64)>,
}

/// Attention of the moments of a sample to each other: queries, keys and values side by side,
/// `[n · moments, 3 · width]`, to `[n · moments, width]`.
///
/// # Panics
/// When shapes do not fit.
pub fn attention(qkv: Tensor<2>, heads: &Heads) -> Tensor<2> {
    let [rows, columns] = qkv.dims();
    let samples = heads.lengths.len();
    let (moments, width) = (rows / samples.max(1), columns / 3);
    assert_eq!(
        [samples * moments, 3 * width],
        [rows, columns],
        "three parts of equally many moments"
    );
    assert!(heads.count > 0 && width.is_multiple_of(heads.count), "heads of equal width");
    let bounded = |&length: &u32| (length.max(1) as usize).min(moments) as u32;
    let sizes = Sizes {
        moments,
        heads: heads.count,
        width,
        lengths: heads.lengths.iter().map(bounded).collect(),
        chance: heads.dropout.map(|(share, seed)| Chance::new(share, seed)),
    };
    if accelerated(&qkv) { run(sizes, [qkv.into_dispatch()]) } else { stock(qkv, &sizes) }
}

fn stock(qkv: Tensor<2>, sizes: &Sizes) -> Tensor<2> {
    let Sizes { moments, heads, width, ref lengths, chance } = *sizes;
    let (samples, of_head) = (lengths.len(), width / heads);
    let part = |at: usize| {
        let part = qkv.clone().narrow(1, at * width, width);
        part.reshape([samples, moments, heads, of_head]).swap_dims(1, 2)
    };
    let scores = part(0).matmul(part(1).swap_dims(2, 3)).div_scalar((of_head as f32).sqrt());
    let hidden = |&length: &u32| {
        (0..moments).map(move |moment| if moment < length as usize { 0.0 } else { f32::MIN })
    };
    let hidden: Vec<f32> = lengths.iter().flat_map(hidden).collect();
    let hidden = TensorData::new(hidden, [samples, 1, 1, moments]);
    let mut weights = activation::softmax(scores + Tensor::from_data(hidden, &qkv.device()), 3);
    if let Some(chance) = chance {
        let factors = factors(chance, weights.dims(), &qkv);
        weights = weights * factors;
    }
    weights.matmul(part(2)).swap_dims(1, 2).reshape([samples * moments, width])
}

impl Operation<1> for Sizes {
    /// What was given, and the weights.
    type Saved = (Dense, Dense);

    fn forward(&self, [qkv]: [Dense; 1]) -> (Dense, Self::Saved) {
        let (y, weights) = Sizes::forward(self, &qkv);
        let [rows, _] = qkv.shape();
        let count = weights.len();
        (Dense::from_vec(y, &[rows, self.width]), (qkv, Dense::from_vec(weights, &[count])))
    }

    fn backward(&self, (qkv, weights): Self::Saved, dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        let slopes = Sizes::backward(self, &qkv, &weights, &dy);
        [Some(Dense::from_vec(slopes, &qkv.shape::<2>()))]
    }
}
