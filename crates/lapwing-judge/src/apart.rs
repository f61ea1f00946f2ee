//! How far what a source sends lies from what all others send.

use crate::inputs;

/// For every source the largest difference between the distribution function of its values and that of the others', 0 to 1;
/// 0 where it, or nobody else, has any. Values that are not finite are left out.
pub fn apart(values: &[f64], sources: &[u32], count: usize) -> Vec<f64> {
    let known = values.iter().zip(sources).filter(|(value, _)| value.is_finite());
    let mut sorted: Vec<(f64, u32)> = known.map(|(&value, &source)| (value, source)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut own = vec![Vec::new(); count];
    for &(value, source) in &sorted {
        if let Some(own) = own.get_mut(source as usize) {
            own.push(value);
        }
    }
    let all: Vec<f64> = sorted.into_iter().map(|(value, _)| value).collect();
    let distance = |own: &Vec<f64>| match own.len() < all.len() {
        true => inputs::apart(own, &all),
        false => 0.0,
    };
    own.iter().map(distance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, value by value.
    fn slowly(values: &[f64], sources: &[u32], source: u32) -> f64 {
        let part = |own: bool| -> Vec<f64> {
            let pairs = values.iter().zip(sources);
            pairs
                .filter(|(v, s)| v.is_finite() && (**s == source) == own)
                .map(|(v, _)| *v)
                .collect()
        };
        let (own, others) = (part(true), part(false));
        if own.is_empty() || others.is_empty() {
            return 0.0;
        }
        let share = |part: &[f64], at: f64| {
            part.iter().filter(|v| **v <= at).count() as f64 / part.len() as f64
        };
        let all = values.iter().filter(|v| v.is_finite());
        all.map(|&at| (share(&own, at) - share(&others, at)).abs()).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn it_is_the_largest_difference_of_the_distribution_functions(
            rows in proptest::collection::vec((-4_i32..5, 0_u32..4), 0..60)
        ) {
            let values: Vec<f64> =
                rows.iter().map(|row| if row.0 == 4 { f64::NAN } else { f64::from(row.0) }).collect();
            let sources: Vec<u32> = rows.iter().map(|row| row.1).collect();
            for (source, found) in (0..).zip(apart(&values, &sources, 4)) {
                prop_assert!((found - slowly(&values, &sources, source)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn short_texts_among_long_ones_are_one_apart() {
        let found = apart(&[5.0, 5.0, 200.0, 310.0, 150.0], &[0, 0, 1, 2, 2], 4);
        assert_eq!(found[0], 1.0);
        assert_eq!(found[3], 0.0);
    }
}
