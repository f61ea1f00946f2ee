//! One or two steps of every method beside the same steps in PyTorch (double precision).

use burn::tensor::Device;
use lapwing_sample::{Data, Loss, Matrix, Targets};

use super::cdr::Cdr;
use super::co_teaching::CoTeaching;
use super::label_smoothing::LabelSmoothing;
use super::standard::Standard;
use super::*;
use crate::config::TrainConfig;
use crate::network::{Architecture, Init, MlpConfig};
use crate::optimiser::{OptimiserConfig, Pace};
use crate::parameters::{read, write};
use crate::schedule::Schedule;
use crate::shards::Workers;

// The numbers below were printed by:
//
// import torch, torch.nn.functional as F, math
// torch.set_default_dtype(torch.float64)
// X = torch.tensor([[1.0,2.0],[-1.0,0.5],[3.0,-1.0],[0.5,0.25],[-2.0,-1.5],[1.5,-0.5]])
// Y = torch.tensor([0,1,2,2,1,0]); S = [0,1,2,0,1,2]
// def net(k):
//     v = lambda p, n: torch.tensor([0.8*math.sin(1.3*i+p+k) for i in range(n)])
//     return [q.requires_grad_() for q in (v(0,8).reshape(2,4), v(1,4), v(2,12).reshape(4,3), v(3,3))]
// f = lambda t, x: F.relu(x@t[0]+t[1])@t[2]+t[3]
// class Opt:
//     def __init__(s, lr=0.3, m=0.9): s.lr, s.m, s.v = lr, m, None
//     def step(s, t, g):
//         s.v = g if s.v is None else [s.m*v+d for v, d in zip(s.v, g)]
//         with torch.no_grad():
//             for p, v in zip(t, s.v): p -= s.lr*v
// grad = lambda l, t: list(torch.autograd.grad(l, t))
// def show(name, t): print(name, [round(x, 7) for p in t for x in p.detach().flatten().tolist()])
// ce = lambda t, x=X, y=Y: F.cross_entropy(f(t,x), y, reduction='none')
// t, o = net(0), Opt()
// for _ in range(2): o.step(t, grad(ce(t).mean(), t))
// show('standard', t)
// t, o = net(0), Opt(); w = torch.tensor([1.,0,1,1,0,1])
// for _ in range(2): o.step(t, grad((w*ce(t)).mean(), t))
// show('lap', t)
// t, o = net(0), Opt()
// for _ in range(2): o.step(t, grad(F.cross_entropy(f(t,X), Y, label_smoothing=0.1), t))
// show('smoothing', t)
// a, b, oa, ob = net(0), net(5), Opt(), Opt()
// for _ in range(2):
//     la, lb = ce(a), ce(b); k = 3; ia, ib = la.argsort()[:k], lb.argsort()[:k]
//     print('chosen', sorted(ia.tolist()), sorted(ib.tolist()))
//     oa.step(a, grad(la[ib].sum()/k, a)); ob.step(b, grad(lb[ia].sum()/k, b))
// show('coteaching 1', a); show('coteaching 2', b)
// t, o, tau = net(0), Opt(), 0.4
// for _ in range(2):
//     g = grad(ce(t).mean(), t)
//     v = torch.cat([(g[i]*t[i]).abs().flatten() for i in (0,2)]); n = int((1-tau)*len(v)); th = v.topk(n)[0][-1]
//     for i in (0,2): g[i] = torch.where((g[i]*t[i]).abs() >= th, (1-tau)*g[i], 0*g[i])
//     o.step(t, g)
// show('cdr', t)
// t, o = net(0), Opt()
// for _ in range(2): o.step(t, grad(ce(t).mean(), t))
// psi = F.softmax(f(t,X),1)[range(6),Y].detach(); eta = torch.full((6,), 0.01); one = F.one_hot(Y,3).double()
// for e in range(2):
//     q = F.log_softmax(f(t,X),1)
//     r = (one*(1-eta)[:,None] + (psi*eta)[:,None]).clamp(min=1e-5); p = (r*q.exp()).detach(); p = p/p.sum(1,keepdim=True)
//     l = -(p*q).sum(1).mean(); g = grad(l, t)
//     if e >= 1:
//         d = (p*(1+(psi*eta-eta-1)[:,None]*one)).sum(1); eta = (eta+0.05*d/eta.clamp(min=1e-5)).clamp(0,1)
//     o.step(t, g)
// show('idpa', t); print('psi', psi.tolist()); print('eta', eta.tolist())
// t, os_ = net(0), [Opt(), Opt()]; alpha = [2/6]*3; N = 6.0
// for rnd in range(2):
//     done = []
//     for c in range(3):
//         idx = [i for i in range(6) if S[i]==c]; u = [p.detach().clone().requires_grad_() for p in t]
//         os_[c%2].step(u, grad(ce(u, X[idx], Y[idx]).mean(), u)); done.append(u)
//     t = [(sum(a*u[i].detach() for a, u in zip(alpha, done))/sum(alpha)).requires_grad_() for i in range(4)]
//     L = [ce(t, X[[i for i in range(6) if S[i]==c]], Y[[i for i in range(6) if S[i]==c]]).mean().item() for c in range(3)]
//     order = sorted(range(3), key=lambda c: L[c]); lam = 0.25*N; eta_s = L[order[0]]+lam/2
//     for p in range(1,4):
//         h = (sum(2*L[c] for c in order[:p])+lam)/(2*p)
//         if h < L[order[p-1]]: break
//         eta_s = h
//     alpha = [2*max(eta_s-l,0)/lam for l in L]; print('losses and shares', L, alpha)
// show('clients', t)

struct Six {
    rows: Matrix,
    targets: Targets,
    sources: Vec<u32>,
}

const ALL: [u32; 6] = [0, 1, 2, 3, 4, 5];

impl Six {
    fn new() -> Self {
        let rows = vec![1.0, 2.0, -1.0, 0.5, 3.0, -1.0, 0.5, 0.25, -2.0, -1.5, 1.5, -0.5];
        Self {
            rows: Matrix::new(rows, 2).unwrap(),
            targets: Targets::Classes { labels: vec![0, 1, 2, 2, 1, 0], classes: 3 },
            sources: vec![0, 1, 2, 0, 1, 2],
        }
    }

    fn data(&self) -> Data<'_> {
        let Self { rows, targets, sources } = self;
        Data {
            samples: rows,
            targets,
            sources,
            train: &ALL,
            valid: &[],
            relabel: None,
            items: None,
        }
    }

    /// A network with the script's parameters.
    fn learner(&self, number: u64, shift: f64) -> Learner<'_> {
        let device = Device::flex().autodiff();
        let first =
            Learner::new(&config(), self.data(), ALL.into(), &device, Workers::alone()).unwrap();
        let mut learner = first.another(&config(), number).unwrap();
        let mut parameters = read(&learner.network);
        for (place, array) in parameters.iter_mut().enumerate() {
            for (i, value) in array.values.iter_mut().enumerate() {
                *value = (0.8 * (1.3 * i as f64 + place as f64 + shift).sin()) as f32;
            }
        }
        learner.network = write(learner.network, &parameters).unwrap();
        learner
    }
}

fn config() -> TrainConfig {
    TrainConfig {
        seed: 0,
        architecture: Architecture::Mlp(MlpConfig {
            inputs: 2,
            hidden: vec![4],
            outputs: 3,
            dropout: 0.0,
            squash: None,
            softmax: false,
            init: Init::Torch,
        }),
        loss: Loss::CrossEntropy,
        optimiser: OptimiserConfig::Sgd { momentum: 0.9, weight_decay: 0.0 },
        schedule: Schedule::Constant { learning_rate: 0.3 },
        batch_size: 6,
        epochs: 2,
        patience: usize::MAX,
    }
}

fn batch(learner: &Learner<'_>, rows: &[u32], epoch: usize) -> Batch {
    let when = (epoch as u64, epoch, Pace::new(0.3));
    Batch::gather(
        &learner.data,
        &learner.target,
        rows.to_vec(),
        when,
        Workers::alone(),
        (0, 1),
        &learner.device,
    )
    .unwrap()
}

fn steps(method: &mut dyn Method, learner: &mut Learner<'_>, epochs: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for epoch in 0..epochs {
        let batch = batch(learner, &ALL, epoch);
        seen.push(method.step(learner, &batch).unwrap());
        method.end_epoch(learner, epoch).unwrap();
    }
    seen
}

fn assert_close(learner: &Learner<'_>, theirs: &[f64]) {
    let ours: Vec<f32> = read(&learner.network).into_iter().flat_map(|p| p.values).collect();
    assert_eq!(ours.len(), theirs.len());
    for (at, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((f64::from(*a) - b).abs() < 3e-6, "number {at}: {a} against {b}");
    }
}

#[test]
fn standard_training() {
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    steps(&mut Standard, &mut learner, 2);
    assert_close(
        &learner,
        &[
            0.0211917, 0.7044542, 0.5650038, -0.5502129, -0.5593253, -0.0310641, 0.7635930,
            0.2552787, 0.4017073, 0.5137332, -0.2739518, -0.7859621, 0.4954214, -0.0249291,
            -0.6642036, -0.1412246, 0.3080505, 0.8077968, -0.1110694, -0.8450954, -0.2651439,
            0.7247638, 0.5202303, -0.4464418, 0.0022425, -0.6611694, -0.4661231,
        ],
    );
}

#[test]
fn lap_multiplies_losses_by_weights_and_takes_the_mean_over_all_rows() {
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    let guards = Guards { blocked: [1].into(), ..Guards::default() };
    let lap = MethodConfig::named("lap").unwrap().within(guards);
    let mut method = lap.start(&config(), &learner).unwrap();
    let seen = steps(&mut *method, &mut learner, 2);
    assert_eq!(seen[1].weights, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    assert_close(
        &learner,
        &[
            -0.2156537, 0.7071690, 0.5586531, -0.5502129, -0.6843126, -0.0300294, 0.7644539,
            0.2552787, 0.5504647, 0.5168435, -0.2771684, -0.7859621, 0.7261819, -0.2665697,
            -0.6533236, -0.1482974, 0.3226553, 0.8002647, -0.1126609, -0.8429532, -0.2656946,
            0.7247638, 0.5202303, -0.4464418, 0.2072209, -0.8996662, -0.4326048,
        ],
    );
}

#[test]
fn label_smoothing() {
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    steps(&mut LabelSmoothing { rate: 0.1 }, &mut learner, 2);
    assert_close(
        &learner,
        &[
            0.0374716, 0.7081304, 0.5514586, -0.5502129, -0.5615178, -0.0145878, 0.7617142,
            0.2552787, 0.4117290, 0.5206519, -0.2827783, -0.7859621, 0.5042840, -0.0324778,
            -0.6655177, -0.1541232, 0.3389183, 0.7898276, -0.1256011, -0.8360637, -0.2596439,
            0.7247638, 0.5202303, -0.4464418, 0.0025530, -0.6625235, -0.4650795,
        ],
    );
}

fn co_teaching_with(second: Learner<'_>) -> CoTeaching<'_> {
    let (forget_rate, ramp_epochs, decay, divide_twice) = (0.2, 0, None, false);
    let guards = Guards::default();
    CoTeaching { forget_rate, ramp_epochs, decay, divide_twice, guards, second }
}

#[test]
fn co_teaching() {
    let six = Six::new();
    let (mut one, two) = (six.learner(0, 0.0), six.learner(1, 5.0));
    let mut method = CoTeaching { forget_rate: 0.49, ..co_teaching_with(two) };
    let seen = steps(&mut method, &mut one, 2);
    // What the second network chose.
    assert_eq!(seen[0].weights, [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(seen[1].weights, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    assert_close(
        &one,
        &[
            0.1900821, 0.5455860, 0.4555899, -0.5502129, -0.3759293, -0.1603013, 0.8052333,
            0.2552787, 0.4947857, 0.3534115, -0.3336787, -0.7859621, 0.3312759, 0.1420068,
            -0.6669941, 0.0623437, 0.3859630, 0.5263160, 0.0432722, -0.8745035, -0.3900775,
            0.7247638, 0.5202303, -0.4464418, 0.1199751, -0.6176813, -0.6273438,
        ],
    );
    let mut second = six.learner(1, 0.0);
    second.load(&method.save().unwrap().part("second")).unwrap();
    assert_close(
        &second,
        &[
            -0.7900948, 0.6272725, 0.1727276, 0.6150576, -0.5484220, -0.8045913, 0.3897237,
            0.6520009, -0.2005770, 1.0180797, 0.2413868, -0.2894632, 0.5109429, 0.7400758,
            -0.1431534, -0.8926477, -0.3794374, 0.8321802, 0.2279177, -0.4833508, -0.2137499,
            -0.0030889, 0.6448924, 0.4792916, 0.6146663, 0.0329046, -0.4947411,
        ],
    );
}

#[test]
fn cdr() {
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    steps(&mut Cdr { kept: 1.0 - 0.4 }, &mut learner, 2);
    assert_close(
        &learner,
        &[
            0.0000000, 0.7257255, 0.5090842, -0.5502129, -0.6152422, 0.0489613, 0.7732250,
            0.2552787, 0.3950355, 0.5078551, -0.2706659, -0.7859621, 0.5867556, -0.1261966,
            -0.7146282, -0.2001814, 0.4329306, 0.7418735, -0.1815361, -0.8253030, -0.1324833,
            0.7247638, 0.5202303, -0.4464418, 0.0038063, -0.6647179, -0.4641385,
        ],
    );
}

#[test]
fn idpa_over_both_phases() {
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    let mut method = MethodConfig::named("idpa").unwrap().start(&config(), &learner).unwrap();
    steps(&mut *method, &mut learner, 4);
    assert_close(
        &learner,
        &[
            0.0362577, 0.6374231, 0.8121910, -0.5502129, -0.3716446, -0.3844585, 0.7587751,
            0.2552787, 0.0268645, 0.4040803, -0.1217701, -0.7859621, 0.1519408, 0.1746497,
            -0.5203019, 0.1134235, -0.1689433, 1.0301424, 0.2175662, -0.9491190, -0.4897559,
            0.7247638, 0.5202303, -0.4464418, -0.2010926, -0.4422455, -0.4817120,
        ],
    );
    let saved = method.save().unwrap().arrays;
    let psi = [0.37806510, 0.23892064, 0.57077849, 0.38929556, 0.19280096, 0.35373093];
    let eta = [0.00000000, 0.00491605, 0.00213149, 0.00609569, 0.00000000, 0.01294405];
    for (saved, theirs) in saved.iter().zip([psi, eta]) {
        for (a, b) in saved.values.iter().zip(theirs) {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{}: {a} against {b}", saved.name);
        }
    }
}

#[test]
fn arfl_over_two_rounds_of_three_clients_with_two_optimisers() {
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    let arfl = MethodConfig::named("arfl").unwrap();
    let arfl = arfl.with("tolerance", 0.25).unwrap().with("workers", 2.0).unwrap();
    let mut method = arfl.start(&config(), &learner).unwrap();
    for round in 0..2 {
        for client in [[0, 3], [1, 4], [2, 5]] {
            let batch = batch(&learner, &client, round);
            method.step(&mut learner, &batch).unwrap();
        }
        method.end_epoch(&mut learner, round).unwrap();
    }
    assert_close(
        &learner,
        &[
            -0.3579441, 0.6323484, 0.7219916, -0.5502129, -0.6277863, -0.2813518, 0.7529298,
            0.2552787, 0.3217545, 0.4398071, -0.1727102, -0.7859621, 0.6242120, -0.3106810,
            -0.5072424, 0.0157779, 0.0094563, 0.9493884, 0.1262500, -0.9067706, -0.4407881,
            0.7247638, 0.5202303, -0.4464418, 0.2330871, -0.9960018, -0.3621353,
        ],
    );
    let weight = |source| method.standing(source).weight;
    assert_eq!((weight(0), weight(1)), (1.0, 0.0));
    assert!((weight(2) - 0.4587610 / 0.5412390).abs() < 1e-5, "{}", weight(2));
}

#[test]
fn co_teaching_forgets_more_and_slows_down_as_epochs_go_by() {
    let six = Six::new();
    let method = |decay| {
        let method = co_teaching_with(six.learner(1, 0.0));
        CoTeaching { ramp_epochs: 10, decay, ..method }
    };
    let kept: Vec<usize> = [0, 3, 9, 30].map(|epoch| method(None).kept(epoch, 90)).to_vec();
    assert_eq!(kept, [90, 84, 72, 72]);
    let learner = six.learner(0, 0.0);
    let pace = |epoch| method(Some((10, 25))).pace(&batch(&learner, &ALL, epoch));
    assert_eq!(pace(9), Pace::new(0.3));
    assert_eq!((pace(10).rate, pace(10).beta1), (0.3, 0.1));
    assert!((pace(22).rate - 0.3 * 3.0 / 15.0).abs() < 1e-12);
}

#[test]
fn methods_for_classes_refuse_values_and_the_others_start() {
    let (six, values) = (Six::new(), Targets::Values(vec![0.0; 6]));
    let device = Device::flex().autodiff();
    let mut settings = config();
    let Architecture::Mlp(mlp) = &mut settings.architecture else { unreachable!() };
    mlp.outputs = 1;
    settings.loss = Loss::SquaredError;
    let data = Data { targets: &values, ..six.data() };
    let learner = Learner::new(&settings, data, ALL.into(), &device, Workers::alone()).unwrap();
    for kind in METHODS {
        let started = MethodConfig::new(*kind).start(&settings, &learner);
        let said = started.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(kind.needs_classes(), said.contains("is for classification"), "{said}");
        assert_eq!(kind.needs_classes(), !said.is_empty(), "{}: {said}", kind.name());
    }
}

#[derive(Debug)]
struct Contrastive;

impl MethodKind for Contrastive {
    fn name(&self) -> &'static str {
        "contrastive"
    }
    fn about(&self) -> &'static str {
        "Two views of a row are alike"
    }
    fn sentence(&self, _: &MethodConfig) -> String {
        String::new()
    }
    fn views(&self) -> usize {
        2
    }
    fn start<'a>(&self, _: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(Box::new(Standard))
    }
}

#[test]
fn a_method_that_wants_several_views_of_rows_is_told_that_they_are_no_pictures() {
    let six = Six::new();
    let learner = six.learner(0, 0.0);
    let Err(error) = MethodConfig::new(&Contrastive).start(&config(), &learner) else {
        unreachable!()
    };
    let said = error.to_string();
    assert!(said.contains("learns from pictures") && said.contains("rows of 2 numbers"), "{said}");
}

#[test]
fn the_learner_embeds_rows() {
    let six = Six::new();
    let found = six.learner(0, 0.0).embeddings(&[4, 0]).unwrap().unwrap();
    // The hidden layer has four units, and rectifies.
    assert_eq!(found.values().len(), 8);
    assert!(found.values().iter().all(|value| *value >= 0.0));
    assert_ne!(found.values()[..4], found.values()[4..]);
}

#[test]
fn outputs_and_labels_are_there_to_weigh_by() {
    struct Surely(Vec<f64>);
    impl Method for Surely {
        fn weigh(&mut self, observed: &Observed<'_>) -> Result<Vec<f64>, MethodError> {
            let (all, own) = (observed.probabilities(), observed.probabilities_of_labels());
            let (all, own) = (all.unwrap(), own.unwrap());
            for ((row, label), own) in all.chunks_exact(3).zip(observed.labels).zip(&own) {
                assert!((row[*label as usize] - own).abs() < 1e-6, "{row:?} {label} {own}");
            }
            self.0.clone_from(&own);
            Ok(own)
        }
    }
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    let mut method = Surely(Vec::new());
    let seen = steps(&mut method, &mut learner, 1);
    assert_eq!(seen[0].weights, method.0);
}

#[test]
fn a_trusted_row_is_never_doubted_by_idpa() {
    let six = Six::new();
    let mut learner = six.learner(0, 0.0);
    let guards = Guards { trusted: [1].into(), ..Guards::default() };
    let idpa = MethodConfig::named("idpa").unwrap().within(guards);
    let mut method = idpa.start(&config(), &learner).unwrap();
    steps(&mut *method, &mut learner, 4);
    let saved = method.save().unwrap().arrays;
    let eta = &saved.iter().find(|array| array.name == "eta").unwrap().values;
    // Rows 1 and 4 are of the source that is trusted; the others were doubted from the start.
    assert_eq!((eta[1], eta[4]), (0.0, 0.0));
    assert!(eta[2] > 0.0 && eta[5] > 0.0, "{eta:?}");
}

#[test]
fn arfl_holds_trust_and_floor_in_the_average() {
    let six = Six::new();
    let guards = Guards { floor: 0.5, trusted: [1].into(), ..Guards::default() };
    let arfl = MethodConfig::named("arfl").unwrap().with("tolerance", 0.25).unwrap();
    let mut learner = six.learner(0, 0.0);
    let mut method = arfl.within(guards).start(&config(), &learner).unwrap();
    for client in [[0, 3], [1, 4], [2, 5]] {
        let batch = batch(&learner, &client, 0);
        method.step(&mut learner, &batch).unwrap();
    }
    method.end_epoch(&mut learner, 0).unwrap();
    // Without guards source 1 counts for nothing after the second round.
    assert_eq!(method.standing(1).weight, 1.0);
    assert!((0..3).all(|source| method.standing(source).weight >= 0.5));
}
