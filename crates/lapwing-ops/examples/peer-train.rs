//! Our side of `benches/peer/train.py`: `peer-train KEY` does as many training steps of a network as a line on standard
//! input asks for and answers with the median seconds of one; "end" is answered with the peak resident size in bytes.
#![allow(clippy::print_stdout, reason = "the answers")]

use std::io::{Write, stdin, stdout};
use std::time::Instant;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Distribution, Gradients, Int, Tensor, TensorData};
use lapwing_ops::{
    AdamStep, SgdStep, Window2d, adam_step, batch_norm, bias_relu_max_pool, conv2d, cross_entropy,
    global_average_pool, linear, max_pool2d, sgd_step, tune_process,
};

fn main() -> std::io::Result<()> {
    tune_process();
    let key = std::env::args().nth(1).unwrap_or_default();
    let device = Device::flex().autodiff();
    device.seed(0);
    let Some(mut training) = Training::new(&key, &device) else {
        return Err(std::io::Error::other(
            "peer-train mnist|moons|wide|cnn|resnet|resnet18|preact",
        ));
    };
    for line in stdin().lines() {
        match line?.trim().parse() {
            Ok(steps) => println!("{}", training.run(steps)),
            Err(_) => {
                println!("{}", peak_resident_size()?);
                return Ok(());
            }
        }
        stdout().flush()?;
    }
    Ok(())
}

/// A network's parameters, in the order of their use.
#[derive(Module, Debug)]
struct Network {
    kernels: Vec<Param<Tensor<4>>>,
    matrices: Vec<Param<Tensor<2>>>,
    vectors: Vec<Param<Tensor<1>>>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Mlp,
    Cnn,
    Resnet,
    Resnet18,
    Preact,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    None,
    Sgd,
    Adam,
}

struct Training {
    kind: Kind,
    rule: Rule,
    network: Network,
    rows: Tensor<2>,
    images: Tensor<4>,
    classes: Tensor<1, Int>,
    /// Moments of each parameter, flat.
    moments: Vec<[Option<Tensor<1>>; 2]>,
    steps: u64,
}

impl Training {
    fn new(key: &str, device: &Device) -> Option<Self> {
        let normal = Distribution::Normal(0.0, 1.0);
        let (kind, rule, batch, sizes): (_, _, _, &[usize]) = match key {
            "mnist" => (Kind::Mlp, Rule::Adam, 200, &[784, 16, 16, 10]),
            "moons" => (Kind::Mlp, Rule::Adam, 128, &[2, 100, 100, 2]),
            "wide" => (Kind::Mlp, Rule::None, 512, &[20, 2000, 2000, 5]),
            "cnn" => (Kind::Cnn, Rule::Adam, 128, &[2048, 64, 10]),
            "resnet" => (Kind::Resnet, Rule::Sgd, 128, &[64, 10]),
            "resnet18" => (Kind::Resnet18, Rule::Sgd, 64, &[512, 200]),
            "preact" => (Kind::Preact, Rule::Sgd, 128, &[512, 10]),
            _ => return None,
        };
        let mut network =
            Network { kernels: Vec::new(), matrices: Vec::new(), vectors: Vec::new() };
        match kind {
            Kind::Mlp => {}
            Kind::Cnn => {
                for (inputs, outputs) in [(3, 32), (32, 64), (64, 128)] {
                    network.kernel(3, inputs, outputs, device);
                    network.vector(outputs, 0.0, device);
                }
            }
            Kind::Resnet => {
                for (inputs, outputs, _) in resnet() {
                    network.kernel(3, inputs, outputs, device);
                    network.vector(outputs, 1.0, device);
                    network.vector(outputs, 0.0, device);
                }
            }
            Kind::Resnet18 => {
                for (side, inputs, outputs, _) in resnet18() {
                    network.kernel(side, inputs, outputs, device);
                    network.vector(outputs, 1.0, device);
                    network.vector(outputs, 0.0, device);
                }
            }
            Kind::Preact => {
                network.kernel(3, 3, 64, device);
                network.norm(64, device);
                for (inputs, outputs) in preact() {
                    network.norm(inputs, device);
                    network.kernel(3, inputs, outputs, device);
                    network.norm(outputs, device);
                    network.kernel(3, outputs, outputs, device);
                    if inputs != outputs {
                        network.kernel(1, inputs, outputs, device);
                    }
                }
            }
        }
        for pair in sizes.windows(2) {
            network.matrix(pair[0], pair[1], device);
            network.vector(pair[1], 0.0, device);
        }
        let last = sizes[sizes.len() - 1];
        let classes: Vec<i32> = (0..batch).map(|row| (row * 7 % last) as i32).collect();
        let parameters = network.kernels.len() + network.matrices.len() + network.vectors.len();
        let (columns, side) = match kind {
            Kind::Mlp => (sizes[0], 0),
            Kind::Cnn | Kind::Resnet | Kind::Preact => (0, 32),
            Kind::Resnet18 => (0, 64),
        };
        Some(Self {
            kind,
            rule,
            network,
            rows: Tensor::random([batch, columns], normal, device),
            images: Tensor::random([batch, side, side, 3], normal, device),
            classes: Tensor::from_data(TensorData::new(classes, [batch]), device),
            moments: vec![[None, None]; parameters],
            steps: 0,
        })
    }

    /// The median seconds of `steps` steps.
    fn run(&mut self, steps: usize) -> f64 {
        let mut times: Vec<f64> = (0..steps)
            .map(|_| {
                let start = Instant::now();
                self.step();
                start.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn step(&mut self) {
        self.steps += 1;
        let network = &self.network;
        let logits = match self.kind {
            Kind::Mlp => network.dense(0, self.rows.clone()),
            Kind::Cnn => network.cnn(self.images.clone()),
            Kind::Resnet => network.resnet(self.images.clone()),
            Kind::Resnet18 => network.resnet18(self.images.clone()),
            Kind::Preact => network.preact(self.images.clone()),
        };
        let mut loss = cross_entropy(logits, self.classes.clone()).mean();
        if matches!(self.kind, Kind::Preact) {
            // The second view, in a pass of its own.
            let second = network.preact(self.images.clone() * 0.5);
            loss = loss + cross_entropy(second, self.classes.clone()).mean();
        }
        let gradients = loss.backward();
        if matches!(self.rule, Rule::None) {
            return;
        }
        let mut update = Update {
            rule: self.rule,
            gradients,
            moments: self.moments.iter_mut(),
            step: self.steps,
        };
        self.network = std::mem::replace(
            &mut self.network,
            Network { kernels: Vec::new(), matrices: Vec::new(), vectors: Vec::new() },
        )
        .map(&mut update);
    }
}

impl Network {
    fn kernel(&mut self, side: usize, inputs: usize, outputs: usize, device: &Device) {
        let bound = 1.0 / ((side * side * inputs) as f64).sqrt();
        let uniform = Distribution::Uniform(-bound, bound);
        self.kernels.push(Param::from_tensor(Tensor::random(
            [side, side, inputs, outputs],
            uniform,
            device,
        )));
    }

    fn matrix(&mut self, inputs: usize, outputs: usize, device: &Device) {
        let bound = 1.0 / (inputs as f64).sqrt();
        let uniform = Distribution::Uniform(-bound, bound);
        self.matrices.push(Param::from_tensor(Tensor::random([inputs, outputs], uniform, device)));
    }

    fn vector(&mut self, len: usize, value: f32, device: &Device) {
        self.vectors.push(Param::from_tensor(Tensor::full([len], value, device)));
    }

    fn norm(&mut self, channels: usize, device: &Device) {
        self.vector(channels, 1.0, device);
        self.vector(channels, 0.0, device);
    }

    fn preact(&self, x: Tensor<4>) -> Tensor<2> {
        let (mut kernels, mut vectors) = (self.kernels.iter(), self.vectors.chunks(2));
        let mut convolve = |x: Tensor<4>, side: usize, stride: usize| {
            let window = Window2d { stride: [stride; 2], padding: [side / 2; 2] };
            let kernel = kernels.next().expect("a kernel for each convolution");
            conv2d(x, kernel.val(), None, window)
        };
        let mut norm = |x: Tensor<4>| {
            let [gamma, beta] = vectors.next().expect("a pair for each") else { unreachable!() };
            batch_norm(x, gamma.val(), beta.val(), 1e-5, None, true).0
        };
        let mut x = norm(convolve(x, 3, 1));
        for (inputs, outputs) in preact() {
            let stride = outputs / inputs;
            let a = norm(x);
            let y = norm(convolve(a.clone(), 3, stride));
            let y = convolve(y, 3, 1);
            x = y + if stride > 1 { convolve(a, 1, stride) } else { a };
        }
        self.dense(2 * (1 + 2 * preact().len()), global_average_pool(x))
    }

    /// Fully connected layers, whose biases begin at `vector`.
    fn dense(&self, vector: usize, mut x: Tensor<2>) -> Tensor<2> {
        let last = self.matrices.len() - 1;
        for (layer, (matrix, bias)) in self.matrices.iter().zip(&self.vectors[vector..]).enumerate()
        {
            x = linear(x, matrix.val(), bias.val(), layer < last);
        }
        x
    }

    fn cnn(&self, mut x: Tensor<4>) -> Tensor<2> {
        let window = Window2d { stride: [1, 1], padding: [1, 1] };
        for (kernel, bias) in self.kernels.iter().zip(&self.vectors) {
            x = bias_relu_max_pool(conv2d(x, kernel.val(), None, window), bias.val(), 2);
        }
        let [n, height, width, channels] = x.dims();
        self.dense(self.kernels.len(), x.reshape([n, height * width * channels]))
    }

    fn resnet(&self, x: Tensor<4>) -> Tensor<2> {
        let norm = |layer: usize, x, residual| {
            let (gamma, beta) = (&self.vectors[2 * layer], &self.vectors[2 * layer + 1]);
            batch_norm(x, gamma.val(), beta.val(), 1e-5, residual, true).0
        };
        let convolve = |layer: usize, x, stride| {
            let window = Window2d { stride: [stride, stride], padding: [1, 1] };
            conv2d(x, self.kernels[layer].val(), None, window)
        };
        let layers = resnet();
        let mut x = norm(0, convolve(0, x, 1), None);
        for block in (1..layers.len()).step_by(2) {
            let (inputs, outputs, stride) = layers[block];
            let shortcut = if inputs == outputs { x.clone() } else { shrunk(x.clone(), outputs) };
            let y = norm(block, convolve(block, x, stride), None);
            x = norm(block + 1, convolve(block + 1, y, 1), Some(shortcut));
        }
        self.dense(2 * layers.len(), global_average_pool(x))
    }
}

impl Network {
    fn resnet18(&self, x: Tensor<4>) -> Tensor<2> {
        let layers = resnet18();
        let apply = |layer: usize, x: Tensor<4>, residual: Option<Tensor<4>>, relu: bool| {
            let (side, _, _, stride) = layers[layer];
            let window = Window2d { stride: [stride; 2], padding: [side / 2; 2] };
            let x = conv2d(x, self.kernels[layer].val(), None, window);
            let (gamma, beta) = (&self.vectors[2 * layer], &self.vectors[2 * layer + 1]);
            batch_norm(x, gamma.val(), beta.val(), 1e-5, residual, relu).0
        };
        let x = apply(0, x, None, true);
        let mut x = max_pool2d(x, [3, 3], Window2d { stride: [2, 2], padding: [1, 1] });
        let mut layer = 1;
        while layer < layers.len() {
            let (_, inputs, outputs, _) = layers[layer];
            let grows = inputs != outputs;
            let shortcut = if grows { apply(layer + 2, x.clone(), None, false) } else { x.clone() };
            let y = apply(layer, x, None, true);
            x = apply(layer + 1, y, Some(shortcut), true);
            layer += if grows { 3 } else { 2 };
        }
        self.dense(2 * layers.len(), global_average_pool(x))
    }
}

/// Channels before and after each block of PreAct-ResNet-18.
fn preact() -> [(usize, usize); 8] {
    let after = [64, 64, 128, 128, 256, 256, 512, 512];
    std::array::from_fn(|at| (after[at.saturating_sub(1)], after[at]))
}

/// Side, channels in and out, and the stride, of each convolution of ResNet-18; a shortcut stands behind its block.
fn resnet18() -> Vec<(usize, usize, usize, usize)> {
    let mut layers = vec![(7, 3, 64, 2)];
    for (width, before) in [(64, 64), (128, 64), (256, 128), (512, 256)] {
        layers.extend([(3, before, width, width / before), (3, width, width, 1)]);
        if before != width {
            layers.push((1, before, width, 2));
        }
        layers.extend([(3, width, width, 1), (3, width, width, 1)]);
    }
    layers
}

/// Channels in and out, and the stride, of each convolution of ResNet-20.
fn resnet() -> Vec<(usize, usize, usize)> {
    let mut layers = vec![(3, 16, 1)];
    for (width, before) in [(16, 16), (32, 16), (64, 32)] {
        for block in 0..3 {
            let inputs = if block == 0 { before } else { width };
            layers.extend([(inputs, width, width / inputs), (width, width, 1)]);
        }
    }
    layers
}

/// Every second pixel, with channels of zeros before and after: a convolution with ones and zeros.
fn shrunk(x: Tensor<4>, outputs: usize) -> Tensor<4> {
    let [.., inputs] = x.dims();
    let mut kernel = vec![0.0f32; inputs * outputs];
    for channel in 0..inputs {
        kernel[channel * outputs + channel + (outputs - inputs) / 2] = 1.0;
    }
    let kernel =
        Tensor::from_data(TensorData::new(kernel, [1, 1, inputs, outputs]), &x.device().inner());
    conv2d(x, kernel, None, Window2d { stride: [2, 2], padding: [0, 0] })
}

/// Moves every parameter by the rule.
struct Update<'a> {
    rule: Rule,
    gradients: Gradients,
    moments: std::slice::IterMut<'a, [Option<Tensor<1>>; 2]>,
    step: u64,
}

impl ModuleMapper for Update<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(moments) = self.moments.next() else {
            return param;
        };
        param.map(|theta| {
            let shape = theta.dims();
            let Some(gradient) = theta.grad_remove(&mut self.gradients) else {
                return theta;
            };
            let gradient = gradient.reshape([-1]);
            let theta: Tensor<1> = theta.inner().reshape([-1]);
            let theta = match self.rule {
                Rule::Sgd => {
                    let step = SgdStep { rate: 0.1, momentum: 0.9, weight_decay: 1e-4 };
                    let (theta, velocity) = sgd_step(theta, gradient, moments[0].take(), step);
                    moments[0] = velocity;
                    theta
                }
                Rule::None | Rule::Adam => {
                    let step = AdamStep {
                        rate: 1e-3,
                        beta1: 0.9,
                        beta2: 0.999,
                        epsilon: 1e-8,
                        weight_decay: 0.0,
                        step: self.step,
                    };
                    let first = moments[0].take().unwrap_or_else(|| gradient.zeros_like());
                    let second = moments[1].take().unwrap_or_else(|| gradient.zeros_like());
                    let (theta, first, second) = adam_step(theta, gradient, first, second, step);
                    *moments = [Some(first), Some(second)];
                    theta
                }
            };
            Tensor::from_inner(theta.reshape(shape)).require_grad()
        })
    }
}

/// The largest resident size so far, in bytes.
fn peak_resident_size() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kilobytes.unwrap_or_default() * 1024)
}
