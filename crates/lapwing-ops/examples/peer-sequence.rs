//! Our side of `benches/peer/train.py` for networks of sequences and bags; see `peer-train`.
#![allow(clippy::print_stdout, reason = "the answers")]

use std::io::{Write, stdin, stdout};
use std::time::Instant;

use burn::tensor::{Device, Distribution, Gradients, Int, Tensor, TensorData};
use lapwing_ops::{
    AdamStep, Bags, Heads, Window1d, Window2d, adam_rows_step, adam_step, add_layer_norm,
    attention, bag_means, batch_norm, conv1d, cross_entropy, drop_out, linear, lstm, max_pool2d,
    rows_of, tune_process,
};

fn main() -> std::io::Result<()> {
    tune_process();
    let key = std::env::args().nth(1).unwrap_or_default();
    let device = Device::flex().autodiff();
    device.seed(0);
    let Some(mut training) = Training::new(&key, device) else {
        return Err(std::io::Error::other("peer-sequence lstm|transformer|resnet1d|bag"));
    };
    for line in stdin().lines() {
        match line?.trim().parse::<usize>() {
            Ok(steps) => {
                let mut times: Vec<f64> = (0..steps).map(|_| training.timed()).collect();
                times.sort_by(f64::total_cmp);
                println!("{}", times[times.len() / 2]);
            }
            Err(_) => {
                println!("{}", peak_resident_size()?);
                return Ok(());
            }
        }
        stdout().flush()?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Lstm,
    Transformer,
    Resnet,
    Bag,
}

/// Words, and words of a text, of the bag.
const WORDS: usize = 100_000;
const OF_A_TEXT: usize = 100;

/// Parameters in the order of their use, flat, with their shapes and moments.
struct Training {
    kind: Kind,
    device: Device,
    parameters: Vec<(Tensor<1>, Vec<usize>)>,
    moments: Vec<[Tensor<1>; 2]>,
    /// The bag's table, and its moments.
    table: [Tensor<2>; 3],
    x: Tensor<3>,
    classes: Tensor<1, Int>,
    steps: u64,
}

impl Training {
    fn new(key: &str, device: Device) -> Option<Self> {
        let (kind, batch, moments, width, classes) = match key {
            "lstm" => (Kind::Lstm, 128, 256, 256, 2),
            "transformer" => (Kind::Transformer, 256, 128, 256, 28),
            "resnet1d" => (Kind::Resnet, 64, 1000, 12, 2),
            "bag" => (Kind::Bag, 64, 1, 1, 2),
            _ => return None,
        };
        let normal = Distribution::Normal(0.0, 1.0);
        let labels: Vec<i32> = (0..batch).map(|row| row * 7 % classes).collect();
        let rows = if key == "bag" { WORDS } else { 1 };
        let plain = device.clone().inner();
        let mut training = Self {
            kind,
            parameters: Vec::new(),
            moments: Vec::new(),
            table: [0; 3].map(|_: u8| Tensor::zeros([rows, 64], &plain)),
            x: Tensor::random([batch as usize, moments, width], normal, &device),
            classes: Tensor::from_data(TensorData::new(labels, [batch as usize]), &device),
            steps: 0,
            device,
        };
        let classes = classes as usize;
        match kind {
            Kind::Lstm => {
                for inputs in [256, 512] {
                    training.matrix(inputs, 2048);
                    training.matrix(512, 2048);
                    training.vector(2048, 0.0);
                    training.vector(2048, 0.0);
                }
                training.layer(512, classes);
            }
            Kind::Transformer => {
                for _ in 0..2 {
                    training.layer(256, 768);
                    training.layer(256, 256);
                    training.vector(256, 1.0);
                    training.vector(256, 0.0);
                    training.layer(256, 2048);
                    training.layer(2048, 256);
                    training.vector(256, 1.0);
                    training.vector(256, 0.0);
                }
                training.layer(256, classes);
            }
            Kind::Resnet => {
                training.kernel(12, 12);
                for block in 1..5 {
                    training.kernel(12 * block, 12 * (block + 1));
                    training.kernel(12 * block, 12 * (block + 1));
                    training.kernel(12 * (block + 1), 12 * (block + 1));
                }
                training.layer(180, classes);
            }
            Kind::Bag => training.layer(64, classes),
        }
        Some(training)
    }

    fn add(&mut self, shape: &[usize], from: Distribution) {
        let count = shape.iter().product::<usize>();
        let plain = self.device.clone().inner();
        self.parameters.push((Tensor::random([count], from, &plain), shape.to_vec()));
        self.moments.push([0; 2].map(|_: u8| Tensor::zeros([count], &plain)));
    }

    fn uniform(&mut self, shape: &[usize], inputs: usize) {
        let bound = 1.0 / (inputs as f64).sqrt();
        self.add(shape, Distribution::Uniform(-bound, bound));
    }

    fn matrix(&mut self, inputs: usize, outputs: usize) {
        self.uniform(&[inputs, outputs], inputs);
    }

    fn vector(&mut self, count: usize, value: f64) {
        self.add(&[count], Distribution::Uniform(value, value + 1e-6));
    }

    fn layer(&mut self, inputs: usize, outputs: usize) {
        self.matrix(inputs, outputs);
        self.vector(outputs, 0.0);
    }

    fn kernel(&mut self, inputs: usize, outputs: usize) {
        self.uniform(&[15, inputs, outputs], 15 * inputs);
    }

    fn timed(&mut self) -> f64 {
        let start = Instant::now();
        self.step();
        start.elapsed().as_secs_f64()
    }

    fn step(&mut self) {
        self.steps += 1;
        let leaves: Vec<Tensor<1>> = self
            .parameters
            .iter()
            .map(|(values, _)| Tensor::from_inner(values.clone()).require_grad())
            .collect();
        let shapes: Vec<&[usize]> = self.parameters.iter().map(|(_, shape)| &shape[..]).collect();
        let mut of = Leaves { leaves: &leaves, shapes: &shapes, next: 0 };
        let mut touched = None;
        let logits = match self.kind {
            Kind::Lstm => of.lstm(self.x.clone(), self.steps),
            Kind::Transformer => of.transformer(self.x.clone(), self.steps),
            Kind::Resnet => of.resnet(self.x.clone(), self.steps),
            Kind::Bag => {
                let [batch] = self.classes.dims();
                let (words, bags) = texts(batch, self.steps);
                let rows =
                    Tensor::from_inner(rows_of(self.table[0].clone(), &words)).require_grad();
                touched = Some((words, rows.clone()));
                of.linear(bag_means(rows, &bags), false)
            }
        };
        let mut gradients = cross_entropy(logits, self.classes.clone()).mean().backward();
        let step = AdamStep {
            rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            step: self.steps,
        };
        if let Some((words, rows)) = touched {
            let slopes = rows.grad_remove(&mut gradients).expect("the table has a gradient");
            let zero = || Tensor::zeros([1, 1], &self.device.clone().inner());
            let [theta, first, second] =
                std::mem::replace(&mut self.table, [zero(), zero(), zero()]);
            self.table = adam_rows_step(theta, &words, slopes, first, second, step).into();
        }
        self.update(leaves, &mut gradients, step);
    }

    fn update(&mut self, leaves: Vec<Tensor<1>>, gradients: &mut Gradients, step: AdamStep) {
        let slopes: Vec<_> = leaves.iter().map(|leaf| leaf.grad_remove(gradients)).collect();
        // Nobody else may hold the parameters, or they would be copied.
        drop(leaves);
        for (at, slope) in slopes.into_iter().enumerate() {
            let Some(slope) = slope else { continue };
            let zero = || Tensor::zeros([1], &self.device.clone().inner());
            let theta = std::mem::replace(&mut self.parameters[at].0, zero());
            let [first, second] = std::mem::replace(&mut self.moments[at], [zero(), zero()]);
            let (theta, first, second) = adam_step(theta, slope, first, second, step);
            self.parameters[at].0 = theta;
            self.moments[at] = [first, second];
        }
    }
}

/// Other words in each text at each step.
fn texts(batch: usize, step: u64) -> (Vec<u32>, Bags) {
    let mut place = vec![u32::MAX; WORDS];
    let (mut words, mut items) = (Vec::new(), Vec::new());
    for at in 0..(batch * OF_A_TEXT) as u64 {
        let word = ((at + step * 7919).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % WORDS;
        if place[word] == u32::MAX {
            place[word] = words.len() as u32;
            words.push(word as u32);
        }
        items.push(place[word]);
    }
    (words, Bags::new(items, &vec![OF_A_TEXT as u32; batch]))
}

/// Hands out parameters in their order.
struct Leaves<'a> {
    leaves: &'a [Tensor<1>],
    shapes: &'a [&'a [usize]],
    next: usize,
}

impl Leaves<'_> {
    fn take<const D: usize>(&mut self) -> Tensor<D> {
        let shape: [usize; D] = std::array::from_fn(|axis| self.shapes[self.next][axis]);
        self.next += 1;
        self.leaves[self.next - 1].clone().reshape(shape)
    }

    fn linear(&mut self, x: Tensor<2>, relu: bool) -> Tensor<2> {
        let weight = self.take();
        linear(x, weight, self.take(), relu)
    }

    fn lstm(&mut self, mut x: Tensor<3>, seed: u64) -> Tensor<2> {
        for layer in 0..2 {
            if layer > 0 {
                x = drop_out(x, 0.25, seed);
            }
            let (inputs, memory) = (self.take(), self.take());
            let bias = self.take::<1>() + self.take::<1>();
            x = lstm(x, inputs, memory, bias);
        }
        let [n, moments, units] = x.dims();
        let x = x.narrow(1, moments - 1, 1).reshape([n, units]);
        self.linear(drop_out(x, 0.25, !seed), false)
    }

    fn transformer(&mut self, x: Tensor<3>, seed: u64) -> Tensor<2> {
        let [n, moments, width] = x.dims();
        let mut x = x.reshape([n * moments, width]);
        for layer in 0..2 {
            let chance = |at: u64| Some((0.1, seed * 100 + layer * 10 + at));
            let qkv = self.linear(x.clone(), false);
            let heads = Heads { count: 4, lengths: vec![moments as u32; n], dropout: chance(0) };
            let seen = self.linear(attention(qkv, &heads), false);
            let (gamma, beta) = (self.take(), self.take());
            x = add_layer_norm(x, seen, gamma, beta, 1e-5, chance(1));
            let y = self.linear(x.clone(), true);
            let y = self.linear(drop_out(y, 0.1, seed * 100 + layer * 10 + 2), false);
            let (gamma, beta) = (self.take(), self.take());
            x = add_layer_norm(x, y, gamma, beta, 1e-5, chance(3));
        }
        let x = x.reshape([n, moments, width]).mean_dim(1).reshape([n, width]);
        self.linear(x, false)
    }

    fn resnet(&mut self, x: Tensor<3>, seed: u64) -> Tensor<2> {
        let same = Window1d { stride: 1, padding: 7 };
        let x = normalised(conv1d(x, self.take(), None, same));
        let (mut x, mut y) = (x.clone(), x);
        for (at, (stride, padding)) in [(4, 6), (4, 5), (4, 5), (5, 5)].into_iter().enumerate() {
            let [n, moments, channels] = y.dims();
            let window = Window2d { stride: [1, stride], padding: [0, 0] };
            let pooled = max_pool2d(y.reshape([n, 1, moments, channels]), [1, stride], window);
            let [_, _, moments, _] = pooled.dims();
            let short = conv1d(pooled.reshape([n, moments, channels]), self.take(), None, same);
            let wide = normalised(conv1d(x, self.take(), None, same));
            let wide = drop_out(wide, 0.2, seed * 10 + 2 * at as u64);
            let next = conv1d(wide, self.take(), None, Window1d { stride, padding });
            let sum = normalised(next.clone() + short);
            x = drop_out(sum, 0.2, seed * 10 + 2 * at as u64 + 1);
            y = next;
        }
        let [n, moments, channels] = x.dims();
        self.linear(x.swap_dims(1, 2).reshape([n, moments * channels]), false)
    }
}

/// Batch normalisation without parameters, and ReLU.
fn normalised(x: Tensor<3>) -> Tensor<3> {
    let [n, moments, channels] = x.dims();
    let (ones, zeros) =
        (Tensor::ones([channels], &x.device()), Tensor::zeros([channels], &x.device()));
    let x = x.reshape([n, 1, moments, channels]);
    batch_norm(x, ones, zeros, 1e-5, None, true).0.reshape([n, moments, channels])
}

/// The largest resident size so far, in bytes.
fn peak_resident_size() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kilobytes.unwrap_or_default() * 1024)
}
