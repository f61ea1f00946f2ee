//! Trees on made-up data: who is found, who is left alone, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::ops::ControlFlow;

use lapwing_core::LapConfig;
use lapwing_sample::{Data, Draws, Loss, Matrix, Predictions, Samples, TargetSpec, Targets};
use lapwing_trees::{Forest, ForestSpec, Grown, Round, Say, TreesConfig, TreesError, boost};

const SOURCES: u32 = 8;
const ROWS: u32 = 2_400;

/// Rows of three numbers and one of four levels, from eight sources.
struct Made {
    samples: Matrix,
    sources: Vec<u32>,
    /// What is true of each row, without noise.
    signal: Vec<f64>,
    noise: Vec<f64>,
    train: Vec<u32>,
    valid: Vec<u32>,
}

fn made(seed: u64) -> Made {
    let mut draws = Draws::of(seed, 99_u64, 0, 0);
    let (mut values, mut signal, mut noise) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let (a, b) = draws.two_normals();
        let (c, level) = (draws.unit(), draws.below(4));
        signal.push(1.5 * a + (3.0 * b).sin() + if level == 2 { 1.0 } else { -0.5 });
        noise.push(draws.two_normals().0);
        // Every tenth c is missing.
        let c = if draws.below(10) == 0 { f32::NAN } else { c as f32 };
        values.extend([a as f32, b as f32, c, level as f32]);
    }
    let sources = (0..ROWS).map(|_| draws.below(SOURCES)).collect();
    let (valid, train) = (0..ROWS).partition(|row| row % 8 == 0);
    Made { samples: Matrix::new(values, 4).unwrap(), sources, signal, noise, train, valid }
}

impl Made {
    fn data<'a>(&'a self, targets: &'a Targets) -> Data<'a> {
        Data {
            samples: &self.samples,
            targets,
            sources: &self.sources,
            train: &self.train,
            valid: &self.valid,
            relabel: None,
            items: None,
        }
    }

    /// Values, those of the bad sources of another row.
    fn values(&self, bad: &[u32]) -> Targets {
        let said = |row: usize| {
            let of =
                if bad.contains(&self.sources[row]) { (row * 7 + 3) % ROWS as usize } else { row };
            self.signal[of] + 0.3 * self.noise[row]
        };
        Targets::Values((0..ROWS as usize).map(said).collect())
    }

    /// So many classes by equal shares of the signal, those of the bad sources of another row.
    fn classes(&self, classes: usize, bad: &[u32]) -> Targets {
        let Targets::Values(values) = self.values(bad) else { unreachable!() };
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let edges: Vec<f64> = (1..classes).map(|n| sorted[n * sorted.len() / classes]).collect();
        let label = |value: &f64| edges.iter().filter(|edge| value >= edge).count() as u32;
        Targets::Classes { labels: values.iter().map(label).collect(), classes }
    }
}

fn config(loss: Loss) -> TreesConfig {
    TreesConfig {
        rehearsal: 200,
        rounds: 150,
        patience: 150,
        learning_rate: 0.1,
        leaves: 15,
        replaced: 0.3,
        columns: 1.0,
        loss,
        seed: 3,
        categorical: vec![false, false, false, true],
        rule: LapConfig {
            history_length: 20,
            leniency: 1.0,
            depression_strength: 6.0,
            ..LapConfig::default()
        },
        say: vec![Say::Rule { floor: 0.0 }; SOURCES as usize],
    }
}

fn grow(config: &TreesConfig, data: &Data<'_>) -> Grown {
    boost(config, data, &mut |_| ControlFlow::Continue(())).unwrap().unwrap()
}

fn squared_error(made: &Made, grown: &Grown) -> f64 {
    let Predictions::Values(said) = grown.forest.predict(&made.samples, &made.valid).unwrap()
    else {
        panic!("values")
    };
    let errors = said.iter().zip(&made.valid).map(|(said, &row)| said - made.signal[row as usize]);
    errors.map(|error| error * error).sum::<f64>() / said.len() as f64
}

#[test]
fn bad_sources_lose_their_weight_clean_ones_keep_it_and_trees_are_nearly_as_good_as_without() {
    let made = made(1);
    let config = config(Loss::SquaredError);
    let clean_values = made.values(&[]);
    let clean = squared_error(&made, &grow(&config, &made.data(&clean_values)));
    let values = made.values(&[2, 5, 6]);
    for loss in [Loss::SquaredError, Loss::Huber { delta: 1.0 }] {
        let config = TreesConfig { loss, ..config.clone() };
        let grown = grow(&config, &made.data(&values));
        for (source, &weight) in grown.weights.iter().enumerate() {
            let bad = [2, 5, 6].contains(&source);
            assert!(if bad { weight < 0.05 } else { weight > 0.9 }, "{loss:?} {:?}", grown.weights);
        }
        let lap = squared_error(&made, &grown);
        // With five eighths of the rows the variance is 1.6 times as large.
        assert!(lap < 1.8 * clean, "{loss:?}: {lap} against {clean}");
        let say = vec![Say::Full; SOURCES as usize];
        let standard = TreesConfig { say, rehearsal: 0, ..config };
        let standard = grow(&standard, &made.data(&values));
        assert_eq!(standard.weights, [1.0; SOURCES as usize]);
        let standard = squared_error(&made, &standard);
        assert!(lap < 0.6 * standard, "{loss:?}: {lap} against {standard}");
    }
}

#[test]
fn classes_two_and_many_are_learnt_and_their_bad_sources_found() {
    let made = made(2);
    for classes in [2, 4] {
        let targets = made.classes(classes, &[0, 3]);
        let grown = grow(&config(Loss::CrossEntropy), &made.data(&targets));
        for (source, &weight) in grown.weights.iter().enumerate() {
            let bad = [0, 3].contains(&source);
            assert!(
                if bad { weight < 0.1 } else { weight > 0.9 },
                "{classes}: {:?}",
                grown.weights
            );
        }
        let said = grown.forest.predict(&made.samples, &made.valid).unwrap();
        let Predictions::Classes { probabilities, .. } = &said else { panic!("classes") };
        assert!(
            probabilities.chunks(classes).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5)
        );
        let Targets::Classes { labels, .. } = made.classes(classes, &[]) else { unreachable!() };
        let (found, rows) = (said.labels(), &made.valid);
        let right = found.iter().zip(rows).filter(|(s, r)| **s == labels[**r as usize]);
        let accuracy = right.count() as f64 / rows.len() as f64;
        let least = if classes == 2 { 0.85 } else { 0.65 };
        assert!(accuracy > least, "{classes} classes: {accuracy}");
        // The loss of a row is what its probability says.
        let losses = grown.forest.losses(&made.samples, &targets, &[5]).unwrap();
        let Predictions::Classes { probabilities, .. } =
            grown.forest.predict(&made.samples, &[5]).unwrap()
        else {
            panic!("classes")
        };
        let Targets::Classes { labels, .. } = &targets else { unreachable!() };
        let expected = -probabilities[labels[5] as usize].ln();
        assert!((losses[0] - expected).abs() < 1e-4, "{} {expected}", losses[0]);
    }
}

#[test]
fn no_clean_source_falls_below_nine_tenths_over_seeds() {
    for seed in 0..6 {
        let made = made(100 + seed);
        let values = made.values(&[]);
        let config = TreesConfig { seed, ..config(Loss::SquaredError) };
        let grown = grow(&config, &made.data(&values));
        let lowest = grown.weights.iter().copied().fold(1.0, f64::min);
        assert!(lowest > 0.9, "seed {seed}: {:?}", grown.weights);
    }
}

#[test]
fn guards_hold_and_a_blocked_source_is_as_good_as_absent() {
    let made = made(4);
    let values = made.values(&[1, 2, 3]);
    let mut guarded = config(Loss::SquaredError);
    guarded.say[1] = Say::Full;
    guarded.say[2] = Say::Blocked;
    guarded.say[3] = Say::Rule { floor: 0.25 };
    let grown = grow(&guarded, &made.data(&values));
    assert_eq!(grown.weights[1..4], [1.0, 0.0, 0.25]);
    let mut asked = values.clone();
    if let Targets::Values(values) = &mut asked {
        for (row, value) in values.iter_mut().enumerate() {
            if made.sources[row] == 2 {
                *value = 0.0;
            }
        }
    }
    // The scale of the target is that of all rows, so that only the order of predictions can be compared.
    let other = grow(&guarded, &made.data(&asked));
    assert_eq!(other.weights[2], 0.0);
    assert_eq!(grown.lap.status(&2).map(|status| status.rows), None);
    assert!(other.weights[0] > 0.9);
    guarded.say = vec![Say::Blocked; SOURCES as usize];
    let all = boost(&guarded, &made.data(&values), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(all, Err(TreesError::Data(_))));
}

#[test]
fn the_same_seed_gives_the_same_rounds_and_bytes_and_another_one_others() {
    let made = made(5);
    let values = made.values(&[4]);
    let place = tempfile::tempdir().unwrap();
    let run = |seed, name: &str| {
        let mut rounds: Vec<Round> = Vec::new();
        let config = TreesConfig { seed, rounds: 40, columns: 0.6, ..config(Loss::SquaredError) };
        let grown = boost(&config, &made.data(&values), &mut |round| {
            rounds.push(round.clone());
            ControlFlow::Continue(())
        });
        let path = place.path().join(name);
        let spec = grown.unwrap().unwrap().forest.save(&path).unwrap();
        (rounds, std::fs::read(path).unwrap(), spec)
    };
    let (one, two, other) = (run(7, "a"), run(7, "b"), run(8, "c"));
    assert!(one == two && one.0 != other.0);
    // Forty with the weights that were found, and as many with the values of source 4 replaced.
    assert_eq!((one.0.len(), one.2.rounds <= 80), (280, true));
    assert_eq!((one.0[199].round, one.0[200].round), (199, 0));
    assert!(one.0[..200].iter().all(|round| round.rehearsal && !round.best));
    assert!(one.0.iter().any(|round| round.best));
    assert!(one.0.iter().all(|round| round.valid.is_some() != round.rehearsal));
}

#[test]
fn patience_ends_training_the_best_round_is_kept_and_a_watcher_can_stop() {
    let made = made(6);
    let values = made.values(&[]);
    let mut best = 0;
    let mut count = 0;
    let config = config(Loss::SquaredError);
    let config = TreesConfig { learning_rate: 0.8, rehearsal: 2, patience: 5, ..config };
    let grown = boost(&config, &made.data(&values), &mut |round| {
        count += 1;
        if round.best {
            best = round.round;
        }
        ControlFlow::Continue(())
    });
    assert!(count < 150 && count == best + 6 + 2, "{count} rounds, the best was {best}");
    assert_eq!(grown.unwrap().unwrap().forest.spec().rounds, best + 1);
    let stop = |at: usize| {
        move |round: &Round| match round.round + if round.rehearsal { 0 } else { 2 } {
            now if now == at => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    for at in [0, 1, 2, 4] {
        assert!(boost(&config, &made.data(&values), &mut stop(at)).unwrap().is_none());
    }
    // Without validation all rounds are kept.
    let data = Data { valid: &[], ..made.data(&values) };
    let config = TreesConfig { rounds: 12, ..config };
    assert_eq!(grow(&config, &data).forest.spec().rounds, 12);
}

#[test]
fn numbers_that_are_infinite_or_missing_are_borne() {
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, 2.0, 1e30, -1e30];
    let samples = Matrix::new(values.repeat(20), 1).unwrap();
    let rows: Vec<u32> = (0..160).collect();
    let sources = vec![0; 160];
    for targets in [
        Targets::Values((0..160).map(|row| if row % 3 == 0 { 1e300 } else { -1e300 }).collect()),
        Targets::Values(vec![5.0; 160]),
        Targets::Classes { labels: (0..160).map(|row| row % 3).collect(), classes: 3 },
        Targets::Classes { labels: vec![0; 160], classes: 2 },
    ] {
        let data = Data {
            samples: &samples,
            targets: &targets,
            sources: &sources,
            train: &rows,
            valid: &rows[..10],
            relabel: None,
            items: None,
        };
        let loss = match targets {
            Targets::Classes { .. } => Loss::CrossEntropy,
            Targets::Values(_) => Loss::SquaredError,
        };
        let say = vec![Say::Rule { floor: 0.0 }];
        let config = TreesConfig { categorical: vec![false], say, rounds: 10, ..config(loss) };
        match boost(&config, &data, &mut |_| ControlFlow::Continue(())) {
            Ok(grown) => drop(grown.unwrap().forest.predict(&samples, &rows).unwrap()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn few_columns_are_all_seen_and_of_many_a_part() {
    let columns = |count| TreesConfig::new(Loss::SquaredError, vec![false; count], vec![]).columns;
    assert_eq!((columns(0), columns(4)), (1.0, 1.0));
    assert!(columns(5) < 1.0 && columns(5) > 0.5);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let made = made(7);
    let values = made.values(&[]);
    let refused = |config: TreesConfig, expected: &str| {
        let error = boost(&config, &made.data(&values), &mut |_| ControlFlow::Continue(()));
        let said = error.unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    };
    let usual = || config(Loss::SquaredError);
    refused(TreesConfig { rounds: 0, ..usual() }, "rounds");
    refused(TreesConfig { learning_rate: f64::NAN, ..usual() }, "learning rate");
    refused(TreesConfig { learning_rate: -0.1, ..usual() }, "learning rate");
    refused(TreesConfig { leaves: 1, ..usual() }, "leaves");
    refused(TreesConfig { columns: 0.0, ..usual() }, "share of columns");
    refused(TreesConfig { columns: f64::NAN, ..usual() }, "share of columns");
    refused(TreesConfig { replaced: 1.5, ..usual() }, "replaced values");
    refused(TreesConfig { loss: Loss::Huber { delta: 0.0 }, ..usual() }, "Huber");
    refused(TreesConfig { loss: Loss::CrossEntropy, ..usual() }, "CrossEntropy");
    refused(TreesConfig { categorical: vec![false], ..usual() }, "rows of 1 numbers");
    refused(TreesConfig { say: vec![Say::Full], ..usual() }, "sources");
}

#[test]
fn what_was_saved_predicts_the_same_and_a_damaged_file_is_an_error() {
    let made = made(8);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("model.ubj");
    for targets in [made.values(&[]), made.classes(2, &[]), made.classes(3, &[])] {
        let loss = match targets {
            Targets::Classes { .. } => Loss::CrossEntropy,
            Targets::Values(_) => Loss::SquaredError,
        };
        let config = TreesConfig { rounds: 8, rehearsal: 0, ..config(loss) };
        let forest = grow(&config, &made.data(&targets)).forest;
        let spec = forest.save(&path).unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<ForestSpec>(&text).unwrap(), spec);
        let again = Forest::load(&path, spec.clone()).unwrap();
        let all: Vec<u32> = (0..made.samples.len() as u32).collect();
        assert_eq!(
            again.predict(&made.samples, &all).unwrap(),
            forest.predict(&made.samples, &all).unwrap()
        );
        let importance = again.importance();
        assert!((importance.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{importance:?}");
        assert!(importance[2] < importance[0], "{importance:?}");

        let said = |spec: ForestSpec| Forest::load(&path, spec).unwrap_err().to_string();
        assert!(said(ForestSpec { format: 9, ..spec.clone() }).contains("format 9"));
        assert!(said(ForestSpec { rounds: 9, ..spec.clone() }).contains("described"));
        assert!(said(ForestSpec { features: 5, ..spec.clone() }).contains("described"));
        let other = TargetSpec::Classes { classes: 7 };
        assert!(!said(ForestSpec { task: other, ..spec.clone() }).is_empty());
        // Bytes changed, and the digest put right: an error, or trees that predict something.
        let whole = std::fs::read(&path).unwrap();
        let mut draws = Draws::of(1, 98_u64, 0, 0);
        for _ in 0..300 {
            let mut bytes = whole.clone();
            match draws.below(3) {
                0 => bytes.truncate(draws.below_wide(bytes.len())),
                _ => {
                    for _ in 0..=draws.below(3) {
                        let at = draws.below_wide(bytes.len());
                        bytes[at] = draws.below(256) as u8;
                    }
                }
            }
            let digest = blake3::hash(&bytes).to_hex().to_string();
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(forest) = Forest::load(&path, ForestSpec { digest, ..spec.clone() }) {
                let _ = forest.predict(&made.samples, &all[..20]);
            }
        }
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(said(spec).contains("digest"));
    }
}

#[test]
fn rows_that_nobody_believes_are_learnt_from_once_more_with_values_that_trees_say() {
    let (mut with, mut without) = (0.0, 0.0);
    for seed in 20..23 {
        let made = made(seed);
        let values = made.values(&[2, 5, 6]);
        let usual = config(Loss::SquaredError);
        let mut rounds = Vec::new();
        let mut best = [0, 0];
        let grown = boost(&usual, &made.data(&values), &mut |round| {
            rounds.extend((!round.rehearsal).then_some(round.round));
            if round.best {
                best[round.round / usual.rounds] = round.round % usual.rounds + 1;
            }
            ControlFlow::Continue(())
        });
        // Rounds are counted on, and the best of both times are kept.
        assert_eq!(rounds, (0..2 * usual.rounds).collect::<Vec<_>>());
        let grown = grown.unwrap().unwrap();
        assert_eq!(grown.forest.spec().rounds, best[0] + best[1]);
        with += squared_error(&made, &grown);
        let alone = grow(&TreesConfig { replaced: 0.0, ..usual.clone() }, &made.data(&values));
        without += squared_error(&made, &alone);
        assert_eq!(grown.weights, alone.weights);
    }
    assert!(with < without, "{with} against {without}");

    // Where everybody is believed, there is nothing to replace.
    let (made, usual) = (made(20), config(Loss::SquaredError));
    let clean = made.values(&[]);
    let mut count = 0;
    let grown = boost(&usual, &made.data(&clean), &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    assert!(grown.unwrap().is_some() && count <= usual.rehearsal + usual.rounds, "{count} rounds");
}
