use crate::oracle::{Oracle, Row};
use lapwing_core::{
    Answer, Labels, LapError, NoiseRate, NoiseRateConfig, NoiseState, NoiseSums, Reading, Values,
};
use proptest::prelude::*;

const SOURCES: usize = 7;
const CLASSES: u32 = 4;

fn any_config() -> impl Strategy<Value = NoiseRateConfig> {
    let share = || prop_oneof![Just(0.0), 0.0..1.0f64, Just(0.98)];
    (share(), share(), 0.1..20.0f64, 0.5..0.999f64, 0u64..5).prop_map(
        |(decay, prior, prior_strength, cap, warmup)| NoiseRateConfig {
            decay,
            prior,
            prior_strength,
            cap,
            warmup,
        },
    )
}

fn any_probability() -> impl Strategy<Value = f64> {
    prop_oneof![
        12 => 0.0..=1.0f64,
        2 => (-300.0..0.0f64).prop_map(|exponent| 10f64.powf(exponent)),
        1 => Just(1.000_000_1),
        1 => prop_oneof![Just(0.0), Just(f64::NAN), Just(f64::NEG_INFINITY)],
    ]
}

fn any_batches() -> impl Strategy<Value = Vec<Vec<Row>>> {
    let row = (any_probability(), 0..CLASSES, 0..SOURCES);
    prop::collection::vec(prop::collection::vec(row, 0..14), 1..25)
}

fn parts(batch: &[Row]) -> (Vec<Answer>, Vec<usize>) {
    batch
        .iter()
        .map(|&(probability, label, source)| (Answer { probability, label }, source))
        .unzip()
}

fn fresh(config: NoiseRateConfig) -> NoiseRate<usize> {
    NoiseRate::new(config, Labels::counted(CLASSES).unwrap()).unwrap()
}

fn by_source(noise: &NoiseRate<usize>) -> NoiseState<usize> {
    let mut state = noise.state();
    state.sources.sort_by_key(|source| source.source);
    state
}

proptest! {
    #[test]
    fn weights_and_rates_are_the_oracles(config in any_config(), batches in any_batches()) {
        let mut noise = fresh(config);
        let mut oracle = Oracle { config, classes: CLASSES, past: Vec::new() };
        for batch in &batches {
            let (rows, sources) = parts(batch);
            let expected = oracle.step(batch);
            let weights = noise.weigh(&rows, &sources).unwrap();
            for (weight, expected) in weights.iter().zip(&expected) {
                prop_assert!((weight - expected).abs() < 1e-9, "{weight} {expected}");
                prop_assert!((0.0..=1.0).contains(weight));
            }
            for source in 0..SOURCES {
                prop_assert!((noise.rate(&source) - oracle.rate(source)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn workers_in_any_order_end_in_the_state_of_one(
        config in any_config(),
        batches in any_batches(),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut one, mut here, mut there) = (fresh(config), fresh(config), fresh(config));
        for batch in &batches {
            let (rows, sources) = parts(batch);
            let cut = if batch.is_empty() { 0 } else { cut.index(batch.len()) };
            let weights = one.weigh(&rows, &sources).unwrap().to_vec();
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let a = here.sums(&rows[..cut], &sources[..cut], &mut first).unwrap();
            let b = there.sums(&rows[cut..], &sources[cut..], &mut second).unwrap();
            first.extend(second);
            prop_assert_eq!(first, weights);
            let (mut ab, mut ba) = (a.clone(), b.clone());
            ab.merge(&b);
            ba.merge(&a);
            let sent = serde_json::to_string(&ba).unwrap();
            let ba: NoiseSums<usize> = serde_json::from_str(&sent).unwrap();
            here.update(&ab).unwrap();
            there.update(&ba).unwrap();
            prop_assert_eq!(by_source(&here), by_source(&one));
            prop_assert_eq!(by_source(&there), by_source(&one));
        }
    }

    #[test]
    fn a_saved_state_goes_on_to_the_last_bit(config in any_config(), batches in any_batches()) {
        let mut whole = fresh(config);
        let mut resumed = fresh(config);
        for batch in &batches {
            let (rows, sources) = parts(batch);
            let mut next = fresh(config);
            let saved = serde_json::to_string(&resumed.state()).unwrap();
            next.load(serde_json::from_str(&saved).unwrap()).unwrap();
            resumed = next;
            let weights = whole.weigh(&rows, &sources).unwrap().to_vec();
            prop_assert_eq!(resumed.weigh(&rows, &sources).unwrap(), &weights[..]);
            prop_assert_eq!(resumed.state(), whole.state());
        }
    }

    #[test]
    fn rows_that_are_not_finite_harm_nobody(config in any_config(), batches in any_batches()) {
        let (mut all, mut finite) = (fresh(config), fresh(config));
        for batch in &batches {
            let kept: Vec<Row> = batch.iter().copied().filter(|row| row.0 >= 0.0).collect();
            let (rows, sources) = parts(batch);
            all.weigh(&rows, &sources).unwrap();
            let (rows, sources) = parts(&kept);
            finite.weigh(&rows, &sources).unwrap();
            for source in 0..SOURCES {
                prop_assert_eq!(all.rate(&source), finite.rate(&source));
            }
        }
        let bad = batches.iter().flatten().filter(|row| row.0.is_nan() || row.0 < 0.0).count() as u64;
        prop_assert_eq!(all.sources().map(|source| source.nonfinite).sum::<u64>(), bad);
        let rows = batches.iter().flatten().count() as u64;
        prop_assert_eq!(all.sources().map(|source| source.rows).sum::<u64>(), rows);
    }

    #[test]
    fn numbers_of_any_size_give_weights(
        rows in prop::collection::vec(
            (prop::num::f64::ANY, prop::num::f64::ANY, 0..SOURCES), 1..60),
    ) {
        let mut noise = NoiseRate::<usize, Values>::new(NoiseRateConfig::default(), Values::new()).unwrap();
        for batch in rows.chunks(5) {
            let (readings, sources): (Vec<Reading>, Vec<usize>) = batch
                .iter()
                .map(|&(prediction, target, source)| (Reading { prediction, target }, source))
                .unzip();
            let weights = noise.weigh(&readings, &sources).unwrap();
            prop_assert!(weights.iter().all(|weight| (0.0..=1.0).contains(weight)));
            let saved = serde_json::to_string(&noise.state()).unwrap();
            noise.load(serde_json::from_str(&saved).unwrap()).unwrap();
        }
    }
}

#[test]
fn a_refused_batch_changes_nothing() {
    let mut noise = fresh(NoiseRateConfig::default());
    noise.weigh(&[Answer { probability: 0.5, label: 1 }], &[3]).unwrap();
    let before = noise.state();
    let rows = [Answer { probability: 0.5, label: 0 }, Answer { probability: 0.5, label: CLASSES }];
    let refused = noise.weigh(&rows, &[1, 2]).unwrap_err();
    assert_eq!(refused, LapError::Label { label: 4, classes: 4 });
    assert_eq!(refused.to_string(), "label 4 is none of the 4 classes, which count from 0");
    assert!(matches!(noise.weigh(&rows[..1], &[1, 2]), Err(LapError::Unpaired { .. })));
    // Sums of a worker with more classes.
    let other = NoiseRate::<usize>::new(NoiseRateConfig::default(), Labels::counted(9).unwrap());
    let row = [Answer { probability: 0.5, label: 8 }];
    let sums = other.unwrap().sums(&row, &[1], &mut Vec::new()).unwrap();
    assert!(matches!(noise.update(&sums), Err(LapError::Label { label: 8, classes: 4 })));
    assert_eq!(noise.state(), before);
}

#[test]
fn states_that_contradict_themselves_are_refused() {
    let mut noise = fresh(NoiseRateConfig::default());
    noise.weigh(&[Answer { probability: 0.5, label: 1 }], &[3]).unwrap();
    let good = noise.state();
    let refused = |change: &dyn Fn(&mut NoiseState<usize>)| {
        let mut state = good.clone();
        change(&mut state);
        assert_ne!(state, good);
        let mut noise = fresh(NoiseRateConfig::default());
        assert!(matches!(noise.load(state), Err(LapError::State(_))));
    };
    refused(&|state| state.version = 7);
    refused(&|state| state.sources[0].noise = f64::NAN);
    refused(&|state| state.sources[0].noise = state.sources[0].rows + 1.0);
    refused(&|state| state.sources[0].rows = f64::INFINITY);
    refused(&|state| state.sources.push(state.sources[0].clone()));
    refused(&|state| state.model = Labels::counted(5).unwrap());
}

#[test]
fn a_rare_source_is_not_forgotten_between_its_batches() {
    let mut noise = fresh(NoiseRateConfig::default());
    for step in 0..2000 {
        let row = |source| (Answer { probability: 1e-6, label: 0 }, source);
        let (rows, sources): (Vec<_>, Vec<_>) =
            if step % 100 == 0 { vec![row(0), row(1)] } else { vec![row(0)] }.into_iter().unzip();
        noise.weigh(&rows, &sources).unwrap();
    }
    assert!(noise.rate(&1) > 0.6, "{}", noise.rate(&1));
}
