//! Networks for images beside PyTorch's, with parameters and images from sines; parameter counts; first parameters.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_sample::{Block, Matrix, Task, Values, View};

use super::*;
use crate::loss::cross_entropy;
use crate::parameters::{Gradient, absorb, check, gradients, read, shapes, to_vec, write};

// The numbers below were printed by:
//
// import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
// torch.set_num_threads(1)
// def numbers(p, shape, fan=None, one=False):
//     n = int(np.prod(shape)); i = np.arange(n, dtype=np.float64)
//     s = np.sin(0.7 * i + p)
//     v = s * 2 / np.sqrt(fan) if fan else (1.0 if one else 0.0) + 0.1 * s
//     return torch.tensor(v.astype(np.float32)).reshape(shape)
// class P:
//     def __init__(s): s.p = -1
//     def conv(s, i, o): s.p += 1; return numbers(s.p, (3,3,i,o), 9*i).permute(3,2,0,1).contiguous()
//     def lin(s, i, o, chw=None):
//         s.p += 1; w = numbers(s.p, (i,o), i)
//         if chw: c,h,wd = chw; w = w.reshape(h,wd,c,o).permute(2,0,1,3).reshape(i,o)
//         return w.t().contiguous()
//     def vec(s, n, one=False): s.p += 1; return numbers(s.p, (n,), None, one)
// def image(n, side, c):
//     i = np.arange(n*side*side*c, dtype=np.float64)
//     x = (0.5 + 0.5*np.sin(0.11*i + 0.0007*i*i % 6.0)).astype(np.float32).reshape(n, side, side, c)
//     return torch.tensor(x).permute(0,3,1,2).contiguous()
// def show(name, t): print(name, [float(f"{v:.8g}") for v in t.detach().flatten().tolist()])
// # Conv3Net
// P0 = P(); x = image(2, 32, 3)
// w1,b1 = P0.conv(3,32).requires_grad_(), P0.vec(32); w2,b2 = P0.conv(32,64), P0.vec(64); w3,b3 = P0.conv(64,64), P0.vec(64)
// l1,c1 = P0.lin(1024,64,(64,4,4)).requires_grad_(), P0.vec(64); l2,c2 = P0.lin(64,10), P0.vec(10)
// h = F.max_pool2d(F.relu(F.conv2d(x,w1,b1)),2); h = F.max_pool2d(F.relu(F.conv2d(h,w2,b2)),2); h = F.relu(F.conv2d(h,w3,b3))
// y = F.linear(F.relu(F.linear(h.flatten(1),l1,c1)),l2,c2); show("conv3net", y)
// F.cross_entropy(y, torch.tensor([3,7])).backward()
// show("conv3net grad norms", torch.stack([w1.grad.norm(), l1.grad.norm()]))
// # Difficult
// P0 = P(); x = image(2, 28, 1)
// w1,b1 = P0.conv(1,32), P0.vec(32); w2,b2 = P0.conv(32,64), P0.vec(64)
// l1,c1 = P0.lin(9216,128,(64,12,12)), P0.vec(128); l2,c2 = P0.lin(128,12), P0.vec(12)
// h = F.max_pool2d(F.relu(F.conv2d(F.relu(F.conv2d(x,w1,b1)),w2,b2)),2)
// show("difficult", F.linear(F.relu(F.linear(h.flatten(1),l1,c1)),l2,c2))
// # ResNet
// class NC(nn.Module):
//     def __init__(s, P0, i, o, stride):
//         super().__init__(); s.w = nn.Parameter(P0.conv(i,o)); s.stride = stride
//         s.n = nn.BatchNorm2d(o); s.n.weight.data = P0.vec(o, True); s.n.bias.data = P0.vec(o)
//         s.n.running_mean.copy_(P0.vec(o)); s.n.running_var.copy_(P0.vec(o, True))
//     def forward(s, x): return s.n(F.conv2d(x, s.w, stride=s.stride, padding=1))
// class R(nn.Module):
//     def __init__(s):
//         super().__init__(); P0 = P(); s.stem = NC(P0, 3, 16, 1); s.b = nn.ModuleList(); before = 16
//         for c in (16, 32, 64):
//             for _ in range(3):
//                 st = 1 if before == c else 2
//                 s.b.append(nn.ModuleList([NC(P0, before, c, st), NC(P0, c, c, 1)])); before = c
//         s.l = nn.Linear(64, 10); s.l.weight.data = P0.lin(64, 10); s.l.bias.data = P0.vec(10)
//     def forward(s, x):
//         x = F.relu(s.stem(x))
//         for a, b in s.b:
//             sc = x
//             if a.stride == 2:
//                 p = x.shape[1] // 2; sc = F.pad(x[:, :, ::2, ::2], (0,0,0,0,p,p))
//             x = F.relu(b(F.relu(a(x))) + sc)
//         return s.l(F.avg_pool2d(x, 8).flatten(1))
// r = R(); x = image(2, 32, 3); r.train(); y = r(x); show("resnet train", y)
// F.cross_entropy(y, torch.tensor([3,7])).backward()
// show("resnet grad norms", torch.stack([r.stem.w.grad.norm(), r.b[3][0].w.grad.norm(), r.b[8][1].n.weight.grad.norm(), r.l.weight.grad.norm()]))
// show("stem mean", r.stem.n.running_mean[:4]); show("last var", r.b[8][1].n.running_var[:4])
// r.eval(); show("resnet eval", r(x))

fn conv3net(outputs: usize) -> Architecture {
    Architecture::Conv3Net(Conv3NetConfig { outputs })
}

fn resnet20(outputs: usize) -> Architecture {
    Architecture::ResNet20(ResNet20Config { outputs, height: 32, width: 32 })
}

fn difficult_cnn(outputs: usize) -> Architecture {
    Architecture::DifficultCnn(DifficultCnnConfig { outputs })
}

/// The script's parameters: sines of the place of the array and of the number in it.
pub(crate) fn fixed(architecture: &Architecture) -> Network {
    let network = architecture.init(0, 0, &Device::flex().autodiff()).unwrap();
    let mut parameters = read(&network);
    for (place, array) in parameters.iter_mut().enumerate() {
        let inputs: usize = array.shape[..array.shape.len() - 1].iter().product();
        let ones = array.name.ends_with("gamma") || array.name.ends_with("variance");
        for (i, value) in array.values.iter_mut().enumerate() {
            let sine = (0.7 * i as f64 + place as f64).sin();
            *value = match array.shape.len() {
                1 => f64::from(u8::from(ones)) + 0.1 * sine,
                _ => sine * 2.0 / (inputs as f64).sqrt(),
            } as f32;
        }
    }
    write(network, &parameters).unwrap()
}

/// The script's inputs, one after another.
pub(crate) fn wave(i: usize) -> f32 {
    let i = i as f64;
    (0.5 + 0.5 * (0.11 * i + 0.0007 * i * i % 6.0).sin()) as f32
}

/// The script's images.
fn pictures(side: usize, channels: usize) -> Tensor<4> {
    let shape = [2, side, side, channels];
    let pixels = (0..shape.iter().product()).map(wave).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(pixels, shape), &Device::flex().autodiff())
}

pub(crate) fn close(what: &str, ours: &[f32], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (a, b) in ours.iter().zip(theirs) {
        let far = (f64::from(*a) - b).abs();
        assert!(far < tolerance * (1.0 + b.abs()), "{what}: {a} against {b}");
    }
}

fn norm(gradient: &Gradient) -> f32 {
    let Gradient::Whole(gradient) = gradient else { unreachable!() };
    to_vec(gradient.clone()).iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt() as f32
}

/// Gradients of the mean cross-entropy of two images of classes 3 and 7.
fn learnt(network: &Network, outputs: Tensor<2>) -> Vec<Gradient> {
    let labels = Tensor::from_data([3, 7], &outputs.device());
    gradients(network, &[], &mut cross_entropy(outputs, labels).mean().backward())
}

#[test]
fn conv3net_is_pytorchs() {
    let network = fixed(&conv3net(10));
    let outputs = network.forward(&Input::Images(pictures(32, 3)), None).logits;
    let theirs = [
        -0.0898404, -0.4600015, -0.6138167, -0.4789443, -0.1188169, 0.2971919, 0.5734267,
        0.5799700, 0.3137443, -0.1000402, -0.0459114, -0.3464658, -0.4840719, -0.3940115,
        -0.1186413, 0.2125278, 0.4437417, 0.4662570, 0.2694843, -0.0540311,
    ];
    close("outputs", &to_vec(outputs.clone().inner()), &theirs, 2e-5);
    let gradients = learnt(&network, outputs);
    let norms = [norm(&gradients[0]), norm(&gradients[6])];
    close("gradients", &norms, &[1.5524285, 3.3313468], 1e-4);
}

#[test]
fn the_difficult_cnn_is_pytorchs() {
    let network = fixed(&difficult_cnn(12));
    let outputs = network.forward(&Input::Images(pictures(28, 1)), None).logits;
    let theirs = [
        0.0638026, 0.0962537, 0.0834351, 0.0313757, -0.0354402, -0.0855880, -0.0954824, -0.0604700,
        0.0029824, 0.0650322, 0.0964963, 0.0825767, 0.0748830, 0.1068088, 0.0885007, 0.0285694,
        -0.0447985, -0.0970970, -0.1037293, -0.0615760, 0.0095374, 0.0761652, 0.1069714, 0.0874672,
    ];
    close("outputs", &to_vec(outputs.inner()), &theirs, 2e-5);
}

#[test]
fn resnet20_is_pytorchs_in_training_and_in_evaluation() {
    let network = fixed(&resnet20(10));
    let mut training = Training::new(Draws::of(0, Purpose::Dropout, 0, 0));
    let input = Input::Images(pictures(32, 3));
    let outputs = network.forward(&input, Some(&mut training)).logits;
    let theirs = [
        -0.4827047, -0.1898366, 0.1923145, 0.4840172, 0.5480789, 0.3543707, -0.0060037, -0.3635545,
        -0.5501199, -0.4779555, 1.5923558, 2.2428980, 1.8385698, 0.5695338, -0.9673631, -2.0492938,
        -2.1674097, -1.2661591, 0.2305863, 1.6188831,
    ];
    close("outputs in training", &to_vec(outputs.clone().inner()), &theirs, 5e-4);
    let found = learnt(&network, outputs);
    let place = |wanted: &str| {
        let learnt = |name: &str| !name.ends_with("mean") && !name.ends_with("variance");
        let names = read(&network).into_iter().map(|p| p.name).filter(|name| learnt(name));
        names.enumerate().find(|(_, name)| name == wanted).unwrap().0
    };
    let norms =
        ["stem.weight", "blocks.3.conv1.weight", "blocks.8.conv2.norm.gamma", "linear.weight"]
            .map(|name| norm(&found[place(name)]));
    close("gradients", &norms, &[337.5939300, 368.6838100, 0.3119492, 7.8564444], 2e-3);

    let network = absorb(network, training.moments);
    let kept = |name: &str| {
        let parameters = read(&network);
        parameters.iter().find(|p| p.name == name).unwrap().values[..4].to_vec()
    };
    close("mean", &kept("stem.norm.mean"), &[0.0049064, -0.0563084, -0.0910404, -0.0829547], 1e-5);
    close(
        "variance",
        &kept("blocks.8.conv2.norm.variance"),
        &[0.9210301, 0.9754936, 1.0189295, 1.0302758],
        1e-4,
    );
    let outputs = network.valid().forward(&Input::Images(pictures(32, 3).inner()), None).logits;
    let theirs = [
        0.2804605, 0.7364770, 0.8461167, 0.5578146, 0.0071635, -0.5468566, -0.8436816, -0.7437100,
        -0.2939599, 0.2940441, 0.5295068, 0.7520449, 0.6208844, 0.1977124, -0.3184469, -0.6848357,
        -0.7291355, -0.4305115, 0.0705887, 0.5384900,
    ];
    close("outputs in evaluation", &to_vec(outputs), &theirs, 1e-4);
}

#[test]
fn parameters_are_counted_as_in_the_paper() {
    assert_eq!(conv3net(10).parameters(), 122_570);
    assert_eq!(resnet20(10).parameters(), 269_722);
    assert_eq!(resnet20(100).parameters(), 275_572);
    assert_eq!(difficult_cnn(12).parameters(), 1_200_140);
    assert_eq!(resnet20(0).parameters(), 0);
    let image = [64, 64, 3];
    let resnet18 = |outputs| ResNet18Config { image, width: 64, blocks: [2, 2, 2, 2], outputs };
    let resnet50 = |outputs| ResNet50Config { image, width: 64, blocks: [3, 4, 6, 3], outputs };
    // torchvision's, for Imagenet and for Tiny-Imagenet.
    assert_eq!(Architecture::ResNet18(resnet18(1000)).parameters(), 11_689_512);
    assert_eq!(Architecture::ResNet50(resnet50(1000)).parameters(), 25_557_032);
    assert_eq!(Architecture::ResNet50(resnet50(200)).parameters(), 23_917_832);
    let printed: PrintedPreAct =
        serde_json::from_str(include_str!("fixtures/preact.json")).unwrap();
    let preact = preact_resnet18([32, 32, 3], 64, [2, 2, 2, 2], 50, 10, true);
    assert_eq!((preact.parameters(), printed.parameters), (11_223_036, 11_223_036));
}

#[test]
fn the_network_for_pictures_is_chosen_by_their_size_and_number() {
    let chosen = |side: usize, rows: usize| {
        let input = InputSpec::Image { height: side, width: side, channels: 3 };
        let shape = DataShape { rows, input, task: Task::Classification, outputs: 4, sources: 3 };
        Architecture::plan(&shape, &Wishes::default()).unwrap().kind().name()
    };
    assert_eq!([chosen(32, 300), chosen(32, 50_000)], ["small-cnn", "resnet20"]);
    assert_eq!([chosen(64, 5_000), chosen(64, 50_000)], ["small-cnn", "resnet18"]);
    assert_eq!([chosen(32, 2_000_000), chosen(64, 1_000_000)], ["resnet20", "resnet50"]);
}

#[test]
fn residual_networks_are_as_wide_as_is_wished_and_say_so() {
    let input = InputSpec::Image { height: 64, width: 64, channels: 3 };
    let shape = DataShape { rows: 500, input, task: Task::Classification, outputs: 4, sources: 3 };
    let planned = |network, hidden, dropout| {
        let network = Some(network);
        Architecture::plan(&shape, &Wishes { network, hidden, dropout, ..Wishes::default() })
    };
    for network in [NetworkKind::ResNet18, NetworkKind::ResNet50, NetworkKind::PreActResNet18] {
        let usual = planned(network, None, None).unwrap();
        let narrow = planned(network, Some(vec![16]), None).unwrap();
        // All layers but the first and the last have a quarter of the channels on both sides.
        let ratio = usual.parameters() as f64 / narrow.parameters() as f64;
        assert!((15.0..16.0).contains(&ratio), "{network:?}: {ratio}");
        assert_eq!(usual.wishes().hidden, None);
        assert_eq!(narrow.wishes().hidden, Some(vec![16]));
        assert_eq!(usual.to_string(), network.name());
        assert!(narrow.to_string().contains("of width 16"), "{narrow}");

        let error = planned(network, Some(vec![16, 16]), None).unwrap_err().to_string();
        assert!(error.contains("one width"), "{error}");
        let error = planned(network, None, Some(0.5)).unwrap_err().to_string();
        assert!(error.contains("no dropout"), "{error}");
        let error = planned(network, Some(vec![0]), None).map(|plan| plan.arrays());
        assert!(!matches!(error, Ok(Ok(_))), "{network:?}");
    }
}

#[test]
fn running_statistics_are_kept_but_not_learnt() {
    let network = fixed(&resnet20(10));
    let kept: usize = read(&network).iter().map(|p| p.values.len()).sum();
    // A mean and a variance for each of the channels of 19 normalisations.
    let channels = 16 + 6 * (16 + 32 + 64);
    assert_eq!(kept - resnet20(10).parameters(), 2 * channels);
    assert_eq!(read(&network).len() - shapes(&network).len(), 2 * 19);
}

/// Mean, standard deviation and largest size of numbers.
fn spread(values: &[f32]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let variance = values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / n;
    let largest = values.iter().map(|v| f64::from(v.abs())).fold(0.0, f64::max);
    (mean, variance.sqrt(), largest)
}

#[test]
fn first_parameters_are_drawn_as_pytorch_draws_them() {
    let device = Device::flex();
    let arrays = read(&conv3net(10).init(1, 0, &device).unwrap());
    for array in &arrays {
        // A bias is drawn like its weight, from the numbers that come in.
        let of = format!("{}.weight", array.name.split('.').next().unwrap());
        let shape = &arrays.iter().find(|p| p.name == of).unwrap().shape;
        let bound = 1.0 / (shape[..shape.len() - 1].iter().product::<usize>() as f64).sqrt();
        let (mean, std, largest) = spread(&array.values);
        let n = array.values.len() as f64;
        let expected = bound / 3.0f64.sqrt();
        assert!(mean.abs() < 5.0 * expected / n.sqrt(), "{}: {mean}", array.name);
        assert!((std / expected - 1.0).abs() < 3.0 / n.sqrt(), "{}: {std}", array.name);
        assert!(largest <= bound && (n < 100.0 || largest > 0.95 * bound), "{}", array.name);
    }
    let arrays = read(&resnet20(10).init(1, 0, &device).unwrap());
    for array in &arrays {
        let (mean, std, largest) = spread(&array.values);
        let n = array.values.len() as f64;
        match array.name.rsplit('.').next().unwrap() {
            "weight" => {
                let inputs: usize = array.shape[..array.shape.len() - 1].iter().product();
                let expected = (2.0 / inputs as f64).sqrt();
                assert!(mean.abs() < 5.0 * expected / n.sqrt(), "{}: {mean}", array.name);
                assert!((std / expected - 1.0).abs() < 4.0 / n.sqrt(), "{}: {std}", array.name);
                assert!(largest < 6.0 * expected, "{}", array.name);
            }
            "gamma" | "variance" => assert!(array.values.iter().all(|v| *v == 1.0)),
            "bias" => assert!(largest <= 1.0 / 8.0 && largest > 0.0),
            _ => assert!(array.values.iter().all(|v| *v == 0.0)),
        }
    }
}

#[test]
fn dropout_of_channels_zeroes_whole_channels() {
    let x = Tensor::<4>::ones([8, 2, 2, 64], &Device::flex());
    let mut training = Training::new(Draws::of(0, Purpose::Dropout, 0, 0));
    let found = to_vec(layers::drop_channels(x, 0.25, Some(&mut training)));
    let mut dropped = 0;
    for image in found.chunks_exact(4 * 64) {
        for channel in 0..64 {
            let pixels: Vec<f32> = (0..4).map(|pixel| image[pixel * 64 + channel]).collect();
            assert!(pixels.iter().all(|p| *p == pixels[0]));
            assert!(pixels[0] == 0.0 || (pixels[0] - 4.0 / 3.0).abs() < 1e-6);
            dropped += usize::from(pixels[0] == 0.0);
        }
    }
    // Of 512 with probability a quarter: mean 128, standard deviation 9.8.
    assert!((80..=176).contains(&dropped), "{dropped}");
}

/// One of each network, for data of a shape it takes.
fn one_of_each() -> Vec<Architecture> {
    let forms = [
        InputSpec::Vector { width: 7 },
        InputSpec::Image { height: 32, width: 32, channels: 3 },
        InputSpec::Image { height: 28, width: 28, channels: 1 },
        InputSpec::Text { longest: 5, vocabulary: 9, width: 2 },
        InputSpec::Series { longest: 20, channels: 3 },
    ];
    let plan = |&kind: &NetworkKind| {
        let input = *forms.iter().find(|form| kind.takes(form)).unwrap();
        let shape =
            DataShape { rows: 500, input, task: Task::Classification, outputs: 4, sources: 3 };
        Architecture::plan(&shape, &Wishes { network: Some(kind), ..Wishes::default() }).unwrap()
    };
    NetworkKind::ALL.iter().map(plan).collect()
}

#[test]
fn every_network_says_before_it_is_built_which_arrays_it_has() {
    for architecture in one_of_each() {
        let name = architecture.kind().name();
        let network = architecture.init(1, 0, &Device::flex().autodiff()).unwrap();
        let (told, found) = (architecture.arrays().unwrap(), read(&network));
        let named = |name: &String, shape: &Vec<usize>| (name.clone(), shape.clone());
        let told_of: Vec<_> = told.iter().map(|array| named(&array.name, &array.shape)).collect();
        let found_of: Vec<_> = found.iter().map(|array| named(&array.name, &array.shape)).collect();
        assert_eq!(told_of, found_of, "{name}");
        let learnt: Vec<_> =
            told.iter().filter(|array| array.learnt).map(|array| array.shape.clone()).collect();
        assert_eq!(learnt, shapes(&network), "{name}");
        let learnt = learnt.iter().map(|shape| shape.iter().product::<usize>()).sum::<usize>();
        assert_eq!(architecture.parameters(), learnt, "{name}");

        check(&told, &found).unwrap();
        assert!(check(&told, &found[1..]).is_err(), "{name}");
        let mut wrong = found.clone();
        wrong[0].shape[0] += 1;
        assert!(check(&told, &wrong).is_err(), "{name}");
        let mut wrong = found.clone();
        wrong[0].name.push('x');
        assert!(check(&told, &wrong).is_err(), "{name}");
    }
}

#[test]
fn every_network_has_a_name_a_line_and_a_written_form() {
    for architecture in one_of_each() {
        let kind = architecture.kind();
        assert_eq!(kind.name().parse(), Ok(kind));
        assert!(!kind.about().is_empty() && !kind.takes_in_words().is_empty());
        let json = serde_json::to_value(&architecture).unwrap();
        assert_eq!(json["kind"], kind.name());
        assert_eq!(serde_json::from_value::<Architecture>(json.clone()).unwrap(), architecture);
        let mut unknown = json.clone();
        unknown["colour"] = "red".into();
        assert!(serde_json::from_value::<Architecture>(unknown).is_err(), "{json}");
        let mut other = json;
        other["kind"] = "perceptron".into();
        let error = serde_json::from_value::<Architecture>(other).unwrap_err().to_string();
        assert!(NetworkKind::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    }
}

#[test]
fn every_network_gives_outputs_and_an_embedding_as_wide_as_it_says() {
    for architecture in one_of_each() {
        let (name, outputs) = (architecture.kind().name(), architecture.outputs());
        let network = architecture.init(1, 0, &Device::flex()).unwrap();
        let spec = architecture.input();
        let input = match spec {
            InputSpec::Text { width, .. } => {
                let values = Values::Texts { tokens: vec![7, 7, 0], numbers: vec![0.5; 2 * width] };
                Input::of(Block { values, lengths: Some(vec![3, 0]) }, spec, 2, &Device::flex())
            }
            InputSpec::Tokens { longest, .. } => {
                let values = Values::Tokens(vec![3; 2 * longest]);
                Input::of(Block { values, lengths: Some(vec![3, 0]) }, spec, 2, &Device::flex())
            }
            _ => {
                let samples = Matrix::of(vec![0.5; 3 * spec.size()], spec).unwrap();
                Input::gather(&samples, &[2, 0], View::Plain, &Device::flex()).unwrap()
            }
        };
        let found = network.forward(&input, None);
        assert_eq!(found.logits.dims(), [2, outputs], "{name}");
        assert!(found.embedding.is_none_or(|e| e.dims()[0] == 2), "{name}");
    }
}

#[test]
fn a_network_that_is_not_for_the_samples_is_refused_with_what_it_takes() {
    let input = InputSpec::Vector { width: 7 };
    let shape = DataShape { rows: 500, input, task: Task::Classification, outputs: 4, sources: 3 };
    let planned = |network| Architecture::plan(&shape, &Wishes { network, ..Wishes::default() });
    assert_eq!(planned(None).unwrap().kind(), NetworkKind::Mlp);
    let error = planned(Some(NetworkKind::ResNet20)).unwrap_err().to_string();
    assert!(error.contains("in colour") && error.contains("rows of 7 numbers"), "{error}");
    let odd = InputSpec::Image { height: 7, width: 5, channels: 2 };
    let shape = DataShape { input: odd, ..shape };
    assert_eq!(Architecture::plan(&shape, &Wishes::default()), Err(PlanError::NoNetwork(odd)));
    let image = InputSpec::Image { height: 32, width: 32, channels: 3 };
    let wishes = Wishes { hidden: Some(vec![3]), ..Wishes::default() };
    let error = Architecture::plan(&DataShape { input: image, ..shape }, &wishes).unwrap_err();
    assert!(matches!(error, PlanError::Wish { network: "small-cnn", .. }), "{error}");
}

#[test]
fn files_that_ask_for_more_than_any_network_has_are_refused() {
    for architecture in [resnet20(0), resnet20(1 << 21), conv3net(1 << 21)] {
        assert!(architecture.arrays().is_err(), "{architecture:?}");
        assert_eq!(architecture.parameters(), 0);
    }
}

/// What `fixtures/residual.py` printed.
#[derive(serde::Deserialize)]
struct Printed {
    width: usize,
    blocks: [usize; 4],
    classes: usize,
    cases: Vec<PrintedCase>,
}

#[derive(serde::Deserialize)]
struct PrintedCase {
    side: usize,
    bottleneck: bool,
    training: Vec<f64>,
    gradients: std::collections::BTreeMap<String, Vec<f64>>,
    stem_mean: Vec<f64>,
    evaluation: Vec<f64>,
}

#[test]
fn residual_networks_are_torchvisions_in_training_gradients_and_evaluation() {
    let printed: Printed = serde_json::from_str(include_str!("fixtures/residual.json")).unwrap();
    let Printed { width, blocks, classes: outputs, cases } = printed;
    for case in cases {
        let image = [case.side, case.side, 3];
        let architecture = match case.bottleneck {
            false => Architecture::ResNet18(ResNet18Config { image, width, blocks, outputs }),
            true => Architecture::ResNet50(ResNet50Config { image, width, blocks, outputs }),
        };
        let what = |what: &str| format!("{what} of {architecture:?}");
        let network = fixed(&architecture);
        let mut training = Training::new(Draws::of(0, Purpose::Dropout, 0, 0));
        let input = Input::Images(pictures(case.side, 3));
        let logits = network.forward(&input, Some(&mut training)).logits;
        close(&what("outputs"), &to_vec(logits.clone().inner()), &case.training, 5e-4);

        let labels = Tensor::from_data([3, 1], &logits.device());
        let found = gradients(&network, &[], &mut cross_entropy(logits, labels).mean().backward());
        let learnt = architecture.arrays().unwrap().into_iter().filter(|array| array.learnt);
        let learnt: Vec<String> = learnt.map(|array| array.name).collect();
        assert_eq!(learnt.len(), case.gradients.len());
        for (name, gradient) in learnt.iter().zip(&found) {
            let theirs = &case.gradients[name.strip_prefix("layers.").unwrap_or(name)];
            let Gradient::Whole(ours) = gradient else { unreachable!() };
            let ours = to_vec(ours.clone());
            close(&what(name), &[norm(gradient)], &theirs[..1], 1e-3);
            // Beside the size of the whole, as small numbers are sums of large ones.
            let scale = theirs[0];
            let beside = |value: f64| value / scale;
            let ours: Vec<f32> =
                ours.iter().take(6).map(|g| beside(f64::from(*g)) as f32).collect();
            let theirs: Vec<f64> = theirs[1..].iter().map(|&g| beside(g)).collect();
            close(&what(name), &ours, &theirs, 1e-3);
        }

        let network = absorb(network, training.moments);
        let parameters = read(&network);
        let mean = parameters.iter().find(|p| p.name.ends_with("stem.norm.mean")).unwrap();
        close(&what("mean"), &mean.values, &case.stem_mean, 1e-5);
        let input = Input::Images(pictures(case.side, 3).inner());
        let logits = network.valid().forward(&input, None).logits;
        close(&what("outputs in evaluation"), &to_vec(logits), &case.evaluation, 1e-4);
    }
}

fn preact_resnet18(
    image: [usize; 3],
    width: usize,
    blocks: [usize; 4],
    embedding: usize,
    outputs: usize,
    stem_relu: bool,
) -> Architecture {
    Architecture::PreActResNet18(PreActResNet18Config {
        image,
        width,
        blocks,
        embedding,
        outputs,
        stem_relu,
    })
}

/// What `fixtures/preact.py` printed.
#[derive(serde::Deserialize)]
struct PrintedPreAct {
    parameters: usize,
    cases: Vec<PreActCase>,
}

#[derive(serde::Deserialize)]
struct PreActCase {
    stem_relu: bool,
    training: Vec<f64>,
    embedding: Vec<f64>,
    reconstruction: Vec<f64>,
    gradients: std::collections::BTreeMap<String, Vec<f64>>,
    last_mean: Vec<f64>,
    evaluation: Vec<f64>,
}

#[test]
fn preact_resnet18_is_pytorchs_in_all_heads_gradients_and_evaluation() {
    let printed: PrintedPreAct =
        serde_json::from_str(include_str!("fixtures/preact.json")).unwrap();
    for case in printed.cases {
        let architecture = preact_resnet18([16, 16, 3], 4, [1, 2, 1, 1], 6, 5, case.stem_relu);
        let network = fixed(&architecture);
        let mut training = Training::new(Draws::of(0, Purpose::Dropout, 0, 0));
        let input = Input::Images(pictures(16, 3));
        let Outputs { logits, embedding } = network.forward(&input, Some(&mut training));
        let features = embedding.unwrap();
        let Projection { embedding, rebuilt } = network.project(features.clone()).unwrap();
        close("outputs", &to_vec(logits.clone().inner()), &case.training, 2e-5);
        close("embedding", &to_vec(embedding.clone().inner()), &case.embedding, 2e-5);
        let rebuilt = (rebuilt - features).square().mean_dim(1);
        close("reconstruction", &to_vec(rebuilt.clone().inner()), &case.reconstruction, 2e-5);

        let labels = Tensor::from_data([3, 1], &logits.device());
        let [one, two] = [0..1, 1..2].map(|row| embedding.clone().slice([row, 0..6]));
        let loss = cross_entropy(logits, labels).mean() + rebuilt.mean() - (one * two).sum();
        let found = gradients(&network, &[], &mut loss.backward());
        let learnt = architecture.arrays().unwrap().into_iter().filter(|array| array.learnt);
        let learnt: Vec<String> = learnt.map(|array| array.name).collect();
        assert_eq!(learnt.len(), case.gradients.len());
        for (name, gradient) in learnt.iter().zip(&found) {
            let theirs = &case.gradients[name];
            let Gradient::Whole(ours) = gradient else { unreachable!() };
            close(name, &[norm(gradient)], &theirs[..1], 1e-3);
            if theirs[0] < 1e-3 {
                // The next layer normalises it away, but for its ε.
                continue;
            }
            // Beside the size of the whole, as small numbers are sums of large ones.
            let beside = |value: f64| value / theirs[0];
            let ours: Vec<f32> =
                to_vec(ours.clone()).iter().take(4).map(|g| beside(f64::from(*g)) as f32).collect();
            let theirs: Vec<f64> = theirs[1..].iter().map(|&g| beside(g)).collect();
            close(name, &ours, &theirs, 1e-3);
        }

        let network = absorb(network, training.moments);
        let parameters = read(&network);
        let mean = parameters.iter().find(|p| p.name == "blocks.4.norm.mean").unwrap();
        close("mean", &mean.values, &case.last_mean, 1e-5);
        let input = Input::Images(pictures(16, 3).inner());
        let logits = network.valid().forward(&input, None).logits;
        close("outputs in evaluation", &to_vec(logits), &case.evaluation, 1e-4);
    }
}
