//! A million steps later.

use crate::oracle::Oracle;
use lapwing_core::{Lap, LapConfig};
use rand::{RngExt, SeedableRng};

#[test]
fn after_a_million_steps_the_state_equals_the_oracles() {
    let config = LapConfig { history_length: 10, leniency: 0.5, ..LapConfig::default() };
    let (mut lap, mut oracle) = (Lap::new(config).unwrap(), Oracle::new(config, 3));
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let mut judged = 0;
    for step in 0..1_000_000u32 {
        // Losses that fall as in training, a source that is worse now and then, a rare enormous one.
        let level = 0.1 + 10.0 / (1.0 + f64::from(step) * 1e-3);
        let mut losses = [0.0; 3].map(|_| level * (0.5 + rng.random::<f64>()));
        losses[2] *= if (step / 5_000) % 2 == 0 { 1.3 } else { 1.0 };
        if step % 9_973 == 0 {
            losses[(step % 3) as usize] = 10f64.powi(3 + (step % 60) as i32);
        }
        lap.weigh(&losses, &[0, 1, 2]).unwrap();
        judged += oracle.step(&[(0, losses[0]), (1, losses[1]), (2, losses[2])]).len();
    }
    assert!(judged > 2_900_000);
    for (source, expected) in lap.state().sources.iter().zip(&oracle.sources) {
        assert!(source.window.iter().eq(&expected.window));
        assert_eq!(source.unreliability, expected.unreliability);
    }
    let status = lap.status(&2).unwrap();
    assert!(status.above > 100_000 && status.above < 900_000, "the test has not tested much");
    for (status, expected) in lap.sources().zip(&oracle.sources) {
        let mean = expected.window.iter().sum::<f64>() / expected.window.len() as f64;
        assert!((status.mean_loss.unwrap() / mean - 1.0).abs() < 1e-14);
    }
}
