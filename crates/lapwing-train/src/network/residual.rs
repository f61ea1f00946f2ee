//! What residual networks share: which images they take and how wide they are; and of ResNet-18 and ResNet-50 the stages of
//! residual blocks after He et al., as torchvision builds them.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lapwing_ops::{Window2d, global_average_pool, max_pool2d};
use lapwing_sample::{Draws, InputSpec};

use super::layers::{Draw, Linear, NormConv};
use super::onnx::Frame;
use super::{Drawing, Inexpressible, Input, OnnxInput, Outputs, Refusal, Training, Wishes};
use crate::parameters::ArraySpec;

/// Channels of the first stage, where nothing else is wished for; each stage has twice as many as the one before.
const WIDTH: usize = 64;
/// Fewest pixels of a side for the stem that leaves a sixteenth of the pixels over.
const LARGE: usize = 64;
/// Fewest and most pixels of a side.
const SIDES: std::ops::RangeInclusive<usize> = 8..=1024;

/// What a block is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Two convolutions of 3 × 3.
    Basic,
    /// Convolutions of 1 × 1, 3 × 3 and 1 × 1, the last four times as wide as the others. The middle one has the stride.
    Bottleneck,
}

impl Kind {
    /// How many times wider a block's result is than its stage.
    fn widening(self) -> usize {
        match self {
            Self::Basic => 1,
            Self::Bottleneck => 4,
        }
    }

    /// Sides, channels and strides of the convolutions of a block.
    fn convolutions(self, before: usize, width: usize, stride: usize) -> Vec<Shape> {
        let wide = width * self.widening();
        match self {
            Self::Basic => vec![(3, [before, width], stride), (3, [width, width], 1)],
            Self::Bottleneck => {
                vec![(1, [before, width], 1), (3, [width, width], stride), (1, [width, wide], 1)]
            }
        }
    }
}

/// Side, channels before and after, stride.
type Shape = (usize, [usize; 2], usize);

/// A residual network, before it is built.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// Pixels from top to bottom and from left to right, and numbers per pixel.
    pub(super) image: [usize; 3],
    /// Channels of the first stage; each has twice as many as the one before.
    pub(super) width: usize,
    /// Blocks of each stage.
    pub(super) blocks: [usize; 4],
    pub(super) outputs: usize,
}

/// Whether residual networks take such images.
pub(super) fn takes(input: &InputSpec) -> bool {
    matches!(input, InputSpec::Image { height, width, channels }
        if SIDES.contains(height) && SIDES.contains(width) && *channels > 0)
}

/// Height, width and channels of samples that [are taken](takes).
pub(super) fn image(input: &InputSpec) -> [usize; 3] {
    match *input {
        InputSpec::Image { height, width, channels } => [height, width, channels],
        _ => [0; 3],
    }
}

/// The channels of the first stage: all that can be wished of the layers of residual networks.
pub(super) fn width(wishes: &Wishes) -> Result<usize, Refusal> {
    let width = match wishes.hidden.as_deref() {
        None => WIDTH,
        Some(&[width]) => width,
        Some(_) => return Err(Refusal("has one width: the channels of its first stage")),
    };
    Wishes { hidden: None, ..wishes.clone() }.no_layers()?;
    Ok(width)
}

/// The wishes that lead to a [width].
pub(super) fn wishes(width: usize) -> Wishes {
    Wishes { hidden: (width != WIDTH).then(|| vec![width]), ..Wishes::default() }
}

/// A network in a few words.
pub(super) fn summary(name: &str, width: usize) -> String {
    match width {
        WIDTH => name.to_owned(),
        width => format!("{name} of width {width}"),
    }
}

impl Plan {
    pub(super) fn input(&self) -> InputSpec {
        let [height, width, channels] = self.image;
        InputSpec::Image { height, width, channels }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let sound = takes(&self.input())
            && (1..=1024).contains(&self.width)
            && self.image[2] <= 1024
            && self.blocks.iter().all(|blocks| (1..=64).contains(blocks));
        let expected =
            "images of 8 to 1,024 pixels a side, a width of 1 to 1,024 and 1 to 64 blocks a stage";
        if sound { Ok(()) } else { Err(expected.to_owned()) }
    }

    /// Whether the stem is torchvision's, 7 × 7 with stride 2 and a pool of 3 × 3 with stride 2, or 3 × 3, which leaves all
    /// pixels of a small image to the stages.
    fn large(&self) -> bool {
        self.image[0].min(self.image[1]) >= LARGE
    }

    fn stem(&self) -> Shape {
        let (side, stride) = if self.large() { (7, 2) } else { (3, 1) };
        (side, [self.image[2], self.width], stride)
    }

    /// Channels before each block, width of its stage, and stride.
    fn all_blocks(&self) -> Vec<[usize; 3]> {
        let mut before = self.width;
        let mut blocks = Vec::new();
        for (stage, &count) in self.blocks.iter().enumerate() {
            let width = self.width << stage;
            for block in 0..count {
                blocks.push([before, width, if stage > 0 && block == 0 { 2 } else { 1 }]);
                before = width * self.kind.widening();
            }
        }
        blocks
    }

    /// The shortcut of a block, where the shape changes.
    fn shortcut(&self, [before, width, stride]: [usize; 3]) -> Option<Shape> {
        let after = width * self.kind.widening();
        (stride != 1 || before != after).then_some((1, [before, after], stride))
    }

    fn embedding(&self) -> usize {
        (self.width << 3) * self.kind.widening()
    }

    pub(super) fn arrays(&self) -> Vec<ArraySpec> {
        let of = |name: &str, (side, channels, _): Shape| {
            NormConv::arrays(&format!("layers.{name}"), side, channels)
        };
        let mut arrays = of("stem", self.stem());
        for (at, block) in self.all_blocks().into_iter().enumerate() {
            let [before, width, stride] = block;
            let convolutions = self.kind.convolutions(before, width, stride);
            for (part, &shape) in convolutions.iter().enumerate() {
                arrays.extend(of(&format!("blocks.{at}.convolutions.{part}"), shape));
            }
            if let Some(shape) = self.shortcut(block) {
                arrays.extend(of(&format!("blocks.{at}.shortcut"), shape));
            }
        }
        arrays.extend(Linear::arrays("layers.linear", [self.embedding(), self.outputs]));
        arrays
    }

    pub(super) fn init(&self, draws: &mut Draws, device: &Device) -> Residual {
        let mut convolution = |(side, channels, stride): Shape| {
            NormConv::drawn(side, channels, stride, Draw::KaimingOut, draws, device)
        };
        let stem = convolution(self.stem());
        let mut blocks = Vec::new();
        for block in self.all_blocks() {
            let [before, width, stride] = block;
            let convolutions = self.kind.convolutions(before, width, stride);
            let convolutions = convolutions.into_iter().map(&mut convolution).collect();
            blocks
                .push(Block { convolutions, shortcut: self.shortcut(block).map(&mut convolution) });
        }
        let linear = Linear::init([self.embedding(), self.outputs], Draw::Uniform, draws, device);
        Residual { stem, blocks, linear, pooled: self.large() }
    }

    pub(super) fn onnx(
        &self,
        to: &mut Drawing<'_>,
        input: &OnnxInput,
    ) -> Result<String, Inexpressible> {
        let convolved = |to: &mut Drawing<'_>, name: &str, x: &str, (side, _, stride): Shape| {
            let frame = Frame { side, stride, padding: side / 2 };
            to.norm_conv(&format!("layers.{name}"), x, frame)
        };
        let x = convolved(to, "stem", input.images()?, self.stem())?;
        let mut x = to.relu(&x);
        if self.large() {
            x = to.max_pool(&x, Frame { side: 3, stride: 2, padding: 1 }, 2);
        }
        for (at, block) in self.all_blocks().into_iter().enumerate() {
            let shortcut = match self.shortcut(block) {
                Some(shape) => convolved(to, &format!("blocks.{at}.shortcut"), &x, shape)?,
                None => x.clone(),
            };
            let [before, width, stride] = block;
            let convolutions = self.kind.convolutions(before, width, stride);
            for (part, &shape) in convolutions.iter().enumerate() {
                x = convolved(to, &format!("blocks.{at}.convolutions.{part}"), &x, shape)?;
                if part + 1 == convolutions.len() {
                    x = to.graph.node("Add", &[&x, &shortcut]);
                }
                x = to.relu(&x);
            }
        }
        let x = to.channel_means(&x);
        to.linear("layers.linear", &x)
    }
}

/// The parameters of a residual network.
#[derive(Module, Debug)]
pub(crate) struct Residual {
    stem: NormConv,
    blocks: Vec<Block>,
    linear: Linear,
    /// Whether the stem is followed by a pool.
    pooled: bool,
}

#[derive(Module, Debug)]
struct Block {
    convolutions: Vec<NormConv>,
    shortcut: Option<NormConv>,
}

impl Residual {
    pub(super) fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let mut x = self.stem.relu(input.images(), None, training.as_deref_mut());
        if self.pooled {
            x = max_pool2d(x, [3, 3], Window2d { stride: [2, 2], padding: [1, 1] });
        }
        for block in &self.blocks {
            x = block.forward(x, training.as_deref_mut());
        }
        let x = global_average_pool(x);
        Outputs { logits: self.linear.forward(x.clone()), embedding: Some(x) }
    }
}

impl Block {
    fn forward(&self, x: Tensor<4>, mut training: Option<&mut Training>) -> Tensor<4> {
        let shortcut = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x.clone(), training.as_deref_mut()),
            None => x.clone(),
        };
        let (mut x, mut shortcut) = (x, Some(shortcut));
        for (at, convolution) in self.convolutions.iter().enumerate() {
            let last = at + 1 == self.convolutions.len();
            let residual = if last { shortcut.take() } else { None };
            x = convolution.relu(x, residual, training.as_deref_mut());
        }
        x
    }
}
