//! Convolution.

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops::{Window1d, Window2d, conv1d, conv2d};
use proptest::prelude::*;

use crate::judge::{Case, alone, cases, numbers, read};

#[derive(Clone, Copy, Debug)]
struct Sizes {
    images: usize,
    input: [usize; 2],
    channels: [usize; 2],
    taps: [usize; 2],
    window: Window2d,
}

impl Sizes {
    fn output(&self, side: usize) -> usize {
        (self.input[side] + 2 * self.window.padding[side] - self.taps[side])
            / self.window.stride[side]
            + 1
    }

    fn lens(&self) -> [usize; 3] {
        let [inputs, outputs] = self.channels;
        [
            self.images * self.input[0] * self.input[1] * inputs,
            self.taps[0] * self.taps[1] * inputs * outputs,
            outputs,
        ]
    }

    fn inputs(&self, bias: bool) -> Vec<Vec<f32>> {
        let lens = self.lens();
        let count = if bias { 3 } else { 2 };
        (0..count).map(|i| numbers(lens[i], i as u64 + 1)).collect()
    }

    fn run(&self, leaves: &[Tensor<1>]) -> Tensor<1> {
        let [inputs, outputs] = self.channels;
        let x = leaves[0].clone().reshape([self.images, self.input[0], self.input[1], inputs]);
        let weight = leaves[1].clone().reshape([self.taps[0], self.taps[1], inputs, outputs]);
        let y = conv2d(x, weight, leaves.get(2).cloned(), self.window);
        assert_eq!(y.dims(), [self.images, self.output(0), self.output(1), outputs]);
        y.reshape([-1])
    }

    fn reference(&self, values: &[Vec<f64>]) -> Vec<f64> {
        let [inputs, outputs] = self.channels;
        let mut y = Vec::new();
        for image in 0..self.images {
            for row in 0..self.output(0) {
                for column in 0..self.output(1) {
                    for output in 0..outputs {
                        let mut sum = values.get(2).map_or(0.0, |bias| bias[output]);
                        for i in 0..self.taps[0] {
                            for j in 0..self.taps[1] {
                                let r = (row * self.window.stride[0] + i)
                                    .wrapping_sub(self.window.padding[0]);
                                let c = (column * self.window.stride[1] + j)
                                    .wrapping_sub(self.window.padding[1]);
                                if r >= self.input[0] || c >= self.input[1] {
                                    continue;
                                }
                                for input in 0..inputs {
                                    let at = (image * self.input[0] + r) * self.input[1] + c;
                                    let tap = (i * self.taps[1] + j) * inputs + input;
                                    sum += values[0][at * inputs + input]
                                        * values[1][tap * outputs + output];
                                }
                            }
                        }
                        y.push(sum);
                    }
                }
            }
        }
        y
    }

    fn judge(&self, bias: bool) {
        let case = Case {
            inputs: self.inputs(bias),
            operation: &|leaves| self.run(leaves),
            reference: &|values| self.reference(values),
        };
        case.judge();
    }
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let side = || (1usize..10, 1usize..5, 1usize..4, 0usize..4);
    (1usize..4, side(), side(), 1usize..20, 1usize..36)
        .prop_filter("the window fits", |(_, a, b, ..)| {
            a.0 + 2 * a.3 >= a.1 && b.0 + 2 * b.3 >= b.1
        })
        .prop_map(|(images, a, b, inputs, outputs)| Sizes {
            images,
            input: [a.0, b.0],
            channels: [inputs, outputs],
            taps: [a.1, b.1],
            window: Window2d { stride: [a.2, b.2], padding: [a.3, b.3] },
        })
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_size_stride_and_padding(sizes in sizes(), bias: bool) {
        sizes.judge(bias);
    }
}

#[test]
fn the_layers_of_residual_networks() {
    for (input, channels, stride) in
        [(8, [16, 16], 1), (9, [16, 32], 2), (8, [3, 16], 1), (4, [64, 64], 1)]
    {
        let window = Window2d { stride: [stride, stride], padding: [1, 1] };
        Sizes { images: 2, input: [input, input], channels, taps: [3, 3], window }.judge(false);
    }
}

/// Sizes for which fewer multiplications do: even and odd sides, a single row, every padding, several blocks of tiles.
#[test]
fn kernels_of_three_by_three() {
    for (images, input, channels, padding) in [
        (2, [4, 4], [32, 32], [1, 1]),
        (1, [5, 3], [32, 64], [1, 0]),
        (3, [1, 4], [64, 32], [1, 2]),
        (1, [2, 2], [32, 32], [2, 2]),
        (19, [2, 3], [32, 32], [1, 1]),
        (1, [18, 17], [32, 32], [0, 1]),
    ] {
        let window = Window2d { stride: [1, 1], padding };
        Sizes { images, input, channels, taps: [3, 3], window }.judge(images < 3);
    }
}

#[test]
fn a_padding_wider_than_the_kernel_gives_the_bias() {
    let window = Window2d { stride: [1, 1], padding: [3, 2] };
    Sizes { images: 1, input: [2, 1], channels: [3, 5], taps: [1, 2], window }.judge(true);
}

#[test]
fn pixels_that_no_window_sees_have_no_gradient() {
    let window = Window2d { stride: [3, 3], padding: [0, 0] };
    Sizes { images: 1, input: [8, 7], channels: [9, 8], taps: [2, 1], window }.judge(false);
}

#[test]
fn sequences() {
    let (images, length, inputs, outputs, taps) = (3, 11, 5, 9, 4);
    let window = Window1d { stride: 2, padding: 1 };
    let sizes = Sizes {
        images,
        input: [1, length],
        channels: [inputs, outputs],
        taps: [1, taps],
        window: Window2d { stride: [1, 2], padding: [0, 1] },
    };
    let case = Case {
        inputs: sizes.inputs(true),
        operation: &|leaves| {
            let x = leaves[0].clone().reshape([images, length, inputs]);
            let weight = leaves[1].clone().reshape([taps, inputs, outputs]);
            let y = conv1d(x, weight, Some(leaves[2].clone()), window);
            assert_eq!(y.dims(), [images, sizes.output(1), outputs]);
            y.reshape([-1])
        },
        reference: &|values| sizes.reference(values),
    };
    case.judge();
}

#[test]
fn many_images_give_the_same_bits_with_any_number_of_threads() {
    for (channels, stride) in [([16, 16], 1), ([16, 20], 2), ([3, 10], 1)] {
        let window = Window2d { stride: [stride, stride], padding: [1, 1] };
        let sizes = Sizes { images: 37, input: [16, 15], channels, taps: [3, 3], window };
        let case = Case {
            inputs: sizes.inputs(true),
            operation: &|leaves| sizes.run(leaves),
            reference: &|_| Vec::new(),
        };
        case.judge_threads();
    }
}

#[test]
#[should_panic(expected = "kernels for as many channels")]
fn kernels_for_other_channels_are_refused() {
    let _guard = alone();
    let device = Default::default();
    let x = Tensor::<4>::zeros([1, 4, 4, 3], &device);
    conv2d(x, Tensor::zeros([3, 3, 4, 5], &device), None, Window2d::default());
}

#[test]
#[should_panic(expected = "a window of 3 over 2")]
fn a_kernel_larger_than_the_image_is_refused() {
    let _guard = alone();
    let device = Default::default();
    let x = Tensor::<4>::zeros([1, 2, 4, 3], &device);
    conv2d(x, Tensor::zeros([3, 3, 3, 5], &device), None, Window2d::default());
}

/// Results that nothing flows into must be the bias, not what the memory held before.
#[test]
fn images_without_channels_or_pixels_give_the_bias_and_no_uninitialised_memory() {
    let window = Window2d { stride: [1, 1], padding: [1, 1] };
    let cases = [
        Sizes { images: 2, input: [16, 16], channels: [0, 8], taps: [1, 1], window },
        Sizes { images: 2, input: [0, 16], channels: [3, 8], taps: [2, 2], window },
        Sizes { images: 2, input: [16, 0], channels: [3, 8], taps: [2, 1], window },
        Sizes { images: 2, input: [16, 16], channels: [5, 0], taps: [3, 3], window },
        Sizes { images: 0, input: [16, 16], channels: [5, 4], taps: [3, 3], window },
    ];
    for sizes in cases {
        let _guard = alone();
        for level in lapwing_ops::Level::available() {
            lapwing_ops::Level::force(Some(level)).unwrap();
            dirty_the_heap();
            let inputs = sizes.inputs(true);
            let device = Device::flex().autodiff();
            // Not through `reshape`, for which a size of 0 means the size that was there before.
            let [channels, outputs] = sizes.channels;
            let data = |at: usize, shape: &[usize]| TensorData::new(inputs[at].clone(), shape);
            let [height, width] = sizes.input;
            let x = data(0, &[sizes.images, height, width, channels]);
            let x = Tensor::<4>::from_data(x, &device).require_grad();
            let weight = data(1, &[sizes.taps[0], sizes.taps[1], channels, outputs]);
            let weight = Tensor::<4>::from_data(weight, &device);
            let bias = Tensor::<1>::from_data(data(2, &[outputs]), &device);
            let y = conv2d(x.clone(), weight, Some(bias), window);
            assert_eq!(y.dims(), [sizes.images, sizes.output(0), sizes.output(1), outputs]);
            let values: Vec<Vec<f64>> =
                inputs.iter().map(|x| x.iter().copied().map(f64::from).collect()).collect();
            let found: Vec<f64> = read(y.clone().inner()).into_iter().map(f64::from).collect();
            assert_eq!(found, sizes.reference(&values), "{sizes:?} at {level:?}");
            if outputs == 0 {
                let gradients = y.sum().backward();
                let of_x = x.grad(&gradients).map(read).unwrap_or_default();
                assert!(of_x.iter().all(|slope| *slope == 0.0), "{sizes:?} at {level:?}");
            }
        }
        lapwing_ops::Level::force(None).unwrap();
    }
}

/// Leaves blocks on the heap that are not zero, for a kernel that forgets to write its own.
fn dirty_the_heap() {
    for size in [64, 512, 4096, 16_384] {
        let blocks: Vec<Vec<f32>> = (0..16).map(|_| vec![f32::NAN; size]).collect();
        std::hint::black_box(&blocks);
    }
}

#[test]
#[should_panic(expected = "sizes")]
fn a_padding_beyond_memory_is_refused() {
    let _guard = alone();
    let device = Default::default();
    let window = Window2d { stride: [1, 1], padding: [1 << 63, 0] };
    let x = Tensor::<4>::zeros([1, 4, 4, 3], &device);
    conv2d(x, Tensor::zeros([3, 3, 3, 5], &device), None, window);
}
