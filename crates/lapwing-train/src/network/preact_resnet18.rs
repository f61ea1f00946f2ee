//! PreAct-ResNet-18 for small images (He et al. 2016, as Li, Xiong and Hoi have it): blocks normalise and rectify before
//! they convolve. Beside the classifier it has two more heads, for methods that learn from what pictures look like: an
//! embedding of few numbers, and a layer that rebuilds from it what the classifier sees.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lapwing_ops::global_average_pool;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{BatchNorm, Draw, Linear, NormConv, PlainConv};
use super::{
    Config, DataShape, Forward, Input, Outputs, Projection, Refusal, Training, Wishes, residual,
};
use crate::parameters::ArraySpec;

/// Pixels of a side of the kernels.
const KERNEL: usize = 3;
/// Numbers of the embedding.
const EMBEDDING: usize = 50;
/// What an embedding is divided by at least, so that one of zeros stays so.
const SHORTEST: f32 = 1e-12;

/// The sizes of a PreAct-ResNet-18.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreActResNet18Config {
    /// Pixels from top to bottom, from left to right, and numbers per pixel.
    pub image: [usize; 3],
    /// Channels of the first stage.
    pub width: usize,
    /// Blocks of each stage.
    pub blocks: [usize; 4],
    /// Numbers of the embedding.
    pub embedding: usize,
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Whether what the stem gives is rectified; the first block does so in any case.
    pub stem_relu: bool,
}

impl PreActResNet18Config {
    /// Channels before and after each block, and its stride.
    fn all_blocks(&self) -> Vec<([usize; 2], usize)> {
        let mut before = self.width;
        let mut blocks = Vec::new();
        for (stage, &count) in self.blocks.iter().enumerate() {
            let width = self.width << stage;
            for block in 0..count {
                blocks.push(([before, width], if stage > 0 && block == 0 { 2 } else { 1 }));
                before = width;
            }
        }
        blocks
    }

    /// Numbers that the classifier sees.
    fn features(&self) -> usize {
        self.width << 3
    }
}

impl Config for PreActResNet18Config {
    type Network = PreActResNet18;
    const NAME: &'static str = "preact-resnet18";
    const ABOUT: &'static str =
        "The residual network of 18 layers that normalises before it convolves, with heads for rrl";
    const TAKES: &'static str = "images of 8 to 1,024 pixels a side";

    fn takes(input: &InputSpec) -> bool {
        residual::takes(input)
    }

    fn suits(_: &DataShape) -> bool {
        false
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        Ok(Self {
            image: residual::image(&shape.input),
            width: residual::width(wishes)?,
            blocks: [2, 2, 2, 2],
            embedding: EMBEDDING,
            outputs: shape.outputs,
            stem_relu: true,
        })
    }

    fn wishes(&self) -> Wishes {
        residual::wishes(self.width)
    }

    fn summary(&self) -> String {
        residual::summary(Self::NAME, self.width)
    }

    fn input(&self) -> InputSpec {
        let [height, width, channels] = self.image;
        InputSpec::Image { height, width, channels }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn check(&self) -> Result<(), String> {
        let sound = residual::takes(&self.input())
            && self.image[2] <= 1024
            && (1..=1024).contains(&self.width)
            && (1..=4096).contains(&self.embedding)
            && self.blocks.iter().all(|blocks| (1..=64).contains(blocks));
        let expected = "images of 8 to 1,024 pixels a side, a width of 1 to 1,024, 1 to 64 blocks a stage and an \
                        embedding of 1 to 4,096 numbers";
        if sound { Ok(()) } else { Err(expected.to_owned()) }
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let mut arrays = NormConv::arrays("stem", KERNEL, [self.image[2], self.width]);
        for (at, (channels @ [before, after], stride)) in self.all_blocks().into_iter().enumerate()
        {
            let name = |part: &str| format!("blocks.{at}.{part}");
            arrays.extend(BatchNorm::arrays(&name("norm"), before));
            arrays.extend(NormConv::arrays(&name("first"), KERNEL, channels));
            arrays.extend(PlainConv::arrays(&name("second"), KERNEL, [after, after]));
            if shrinks(channels, stride) {
                arrays.extend(PlainConv::arrays(&name("shortcut"), 1, channels));
            }
        }
        let features = self.features();
        arrays.extend(Linear::arrays("classifier", [features, self.outputs]));
        arrays.extend(Linear::arrays("embedding", [features, self.embedding]));
        arrays.extend(Linear::arrays("reconstruction", [self.embedding, features]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> PreActResNet18 {
        let stem = [self.image[2], self.width];
        let stem = NormConv::drawn(KERNEL, stem, 1, Draw::Uniform, draws, device);
        let block = |(channels, stride)| Block::init(channels, stride, draws, device);
        let blocks = self.all_blocks().into_iter().map(block).collect();
        let mut linear = |sizes| Linear::init(sizes, Draw::Uniform, draws, device);
        let features = self.features();
        PreActResNet18 {
            stem,
            blocks,
            classifier: linear([features, self.outputs]),
            embedding: linear([features, self.embedding]),
            reconstruction: linear([self.embedding, features]),
            stem_relu: self.stem_relu,
        }
    }
}

/// Whether the shape changes, so that a block's shortcut is a convolution.
fn shrinks([before, after]: [usize; 2], stride: usize) -> bool {
    stride != 1 || before != after
}

/// The parameters of a PreAct-ResNet-18.
#[derive(Module, Debug)]
pub(crate) struct PreActResNet18 {
    stem: NormConv,
    blocks: Vec<Block>,
    classifier: Linear,
    embedding: Linear,
    reconstruction: Linear,
    stem_relu: bool,
}

#[derive(Module, Debug)]
struct Block {
    norm: BatchNorm,
    /// The first convolution and the normalisation before the second.
    first: NormConv,
    second: PlainConv,
    shortcut: Option<PlainConv>,
}

impl Forward for PreActResNet18 {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let images = input.images();
        let mut x = match self.stem_relu {
            true => self.stem.relu(images, None, training.as_deref_mut()),
            false => self.stem.forward(images, training.as_deref_mut()),
        };
        for block in &self.blocks {
            x = block.forward(x, training.as_deref_mut());
        }
        let x = global_average_pool(x);
        Outputs { logits: self.classifier.forward(x.clone()), embedding: Some(x) }
    }

    fn project(&self, features: Tensor<2>) -> Option<Projection> {
        let low = self.embedding.forward(features);
        let rebuilt = self.reconstruction.relu(low.clone());
        let length = low.clone().square().sum_dim(1).sqrt().clamp_min(SHORTEST);
        Some(Projection { embedding: low / length, rebuilt })
    }
}

impl Block {
    fn init(
        channels @ [before, after]: [usize; 2],
        stride: usize,
        draws: &mut Draws,
        device: &Device,
    ) -> Self {
        let norm = BatchNorm::init(before, device);
        let first = NormConv::drawn(KERNEL, channels, stride, Draw::Uniform, draws, device);
        let second = PlainConv::init(KERNEL, [after, after], 1, draws, device);
        let shortcut =
            shrinks(channels, stride).then(|| PlainConv::init(1, channels, stride, draws, device));
        Self { norm, first, second, shortcut }
    }

    fn forward(&self, x: Tensor<4>, mut training: Option<&mut Training>) -> Tensor<4> {
        let x = self.norm.relu(x, training.as_deref_mut());
        // Where the shape stays, what is carried past the convolutions is rectified already.
        let shortcut = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x.clone()),
            None => x.clone(),
        };
        self.second.forward(self.first.relu(x, None, training)) + shortcut
    }
}
