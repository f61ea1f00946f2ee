//! Pooling.

use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Tensor, activation, module};

use std::sync::Arc;

use crate::conv::Window2d;
use crate::kernels::conv::Axis;
use crate::kernels::pool::{self, Pool};
use crate::operation::{Dense, Operation, accelerated, run};

/// The largest value per channel in each window of `size` (rows, columns).
///
/// # Panics
/// When a window is larger than the padded image, or the image has no pixels.
pub fn max_pool2d(x: Tensor<4>, size: [usize; 2], window: Window2d) -> Tensor<4> {
    check_that_it_has_pixels(&x);
    if !accelerated(&x) || size[0] * size[1] > Pool::MOST {
        return stock(x, size, window);
    }
    run(MaxPool { size, window }, [x.into_dispatch()])
}

/// `max_pool2d(relu(x + bias))` over windows of `size` × `size` that do not overlap; rows and columns left over are
/// dropped.
///
/// # Panics
/// When shapes do not fit, a window is larger than the image, or the image has no pixels.
pub fn bias_relu_max_pool(x: Tensor<4>, bias: Tensor<1>, size: usize) -> Tensor<4> {
    check_that_it_has_pixels(&x);
    let window = Window2d { stride: [size, size], padding: [0, 0] };
    if !accelerated(&x) || size * size > Pool::MOST {
        return stock(activation::relu(x + bias.unsqueeze()), [size, size], window);
    }
    run(MaxPool { size: [size, size], window }, [x.into_dispatch(), bias.into_dispatch()])
}

/// The mean of each channel over all pixels: `[n, height, width, channels]` to `[n, channels]`.
///
/// # Panics
/// When the image has no pixels: there is no mean of none.
pub fn global_average_pool(x: Tensor<4>) -> Tensor<2> {
    check_that_it_has_pixels(&x);
    if accelerated(&x) {
        return run(Average, [x.into_dispatch()]);
    }
    let [n, height, width, channels] = x.dims();
    x.reshape([n, height * width, channels]).mean_dim(1).reshape([n, channels])
}

/// The same answer from kernels and from Burn's own operations.
fn check_that_it_has_pixels(x: &Tensor<4>) {
    let [_, height, width, _] = x.dims();
    assert!(height > 0 && width > 0, "pooling of an image without pixels: {height} × {width}");
}

fn stock(x: Tensor<4>, size: [usize; 2], window: Window2d) -> Tensor<4> {
    let options = MaxPoolOptions::new(size).with_stride(window.stride).with_padding(window.padding);
    module::max_pool2d(x.permute([0, 3, 1, 2]), options).permute([0, 2, 3, 1])
}

#[derive(Debug)]
struct MaxPool {
    size: [usize; 2],
    window: Window2d,
}

impl MaxPool {
    fn sizes(&self, [_, height, width, channels]: [usize; 4]) -> Pool {
        let axis = |input, side: usize| {
            Axis::new(input, self.size[side], self.window.stride[side], self.window.padding[side])
        };
        Pool { channels, rows: axis(height, 0), columns: axis(width, 1) }
    }

    fn pool(&self, x: &Dense, bias: Option<&Dense>) -> (Dense, Places) {
        let shape = x.shape();
        let sizes = self.sizes(shape);
        let (y, places) = sizes.forward(x, bias.map(|bias| &bias[..]));
        let pooled = [shape[0], sizes.rows.output, sizes.columns.output, sizes.channels];
        (Dense::from_vec(y, &pooled), Places { shape, places: Arc::new(places) })
    }
}

/// The shape of the input, and the place of each result in its window.
#[derive(Clone, Debug)]
struct Places {
    shape: [usize; 4],
    places: Arc<Vec<u8>>,
}

impl Operation<1> for MaxPool {
    type Saved = Places;

    fn forward(&self, [x]: [Dense; 1]) -> (Dense, Places) {
        self.pool(&x, None)
    }

    fn backward(&self, saved: Places, dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        let (dx, _) = self.sizes(saved.shape).backward(&dy, &saved.places, false);
        [Some(Dense::from_vec(dx, &saved.shape))]
    }
}

impl Operation<2> for MaxPool {
    type Saved = Places;

    fn forward(&self, [x, bias]: [Dense; 2]) -> (Dense, Places) {
        self.pool(&x, Some(&bias))
    }

    fn backward(&self, saved: Places, dy: Dense, _: [bool; 2]) -> [Option<Dense>; 2] {
        let sizes = self.sizes(saved.shape);
        let (dx, bias) = sizes.backward(&dy, &saved.places, true);
        let bias = bias.map(|bias| Dense::from_vec(bias, &[sizes.channels]));
        [Some(Dense::from_vec(dx, &saved.shape)), bias]
    }
}

#[derive(Debug)]
struct Average;

impl Operation<1> for Average {
    /// The shape of the input.
    type Saved = [usize; 4];

    fn forward(&self, [x]: [Dense; 1]) -> (Dense, [usize; 4]) {
        let shape @ [n, height, width, channels] = x.shape();
        let y = pool::average(&x, height * width, channels);
        (Dense::from_vec(y, &[n, channels]), shape)
    }

    fn backward(&self, shape: [usize; 4], dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        let dx = pool::spread(&dy, shape[1] * shape[2], shape[3]);
        [Some(Dense::from_vec(dx, &shape))]
    }
}
