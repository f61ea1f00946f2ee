//! Convolution of images and sequences.

use burn::tensor::Tensor;
use burn::tensor::module;
use burn::tensor::ops::ConvOptions;

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
    stock(x, weight, bias, window)
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
