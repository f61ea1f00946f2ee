//! Our side of `benches/peer/step.py`: reads lines "sources batch steps" and answers each with the
//! median time of a step in nanoseconds, all windows complete.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::HashMap;
use std::io::{BufRead, stdin};
use std::time::Instant;

use lapwing_core::{Lap, LapConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut filled: HashMap<u32, Lap<u32>> = HashMap::new();
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        let numbers: Vec<u32> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let [sources, batch, steps] = numbers[..] else { panic!("expected three numbers: {line}") };
        let lap = filled.entry(sources).or_insert_with(|| fill(sources, &mut rng));
        let mut times: Vec<u128> = (0..steps)
            .map(|_| {
                let draw = |_| (rng.random::<f32>(), rng.random_range(0..sources));
                let (losses, ids): (Vec<f32>, Vec<u32>) = (0..batch).map(draw).unzip();
                let start = Instant::now();
                lap.weigh(&losses, &ids).unwrap();
                start.elapsed().as_nanos()
            })
            .collect();
        times.sort_unstable();
        println!("{}", times[times.len() / 2]);
    }
}

fn fill(sources: u32, rng: &mut ChaCha8Rng) -> Lap<u32> {
    let mut lap = Lap::new(LapConfig { leniency: 1.0, ..LapConfig::default() }).unwrap();
    let ids: Vec<u32> = (0..sources).collect();
    for _ in 0..30 {
        let losses: Vec<f32> = ids.iter().map(|_| rng.random()).collect();
        lap.weigh(&losses, &ids).unwrap();
    }
    lap
}
