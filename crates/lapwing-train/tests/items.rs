//! Several answers on the same item: they are weighed against each other, and a run that is stopped goes on the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use std::ops::ControlFlow;
use std::time::Duration;

use lapwing_train::{
    CheckpointDir, Data, DeviceName, Finish, Matrix, MethodConfig, Observer, Predictions, Step,
    Targets, TrainConfig, Trainer,
};
use moons::{Moons, config, moons};

const ANSWERS: u32 = 5;

/// The moons, each answered by five: two are right, and three give the label of another item, which most often is one and
/// the same wrong label.
fn answered() -> (Moons, Vec<u32>) {
    let seen = moons(80, &[0.0], 3);
    let count = seen.clean.len() as u32;
    let (mut values, mut labels, mut sources, mut items, mut clean) =
        (vec![], vec![], vec![], vec![], vec![]);
    for item in 0..count {
        for source in 0..ANSWERS {
            values.extend_from_slice(seen.rows.row(item));
            let other = (item * 7 + source * source) % count;
            let truth = seen.clean[item as usize];
            labels.push(if source < 2 { truth } else { seen.clean[other as usize] });
            clean.push(truth);
            sources.push(source);
            items.push(item);
        }
    }
    let rows = 0..labels.len() as u32;
    let validates = |row: &u32| (row / ANSWERS).is_multiple_of(5);
    let moons = Moons {
        rows: Matrix::new(values, 2).unwrap(),
        targets: Targets::Classes { labels, classes: 2 },
        clean,
        sources,
        train: rows.clone().filter(|row| !validates(row)).collect(),
        valid: rows.filter(validates).collect(),
    };
    (moons, items)
}

fn trainer(data: Data<'_>, epochs: usize) -> Trainer<'_> {
    let method = MethodConfig::named("noise-rate").unwrap();
    let config = TrainConfig { epochs, patience: epochs, ..config(3) };
    Trainer::new(config, &method, data, DeviceName::Cpu).unwrap()
}

fn right(data: &Moons, trainer: &Trainer<'_>) -> f64 {
    let rows: Vec<u32> = (0..data.clean.len() as u32).step_by(ANSWERS as usize).collect();
    let said = trainer.model().unwrap().predict(&data.rows, &rows).unwrap();
    let Predictions::Classes { probabilities, .. } = said else { panic!() };
    let classes = probabilities.chunks_exact(2).map(|p| u32::from(p[1] > p[0]));
    let right = rows.iter().zip(classes).filter(|(row, said)| data.clean[**row as usize] == *said);
    right.count() as f64 / rows.len() as f64
}

struct Stop(Option<u64>);

impl Observer for Stop {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        match self.0 == Some(step.step) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn answers_on_an_item_are_learnt_together() {
    let (data, items) = answered();
    let mut alone = trainer(data.data(), 40);
    alone.run(&mut (), None).unwrap();
    let mut together = trainer(Data { items: Some(&items), ..data.data() }, 40);
    together.run(&mut (), None).unwrap();
    let (alone, together) = (right(&data, &alone), right(&data, &together));
    assert!(together >= alone && together > 0.85, "{alone} alone, {together} together");
    // Only what was learnt from the last weighing can be the result.
    let best = |trainer: &Trainer<'_>| {
        trainer.history().iter().filter(|epoch| epoch.candidate).map(|epoch| epoch.epoch).min()
    };
    let mut short = trainer(Data { items: Some(&items), ..data.data() }, 20);
    short.run(&mut (), None).unwrap();
    assert_eq!(best(&short), Some(17));
}

#[test]
fn stopped_before_between_and_after_answers_are_weighed_it_ends_in_the_same_bytes() {
    let (data, items) = answered();
    let new = || trainer(Data { items: Some(&items), ..data.data() }, 4);
    let bytes = |trainer: &Trainer<'_>| {
        let place = tempfile::tempdir().unwrap();
        trainer.model().unwrap().save(&place.path().join("m.safetensors")).unwrap();
        std::fs::read(place.path().join("m.safetensors")).unwrap()
    };
    let mut whole = new();
    whole.run(&mut (), None).unwrap();
    let steps = whole.steps();
    for stop in [0, steps * 3 / 10 - 1, steps * 3 / 10, steps / 2, steps - 2] {
        let place = tempfile::tempdir().unwrap();
        let place = CheckpointDir::new(place.path().join("checkpoint"));
        let mut first = new();
        let ended = first.run(&mut Stop(Some(stop)), Some((&place, Duration::MAX))).unwrap();
        assert_eq!(ended, Finish::Interrupted);
        let mut second = new();
        second.resume(&place, &mut Stop(None)).unwrap();
        second.run(&mut Stop(None), None).unwrap();
        assert!(bytes(&second) == bytes(&whole), "stopped at step {stop} of {steps}");
        assert_eq!(second.history(), whole.history());
        // Without the items it is another run.
        let mut other = trainer(data.data(), 4);
        assert!(other.resume(&place, &mut Stop(None)).is_err());
    }
}
