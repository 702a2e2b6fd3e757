use std::time::Duration;

/// Converts a duration to milliseconds for fields of logs and records, rounded to 1 µs below 100 ms and to 10 µs above.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    let parts = if duration < Duration::from_millis(100) {
        1e3
    } else {
        1e2
    };
    (duration.as_secs_f64() * 1e3 * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_no_insignificant_digits() {
        let cases = [
            (0, "0"),
            (1_234, "0.001"),
            (123_456, "0.123"),
            (99_999_999, "100"),
            (1_070_092_610, "1070.09"),
            (20_001_516_408, "20001.52"),
        ];
        for (nanoseconds, expected) in cases {
            assert_eq!(
                milliseconds(Duration::from_nanos(nanoseconds)).to_string(),
                expected
            );
        }
    }
}
