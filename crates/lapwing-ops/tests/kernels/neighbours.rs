//! Nearest neighbours beside a sort of all of them.

use lapwing_ops::nearest;
use proptest::prelude::*;

/// All others by their inner products in double precision, the largest and of equal ones the first in front.
fn slow(vectors: &[f32], width: usize, count: usize) -> Vec<Vec<(u32, f64)>> {
    let rows: Vec<&[f32]> = vectors.chunks(width).collect();
    let of_row = |(at, row): (usize, &&[f32])| {
        let product = |other: &[f32]| {
            row.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        };
        let mut all: Vec<(u32, f64)> = (0..rows.len())
            .filter(|&other| other != at)
            .map(|other| (other as u32, product(rows[other])))
            .collect();
        all.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
        all.truncate(count);
        all
    };
    rows.iter().enumerate().map(of_row).collect()
}

/// Numbers of a stream of its own.
fn stream(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn they_are_those_of_a_sort_ties_included(
        rows in 1usize..400,
        width in 1usize..9,
        count in 0usize..40,
        seed in any::<u64>(),
    ) {
        // Small whole numbers: products are exact and many are equal.
        let mut draw = stream(seed);
        let vectors: Vec<f32> = (0..rows * width).map(|_| (draw() % 5) as f32 - 2.0).collect();
        let found = nearest(&vectors, width, count);
        let expected = slow(&vectors, width, count);
        prop_assert_eq!(found.each, count.min(rows - 1));
        for (row, expected) in expected.iter().enumerate() {
            let place = row * found.each..(row + 1) * found.each;
            let own: Vec<(u32, f64)> = found.rows[place.clone()]
                .iter()
                .copied()
                .zip(found.similarities[place].iter().map(|s| f64::from(*s)))
                .collect();
            prop_assert_eq!(&own, expected);
        }
    }
}

#[test]
fn more_rows_than_a_block_are_all_compared_and_threads_do_not_matter() {
    let (rows, width, count) = (2_500, 7, 60);
    let mut draw = stream(3);
    let vectors: Vec<f32> = (0..rows * width).map(|_| (draw() % 41) as f32 - 20.0).collect();
    let found = nearest(&vectors, width, count);
    let names: Vec<u32> = slow(&vectors, width, count).concat().iter().map(|pair| pair.0).collect();
    assert_eq!(found.rows, names);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| nearest(&vectors, width, count)), found);
}

#[test]
fn what_is_not_a_number_is_nearest_to_nobody() {
    let mut vectors = vec![1.0; 6];
    vectors[2] = f32::NAN;
    let found = nearest(&vectors, 1, 4);
    assert_eq!(found.rows[..4], [1, 3, 4, 5]);
    let of_nan = &found.similarities[8..12];
    assert!(of_nan.iter().all(|similarity| *similarity == f32::NEG_INFINITY));
    assert_eq!(nearest(&[], 3, 5).rows, [0u32; 0]);
}
