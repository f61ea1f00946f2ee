//! The rule against a slow oracle, and what must not change its answers.

use crate::oracle::Oracle;
use lapwing_core::{BatchSums, HistoryReading, Lap, LapConfig, LapError, Ties, Weighting};
use proptest::prelude::*;

const SOURCES: usize = 9;

type Batch = Vec<(usize, f64)>;

fn any_config() -> impl Strategy<Value = LapConfig> {
    let leniency = prop_oneof![Just(0.0), 0.0..3.0f64, Just(f64::INFINITY)];
    let strength = prop_oneof![Just(0.0), 0.1..3.0f64, Just(1e3), Just(1e6)];
    let ties = prop_oneof![Just(Ties::Paper), Just(Ties::Package)];
    let weighting = prop_oneof![
        Just(Weighting::TanhSquared),
        Just(Weighting::Exponential),
        Just(Weighting::Cut)
    ];
    let reading = prop_oneof![3 => Just(HistoryReading::Mean), 1 => Just(HistoryReading::Evidence)];
    (1usize..8, leniency, strength, 0u64..6, ties, weighting, reading).prop_map(
        |(history_length, leniency, depression_strength, warmup, ties, weighting, reading)| {
            LapConfig {
                history_length,
                leniency,
                depression_strength,
                warmup,
                ties,
                weighting,
                reading,
            }
        },
    )
}

fn any_loss() -> impl Strategy<Value = f64> {
    prop_oneof![
        12 => 0.0..1.0f64,
        4 => -2.0..5.0f64,
        1 => Just(0.0),
        1 => (-100.0..100.0f64).prop_map(|exponent| 10f64.powf(exponent)),
        1 => (0.0..140.0f64).prop_map(|exponent| -(10f64.powf(exponent))),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
    ]
}

/// Batches in which sources are often absent, and the higher numbers appear late.
fn any_batches() -> impl Strategy<Value = Vec<Batch>> {
    prop::collection::vec(prop::collection::vec((0..SOURCES, any_loss()), 0..14), 1..60).prop_map(
        |mut batches| {
            for (step, batch) in batches.iter_mut().enumerate() {
                batch.retain(|(source, _)| *source < 4 + step / 6);
            }
            batches
        },
    )
}

fn parts(batch: &Batch) -> (Vec<f64>, Vec<usize>) {
    batch.iter().map(|&(source, loss)| (loss, source)).unzip()
}

fn run<K: std::hash::Hash + Eq + Clone>(
    lap: &mut Lap<K>,
    batches: &[Batch],
    name: impl Fn(usize) -> K,
) -> Vec<Vec<f64>> {
    let step = |batch: &Batch| {
        let (losses, sources) = parts(batch);
        let names: Vec<K> = sources.into_iter().map(&name).collect();
        lap.weigh(&losses, &names).unwrap().to_vec()
    };
    batches.iter().map(step).collect()
}

fn unreliability<K: std::hash::Hash + Eq>(lap: &Lap<K>, name: impl Fn(usize) -> K) -> Vec<u64> {
    (0..SOURCES).map(|s| lap.unreliability(&name(s))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_step_equals_the_oracles(config in any_config(), batches in any_batches()) {
        let mut lap = Lap::new(config).unwrap();
        let mut oracle = Oracle::new(config, SOURCES);
        for batch in &batches {
            let (losses, sources) = parts(batch);
            let judgements = oracle.step(batch);
            let weights = lap.weigh(&losses, &sources).unwrap().to_vec();
            for judgement in &judgements {
                let ours = lap.status(&judgement.source).unwrap().unreliability;
                let theirs = &mut oracle.sources[judgement.source].unreliability;
                if judgement.too_close_to_call {
                    *theirs = ours;
                }
            }
            let theirs: Vec<u64> = oracle.sources.iter().map(|s| s.unreliability).collect();
            prop_assert_eq!(unreliability(&lap, |s| s), theirs);
            for (weight, (source, loss)) in weights.iter().zip(batch) {
                let expected = if loss.is_finite() { oracle.weight(*source) } else { 0.0 };
                prop_assert!((weight - expected).abs() < 1e-12, "{} is not {}", weight, expected);
            }
        }
        for status in lap.sources() {
            let losses = || batches.iter().flatten().filter(|(s, _)| s == status.source).map(|(_, loss)| loss);
            prop_assert_eq!(status.rows, losses().count() as u64);
            prop_assert_eq!(status.nonfinite, losses().filter(|loss| !loss.is_finite()).count() as u64);
            prop_assert!(status.above <= status.judged && status.judged <= status.batches);
            prop_assert_eq!(status.first_departure_step.is_some(), status.above > 0);
        }
    }

    #[test]
    fn renaming_the_sources_changes_nothing(config in any_config(), batches in any_batches()) {
        let name = |s: usize| format!("hospital {}", (s * 7 + 3) % SOURCES);
        let (mut numbers, mut names) = (Lap::new(config).unwrap(), Lap::new(config).unwrap());
        prop_assert_eq!(run(&mut numbers, &batches, |s| s), run(&mut names, &batches, name));
        prop_assert_eq!(unreliability(&numbers, |s| s), unreliability(&names, name));
    }

    #[test]
    fn saving_and_loading_in_the_middle_changes_nothing(
        config in any_config(), batches in any_batches(), at in any::<prop::sample::Index>(),
    ) {
        let at = at.index(batches.len());
        let (mut straight, mut first) = (Lap::new(config).unwrap(), Lap::new(config).unwrap());
        run(&mut straight, &batches[..at], |s| s);
        run(&mut first, &batches[..at], |s| s);
        let saved = serde_json::to_string(&first.state()).unwrap();
        let mut second = Lap::new(config).unwrap();
        second.load(serde_json::from_str(&saved).unwrap()).unwrap();
        prop_assert_eq!(run(&mut straight, &batches[at..], |s| s), run(&mut second, &batches[at..], |s| s));
        prop_assert_eq!(straight.state(), second.state());
    }

    #[test]
    fn one_source_is_plain_training(config in any_config(), batches in any_batches()) {
        let mut lap = Lap::new(config).unwrap();
        for (weights, batch) in run(&mut lap, &batches, |_| 0).iter().zip(&batches) {
            for (weight, (_, loss)) in weights.iter().zip(batch) {
                prop_assert_eq!(*weight, if loss.is_finite() { 1.0 } else { 0.0 });
            }
        }
    }

    #[test]
    fn infinite_leniency_is_plain_training(config in any_config(), batches in any_batches()) {
        let mut lap = Lap::new(LapConfig { leniency: f64::INFINITY, ..config }).unwrap();
        for (weights, batch) in run(&mut lap, &batches, |s| s).iter().zip(&batches) {
            for (weight, (_, loss)) in weights.iter().zip(batch) {
                prop_assert_eq!(*weight, if loss.is_finite() { 1.0 } else { 0.0 });
            }
        }
    }

    #[test]
    fn a_loss_that_is_not_finite_changes_nothing_for_the_other_sources(
        config in any_config(), batches in any_batches(), poison in prop_oneof![Just(f64::NAN), Just(f64::INFINITY)],
    ) {
        // Source 0 sends nothing but poison in one run, and nothing at all in the other.
        let with = |loss: Option<f64>| -> Vec<Batch> {
            let replace = |&(s, l): &(usize, f64)| if s == 0 { loss.map(|loss| (s, loss)) } else { Some((s, l)) };
            batches.iter().map(|batch| batch.iter().filter_map(replace).collect()).collect()
        };
        let (mut poisoned, mut absent) = (Lap::new(config).unwrap(), Lap::new(config).unwrap());
        run(&mut poisoned, &with(Some(poison)), |s| s);
        run(&mut absent, &with(None), |s| s);
        prop_assert_eq!(unreliability(&poisoned, |s| s), unreliability(&absent, |s| s));
        prop_assert_eq!(poisoned.weight(&0), 1.0);
    }
}

/// Losses without a special structure, so that no comparison hangs on the last bit and any order
/// of summation must give the same answer.
fn plain_batches() -> impl Strategy<Value = Vec<Batch>> {
    let loss = prop_oneof![20 => 0.0..1.0f64, 1 => 1e3..1e6f64, 1 => Just(f64::NAN)];
    prop::collection::vec(prop::collection::vec((0..SOURCES, loss), 1..20), 1..80)
}

fn plain_config() -> impl Strategy<Value = LapConfig> {
    (1usize..8, 0.01..1.5f64, 0.1..50.0f64, 0u64..6).prop_map(
        |(history_length, leniency, depression_strength, warmup)| LapConfig {
            history_length,
            leniency,
            depression_strength,
            warmup,
            ..LapConfig::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn permuting_a_batch_changes_nothing(config in plain_config(), batches in plain_batches()) {
        let backwards: Vec<Batch> = batches.iter().map(|batch| batch.iter().rev().copied().collect()).collect();
        let (mut a, mut b) = (Lap::new(config).unwrap(), Lap::new(config).unwrap());
        let (forward, mut reversed) = (run(&mut a, &batches, |s| s), run(&mut b, &backwards, |s| s));
        reversed.iter_mut().for_each(|weights| weights.reverse());
        prop_assert_eq!(forward, reversed);
        prop_assert_eq!(unreliability(&a, |s| s), unreliability(&b, |s| s));
    }

    #[test]
    fn splitting_a_batch_over_workers_changes_nothing(
        config in plain_config(), batches in plain_batches(), workers in 1usize..5, salt in any::<usize>(),
    ) {
        let mut alone = Lap::new(config).unwrap();
        let mut team: Vec<Lap<usize>> = (0..workers).map(|_| Lap::new(config).unwrap()).collect();
        for (step, batch) in batches.iter().enumerate() {
            let (losses, sources) = parts(batch);
            alone.weigh(&losses, &sources).unwrap();
            let mut parts: Vec<BatchSums<usize>> = vec![BatchSums::new(); workers];
            for (at, (source, loss)) in batch.iter().enumerate() {
                parts[(at.wrapping_mul(salt | 1) ^ step) % workers].add(source, *loss);
            }
            let mut merged = BatchSums::new();
            for part in &parts {
                let wire = serde_json::to_string(part).unwrap();
                merged.merge(&serde_json::from_str(&wire).unwrap());
            }
            for worker in &mut team {
                worker.update(&merged).unwrap();
                prop_assert_eq!(unreliability(worker, |s| s), unreliability(&alone, |s| s));
            }
            for worker in &team[1..] {
                prop_assert_eq!(worker.state(), team[0].state());
            }
        }
    }

    #[test]
    fn the_single_source_form_is_the_mixed_form_with_one_source(
        config in plain_config(), losses in prop::collection::vec((0..SOURCES, 0.0..1.0f64), 1..200),
    ) {
        let (mut mixed, mut single) = (Lap::new(config).unwrap(), Lap::new(config).unwrap());
        for (source, loss) in losses {
            let batch = [loss, loss * 1.5];
            let weights = mixed.weigh(&batch, &[source, source]).unwrap();
            let scale = single.scale(&batch, &source).unwrap();
            prop_assert_eq!(weights, &[scale, scale]);
        }
    }
}

#[test]
fn a_million_points_of_unreliability_still_leave_somebody_to_compare_with() {
    let mut lap = Lap::new(LapConfig { history_length: 2, ..LapConfig::default() }).unwrap();
    lap.weigh(&[0.1, 0.9, 0.8], &[0, 1, 2]).unwrap();
    let mut state = lap.state();
    state.sources[1].unreliability = 1_000_000;
    state.sources[2].unreliability = 1_000_010;
    lap.load(state).unwrap();
    for step in 0..50 {
        let jitter = f64::from(step % 5) * 0.01;
        let weights = lap.weigh(&[0.1 + jitter, 0.9 - jitter, 0.8 + jitter], &[0, 1, 2]).unwrap();
        assert!(weights[0] == 1.0 && weights[1] > 0.0 && weights[2] > 0.0);
    }
    // Source 0 is compared with 1 and 2, of which the latter weighs e^-0.2 of the former.
    let reference = lap.status(&0).unwrap().reference.unwrap();
    let c = |s| lap.status(&s).unwrap().unreliability as f64;
    let ratio = (-0.01 * (c(2) - c(1))).exp();
    let mean = |s| lap.status(&s).unwrap().mean_loss.unwrap();
    assert!((reference.mean - (mean(1) + ratio * mean(2)) / (1.0 + ratio)).abs() < 1e-9);
    assert!(reference.std > 0.0);
    assert_eq!(lap.status(&0).unwrap().unreliability, 0);
}

/// Losses below the others' that are now and then 8: the mean of a history sees that, its evidence hardly.
#[test]
fn evidence_forgives_spikes_and_not_what_is_always_there() {
    let unreliability = |reading, bad: fn(u32) -> f64| {
        let config = LapConfig { history_length: 10, reading, ..LapConfig::default() };
        let mut lap = Lap::new(config).unwrap();
        for step in 0..300 {
            let jitter = 0.01 * f64::from(step % 7);
            let losses = [0.5 + jitter, 0.52 - jitter, 0.5, bad(step)];
            lap.weigh(&losses, &[0, 1, 2, 3]).unwrap();
        }
        lap.unreliability(&3)
    };
    let spikes = |step: u32| if step % 10 == 3 { 8.0 } else { 0.35 };
    let always = |_| 0.8;
    assert_eq!(unreliability(HistoryReading::Mean, spikes), 291);
    assert_eq!(unreliability(HistoryReading::Evidence, spikes), 0);
    assert_eq!(unreliability(HistoryReading::Mean, always), 291);
    assert_eq!(unreliability(HistoryReading::Evidence, always), 291);
}

#[test]
fn a_refused_batch_changes_nothing() {
    let mut lap = Lap::new(LapConfig::default()).unwrap();
    lap.weigh(&[0.5f32], &[7]).unwrap();
    let before = lap.state();
    let refused = lap.weigh(&[0.5f32, 0.6], &[7]).unwrap_err();
    assert_eq!(refused, LapError::Unpaired { losses: 2, sources: 1 });
    assert_eq!(lap.state(), before);
}

#[test]
fn an_empty_batch_is_a_step_like_any_other() {
    let mut lap = Lap::<u8>::new(LapConfig::default()).unwrap();
    assert!(lap.weigh::<f64, u8>(&[], &[]).unwrap().is_empty());
    assert_eq!((lap.step(), lap.present().count(), lap.sources().len()), (1, 0, 0));
}

#[test]
fn a_prior_starts_with_the_unreliability_of_the_last_run_and_nothing_else() {
    let mut lap = Lap::new(LapConfig { history_length: 3, ..LapConfig::default() }).unwrap();
    for step in 0..300 {
        let jitter = f64::from(step % 3) * 0.01;
        lap.weigh(&[0.1 + jitter, 0.2 - jitter, 5.0], ["a", "b", "c"]).unwrap();
    }
    let learnt = lap.weight("c");
    assert!(learnt < 0.5);
    let mut next = Lap::new(LapConfig { history_length: 10, ..LapConfig::default() }).unwrap();
    assert!(
        matches!(next.load(lap.state()), Err(LapError::State(_))),
        "histories of another length"
    );
    next.load(lap.state().into_prior()).unwrap();
    assert_eq!((next.step(), next.weight("c"), next.weight("a")), (0, learnt, 1.0));
    assert_eq!(next.status("c").unwrap().mean_loss, None);
    assert_eq!(next.weigh(&[2.0, 2.0], ["a", "c"]).unwrap(), [1.0, learnt]);
}

#[test]
fn states_that_contradict_themselves_are_refused() {
    let mut lap = Lap::new(LapConfig { history_length: 2, ..LapConfig::default() }).unwrap();
    lap.weigh(&[0.5, 0.6], &[1, 2]).unwrap();
    let good = lap.state();
    let spoil = |change: fn(&mut lapwing_core::State<i32>)| {
        let mut state = good.clone();
        change(&mut state);
        state
    };
    for bad in [
        spoil(|s| s.version = 2),
        spoil(|s| s.history_length = 3),
        spoil(|s| s.sources[0].cursor = 0),
        spoil(|s| s.sources[0].cursor = usize::MAX),
        spoil(|s| s.sources[0].window = vec![f64::NAN]),
        spoil(|s| s.sources[0].window = vec![1.0; 3]),
        spoil(|s| s.sources[1].source = 1),
    ] {
        assert!(matches!(lap.load(bad), Err(LapError::State(_))));
        assert_eq!(lap.state(), good);
    }
}

#[test]
fn counts_at_their_limit_do_not_overflow() {
    let mut lap = Lap::new(LapConfig { history_length: 1, ..LapConfig::default() }).unwrap();
    lap.weigh(&[0.5, 0.6, 0.9], &[1, 2, 3]).unwrap();
    let mut state = lap.state();
    state.step = u64::MAX;
    for source in &mut state.sources {
        source.unreliability = u64::MAX;
        (source.rows, source.batches, source.nonfinite) = (u64::MAX, u64::MAX, u64::MAX);
        (source.judged, source.above) = (u64::MAX, u64::MAX);
    }
    lap.load(state).unwrap();
    for _ in 0..3 {
        lap.weigh(&[0.5, f64::NAN, 0.9], &[1, 2, 3]).unwrap();
    }
    let rows =
        r#"{"sums":[[1,{"high":1e308,"low":1e308,"finite":18446744073709551615,"nonfinite":3}]]}"#;
    lap.update(&serde_json::from_str(rows).unwrap()).unwrap();
    assert!(lap.sources().all(|source| source.weight >= 0.0 && source.rows == u64::MAX));
}
