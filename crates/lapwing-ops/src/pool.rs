//! Pooling.

use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Tensor, activation, module};

use crate::conv::Window2d;

/// The largest value per channel in each window of `size` (rows, columns).
///
/// # Panics
/// When a window is larger than the padded image.
pub fn max_pool2d(x: Tensor<4>, size: [usize; 2], window: Window2d) -> Tensor<4> {
    stock(x, size, window)
}

/// `max_pool2d(relu(x + bias))` over windows of `size` × `size` that do not overlap; rows and columns left over are
/// dropped.
///
/// # Panics
/// When shapes do not fit or a window is larger than the image.
pub fn bias_relu_max_pool(x: Tensor<4>, bias: Tensor<1>, size: usize) -> Tensor<4> {
    let window = Window2d { stride: [size, size], padding: [0, 0] };
    stock(activation::relu(x + bias.unsqueeze()), [size, size], window)
}

/// The mean of each channel over all pixels: `[n, height, width, channels]` to `[n, channels]`.
pub fn global_average_pool(x: Tensor<4>) -> Tensor<2> {
    let [n, height, width, channels] = x.dims();
    x.reshape([n, height * width, channels]).mean_dim(1).reshape([n, channels])
}

fn stock(x: Tensor<4>, size: [usize; 2], window: Window2d) -> Tensor<4> {
    let options = MaxPoolOptions::new(size).with_stride(window.stride).with_padding(window.padding);
    module::max_pool2d(x.permute([0, 3, 1, 2]), options).permute([0, 2, 3, 1])
}
