//! How far what a source sends lies from what all others send.

/// For every source the largest difference between the distribution function of its values and that of the others', 0 to 1;
/// 0 where it, or nobody else, has any. Values that are not finite are left out.
pub fn apart(values: &[f64], sources: &[u32], count: usize) -> Vec<f64> {
    let known = values.iter().zip(sources).filter(|(value, _)| value.is_finite());
    let mut sorted: Vec<(f64, u32)> = known.map(|(&value, &source)| (value, source)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut totals = vec![0_u64; count];
    for &(_, source) in &sorted {
        if let Some(total) = totals.get_mut(source as usize) {
            *total += 1;
        }
    }
    let all = sorted.len() as u64;
    let (mut own, mut seen) = (vec![0_u64; count], 0_u64);
    let mut furthest = vec![0.0_f64; count];
    let gap = |own: u64, seen: u64, total: u64| {
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        match total == 0 || total == all {
            true => 0.0,
            false => (share(own, total) - share(seen - own, all - total)).abs(),
        }
    };
    // The difference of a source is furthest right before its first value of a run, or right after its last: between
    // two of its own values the others alone move the other way.
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        let after = seen + same.len() as u64;
        for of_one in same.chunk_by(|a, b| a.1 == b.1) {
            let source = of_one[0].1 as usize;
            if source >= count {
                continue;
            }
            let before = own[source];
            own[source] += of_one.len() as u64;
            let gaps = [gap(before, seen, totals[source]), gap(own[source], after, totals[source])];
            furthest[source] = furthest[source].max(gaps[0]).max(gaps[1]);
        }
        seen = after;
    }
    furthest
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
