//! The number of workers leaves no trace: with the same shards a run has the same bytes, interrupted or not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;
mod threads;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use lapwing_core::LapConfig;
use lapwing_train::{
    CheckpointDir, Data, DeviceName, Epoch, Finish, METHODS, MethodConfig, Model, Observer,
    Schedule, Step, TrainConfig, TrainError, Trainer, Workers,
};
use moons::{Moons, Stretched, config, moons};
use threads::{Thread, together};

/// Writes down what was seen of every source, and breaks off after a given step.
#[derive(Clone, Debug, Default)]
struct Diary {
    text: String,
    stop: Option<u64>,
}

impl Observer for Diary {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.text += &format!("{} {:?}\n", step.step, step.sources);
        if self.stop == Some(step.step) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
    fn on_epoch(&mut self, epoch: &Epoch, _: &Model) {
        self.text += &format!("{epoch:?}\n");
    }
    fn save(&self) -> Vec<u8> {
        self.text.as_bytes().to_vec()
    }
    fn load(&mut self, saved: &[u8]) -> Result<(), String> {
        self.text = String::from_utf8(saved.to_vec()).map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn data() -> Moons {
    moons(60, &[0.0, 0.0, 0.1, 1.0], 7)
}

fn named(name: &str) -> MethodConfig {
    let rule = LapConfig { history_length: 5, depression_strength: 8.0, ..LapConfig::default() };
    MethodConfig::named(name).unwrap().judged_by(rule)
}

/// Batches of 30 of 192 rows: the last has 12, so that some of many shards have no row.
fn settings() -> TrainConfig {
    TrainConfig { batch_size: 30, epochs: 4, patience: 4, ..config(3) }
}

/// The bytes of model and checkpoint at the end, and the diary.
fn ending(trainer: &Trainer<'_>, diary: &Diary) -> (Vec<u8>, Vec<u8>, String) {
    let directory = tempfile::tempdir().unwrap();
    let model = directory.path().join("model.safetensors");
    trainer.model().unwrap().save(&model).unwrap();
    let place = CheckpointDir::new(directory.path());
    trainer.save(&place, diary).unwrap();
    let checkpoint = std::fs::read(&place.files()[0]).unwrap_or_default();
    (std::fs::read(model).unwrap(), checkpoint, diary.text.clone())
}

type Ending = (Vec<u8>, Vec<u8>, String);

/// Trains with so many workers to the end, and returns how the first of them ends; the others must have its model.
fn train(
    count: usize,
    shards: usize,
    config: &TrainConfig,
    method: &MethodConfig,
    data: Data<'_>,
) -> Ending {
    let mut all = together(count, |peers| {
        let workers = Workers { peers, shards };
        let mut trainer =
            Trainer::among(workers, config.clone(), method, data, DeviceName::Cpu).unwrap();
        let mut diary = Diary::default();
        assert_eq!(trainer.run(&mut diary, None).unwrap(), Finish::Done);
        ending(&trainer, &diary)
    });
    assert!(all.iter().all(|other| other.0 == all[0].0 && other.2 == all[0].2));
    all.swap_remove(0)
}

#[test]
fn one_two_and_three_workers_end_in_the_same_bytes() {
    let data = data();
    for name in ["lap", "noise-rate", "standard", "label-smoothing", "cdr", "group-dro"] {
        let method = named(name);
        let one = train(1, 4, &settings(), &method, data.data());
        for count in [2, 3, 4] {
            assert!(train(count, 4, &settings(), &method, data.data()) == one, "{name}, {count}");
        }
    }
}

#[test]
fn the_number_of_shards_is_part_of_the_run_and_one_shard_is_a_run_as_ever() {
    let (data, lap) = (data(), named("lap"));
    let of = |shards| train(1, shards, &settings(), &lap, data.data());
    let mut plain = Trainer::new(settings(), &lap, data.data(), DeviceName::Cpu).unwrap();
    let mut diary = Diary::default();
    plain.run(&mut diary, None).unwrap();
    assert!(of(1) == ending(&plain, &diary));
    let (three, fifty) = (of(3), of(50));
    assert!(three.0 != of(1).0);
    // More shards than a batch has rows, on any number of workers.
    assert!(train(3, 50, &settings(), &lap, data.data()) == fifty);
    assert!(train(3, 3, &settings(), &lap, data.data()) == three);
}

#[test]
fn batch_normalisation_with_shards_does_not_depend_on_the_workers() {
    let moons = moons(8, &[0.0, 0.2, 1.0], 5);
    let pictures = Stretched::pictures(&moons.rows);
    let data = Data { samples: &pictures, ..moons.data() };
    let shape = lapwing_train::DataShape::of(&data, 3);
    let kind = "resnet20".parse().unwrap();
    let wishes = lapwing_train::Wishes { network: Some(kind), ..Default::default() };
    let architecture = lapwing_train::Architecture::plan(&shape, &wishes).unwrap();
    let settings =
        TrainConfig { architecture, batch_size: 10, epochs: 1, patience: 1, ..config(3) };
    let lap = named("lap");
    let one = train(1, 2, &settings, &lap, data);
    assert!(train(2, 2, &settings, &lap, data) == one);
    assert!(train(1, 1, &settings, &lap, data).0 != one.0);
}

/// Goes on in a directory with so many workers, and stops after a step, if it is told to.
fn go_on(
    place: &Path,
    count: usize,
    method: &MethodConfig,
    data: Data<'_>,
    stop: Option<u64>,
) -> Ending {
    let place = CheckpointDir::new(place);
    together(count, |peers: &Thread| {
        let workers = Workers { peers, shards: 4 };
        let mut trainer =
            Trainer::among(workers, settings(), method, data, DeviceName::Cpu).unwrap();
        // Somebody else than the first worker is the one who breaks off.
        let last = peers.rank() + 1 == count;
        let mut diary = Diary { stop: stop.filter(|_| last), ..Diary::default() };
        trainer.resume(&place, &mut diary).unwrap();
        let finish = trainer.run(&mut diary, Some((&place, Duration::MAX))).unwrap();
        let expected = if stop.is_some() { Finish::Interrupted } else { Finish::Done };
        assert_eq!(finish, expected);
        ending(&trainer, &diary)
    })
    .swap_remove(0)
}

use lapwing_core::Peers as _;

#[test]
fn a_run_goes_on_with_another_number_of_workers_and_ends_in_the_same_bytes() {
    let data = data();
    for name in ["lap", "noise-rate", "standard"] {
        let method = named(name);
        let whole = train(1, 4, &settings(), &method, data.data());
        for (first, second, third) in [(3, 1, 2), (1, 4, 3)] {
            let place = tempfile::tempdir().unwrap();
            go_on(place.path(), first, &method, data.data(), Some(4));
            go_on(place.path(), second, &method, data.data(), Some(15));
            let end = go_on(place.path(), third, &method, data.data(), None);
            assert!(end == whole, "{name}: {first}, {second}, {third}");
        }
    }
}

#[test]
fn answers_on_items_are_weighed_alike_by_any_number_of_workers_interrupted_or_not() {
    let moons = data();
    // All four sources answer on each of 60 items.
    let items: Vec<u32> = (0..240).map(|row| row % 60).collect();
    let data = Data { items: Some(&items), ..moons.data() };
    let noise = named("noise-rate");
    let one = train(1, 4, &settings(), &noise, data);
    assert!(train(1, 4, &settings(), &noise, moons.data()).0 != one.0, "items make a difference");
    for count in [2, 3] {
        assert!(train(count, 4, &settings(), &noise, data) == one, "{count}");
    }
    // Stopped before answers are weighed for the first time, and after.
    let place = tempfile::tempdir().unwrap();
    go_on(place.path(), 3, &noise, data, Some(4));
    go_on(place.path(), 1, &noise, data, Some(15));
    assert!(go_on(place.path(), 2, &noise, data, None) == one);
}

#[test]
fn series_and_pictures_that_change_at_random_do_not_depend_on_the_workers() {
    let moons = moons(8, &[0.0, 0.2, 1.0], 5);
    let number = |pair: &[f32], i: usize| (pair[0] * i as f32 + pair[1]).sin();
    let spec = lapwing_train::InputSpec::Series { longest: 7, channels: 2 };
    let series = Stretched { rows: &moons.rows, spec, number, lost: None };
    let pictures = Stretched::pictures(&moons.rows);
    let changes = [lapwing_sample::Change::Flip, lapwing_sample::Change::Crop];
    let changed = lapwing_sample::Augmented::new(&pictures, &changes);
    let samples: [(&str, &dyn lapwing_train::Samples); 3] =
        [("lstm", &series), ("resnet1d", &series), ("small-cnn", &changed)];
    for (network, samples) in samples {
        let data = Data { samples, ..moons.data() };
        let shape = lapwing_train::DataShape::of(&data, 3);
        let kind = network.parse().unwrap();
        let wishes = lapwing_train::Wishes { network: Some(kind), ..Default::default() };
        let architecture = lapwing_train::Architecture::plan(&shape, &wishes).unwrap();
        let settings =
            TrainConfig { architecture, batch_size: 10, epochs: 1, patience: 1, ..config(3) };
        let lap = named("lap");
        let one = train(1, 3, &settings, &lap, data);
        for count in [2, 3] {
            assert!(train(count, 3, &settings, &lap, data) == one, "{network}, {count}");
        }
    }
}

#[test]
fn losses_that_are_not_finite_are_everybodys_business() {
    let mut poisoned = data();
    let lap = named("lap");
    let values: Vec<f32> = (0..240u32)
        .flat_map(|row| {
            let pair = poisoned.rows.row(row);
            if row % 40 == 1 { [f32::NAN, pair[1]] } else { [pair[0], pair[1]] }
        })
        .collect();
    poisoned.rows = lapwing_train::Matrix::new(values, 2).unwrap();
    let one = train(1, 4, &settings(), &lap, poisoned.data());
    assert!(one.2.contains("nonfinite: 6"), "{}", one.2);
    assert!(train(3, 4, &settings(), &lap, poisoned.data()) == one);

    // A learning rate that no network survives ends the run on all of them, at the same step.
    let schedule = Schedule::Constant { learning_rate: 1e30 };
    let wild = TrainConfig { schedule, ..settings() };
    let clean = data();
    let ends: Vec<String> = [1, 3]
        .into_iter()
        .flat_map(|count| {
            together(count, |peers| {
                let (workers, data) = (Workers { peers, shards: 4 }, clean.data());
                let trainer = Trainer::among(workers, wild.clone(), &lap, data, DeviceName::Cpu);
                let ended = trainer.unwrap().run(&mut (), None).unwrap_err();
                assert!(matches!(ended, TrainError::Diverged { .. }), "{ended}");
                ended.to_string()
            })
        })
        .collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
}

#[test]
fn a_worker_with_another_table_is_named() {
    let (data, other) = (data(), moons(60, &[0.0, 0.0, 0.1, 1.0], 8));
    let lap = named("lap");
    let said = together(3, |peers| {
        let own = if peers.rank() == 2 { &other } else { &data };
        let workers = Workers { peers, shards: 4 };
        let trainer = Trainer::among(workers, settings(), &lap, own.data(), DeviceName::Cpu);
        trainer.unwrap().run(&mut (), None).unwrap_err().to_string()
    });
    assert!(said.iter().all(|said| said.starts_with("worker 2 has other data")), "{said:?}");
}

#[test]
fn what_cannot_be_trained_in_shards_is_refused_with_a_sentence() {
    let data = data();
    let refused = |shards, count, name: &str| {
        let method = named(name);
        let refused = together(count, |peers| {
            let workers = Workers { peers, shards };
            let trainer =
                Trainer::among(workers, settings(), &method, data.data(), DeviceName::Cpu);
            trainer.err().map(|error| error.to_string())
        });
        refused.into_iter().next().flatten()
    };
    let able: Vec<&str> =
        METHODS.iter().filter(|kind| kind.runs_in_shards()).map(|kind| kind.name()).collect();
    for kind in METHODS {
        if kind.views() != 1 {
            assert!(refused(2, 1, kind.name()).unwrap().contains("learns from pictures"));
            continue;
        }
        let said = refused(2, 1, kind.name());
        assert_eq!(said.is_none(), able.contains(&kind.name()), "{said:?}");
        assert!(said.is_none_or(|said| said.contains("must see whole batches")));
        assert_eq!(refused(1, 1, kind.name()), None);
    }
    let said = refused(2, 3, "lap").unwrap();
    assert!(said.contains("3 workers cannot share batches of 2 shards"), "{said}");
}
