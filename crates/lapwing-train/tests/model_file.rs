//! Model files: what is saved is what is loaded, and nothing else is accepted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use lapwing_train::{
    Architecture, DataError, DeviceName, Init, InputSpec, Loss, MethodConfig, MlpConfig, Model,
    ModelError, ModelSpec, SampleError, Scale, TargetSpec, Targets, Task, Trainer,
};
use moons::{config, moons};

fn saved() -> (tempfile::TempDir, std::path::PathBuf, ModelSpec, Model) {
    let data = moons(40, &[0.0], 5);
    let mut trainer = Trainer::new(
        config(0),
        &MethodConfig::named("standard").unwrap(),
        data.data(),
        DeviceName::Cpu,
    )
    .unwrap();
    trainer.run(&mut (), None).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let model = trainer.model().unwrap();
    let spec = model.save(&path).unwrap();
    (dir, path, spec, model)
}

/// The spec for bytes that somebody else wrote.
fn claimed(spec: &ModelSpec, bytes: &[u8]) -> ModelSpec {
    ModelSpec { digest: blake3::hash(bytes).to_hex().to_string(), ..spec.clone() }
}

#[test]
fn a_loaded_model_predicts_the_same_and_the_spec_survives_json() {
    let (_dir, path, spec, model) = saved();
    let json = serde_json::to_string(&spec).unwrap();
    let loaded = Model::load(&path, serde_json::from_str(&json).unwrap(), DeviceName::Cpu).unwrap();
    let data = moons(1_500, &[0.0], 6);
    let rows: Vec<u32> = (0..1_500).rev().collect();
    assert_eq!(
        loaded.predict(&data.rows, &rows).unwrap(),
        model.predict(&data.rows, &rows).unwrap()
    );
    let labels = loaded.predict(&data.rows, &rows).unwrap().labels();
    assert_eq!(labels.len(), 1_500);
    assert_eq!(loaded.losses(&data.rows, &data.targets, &rows).unwrap().len(), 1_500);
}

#[test]
fn damaged_or_truncated_files_are_refused() {
    let (_dir, path, spec, _) = saved();
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(61) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = Model::load(&path, spec.clone(), DeviceName::Cpu).unwrap_err();
        assert!(matches!(error, ModelError::Digest { .. }), "{error}");
        // Even if somebody adjusts the digest.
        assert!(Model::load(&path, claimed(&spec, &whole[..length]), DeviceName::Cpu).is_err());
    }
    std::fs::remove_file(&path).unwrap();
    let error = Model::load(&path, spec, DeviceName::Cpu).unwrap_err();
    assert!(error.to_string().contains("model.safetensors"), "{error}");
}

#[test]
fn bits_flipped_under_a_matching_digest_never_panic() {
    let (_dir, path, spec, _) = saved();
    let whole = std::fs::read(&path).unwrap();
    for place in 0..whole.len().min(700) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        std::fs::write(&path, &bytes).unwrap();
        // Some flips in a name or a number give another valid file; it must only be an answer, not a crash.
        let _ = Model::load(&path, claimed(&spec, &bytes), DeviceName::Cpu);
    }
}

#[test]
fn descriptions_that_do_not_fit_are_refused() {
    let (_dir, path, spec, model) = saved();
    let with = |hidden: Vec<usize>, outputs| {
        let (inputs, dropout, squash, softmax, init) = (2, 0.0, None, false, Init::Torch);
        let mlp = MlpConfig { inputs, hidden, outputs, dropout, squash, softmax, init };
        let spec = ModelSpec { architecture: Architecture::Mlp(mlp), ..spec.clone() };
        Model::load(&path, spec, DeviceName::Cpu).err().unwrap()
    };
    assert!(matches!(with(vec![16], 2), ModelError::Parameters(_)));
    assert!(matches!(with(vec![16, 17], 2), ModelError::Parameters(_)));
    assert!(matches!(with(vec![16, 16], 3), ModelError::Outputs { .. }));
    assert!(matches!(with(vec![1 << 20, 1 << 20], 2), ModelError::Architecture(_)));
    // Large but allowed: refused by its shapes before it is built.
    assert!(matches!(with(vec![1 << 20], 2), ModelError::Parameters(_)));
    let other = ModelSpec { format: 3, ..spec.clone() };
    assert!(matches!(Model::load(&path, other, DeviceName::Cpu), Err(ModelError::Format(3))));
    assert!(serde_json::from_str::<ModelSpec>("{\"format\": 1}").is_err());
    assert_eq!(spec.task, TargetSpec::Classes { classes: 2 });

    let wide = lapwing_train::Matrix::new(vec![0.0; 6], 3).unwrap();
    assert!(matches!(
        model.predict(&wide, &[0]),
        Err(ModelError::Input { found: InputSpec::Vector { width: 3 }, .. })
    ));
    let unseen = Targets::Classes { labels: vec![0, 5], classes: 6 };
    let narrow = lapwing_train::Matrix::new(vec![0.0; 4], 2).unwrap();
    assert!(matches!(model.losses(&narrow, &unseen, &[0, 1]), Err(ModelError::Data(_))));
    for std in [0.0, -1.0, f64::INFINITY] {
        let mlp = MlpConfig {
            inputs: 2,
            hidden: vec![16, 16],
            outputs: 1,
            dropout: 0.0,
            squash: None,
            softmax: false,
            init: Init::Torch,
        };
        let task = TargetSpec::Values(Scale { mean: 0.0, std });
        let architecture = Architecture::Mlp(mlp);
        let spec = ModelSpec { architecture, task, loss: Loss::SquaredError, ..spec.clone() };
        let other = ModelSpec { loss: Loss::CrossEntropy, ..spec.clone() };
        assert!(matches!(Model::load(&path, spec, DeviceName::Cpu), Err(ModelError::Scale)));
        assert!(matches!(Model::load(&path, other, DeviceName::Cpu), Err(ModelError::Loss(_))));
    }
}

#[test]
fn rows_that_do_not_exist_and_targets_of_the_other_kind_are_errors() {
    let (_dir, _, _, model) = saved();
    let two = lapwing_train::Matrix::new(vec![0.0; 4], 2).unwrap();
    let classes = |rows: usize| Targets::Classes { labels: vec![0; rows], classes: 2 };
    assert!(matches!(
        model.predict(&two, &[0, 2]),
        Err(ModelError::Sample(SampleError::NoSuchRow { row: 2, rows: 2 }))
    ));
    assert!(matches!(
        model.outputs(&two, &[2]),
        Err(ModelError::Sample(SampleError::NoSuchRow { row: 2, rows: 2 }))
    ));
    assert!(matches!(
        model.losses(&two, &classes(3), &[2]),
        Err(ModelError::Sample(SampleError::NoSuchRow { row: 2, rows: 2 }))
    ));
    assert!(matches!(
        model.losses(&two, &classes(1), &[1]),
        Err(ModelError::Data(DataError::NoSuchRow { row: 1, rows: 1 }))
    ));
    assert!(matches!(
        model.losses(&two, &Targets::Values(vec![0.0; 2]), &[0]),
        Err(ModelError::Targets { found: Task::Regression, expected: Task::Classification })
    ));
}

#[test]
fn a_model_with_parameters_that_are_not_numbers_is_refused() {
    let (_dir, path, spec, _) = saved();
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        Model::load(&path, claimed(&spec, &bytes), DeviceName::Cpu),
        Err(ModelError::NotFinite)
    ));
}
