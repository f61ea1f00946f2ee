//! ResNet-20 of He et al. for 32 × 32 images in colour. Shortcuts have no parameters (option A): where the shape changes
//! they take every second pixel and add channels of zeros.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lapwing_ops::{Window2d, global_average_pool, max_pool2d};

use super::Training;
use super::layers::{Draw, Linear, NormConv, Statistics, images};
use crate::random::Stream;

/// Channels of the stages, of three blocks each.
const STAGES: [usize; 3] = [16, 32, 64];

#[derive(Module, Debug)]
pub(crate) struct ResNet20 {
    stem: NormConv,
    blocks: Vec<Block>,
    linear: Linear,
}

#[derive(Module, Debug)]
struct Block {
    conv1: NormConv,
    conv2: NormConv,
    /// Whether it halves the image and doubles the channels.
    shrinks: bool,
}

impl ResNet20 {
    pub(crate) fn init(outputs: usize, stream: &mut Stream, device: &Device) -> Self {
        let stem = NormConv::init([3, STAGES[0]], 1, stream, device);
        let mut blocks = Vec::new();
        let mut before = STAGES[0];
        for channels in STAGES {
            for _ in 0..3 {
                blocks.push(Block::init([before, channels], stream, device));
                before = channels;
            }
        }
        let linear = Linear::init([before, outputs], Draw::Kaiming, stream, device);
        Self { stem, blocks, linear }
    }

    pub(crate) fn forward(
        &self,
        rows: Tensor<2>,
        mut training: Option<&mut Training>,
    ) -> Tensor<2> {
        let mut x = self.stem.relu(images(rows, 32, 3), None, training.as_deref_mut());
        for block in &self.blocks {
            x = block.forward(x, training.as_deref_mut());
        }
        self.linear.forward(global_average_pool(x))
    }

    pub(crate) fn absorb(&mut self, statistics: Vec<Statistics>) {
        let blocks = self.blocks.iter_mut().flat_map(|block| [&mut block.conv1, &mut block.conv2]);
        for (conv, statistics) in [&mut self.stem].into_iter().chain(blocks).zip(statistics) {
            conv.norm().absorb(statistics);
        }
    }
}

impl Block {
    fn init([inputs, outputs]: [usize; 2], stream: &mut Stream, device: &Device) -> Self {
        let shrinks = inputs != outputs;
        let stride = if shrinks { 2 } else { 1 };
        Self {
            conv1: NormConv::init([inputs, outputs], stride, stream, device),
            conv2: NormConv::init([outputs, outputs], 1, stream, device),
            shrinks,
        }
    }

    fn forward(&self, x: Tensor<4>, mut training: Option<&mut Training>) -> Tensor<4> {
        let shortcut = if self.shrinks { shrink(x.clone()) } else { x.clone() };
        let x = self.conv1.relu(x, None, training.as_deref_mut());
        self.conv2.relu(x, Some(shortcut), training)
    }
}

/// Every second pixel of both axes, and as many channels again, half of them before and half behind, all zero.
fn shrink(x: Tensor<4>) -> Tensor<4> {
    let window = Window2d { stride: [2, 2], padding: [0, 0] };
    let x = max_pool2d(x, [1, 1], window);
    let [n, height, width, channels] = x.dims();
    let zeros = Tensor::zeros([n, height, width, channels / 2], &x.device());
    Tensor::cat(vec![zeros.clone(), x, zeros], 3)
}
