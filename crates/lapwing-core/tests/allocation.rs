//! In the steady state a step allocates nothing.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use lapwing_core::{Lap, LapConfig};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let (sources, batch) = (1000u32, 512u32);
    let mut lap = Lap::new(LapConfig::default()).unwrap();
    let names: Vec<String> = (0..sources).map(|s| format!("source {s}")).collect();
    let mut step = |number: u32| {
        let at = |i: u32| (number * 131 + i * 7919) % sources;
        let losses: Vec<f32> =
            (0..batch).map(|i| (at(i) % 17) as f32 + (i % 5) as f32 * 0.1).collect();
        let ids: Vec<&str> = (0..batch).map(|i| names[at(i) as usize].as_str()).collect();
        let before = dhat::HeapStats::get().total_blocks;
        lap.weigh(&losses, ids.iter().copied()).unwrap();
        dhat::HeapStats::get().total_blocks - before
    };
    let start: u64 = (0..400).map(&mut step).sum();
    let steady: u64 = (400..500).map(&mut step).sum();
    assert!(start > 0, "nothing is counted");
    assert_eq!(steady, 0, "allocations in the steady state");
    println!("test a_step_in_the_steady_state_allocates_nothing ... ok");
}
