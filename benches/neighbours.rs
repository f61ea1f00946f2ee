//! The 200 nearest of 50,000 rows of 50 numbers, as `rrl` looks for them once per epoch: `cargo bench -p lapwing-ops --bench
//! neighbours`.

#![allow(missing_docs, clippy::print_stdout, reason = "a bench")]

use std::time::Instant;

use lapwing_ops::nearest;

fn main() {
    let (rows, width, count) = (50_000, 50, 200);
    let mut state = 1u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    // Ten clusters, as a network that has learnt ten classes gives them.
    let centres: Vec<f32> = (0..10 * width).map(|_| draw()).collect();
    let mut vectors: Vec<f32> = (0..rows * width)
        .map(|at| centres[at / width % 10 * width + at % width] + 0.7 * draw())
        .collect();
    for row in vectors.chunks_mut(width) {
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().for_each(|x| *x /= length);
    }
    let mut seconds: Vec<f64> = (0..3)
        .map(|_| {
            let start = Instant::now();
            assert_eq!(nearest(&vectors, width, count).rows.len(), rows * count);
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{count} nearest of {rows} rows of {width}: {:.2} s (median of 3)", seconds[1]);
}
