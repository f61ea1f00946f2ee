//! Numbers as text in tables.

/// A number in the shortest form that reads back to the same value.
pub fn number_text(value: f64) -> String {
    if value == 0.0 || (1e-5..1e16).contains(&value.abs()) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_to_the_same_value() {
        for value in [
            0.0,
            -0.0,
            1.0,
            0.1,
            1.0 / 3.0,
            1e-5,
            9.99e-6,
            1e15,
            1e16,
            -2.5e-300,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            0.999_999_999_999_999_9,
        ] {
            let text = number_text(value);
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
            assert!(text.len() < 26, "{text}");
        }
    }
}
