//! Choosing the leniency.

use core::f64::consts::PI;

use crate::LapError;

/// The probability that a clean source is accused in a step: that its unreliability rises.
///
/// Exact under four assumptions: **all sources are clean** and of equal weight, **batch means are independent and
/// normal** with one spread, every **history is complete**, and so is the source's own. With n = (S − 1) · H losses of
/// the others, whose spread the rule takes with divisor n, the difference between the source's mean and theirs follows
/// Student's t with n − 1 degrees of freedom, and the rate is
///
/// ```text
/// P(T_{n−1} > λ · √((n − 1) / n) / √(1/H + 1/n))
/// ```
///
/// The paper's appendix ("Maximum tempered likelihood estimation on clean data") has P(Z > λ) instead, which is its limit
/// for many sources and H = 1. For few sources it is too low (3 sources, H = 1, λ = 1.64: 5 % by the paper, 25.8 % in
/// truth), for longer histories far too high (10 sources, H = 25, λ = 0.8: 21 % by the paper, 0.01 % in truth), since a mean
/// over H batches is compared with the spread of single batches.
///
/// In training the rate is lower still: losses fall while histories fill, and this drift, which all sources share, widens
/// the spread that they are measured by. And since unreliability falls again in every other step, any rate below one half
/// keeps a clean source near weight 1. What no rate covers is a source that is merely *harder*: its losses are higher for a
/// reason, and more leniency is the remedy.
///
/// # Errors
/// Where the leniency is negative or not a number, or where fewer than two losses of others are remembered: a spread needs
/// two.
///
/// ```
/// use lapwing_core::false_alarm_rate;
/// assert!((false_alarm_rate(0.8, 10, 25)? - 9.82e-5).abs() < 1e-7);
/// # Ok::<(), lapwing_core::LapError>(())
/// ```
pub fn false_alarm_rate(
    leniency: f64,
    sources: usize,
    history_length: usize,
) -> Result<f64, LapError> {
    if leniency.is_nan() || leniency < 0.0 {
        return Err(LapError::Parameter {
            parameter: "leniency",
            value: leniency,
            expected: "at least 0",
        });
    }
    Ok(Judgement::new(sources, history_length)?.rate(leniency))
}

/// The leniency λ at which a clean source is accused in a given share of the steps: the inverse of [`false_alarm_rate`],
/// under the same assumptions.
///
/// # Errors
/// Where the probability is not between 1e−300 and 0.5 (a leniency is never negative), or where fewer than two losses of
/// others are remembered.
///
/// ```
/// use lapwing_core::leniency_for_false_alarm;
/// let leniency = leniency_for_false_alarm(0.01, 10, 25)?;
/// assert!((leniency - 0.49507).abs() < 1e-5);
/// # Ok::<(), lapwing_core::LapError>(())
/// ```
pub fn leniency_for_false_alarm(
    probability: f64,
    sources: usize,
    history_length: usize,
) -> Result<f64, LapError> {
    if !(1e-300..=0.5).contains(&probability) {
        return Err(LapError::Parameter {
            parameter: "false-alarm probability",
            value: probability,
            expected: "above 0 and at most 0.5",
        });
    }
    let judgement = Judgement::new(sources, history_length)?;
    let (mut low, mut high) = (0.0, 1.0);
    while judgement.rate(high) > probability {
        (low, high) = (high, 2.0 * high);
    }
    // The ends are a factor of two apart, or below one: each halving adds a bit.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match judgement.rate(middle) > probability {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high)
}

/// How a source is compared with the others.
struct Judgement {
    degrees: f64,
    /// Student's t for a leniency of 1.
    slope: f64,
}

impl Judgement {
    fn new(sources: usize, history_length: usize) -> Result<Self, LapError> {
        let (history, others) = (history_length as f64, sources.saturating_sub(1) as f64);
        let losses = others * history;
        if losses < 2.0 {
            return Err(LapError::Parameter {
                parameter: "number of sources",
                value: sources as f64,
                expected: "so many that the others remember at least two losses",
            });
        }
        let degrees = losses - 1.0;
        let slope = libm::sqrt(degrees / losses) / libm::sqrt(1.0 / history + 1.0 / losses);
        Ok(Self { degrees, slope })
    }

    fn rate(&self, leniency: f64) -> f64 {
        student_tail(self.slope * leniency, self.degrees)
    }
}

/// P(T > t) for Student's t with `degrees` of freedom and t ≥ 0: half the regularised incomplete beta function
/// I_x(ν/2, 1/2) at x = ν / (ν + t²).
///
/// ```
/// // One of the 2.5 % beyond 2.776 with 4 degrees of freedom.
/// assert!((lapwing_core::student_tail(2.776_445, 4.0) - 0.025).abs() < 1e-7);
/// ```
pub fn student_tail(t: f64, degrees: f64) -> f64 {
    let square = t * t;
    if square == 0.0 {
        return 0.5;
    }
    if !square.is_finite() {
        // So far out that only the power is left, which is below every number but for few degrees.
        return match t.is_finite() {
            true => libm::exp(-log_beta_half(0.5 * degrees) + power_tail(t, degrees)),
            false => 0.0,
        };
    }
    let (a, b) = (0.5 * degrees, 0.5);
    let (x, y) = (degrees / (degrees + square), square / (degrees + square));
    let front =
        libm::exp(0.5 * libm::log(y) - a * libm::log1p(square / degrees) - log_beta_half(a));
    if x < (a + 1.0) / (a + b + 2.0) {
        0.5 * front * beta_fraction(a, b, x) / a
    } else {
        0.5 - 0.5 * front * beta_fraction(b, a, y) / b
    }
}

/// ln of (ν/t²)^(ν/2) / ν.
fn power_tail(t: f64, degrees: f64) -> f64 {
    0.5 * degrees * libm::log(degrees) - degrees * libm::log(t) - libm::log(degrees)
}

/// ln B(a, 1/2), by the asymptotic series of ln Γ(a + 1/2) / Γ(a), which needs no difference of large logarithms.
fn log_beta_half(mut a: f64) -> f64 {
    let mut ratio = 0.0;
    while a < 20.0 {
        ratio += libm::log(a / (a + 0.5));
        a += 1.0;
    }
    let i = 1.0 / (a * a);
    let series = 1.0 / 8.0
        - i * (1.0 / 192.0 - i * (1.0 / 640.0 - i * (17.0 / 14_336.0 - i * 31.0 / 18_432.0)));
    ratio += 0.5 * libm::log(a) - series / a;
    0.5 * libm::log(PI) - ratio
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = lower;
    for term in 1..10_000 {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for part in [even, odd] {
            lower = 1.0 / away(1.0 + part * lower);
            upper = away(1.0 + part / upper);
            fraction *= lower * upper;
        }
        if (lower * upper - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_students_t() {
        // from scipy.stats import t
        // for nu, x in (…): print(t.sf(x, nu))
        let tails = [
            (1.0, 0.5, 0.35241638234956674),
            (1.0, 50.0, 0.006365349100972797),
            (4.0, 2.5, 0.03338327240599407),
            (18.0, 1.0, 0.1652824656390921),
            (224.0, 3.0, 0.0015026166069351937),
            (2474.0, 2.0, 0.022804700781463346),
        ];
        for (degrees, t, expected) in tails {
            let found = student_tail(t, degrees);
            assert!((found / expected - 1.0).abs() < 1e-12, "{degrees}, {t}: {found}");
        }
        // With many degrees the complement of x has few digits left.
        let found = student_tail(4.0, 24_999_999.0);
        assert!((found / 3.167133283777001e-5 - 1.0).abs() < 1e-9, "{found}");
        assert_eq!((student_tail(0.0, 3.0), student_tail(f64::INFINITY, 3.0)), (0.5, 0.0));
    }

    #[test]
    fn a_leniency_gives_back_the_rate_it_was_chosen_for() {
        for sources in [2, 3, 10, 100, 1_000_000] {
            for history in [2, 5, 25] {
                for probability in [0.5, 0.2, 0.05, 1e-3, 1e-9] {
                    let leniency = leniency_for_false_alarm(probability, sources, history).unwrap();
                    let rate = false_alarm_rate(leniency, sources, history).unwrap();
                    assert!((rate / probability - 1.0).abs() < 1e-9, "{sources} {history} {rate}");
                }
            }
        }
        // Cauchy's distribution has the longest tail that is asked for.
        let leniency = leniency_for_false_alarm(1e-300, 3, 1).unwrap();
        assert!(leniency.is_finite());
        let rate = false_alarm_rate(leniency, 3, 1).unwrap();
        assert!((rate / 1e-300 - 1.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn what_no_leniency_gives_is_refused() {
        for probability in [0.0, -0.1, 0.500001, 1.0, f64::NAN, f64::INFINITY] {
            assert!(leniency_for_false_alarm(probability, 10, 25).is_err(), "{probability}");
        }
        for (sources, history) in [(0, 25), (1, 25), (2, 1), (10, 0)] {
            assert!(leniency_for_false_alarm(0.05, sources, history).is_err());
        }
        assert!(false_alarm_rate(-1.0, 10, 25).is_err());
        assert!(false_alarm_rate(f64::NAN, 10, 25).is_err());
        assert_eq!(false_alarm_rate(f64::INFINITY, 10, 25).unwrap(), 0.0);
    }
}
