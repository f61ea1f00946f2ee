//! Two interleaved half circles, from sources of which some lie.

#![allow(dead_code, reason = "each test file uses its own part")]

use lapwing_train::{
    Architecture, Block, Data, Exhibit, Init, InputSpec, Loss, Matrix, MlpConfig, OptimiserConfig,
    SampleError, Samples, Schedule, Targets, TrainConfig, View,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub(crate) struct Moons {
    pub(crate) rows: Matrix,
    pub(crate) targets: Targets,
    pub(crate) clean: Vec<u32>,
    pub(crate) sources: Vec<u32>,
    pub(crate) train: Vec<u32>,
    pub(crate) valid: Vec<u32>,
}

pub(crate) fn unit(generator: &mut ChaCha8Rng) -> f32 {
    (generator.next_u32() >> 8) as f32 / (1 << 24) as f32
}

/// `per_source` rows for each entry of `flipped`: the share of labels of that source that are wrong. Every fifth row
/// validates.
pub(crate) fn moons(per_source: usize, flipped: &[f32], seed: u64) -> Moons {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let (mut values, mut clean, mut labels, mut sources) = (vec![], vec![], vec![], vec![]);
    for (source, &share) in flipped.iter().enumerate() {
        for _ in 0..per_source {
            let label = generator.next_u32() % 2;
            let angle = std::f32::consts::PI * unit(&mut generator);
            let (x, y) = if label == 0 {
                (angle.cos(), angle.sin())
            } else {
                (1.0 - angle.cos(), 0.5 - angle.sin())
            };
            // The sum of three uniform numbers is bell-shaped enough.
            let mut noise = || 0.25 * (0..3).map(|_| unit(&mut generator) - 0.5).sum::<f32>();
            values.extend([x + noise() - 0.5, y + noise() - 0.25]);
            clean.push(label);
            labels.push(if unit(&mut generator) < share { 1 - label } else { label });
            sources.push(source as u32);
        }
    }
    let rows = 0..labels.len() as u32;
    Moons {
        rows: Matrix::new(values, 2).unwrap(),
        targets: Targets::Classes { labels, classes: 2 },
        clean,
        sources,
        train: rows.clone().filter(|row| row % 5 != 0).collect(),
        valid: rows.filter(|row| row % 5 == 0).collect(),
    }
}

impl Moons {
    pub(crate) fn data(&self) -> Data<'_> {
        Data {
            samples: &self.rows,
            targets: &self.targets,
            sources: &self.sources,
            train: &self.train,
            valid: &self.valid,
            relabel: None,
            items: None,
        }
    }
}

/// Samples of another form that are made of the moons, number by number.
pub(crate) struct Stretched<'a> {
    pub(crate) rows: &'a Matrix,
    pub(crate) spec: InputSpec,
    pub(crate) number: fn(&[f32], usize) -> f32,
    /// A row that cannot be read.
    pub(crate) lost: Option<u32>,
}

/// Numbers of a tall row, so many that batches are gathered on another thread.
pub(crate) const TALL: usize = 1_200;

impl<'a> Stretched<'a> {
    pub(crate) fn tall(rows: &'a Matrix) -> Self {
        let number = |pair: &[f32], i: usize| pair[i % 2] * (i as f32 * 0.37).sin();
        Self { rows, spec: InputSpec::Vector { width: TALL }, number, lost: None }
    }

    pub(crate) fn pictures(rows: &'a Matrix) -> Self {
        let number = |pair: &[f32], i: usize| 0.5 + 0.3 * (pair[i % 2] * (i as f32 * 0.01)).sin();
        let spec = InputSpec::Image { height: 32, width: 32, channels: 3 };
        Self { rows, spec, number, lost: None }
    }
}

impl Samples for Stretched<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn spec(&self) -> InputSpec {
        self.spec
    }
    fn gather(&self, rows: &[u32], _: View) -> Result<Block, SampleError> {
        let mut values = Vec::new();
        for &row in rows {
            if self.lost == Some(row) {
                return Err(SampleError::Unreadable {
                    row,
                    reason: "the file has vanished".into(),
                });
            }
            let pair = self.rows.row(row);
            values.extend((0..self.spec.size()).map(|i| (self.number)(pair, i)));
        }
        Ok(Block::of(values))
    }
    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.rows.exhibit(row)
    }
}

/// A network for the moons.
pub(crate) fn network(hidden: &[usize], dropout: f32) -> Architecture {
    Architecture::Mlp(MlpConfig {
        inputs: 2,
        hidden: hidden.to_vec(),
        outputs: 2,
        dropout,
        squash: Some(3.0),
        softmax: false,
        init: Init::Torch,
    })
}

/// The same for values.
pub(crate) fn network_for_values(dropout: f32) -> Architecture {
    let Architecture::Mlp(mlp) = network(&[16, 16], dropout) else { unreachable!() };
    Architecture::Mlp(MlpConfig { outputs: 1, ..mlp })
}

pub(crate) fn config(seed: u64) -> TrainConfig {
    TrainConfig {
        seed,
        architecture: network(&[16, 16], 0.1),
        loss: Loss::CrossEntropy,
        optimiser: OptimiserConfig::Adam { weight_decay: 1e-5 },
        schedule: Schedule::Cosine { learning_rate: 5e-3 },
        batch_size: 32,
        epochs: 6,
        patience: 6,
    }
}
