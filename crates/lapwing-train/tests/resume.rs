//! A run that is stopped anywhere, or finds its checkpoint damaged, ends in the same bytes as one that is not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use lapwing_core::LapConfig;
use lapwing_train::{
    CheckpointDir, DeviceName, Epoch, Finish, MethodConfig, Model, Observer, Resumed, Step,
    TrainConfig, TrainError, Trainer,
};
use moons::{Moons, config, moons};

/// Writes down what it sees, and breaks off after a given step.
#[derive(Clone, Debug, Default, PartialEq)]
struct Diary {
    text: String,
    stop: Option<u64>,
}

impl Observer for Diary {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.text += &format!("{} {:?} {:?}\n", step.step, step.losses, step.sources);
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

fn lap() -> MethodConfig {
    let rule = LapConfig { history_length: 5, depression_strength: 8.0, ..LapConfig::default() };
    MethodConfig::named("lap").unwrap().judged_by(rule)
}

fn trainer<'a>(data: &'a Moons, config: TrainConfig) -> Trainer<'a> {
    Trainer::new(config, &lap(), data.data(), DeviceName::Cpu).unwrap()
}

/// Parameters, epochs and diary at the end.
fn ending(trainer: &Trainer<'_>, diary: &Diary) -> (Vec<u8>, Vec<Epoch>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    trainer.model().unwrap().save(&path).unwrap();
    (std::fs::read(path).unwrap(), trainer.history().to_vec(), diary.text.clone())
}

fn uninterrupted(data: &Moons) -> (Vec<u8>, Vec<Epoch>, String) {
    let (mut trainer, mut diary) = (trainer(data, config(3)), Diary::default());
    assert_eq!(trainer.run(&mut diary, None).unwrap(), Finish::Done);
    ending(&trainer, &diary)
}

const NEVER: Duration = Duration::MAX;

/// Starts or resumes, and runs until `stop` if given.
fn session(
    data: &Moons,
    dir: &CheckpointDir,
    stop: Option<u64>,
) -> (Finish, Resumed, (Vec<u8>, Vec<Epoch>, String)) {
    let (mut trainer, mut diary) = (trainer(data, config(3)), Diary { stop, ..Diary::default() });
    let resumed = trainer.resume(dir, &mut diary).unwrap();
    let finish = trainer.run(&mut diary, Some((dir, NEVER))).unwrap();
    (finish, resumed, ending(&trainer, &diary))
}

#[test]
fn stopped_at_any_step_and_resumed_it_ends_in_the_same_bytes() {
    let data = data();
    let expected = uninterrupted(&data);
    // 192 training rows in batches of 32: six steps per epoch, so 5, 11 and 35 are the last of their epochs.
    for stop in [0, 1, 4, 5, 6, 11, 17, 22, 34, 35] {
        let dir = tempfile::tempdir().unwrap();
        let dir = CheckpointDir::new(dir.path().join("checkpoint"));
        assert_eq!(session(&data, &dir, Some(stop)).0, Finish::Interrupted);
        let (finish, resumed, end) = session(&data, &dir, None);
        assert_eq!(finish, Finish::Done);
        assert!(matches!(resumed, Resumed::At { step } if step == stop + 1), "{resumed:?}");
        assert!(end == expected, "stopped at step {stop}");
    }
}

#[test]
fn stopped_many_times_it_ends_in_the_same_bytes() {
    let data = data();
    let dir = tempfile::tempdir().unwrap();
    let dir = CheckpointDir::new(dir.path());
    for stop in [3, 4, 9, 20, 21] {
        assert_eq!(session(&data, &dir, Some(stop)).0, Finish::Interrupted);
    }
    assert!(session(&data, &dir, None).2 == uninterrupted(&data));
}

#[test]
fn writing_checkpoints_changes_nothing_and_a_finished_run_stays_finished() {
    let data = data();
    let dir = tempfile::tempdir().unwrap();
    let dir = CheckpointDir::new(dir.path());
    let (mut one, mut diary) = (trainer(&data, config(3)), Diary::default());
    assert!(matches!(one.resume(&dir, &mut diary).unwrap(), Resumed::Fresh));
    one.run(&mut diary, Some((&dir, Duration::ZERO))).unwrap();
    assert!(ending(&one, &diary) == uninterrupted(&data));
    let (finish, resumed, end) = session(&data, &dir, None);
    assert_eq!(finish, Finish::Done);
    assert!(matches!(resumed, Resumed::At { step: 36 }), "{resumed:?}");
    assert!(end == uninterrupted(&data));
}

fn damage(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    how(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so() {
    let data = data();
    let expected = uninterrupted(&data);
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let dir = CheckpointDir::new(&whole);
    session(&data, &dir, Some(8));
    session(&data, &dir, Some(14));
    let length = std::fs::metadata(whole.join("checkpoint.safetensors")).unwrap().len() as usize;
    // Bytes all over the file (lengths, JSON, numbers, checksum), and truncations.
    for case in 0..40 {
        let copy = root.path().join(format!("copy{case}"));
        std::fs::create_dir(&copy).unwrap();
        for name in ["checkpoint.safetensors", "checkpoint.previous.safetensors"] {
            std::fs::copy(whole.join(name), copy.join(name)).unwrap();
        }
        let place = case * 7_919 * 31 % length;
        damage(&copy.join("checkpoint.safetensors"), |bytes| {
            if case % 2 == 0 {
                bytes[place] ^= 1 << (case % 8);
            } else {
                bytes.truncate(place);
            }
        });
        let mut diary = Diary::default();
        let mut again = trainer(&data, config(3));
        let resumed = again.resume(&CheckpointDir::new(&copy), &mut diary).unwrap();
        match resumed {
            Resumed::Fallback { step: 9, damaged } => {
                assert!(damaged.to_string().contains("checkpoint.safetensors"), "{damaged}");
            }
            other => panic!("case {case}: {other:?}"),
        }
        assert!(copy.join("checkpoint.damaged.safetensors").exists(), "nothing is thrown away");
        if case < 2 {
            again.run(&mut diary, Some((&CheckpointDir::new(&copy), Duration::ZERO))).unwrap();
            assert!(ending(&again, &diary) == expected, "case {case}");
        }
    }
}

#[test]
fn a_crash_between_the_two_renames_loses_one_checkpoint_and_no_more() {
    let data = data();
    let root = tempfile::tempdir().unwrap();
    let dir = CheckpointDir::new(root.path());
    session(&data, &dir, Some(8));
    session(&data, &dir, Some(14));
    std::fs::remove_file(root.path().join("checkpoint.safetensors")).unwrap();
    let (_, resumed, end) = session(&data, &dir, None);
    assert!(matches!(resumed, Resumed::At { step: 9 }), "{resumed:?}");
    assert!(end == uninterrupted(&data));
}

#[test]
fn with_both_damaged_it_stops_and_changes_nothing() {
    let data = data();
    let root = tempfile::tempdir().unwrap();
    let dir = CheckpointDir::new(root.path());
    session(&data, &dir, Some(8));
    session(&data, &dir, Some(14));
    for name in ["checkpoint.safetensors", "checkpoint.previous.safetensors"] {
        damage(&root.path().join(name), |bytes| bytes.truncate(100));
    }
    let error = trainer(&data, config(3)).resume(&dir, &mut ()).unwrap_err();
    assert!(matches!(error, TrainError::Checkpoint(_)), "{error}");
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let data = data();
    let root = tempfile::tempdir().unwrap();
    let dir = CheckpointDir::new(root.path());
    session(&data, &dir, Some(8));
    let refused =
        |mut other: Trainer<'_>| matches!(other.resume(&dir, &mut ()), Err(TrainError::OtherRun));
    assert!(refused(trainer(&data, config(4))));
    assert!(refused(trainer(&data, TrainConfig { batch_size: 16, ..config(3) })));
    assert!(refused(trainer(&moons(60, &[0.0, 0.0, 0.1, 1.0], 8), config(3))));
    assert!(refused(
        Trainer::new(
            config(3),
            &MethodConfig::named("standard").unwrap(),
            data.data(),
            DeviceName::Cpu
        )
        .unwrap()
    ));
    assert!(!refused(trainer(&data, config(3))));
}

/// Changes the JSON part of a checkpoint, or its column of sources, and gives it a right checksum.
fn forge(path: &Path, how: impl FnOnce(&mut serde_json::Value, &mut Vec<u64>)) {
    let bytes = std::fs::read(path).unwrap();
    let container = safetensors::SafeTensors::deserialize(&bytes[..bytes.len() - 32]).unwrap();
    let mut state = serde_json::from_slice(container.tensor("state").unwrap().data()).unwrap();
    let column = container.tensor("method.source").unwrap();
    let mut sources: Vec<u64> =
        column.data().as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
    how(&mut state, &mut sources);
    let text = state.to_string().into_bytes();
    let sources: Vec<u8> = sources.iter().flat_map(|number| number.to_le_bytes()).collect();
    let forged = container.tensors().into_iter().map(|(name, view)| {
        let (shape, data) = match name.as_str() {
            "state" => (vec![text.len()], &text[..]),
            "method.source" => (vec![sources.len() / 8], &sources[..]),
            _ => (view.shape().to_vec(), view.data()),
        };
        (name, safetensors::tensor::TensorView::new(view.dtype(), shape, data).unwrap())
    });
    let mut forged = safetensors::serialize(forged.collect::<Vec<_>>(), None).unwrap();
    let digest = blake3::hash(&forged);
    forged.extend_from_slice(digest.as_bytes());
    std::fs::write(path, forged).unwrap();
}

/// What is said of a checkpoint that was forged.
fn said_of(forgery: fn(&mut serde_json::Value, &mut Vec<u64>)) -> String {
    let data = data();
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = CheckpointDir::new(dir.path());
    assert_eq!(session(&data, &checkpoints, Some(20)).0, Finish::Interrupted);
    forge(&dir.path().join("checkpoint.safetensors"), forgery);
    let mut trainer = trainer(&data, config(3));
    trainer.resume(&checkpoints, &mut ()).unwrap_err().to_string()
}

#[test]
fn a_forged_checkpoint_with_a_source_out_of_range_was_a_panic_after_all_training() {
    type Forgery = fn(&mut serde_json::Value, &mut Vec<u64>);
    let forgeries: [(Forgery, &str); 5] = [
        (|_, sources| sources[0] = 4, "a source"),
        (|_, sources| sources[0] = u32::MAX.into(), "a source"),
        (
            |state, _| state["progress"]["history"][0]["valid_loss_by_source"][0][0] = 99.into(),
            "a source",
        ),
        (|state, _| state["progress"]["step"] = u64::MAX.into(), "steps and epochs"),
        (|state, _| state["progress"]["epoch"] = 2.into(), "steps and epochs"),
    ];
    for (forgery, expected) in forgeries {
        let error = said_of(forgery);
        assert!(error.contains("contradicts") && error.contains(expected), "{error}");
    }
    let error = said_of(|_, sources| sources[0] = u64::MAX);
    assert!(error.contains("its columns do not fit each other"), "{error}");
}

#[test]
fn a_checkpoint_of_another_format_is_refused_by_its_number() {
    let error = said_of(|state, _| state["format"] = 77.into());
    assert!(error.contains("format 77, this program reads format"), "{error}");
}
