//! Every method with every guard: it holds in training and in choosing the epoch, or it is refused with a sentence.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use std::ops::ControlFlow;

use lapwing_core::LapConfig;
use lapwing_train::{
    DeviceName, Guards, METHODS, MethodConfig, MethodKind, Observer, Step, Targets, TrainConfig,
    Trainer, Weighs,
};
use moons::{Moons, config, moons, network};

/// The last of the sources is wrong about everything.
const BAD: u32 = 2;

/// Every method that is content with one view of each row; `rrl.rs` has the others.
fn kinds() -> Vec<&'static dyn MethodKind> {
    METHODS.iter().copied().filter(|kind| kind.views() == 1).collect()
}

fn data() -> Moons {
    moons(120, &[0.0, 0.0, 1.0], 5)
}

fn settings() -> TrainConfig {
    let (epochs, patience) = (16, usize::MAX);
    TrainConfig { architecture: network(&[16], 0.0), epochs, patience, ..config(1) }
}

fn method(kind: &'static dyn MethodKind, guards: Guards) -> MethodConfig {
    // Strict enough to take weight from a bad source within a few epochs.
    let rule = LapConfig { history_length: 3, depression_strength: 10.0, ..LapConfig::default() };
    let method = MethodConfig::new(kind).judged_by(rule).within(guards);
    match kind.name() {
        "arfl" => method.with("tolerance", 0.3).unwrap(),
        _ => method,
    }
}

fn blocking() -> Guards {
    Guards { blocked: [BAD].into(), ..Guards::default() }
}

fn trusting() -> Guards {
    Guards { trusted: [BAD].into(), ..Guards::default() }
}

fn floor(floor: f64) -> Guards {
    Guards { floor, ..Guards::default() }
}

/// The least weight that rows, and the source itself, ever had.
struct Least<'a> {
    data: &'a Moons,
    source: u32,
    rows: f64,
    standing: f64,
}

impl Observer for Least<'_> {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        for (&row, &weight) in step.rows.iter().zip(step.weights) {
            if self.data.sources[row as usize] == self.source {
                self.rows = self.rows.min(weight);
            }
        }
        for known in step.sources.iter().filter(|known| known.source == self.source) {
            self.standing = self.standing.min(known.standing.weight);
        }
        ControlFlow::Continue(())
    }
}

/// The least weights of a source, and what it weighs in the end.
fn least(data: &Moons, method: &MethodConfig, source: u32) -> (f64, f64, f64) {
    let mut least = Least { data, source, rows: f64::INFINITY, standing: f64::INFINITY };
    let mut trainer = Trainer::new(settings(), method, data.data(), DeviceName::Cpu).unwrap();
    trainer.run(&mut least, None).unwrap();
    (least.rows, least.standing, trainer.standing(source).weight)
}

fn trained(data: &Moons, method: &MethodConfig) -> (Vec<u8>, usize) {
    let mut trainer = Trainer::new(settings(), method, data.data(), DeviceName::Cpu).unwrap();
    trainer.run(&mut (), None).unwrap();
    assert_eq!(trainer.standing(BAD).weight, 0.0);
    let dir = tempfile::tempdir().unwrap();
    trainer.model().unwrap().save(&dir.path().join("m")).unwrap();
    let best = trainer.history().iter().rposition(|epoch| epoch.best).unwrap();
    (std::fs::read(dir.path().join("m")).unwrap(), best)
}

#[test]
fn what_a_blocked_source_says_changes_nothing() {
    let wrong = data();
    let right =
        Moons { targets: Targets::Classes { labels: wrong.clean.clone(), classes: 2 }, ..data() };
    let mut differ = 0;
    for kind in kinds() {
        let blocked = method(kind, blocking());
        assert!(trained(&wrong, &blocked) == trained(&right, &blocked), "{}", kind.name());
        // It is not for want of a difference.
        let free = method(kind, Guards::default());
        let bytes = |data: &Moons| {
            let mut trainer =
                Trainer::new(settings(), &free, data.data(), DeviceName::Cpu).unwrap();
            trainer.run(&mut (), None).unwrap();
            trainer.history().last().unwrap().valid_loss
        };
        differ += usize::from(bytes(&wrong) != bytes(&right));
    }
    assert_eq!(differ, kinds().len());
}

#[test]
fn validation_rows_of_blocked_sources_alone_choose_nothing() {
    let mut data = data();
    data.valid.retain(|&row| data.sources[row as usize] == BAD);
    for kind in kinds() {
        let blocked = method(kind, blocking());
        let patient = TrainConfig { patience: 1, ..settings() };
        let mut trainer = Trainer::new(patient, &blocked, data.data(), DeviceName::Cpu).unwrap();
        trainer.run(&mut (), None).unwrap();
        let epochs = trainer.history();
        assert_eq!(epochs.len(), kind.epochs(settings().epochs), "{}", kind.name());
        assert!(epochs.iter().all(|epoch| !epoch.best && epoch.valid_score.is_none()));
    }
}

#[test]
fn a_trusted_source_never_counts_less_than_others() {
    let data = data();
    let mut lowered = Vec::new();
    for kind in kinds() {
        let name = kind.name();
        let (rows, standing, end) = least(&data, &method(kind, trusting()), BAD);
        match kind.weighs() {
            Weighs::Sources => assert_eq!((standing, end), (1.0, 1.0), "{name}"),
            Weighs::Rows | Weighs::Nothing => {
                assert_eq!((rows, standing, end), (1.0, 1.0, 1.0), "{name}");
            }
        }
        let (rows, standing, _) = least(&data, &method(kind, Guards::default()), BAD);
        if rows.min(standing) < 1.0 {
            lowered.push(name);
        }
    }
    // Those that would count it less: the test is about something.
    for name in ["lap", "co-teaching", "arfl", "noise-rate"] {
        assert!(lowered.contains(&name), "{name}: {lowered:?}");
    }
}

#[test]
fn a_floor_holds_where_sources_have_weights_and_is_refused_elsewhere() {
    let data = data();
    for kind in kinds() {
        let (name, floored) = (kind.name(), method(kind, floor(0.9)));
        if kind.weighs() == Weighs::Sources {
            for source in 0..3 {
                let (_, standing, end) = least(&data, &floored, source);
                assert!(standing >= 0.9 && end >= 0.9, "{name}, source {source}: {standing} {end}");
            }
            let free = (0..3).map(|source| least(&data, &method(kind, floor(0.0)), source).1);
            assert!(free.fold(1.0, f64::min) < 0.9, "{name}: there is nothing to hold up");
        } else {
            let error = Trainer::new(settings(), &floored, data.data(), DeviceName::Cpu).err();
            let said = error.unwrap().to_string();
            assert!(said.contains(name) && said.contains("floor"), "{said}");
        }
    }
}

#[test]
fn guards_that_contradict_and_that_leave_nobody_are_refused_by_every_method() {
    let data = data();
    for kind in kinds() {
        let said = |guards| {
            let method = method(kind, guards);
            let refused = Trainer::new(settings(), &method, data.data(), DeviceName::Cpu).err();
            refused.map(|error| error.to_string()).unwrap_or_default()
        };
        let both = Guards { blocked: [BAD].into(), ..trusting() };
        assert!(said(both).contains("both trusted and blocked"), "{}", kind.name());
        assert!(said(floor(1.5)).contains("floor"), "{}", kind.name());
        let all = Guards { blocked: [0, 1, 2].into(), ..Guards::default() };
        assert!(said(all).contains("no row to train on"), "{}", kind.name());
    }
}
