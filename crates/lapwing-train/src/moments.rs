//! What batches add to running averages of batch normalisation, and those of a batch in shards.
//!
//! Each shard is normalised by its own mean and variance, whoever computes it; what is kept with the model are the mean
//! and the variance over the whole batch, merged in the order of the shards.

use burn::module::{ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_core::{PeerError, gather_messages};

use crate::network::Network;
use crate::parameters::to_vec;
use crate::shards::Workers;

/// What one layer saw.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    /// The running average that it goes into, and the mean of each channel.
    pub(crate) mean: (ParamId, Tensor<1>),
    /// Likewise the variance, divided by the number of pixels.
    pub(crate) variance: (ParamId, Tensor<1>),
    /// Over how many pixels.
    pub(crate) pixels: f64,
}

impl Moments {
    /// What goes into the running averages: the mean, and the variance divided by one less than the number of pixels.
    pub(crate) fn statistics(self) -> [(ParamId, Tensor<1>); 2] {
        let unbiased = self.pixels / (self.pixels - 1.0).max(1.0);
        let (id, variance) = self.variance;
        [self.mean, (id, variance.mul_scalar(unbiased))]
    }
}

/// The running averages of a network in its order, by pairs of mean and variance, with their channels.
fn kept(network: &Network) -> Vec<[(ParamId, usize); 2]> {
    struct Kept(Vec<(ParamId, usize)>);
    impl ModuleVisitor for Kept {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if !param.is_require_grad() {
                self.0.push((param.id, param.dims().iter().product()));
            }
        }
    }
    let mut visitor = Kept(Vec::new());
    burn::module::Module::visit(network, &mut visitor);
    visitor.0.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
}

/// The moments of the whole batch, from those of this worker's shards that have rows.
///
/// # Errors
/// Where workers cannot talk.
pub(crate) fn merged(
    network: &Network,
    shards: &[&[Moments]],
    workers: Workers<'_>,
    device: &Device,
) -> Result<Vec<Moments>, PeerError> {
    let kept = kept(network);
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    // By their place in the network: the names of parameters differ from process to process.
    let message = |moments: &&[Moments]| -> Vec<u8> {
        let of_layer = |[(id, _), _]: &[(ParamId, usize); 2]| {
            let found = moments.iter().find(|moments| moments.mean.0 == *id);
            let Moments { mean, variance, pixels } =
                found.expect("every layer of a network sees every batch");
            let numbers = [&mean.1, &variance.1].map(|numbers| to_vec(numbers.clone().inner()));
            let bytes =
                numbers.concat().into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
            [&pixels.to_le_bytes()[..], &bytes].concat()
        };
        kept.iter().flat_map(of_layer).collect()
    };
    let own: Vec<Vec<u8>> = shards.iter().map(message).collect();
    let length: usize = kept.iter().map(|[(_, channels), _]| 8 + 8 * channels).sum();
    let mut all: Vec<Vec<u8>> = Vec::new();
    for (rank, bytes) in gather_messages(workers.peers, &own)? {
        if bytes.len() != length {
            return Err(PeerError::Length { rank, found: bytes.len(), expected: length });
        }
        all.push(bytes);
    }
    let mut begin = 0;
    let mut layers = Vec::with_capacity(kept.len());
    for [(mean_id, channels), (variance_id, _)] in kept {
        let of_shard = |bytes: &Vec<u8>| {
            let (head, numbers) = bytes[begin..begin + 8 + 8 * channels].split_at(8);
            let pixels = head.try_into().map_or(0.0, f64::from_le_bytes);
            let number = |four: &[u8]| f64::from(four.try_into().map_or(0.0, f32::from_le_bytes));
            (pixels, numbers.chunks_exact(4).map(number).collect::<Vec<f64>>())
        };
        let seen: Vec<(f64, Vec<f64>)> = all.iter().map(of_shard).collect();
        begin += 8 + 8 * channels;
        let (pixels, means, variances) = pooled(&seen, channels);
        let tensor =
            |numbers: Vec<f32>| Tensor::from_data(TensorData::new(numbers, [channels]), device);
        layers.push(Moments {
            mean: (mean_id, tensor(means)),
            variance: (variance_id, tensor(variances)),
            pixels,
        });
    }
    Ok(layers)
}

/// Pixels, means and variances over all shards, from those of each: means of all channels, then variances.
fn pooled(shards: &[(f64, Vec<f64>)], channels: usize) -> (f64, Vec<f32>, Vec<f32>) {
    let pixels: f64 = shards.iter().map(|(pixels, _)| pixels).sum();
    let over = |of: &dyn Fn(&[f64]) -> f64| {
        shards.iter().map(|(own, numbers)| own * of(numbers)).sum::<f64>() / pixels
    };
    let means: Vec<f64> = (0..channels).map(|channel| over(&|numbers| numbers[channel])).collect();
    let variance = |channel: usize| {
        let off = |numbers: &[f64]| (numbers[channel] - means[channel]).powi(2);
        over(&|numbers| numbers[channels + channel] + off(numbers))
    };
    let variances = (0..channels).map(|channel| variance(channel) as f32).collect();
    (pixels, means.iter().map(|mean| *mean as f32).collect(), variances)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_shards_are_those_of_the_whole() {
        let numbers = [0.5, 1.5, -2.0, 7.0, 3.25, 0.0, 1.0];
        let of = |part: &[f64]| {
            let rows = part.len() as f64;
            let mean = part.iter().sum::<f64>() / rows;
            let variance = part.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / rows;
            (rows, vec![mean, variance])
        };
        let shards = [of(&numbers[..3]), of(&numbers[3..4]), of(&numbers[4..])];
        let (rows, means, variances) = pooled(&shards, 1);
        let (_, whole) = of(&numbers);
        assert_eq!(rows, 7.0);
        assert!((f64::from(means[0]) - whole[0]).abs() < 1e-6, "{means:?} {whole:?}");
        assert!((f64::from(variances[0]) - whole[1]).abs() < 1e-6, "{variances:?} {whole:?}");
    }
}
