//! Convolution of images and sequences.

use burn::tensor::Tensor;
use burn::tensor::module;
use burn::tensor::ops::ConvOptions;

use crate::kernels::columns::column_sums;
use crate::kernels::conv::{Axis, Conv, backward_input, forward};
use crate::kernels::conv_product;
use crate::kernels::conv_weight::backward_weight;
use crate::kernels::{winograd, winograd_weight};
use crate::operation::{Dense, Operation, accelerated, run};

/// How a window moves over an image: rows, then columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window2d {
    /// Pixels from one position to the next.
    pub stride: [usize; 2],
    /// Pixels added at each border.
    pub padding: [usize; 2],
}

impl Default for Window2d {
    fn default() -> Self {
        Self { stride: [1, 1], padding: [0, 0] }
    }
}

/// How a window moves over a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window1d {
    /// Elements from one position to the next.
    pub stride: usize,
    /// Elements added at each end.
    pub padding: usize,
}

impl Default for Window1d {
    fn default() -> Self {
        Self { stride: 1, padding: 0 }
    }
}

/// Convolves images `[n, height, width, in]` with kernels `[height, width, in, out]`, zeros beyond the border.
///
/// # Panics
/// When shapes do not fit or a kernel is larger than the padded image.
pub fn conv2d(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    window: Window2d,
) -> Tensor<4> {
    if !accelerated(&x) {
        return stock(x, weight, bias, window);
    }
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    match bias {
        Some(bias) => run(window, [x, weight, bias.into_dispatch()]),
        None => run(window, [x, weight]),
    }
}

/// Convolves sequences `[n, length, in]` with kernels `[length, in, out]`, zeros beyond the ends.
///
/// # Panics
/// When shapes do not fit or a kernel is longer than the padded sequence.
pub fn conv1d(
    x: Tensor<3>,
    weight: Tensor<3>,
    bias: Option<Tensor<1>>,
    window: Window1d,
) -> Tensor<3> {
    let [n, length, inputs] = x.dims();
    let [taps, _, outputs] = weight.dims();
    let window = Window2d { stride: [1, window.stride], padding: [0, window.padding] };
    let y = conv2d(
        x.reshape([n, 1, length, inputs]),
        weight.reshape([1, taps, inputs, outputs]),
        bias,
        window,
    );
    let [_, _, length, _] = y.dims();
    y.reshape([n, length, outputs])
}

fn stock(x: Tensor<4>, weight: Tensor<4>, bias: Option<Tensor<1>>, window: Window2d) -> Tensor<4> {
    let options = ConvOptions::new(window.stride, window.padding, [1, 1], 1);
    module::conv2d(x.permute([0, 3, 1, 2]), weight.permute([3, 2, 0, 1]), bias, options)
        .permute([0, 2, 3, 1])
}

/// The ways to convolve.
#[derive(Clone, Copy)]
enum Way {
    Winograd,
    Product,
    Tiles,
}

impl Way {
    /// The fastest one.
    fn of(sizes: &Conv) -> Self {
        if winograd::suits(sizes) {
            Self::Winograd
        } else if conv_product::suits(sizes) {
            Self::Product
        } else {
            Self::Tiles
        }
    }
}

impl Window2d {
    fn sizes(&self, x: &Dense, weight: &Dense) -> Conv {
        let [images, height, width, channels] = x.shape();
        let [rows, columns, inputs, outputs] = weight.shape();
        assert_eq!(channels, inputs, "kernels for as many channels as the image has");
        let rows = Axis::new(height, rows, self.stride[0], self.padding[0]);
        let columns = Axis::new(width, columns, self.stride[1], self.padding[1]);
        Conv::new(images, [inputs, outputs], rows, columns)
    }

    fn convolve(&self, x: &Dense, weight: &Dense, bias: Option<&Dense>) -> Dense {
        let sizes = self.sizes(x, weight);
        let bias = bias.map(|bias| &bias[..]);
        let y = match Way::of(&sizes) {
            Way::Winograd => winograd::forward(sizes, x, weight, bias),
            Way::Product => conv_product::forward(sizes, x, weight, bias),
            Way::Tiles => forward(sizes, x, weight, bias),
        };
        let Conv { images, outputs, rows, columns, .. } = sizes;
        Dense::from_vec(y, &[images, rows.output, columns.output, outputs])
    }

    fn gradients(
        &self,
        x: &Dense,
        weight: &Dense,
        dy: &Dense,
        wanted: [bool; 2],
    ) -> [Option<Dense>; 2] {
        let sizes = self.sizes(x, weight);
        let way = Way::of(&sizes);
        let of_x = || match way {
            Way::Winograd => winograd::backward_input(sizes, dy, weight),
            Way::Product => conv_product::backward_input(sizes, dy, weight),
            Way::Tiles => backward_input(sizes, dy, weight),
        };
        let of_weight = || match way {
            Way::Winograd => winograd_weight::backward_weight(sizes, x, dy),
            Way::Product => conv_product::backward_weight(sizes, x, dy),
            Way::Tiles => backward_weight(sizes, x, dy),
        };
        [
            wanted[0].then(|| Dense::from_vec(of_x(), &x.shape::<4>())),
            wanted[1].then(|| Dense::from_vec(of_weight(), &weight.shape::<4>())),
        ]
    }
}

impl Operation<2> for Window2d {
    type Saved = [Dense; 2];

    fn forward(&self, [x, weight]: [Dense; 2]) -> (Dense, Self::Saved) {
        (self.convolve(&x, &weight, None), [x, weight])
    }

    fn backward(
        &self,
        [x, weight]: Self::Saved,
        dy: Dense,
        wanted: [bool; 2],
    ) -> [Option<Dense>; 2] {
        self.gradients(&x, &weight, &dy, wanted)
    }
}

impl Operation<3> for Window2d {
    type Saved = [Dense; 2];

    fn forward(&self, [x, weight, bias]: [Dense; 3]) -> (Dense, Self::Saved) {
        (self.convolve(&x, &weight, Some(&bias)), [x, weight])
    }

    fn backward(
        &self,
        [x, weight]: Self::Saved,
        dy: Dense,
        wanted: [bool; 3],
    ) -> [Option<Dense>; 3] {
        let [of_x, of_weight] = self.gradients(&x, &weight, &dy, [wanted[0], wanted[1]]);
        let [.., outputs] = weight.shape::<4>();
        let of_bias = wanted[2].then(|| Dense::from_vec(column_sums(&dy, outputs), &[outputs]));
        [of_x, of_weight, of_bias]
    }
}
