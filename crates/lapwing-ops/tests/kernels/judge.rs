//! What every operation must pass.

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops::{Level, use_stock};
use proptest::prelude::ProptestConfig;

/// An operation under test: what it is given (flat), what it does with it, and the same in f64.
pub struct Case<'a> {
    pub inputs: Vec<Vec<f32>>,
    pub operation: &'a (dyn Fn(&[Tensor<1>]) -> Tensor<1> + Sync),
    pub reference: &'a (dyn Fn(&[Vec<f64>]) -> Vec<f64> + Sync),
}

/// The result and the gradient of each input.
type Found = (Vec<f32>, Vec<Vec<f32>>);

/// Coordinates of each input whose gradient is compared with finite differences.
const PROBES: usize = 10;

impl Case<'_> {
    /// Holds the operation to all of the judges.
    pub fn judge(&self) {
        let _guard = alone();
        let inputs: Vec<Vec<f64>> =
            self.inputs.iter().map(|x| x.iter().copied().map(f64::from).collect()).collect();
        let expected = (self.reference)(&inputs);
        let slopes = self.slopes(&inputs, expected.len());

        for level in Level::available() {
            Level::force(Some(level)).unwrap();
            let (y, gradients) = self.run();
            assert_eq!(y.len(), expected.len());
            for (i, (found, expected)) in y.iter().zip(&expected).enumerate() {
                near(f64::from(*found), *expected, &format!("result {i} at {level:?}"));
            }
            for (input, at, expected) in &slopes {
                let found = f64::from(gradients[*input][*at]);
                near(found, *expected, &format!("slope {at} of input {input} at {level:?}"));
            }
        }
        Level::force(None).unwrap();

        let (y, gradients) = self.run();
        use_stock(true);
        let (stock, stock_gradients) = self.run();
        use_stock(false);
        for (i, (found, expected)) in y.iter().zip(&stock).enumerate() {
            near(f64::from(*found), f64::from(*expected), &format!("result {i} beside Burn's"));
        }
        for (input, (found, expected)) in gradients.iter().zip(&stock_gradients).enumerate() {
            for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
                let what = format!("slope {i} of input {input} beside Burn's");
                near(f64::from(*found), f64::from(*expected), &what);
            }
        }
        self.threads(&(y, gradients));
    }

    /// The same bits with any number of threads, at every level.
    pub fn judge_threads(&self) {
        let _guard = alone();
        for level in Level::available() {
            Level::force(Some(level)).unwrap();
            self.threads(&self.run());
        }
        Level::force(None).unwrap();
    }

    fn threads(&self, expected: &Found) {
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| self.run());
            assert!(bits(expected) == bits(&found), "other bits with {threads} threads");
        }
    }

    fn run(&self) -> Found {
        let device = Device::flex().autodiff();
        let leaves: Vec<Tensor<1>> = self
            .inputs
            .iter()
            .map(|x| Tensor::from_data(TensorData::new(x.clone(), [x.len()]), &device))
            .map(Tensor::require_grad)
            .collect();
        let y = (self.operation)(&leaves);
        let [len] = y.dims();
        let weights = Tensor::from_data(TensorData::new(weights(len), [len]), &device);
        let mut gradients = (y.clone() * weights).sum().backward();
        let gradients = leaves
            .iter()
            .zip(&self.inputs)
            .map(|(leaf, x)| match leaf.grad_remove(&mut gradients) {
                Some(gradient) => read(gradient),
                None => vec![0.0; x.len()],
            })
            .collect();
        (read(y.inner()), gradients)
    }

    /// Input, coordinate and slope of the weighted sum of results; none where there is a kink.
    fn slopes(&self, inputs: &[Vec<f64>], len: usize) -> Vec<(usize, usize, f64)> {
        const STEP: f64 = 1e-6;
        let weights = weights(len);
        let total = |inputs: &[Vec<f64>]| -> f64 {
            (self.reference)(inputs).iter().zip(&weights).map(|(y, w)| y * f64::from(*w)).sum()
        };
        let mut inputs = inputs.to_vec();
        let here = total(&inputs);
        let mut slopes = Vec::new();
        for input in 0..inputs.len() {
            let every = (inputs[input].len() / PROBES).max(1);
            for at in (0..inputs[input].len()).step_by(every) {
                let value = inputs[input][at];
                inputs[input][at] = value + STEP;
                let above = total(&inputs);
                inputs[input][at] = value - STEP;
                let below = total(&inputs);
                inputs[input][at] = value;
                let (right, left) = ((above - here) / STEP, (here - below) / STEP);
                if (right - left).abs() < 1e-3 * (1.0 + right.abs()) {
                    slopes.push((input, at, (above - below) / (2.0 * STEP)));
                }
            }
        }
        slopes
    }
}

/// As many cases, or as the environment asks for.
pub fn cases(cases: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    if asked { ProptestConfig::default() } else { ProptestConfig::with_cases(cases) }
}

/// Level and stock are the process's, so tests that set them take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What results are weighted with before they are summed up.
fn weights(len: usize) -> Vec<f32> {
    numbers(len, 99)
}

/// Numbers between -1 and 1 that follow from the seed.
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

pub fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec_as().unwrap()
}

fn near(found: f64, expected: f64, what: &str) {
    let far = (found - expected).abs() > 2e-4 * (1.0 + expected.abs());
    assert!(!far, "{what}: {found}, expected {expected}");
}

fn bits((y, gradients): &Found) -> Vec<Vec<u32>> {
    [y].into_iter().chain(gradients).map(|x| x.iter().map(|x| x.to_bits()).collect()).collect()
}
