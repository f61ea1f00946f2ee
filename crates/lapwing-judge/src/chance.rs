//! How probable it is that chance alone shows what was seen: upper bounds, as logarithms, since the numbers are small.
//!
//! Bounds instead of approximations: they hold for every number of rows, so that what is called no accident is none.

/// The probability that clean sources of a run give rise to a finding of one kind.
const FALSE_FINDINGS: f64 = 0.01;

/// Whether something is beyond chance where it was looked for so many times.
pub(crate) fn is_beyond_chance(ln_probability: f64, looks: usize) -> bool {
    ln_probability < (FALSE_FINDINGS / looks.max(1) as f64).ln()
}

/// At least `count` of `trials`, each with a chance of `share` (Chernoff).
pub(crate) fn ln_at_least(count: f64, trials: f64, share: f64) -> f64 {
    let found = count / trials;
    if trials <= 0.0 || found <= share {
        return 0.0;
    }
    if share <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let part = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    -trials * (part(found, share) + part(1.0 - found, 1.0 - share))
}

/// At least `count` of `of` here, where there are `others` of `others_of` elsewhere and it makes no difference where: as many
/// of all that were found among those here, drawn without putting back. What is usual elsewhere is known from a sample, too.
pub(crate) fn ln_more_often([count, of]: [usize; 2], [others, others_of]: [usize; 2]) -> f64 {
    let exactly = ln_choices(of, count) + ln_choices(others_of, others)
        - ln_choices(of + others_of, count + others);
    // One more is less probable by this factor, and the next by a smaller one: at most a geometric series.
    let next =
        (of - count) as f64 / (count + 1) as f64 * others as f64 / (others_of - others + 1) as f64;
    if next < 1.0 { (exactly - (1.0 - next).ln()).min(0.0) } else { 0.0 }
}

/// Ways to choose so many.
fn ln_choices(of: usize, chosen: usize) -> f64 {
    let left = of - chosen;
    (1..=chosen.min(left)).map(|at| ((of - at + 1) as f64 / at as f64).ln()).sum()
}

/// Two samples of one distribution whose distribution functions differ by `distance` somewhere (Massart).
pub(crate) fn ln_apart(distance: f64, first: f64, second: f64) -> f64 {
    let rows = first * second / (first + second);
    (2.0f64.ln() - 2.0 * rows * distance * distance).min(0.0)
}

/// A sum of `freedom` squares of standard normal numbers of at least `sum` (Chernoff).
pub(crate) fn ln_squares_at_least(sum: f64, freedom: f64) -> f64 {
    match sum > freedom && freedom > 0.0 {
        true => 0.5 * (freedom * (sum / freedom).ln() + freedom - sum),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Summed up term by term: 15 or more of 50 at 0.1, a chi² of 30 or more with 9 degrees, 5 of 5 at a half.
    #[test]
    fn bounds_are_above_the_probabilities_and_near_enough_to_be_of_use() {
        for (bound, exact) in [
            (ln_at_least(15.0, 50.0, 0.1), 7.383_868_6e-5_f64),
            (ln_squares_at_least(30.0, 9.0), 4.387_217_7e-4),
            (ln_at_least(5.0, 5.0, 0.5), 0.031_25),
        ] {
            assert!(
                bound >= exact.ln() - 1e-9 && bound < exact.ln() + 3.0,
                "{bound} {}",
                exact.ln()
            );
        }
    }

    #[test]
    fn the_bound_on_more_than_elsewhere_is_nearly_the_sum_of_all_its_cases() {
        // Pascal's triangle.
        let mut choices = vec![vec![1.0f64]];
        for of in 1..=300 {
            let before: &Vec<f64> = &choices[of - 1];
            let inner = before.windows(2).map(|pair| pair[0] + pair[1]);
            choices.push([1.0].into_iter().chain(inner).chain([1.0]).collect());
        }
        for (of, others_of) in [(1, 1), (5, 3), (20, 20), (60, 240), (200, 40)] {
            for (count, others) in (0..=of).flat_map(|c| (0..=others_of).map(move |o| (c, o))) {
                let found = count + others;
                let cases = (count..=of.min(found)).map(|here| {
                    let elsewhere = choices[others_of].get(found - here).copied().unwrap_or(0.0);
                    choices[of][here] * elsewhere / choices[of + others_of][found]
                });
                let exact = cases.sum::<f64>().ln();
                let bound = ln_more_often([count, of], [others, others_of]);
                assert!(
                    bound >= exact - 1e-9,
                    "{count} of {of}, {others} of {others_of}: {bound} {exact}"
                );
                if exact < -4.0 {
                    assert!(
                        bound < exact + 0.5,
                        "{count} of {of}, {others} of {others_of}: {bound} {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_usual_or_nothing_is_no_more_than_chance() {
        assert_eq!(ln_at_least(5.0, 50.0, 0.1), 0.0);
        assert_eq!(ln_at_least(0.0, 0.0, 0.1), 0.0);
        assert_eq!(ln_more_often([6, 60], [24, 240]), 0.0);
        assert_eq!(ln_more_often([0, 0], [0, 0]), 0.0);
        assert_eq!(ln_at_least(1.0, 50.0, 0.0), f64::NEG_INFINITY);
        assert_eq!(ln_squares_at_least(3.0, 9.0), 0.0);
        assert_eq!(ln_apart(0.01, 20.0, 20.0), 0.0);
        assert!(is_beyond_chance(-10.0, 100) && !is_beyond_chance(-9.0, 100));
    }
}
