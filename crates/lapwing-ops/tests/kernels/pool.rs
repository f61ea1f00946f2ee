//! Pooling.

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops::{Window2d, bias_relu_max_pool, global_average_pool, max_pool2d};
use proptest::prelude::*;

use crate::judge::{Case, alone, cases, numbers, read};

/// The largest value of each window, f64.
fn largest(x: &[f64], shape: [usize; 4], size: [usize; 2], window: Window2d) -> Vec<f64> {
    let [n, height, width, channels] = shape;
    let output = |side: usize, input: usize| {
        (input + 2 * window.padding[side] - size[side]) / window.stride[side] + 1
    };
    let mut y = Vec::new();
    for image in 0..n {
        for row in 0..output(0, height) {
            for column in 0..output(1, width) {
                for channel in 0..channels {
                    let mut best = f64::NEG_INFINITY;
                    for i in 0..size[0] {
                        for j in 0..size[1] {
                            let r = (row * window.stride[0] + i).wrapping_sub(window.padding[0]);
                            let c = (column * window.stride[1] + j).wrapping_sub(window.padding[1]);
                            if r < height && c < width {
                                let at = ((image * height + r) * width + c) * channels + channel;
                                best = best.max(x[at]);
                            }
                        }
                    }
                    y.push(best);
                }
            }
        }
    }
    y
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn any_window(
        n in 1usize..4, height in 3usize..9, width in 3usize..9, channels in 1usize..36,
        size in [1usize..4, 1usize..4], stride in [1usize..4, 1usize..4], padded in [0usize..2, 0usize..2],
    ) {
        let padding = [padded[0].min(size[0] / 2), padded[1].min(size[1] / 2)];
        let (shape, window) = ([n, height, width, channels], Window2d { stride, padding });
        let case = Case {
            inputs: vec![numbers(n * height * width * channels, 1)],
            operation: &|leaves| max_pool2d(leaves[0].clone().reshape(shape), size, window).reshape([-1]),
            reference: &|values| largest(&values[0], shape, size, window),
        };
        case.judge();
    }

    #[test]
    fn sums_cut_off_and_pooled(
        n in 1usize..4, height in 3usize..9, width in 3usize..9, channels in 1usize..36, size in 1usize..4,
    ) {
        let (shape, window) =
            ([n, height, width, channels], Window2d { stride: [size, size], padding: [0, 0] });
        let case = Case {
            inputs: vec![numbers(n * height * width * channels, 1), numbers(channels, 2)],
            operation: &|leaves| {
                bias_relu_max_pool(leaves[0].clone().reshape(shape), leaves[1].clone(), size).reshape([-1])
            },
            reference: &|values| {
                let with_bias = values[0].iter().enumerate();
                let x: Vec<f64> = with_bias.map(|(i, x)| (x + values[1][i % channels]).max(0.0)).collect();
                largest(&x, shape, [size, size], window)
            },
        };
        case.judge();
    }

    #[test]
    fn averages(n in 1usize..6, height in 1usize..9, width in 1usize..9, channels in 1usize..70) {
        let pixels = height * width;
        let case = Case {
            inputs: vec![numbers(n * pixels * channels, 1)],
            operation: &|leaves| {
                global_average_pool(leaves[0].clone().reshape([n, height, width, channels])).reshape([-1])
            },
            reference: &|values| {
                let mut y = vec![0.0; n * channels];
                for (i, x) in values[0].iter().enumerate() {
                    y[i / (pixels * channels) * channels + i % channels] += x / pixels as f64;
                }
                y
            },
        };
        case.judge();
    }
}

#[test]
fn many_images_give_the_same_bits_with_any_number_of_threads() {
    let shape = [33, 11, 12, 20];
    let case = Case {
        inputs: vec![numbers(shape.iter().product(), 1), numbers(20, 2)],
        operation: &|leaves| {
            let y = bias_relu_max_pool(leaves[0].clone().reshape(shape), leaves[1].clone(), 2);
            global_average_pool(y).reshape([-1])
        },
        reference: &|_| Vec::new(),
    };
    case.judge_threads();
}

#[test]
fn what_is_not_a_number_is_the_largest() {
    let _guard = alone();
    for place in 0..9 {
        let mut x = numbers(9, 1);
        x[place] = f32::NAN;
        let x = Tensor::from_data(TensorData::new(x, [1, 3, 3, 1]), &Device::flex());
        let y = read(max_pool2d(x.clone(), [3, 3], Window2d::default()));
        assert!(y[0].is_nan(), "at {place}");
        let y = read(max_pool2d(x, [2, 2], Window2d { stride: [2, 2], padding: [0, 0] }));
        assert_eq!(y[0].is_nan(), [0, 1, 3, 4].contains(&place), "at {place}");
    }
}

#[test]
#[should_panic(expected = "an image without pixels: 0 × 4")]
fn the_largest_of_no_pixels_is_refused() {
    let _guard = alone();
    let x = Tensor::<4>::zeros([2, 0, 4, 3], &Device::flex());
    max_pool2d(x, [2, 2], Window2d { stride: [1, 1], padding: [1, 1] });
}

#[test]
#[should_panic(expected = "an image without pixels: 0 × 4")]
fn the_mean_of_no_pixels_is_refused() {
    let _guard = alone();
    global_average_pool(Tensor::<4>::zeros([2, 0, 4, 3], &Device::flex()));
}

#[test]
fn images_without_channels_and_no_images_are_pooled_to_nothing() {
    let _guard = alone();
    let window = Window2d { stride: [2, 2], padding: [0, 0] };
    for (shape, pooled) in [([2, 4, 4, 0], [2, 2, 2, 0]), ([0, 4, 4, 3], [0, 2, 2, 3])] {
        let x = Tensor::<4>::zeros(shape, &Device::flex());
        assert_eq!(max_pool2d(x.clone(), [2, 2], window).dims(), pooled);
        assert_eq!(global_average_pool(x).dims(), [shape[0], shape[3]]);
    }
}
