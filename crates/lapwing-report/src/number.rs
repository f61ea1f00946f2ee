//! Numbers as people read them.

/// Narrow no-break space: keeps a number and its unit together.
const NARROW: char = '\u{202F}';
const MINUS: char = '\u{2212}';
/// Shown where there is no value.
pub(crate) const NONE: &str = "–";

/// `12345` → `12,345`.
pub(crate) fn count(n: u64) -> String {
    group(&n.to_string())
}

/// `1` → `one`, up to ten; figures beyond.
pub(crate) fn words(n: usize) -> String {
    const WORDS: [&str; 11] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.get(n).map_or_else(|| count(n as u64), |word| (*word).to_owned())
}

fn group(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A value with so many decimals, grouped, with a real minus sign; never `-0`.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "not finite".to_owned();
    }
    if value.abs() >= 1e15 {
        return scientific(value);
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let negative = value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b));
    let mut out = if negative { MINUS.to_string() } else { String::new() };
    out.push_str(&group(whole));
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A measured value: three decimals where that says something, powers of ten beyond.
pub(crate) fn value(x: f64) -> String {
    let size = x.abs();
    if !x.is_finite() || size == 0.0 {
        fixed(x, 0)
    } else if !(0.0005..999_999.5).contains(&size) {
        scientific(x)
    } else if size >= 99.9995 {
        fixed(x, if size >= 999.95 { 0 } else { 1 })
    } else {
        fixed(x, 3)
    }
}

/// A setting as it was given: `0.8`, not `0.800`.
pub(crate) fn plain(x: f64) -> String {
    if x.is_finite() && (1e-6..1e9).contains(&x.abs()) {
        x.to_string().replace('-', &MINUS.to_string())
    } else {
        value(x)
    }
}

/// A round value beside an axis, in as little room as possible: `5×10⁹`.
pub(crate) fn tick_power(x: f64) -> String {
    scientific(x).replace(NARROW, "").replace(".00×", "×").replace("0×", "×")
}

fn scientific(x: f64) -> String {
    let text = format!("{x:.2e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let raised: String = exponent
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            _ => char::from_u32(0x2070 + c.to_digit(10).unwrap_or(0)).unwrap_or(c),
        })
        .collect();
    format!("{}{NARROW}×{NARROW}10{raised}", mantissa.replace('-', &MINUS.to_string()))
}

/// A share as a percentage: one decimal below ten, none above, and never `100 %` for less than all.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    let text = if !p.is_finite() {
        return fixed(p, 0);
    } else if p > 0.0 && p < 0.05 {
        "<0.1".to_owned()
    } else if (99.5..100.0).contains(&p) {
        if p < 99.95 { fixed(p, 1) } else { ">99.9".to_owned() }
    } else if p == 0.0 || p.abs() >= 9.95 {
        fixed(p, 0)
    } else {
        fixed(p, 1)
    };
    format!("{text}{NARROW}%")
}

/// The probability of a prediction, to a tenth of a per cent, and never `100 %` for less than certainty.
pub(crate) fn probability(p: f64) -> String {
    let all_but = (0.9995..1.0).contains(&p);
    if all_but || !p.is_finite() { percent(p) } else { format!("{}{NARROW}%", fixed(p * 100.0, 1)) }
}

/// Two shares as one range: `47–53 %`.
pub(crate) fn percent_range(low: f64, high: f64) -> String {
    let (low, high) = (percent(low), percent(high));
    let low = if high.ends_with('%') { low.trim_end_matches(['%', NARROW]) } else { low.as_str() };
    format!("{low}–{high}")
}

/// What a metric of `metrics.csv` is called in a sentence, and whether it is a share.
pub(crate) fn metric_words(metric: &str) -> (&str, bool) {
    match metric {
        "accuracy" => ("accuracy", true),
        "balanced_accuracy" => ("balanced accuracy", true),
        "macro_f1" => ("macro F1", false),
        "log_loss" => ("log loss", false),
        "auc" => ("area under the ROC curve", false),
        "mse" => ("mean squared error", false),
        "mae" => ("mean absolute error", false),
        "r2" => ("R²", false),
        other => (other, false),
    }
}

/// The value of a metric: shares to a tenth of a per cent.
pub(crate) fn metric(metric: &str, x: f64) -> String {
    if metric_words(metric).1 && x.is_finite() {
        format!("{}{NARROW}%", fixed(x * 100.0, 1))
    } else {
        value(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn values_keep_three_figures_that_matter() {
        assert_eq!(value(0.0), "0");
        assert_eq!(value(-0.0), "0");
        assert_eq!(value(0.41234), "0.412");
        assert_eq!(value(-2.5), "−2.500");
        assert_eq!(value(123.456), "123.5");
        assert_eq!(value(12_345.6), "12,346");
        assert_eq!(value(1.234e-7), "1.23\u{202F}×\u{202F}10⁻⁷");
        assert_eq!(value(-1e300), "−1.00\u{202F}×\u{202F}10³⁰⁰");
        assert_eq!(value(f64::NAN), "not finite");
        assert_eq!(value(f64::NEG_INFINITY), "not finite");
    }

    #[test]
    fn percentages_never_round_to_all_or_nothing() {
        assert_eq!(percent(0.0), "0\u{202F}%");
        assert_eq!(percent(0.0001), "<0.1\u{202F}%");
        assert_eq!(percent(0.025), "2.5\u{202F}%");
        assert_eq!(percent(0.25), "25\u{202F}%");
        assert_eq!(percent(0.996), "99.6\u{202F}%");
        assert_eq!(percent(0.99999), ">99.9\u{202F}%");
        assert_eq!(percent(1.0), "100\u{202F}%");
        assert_eq!(percent(f64::NAN), "not finite");
    }

    #[test]
    fn a_sure_prediction_is_not_a_certain_one() {
        assert_eq!(probability(0.99), "99.0\u{202F}%");
        assert_eq!(probability(0.99999), ">99.9\u{202F}%");
        assert_eq!(probability(1.0), "100.0\u{202F}%");
        assert_eq!(probability(f64::NAN), "not finite");
    }

    #[test]
    fn a_range_of_percentages_has_one_unit() {
        assert_eq!(percent_range(0.013, 0.47), "1.3–47\u{202F}%");
        assert_eq!(percent_range(0.5, f64::NAN), "50\u{202F}%–not finite");
    }

    #[test]
    fn a_rounded_negative_zero_has_no_sign() {
        assert_eq!(fixed(-0.0001, 2), "0.00");
        assert_eq!(fixed(-1_234.5, 1), "−1,234.5");
        assert_eq!(fixed(1e308, 2), "1.00\u{202F}×\u{202F}10³⁰⁸");
    }

    #[test]
    fn powers_beside_an_axis_are_short() {
        assert_eq!(tick_power(5e9), "5×10⁹");
        assert_eq!(tick_power(-2.5e-7), "−2.5×10⁻⁷");
        assert_eq!(tick_power(1e10), "1×10¹⁰");
    }

    #[test]
    fn settings_are_shown_as_given() {
        assert_eq!(plain(0.8), "0.8");
        assert_eq!(plain(-1.0), "−1");
        assert_eq!(plain(0.0), "0");
        assert_eq!(plain(f64::NAN), "not finite");
    }
}
