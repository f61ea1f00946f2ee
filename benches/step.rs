//! What one step of the rule costs, all windows complete: `cargo bench -p lapwing-core --bench step`.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lapwing_core::{Lap, LapConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const BATCHES: usize = 256;

/// Batches of random sources; one source in five is bad, so that unreliability moves.
fn batches(sources: u32, batch: usize, rng: &mut ChaCha8Rng) -> Vec<(Vec<f32>, Vec<u32>)> {
    let draw = |rng: &mut ChaCha8Rng| {
        let source = rng.random_range(0..sources);
        let bad = if source % 5 == 0 { 0.5 } else { 0.0 };
        (rng.random::<f32>() + bad, source)
    };
    (0..BATCHES).map(|_| (0..batch).map(|_| draw(rng)).unzip()).collect()
}

/// A `Lap` in which every source has a complete history.
fn filled(sources: u32, rng: &mut ChaCha8Rng) -> Lap<u32> {
    let mut lap = Lap::new(LapConfig::default()).unwrap();
    let ids: Vec<u32> = (0..sources).collect();
    for _ in 0..40 {
        let losses: Vec<f32> = ids.iter().map(|_| rng.random()).collect();
        lap.weigh(&losses, &ids).unwrap();
    }
    lap
}

fn step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("step");
    for sources in [10, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let rng = &mut ChaCha8Rng::seed_from_u64(0);
        let mut lap = filled(sources, rng);
        for batch in [128, 512, 2048] {
            let batches = batches(sources, batch, rng);
            let mut turn = 0;
            group.throughput(Throughput::Elements(batch as u64));
            group.bench_function(
                BenchmarkId::new(format!("S={sources}"), format!("B={batch}")),
                |bencher| {
                    bencher.iter(|| {
                        turn = (turn + 1) % BATCHES;
                        let (losses, sources) = &batches[turn];
                        lap.weigh(losses, sources).unwrap().len()
                    });
                },
            );
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(std::time::Duration::from_secs(2));
    targets = step
}
criterion_main!(benches);
