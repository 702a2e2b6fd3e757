use std::time::Duration;

use tool_core::format_duration;

fn shown(duration: Duration) -> String {
    format_duration(duration).to_string()
}

#[test]
fn durations_are_written_as_people_write_them() {
    let cases = [
        (0, "0 s"),
        (1, "under 1 µs"),
        (499, "under 1 µs"),
        (1_000, "1 µs"),
        (250_400, "250 µs"),
        (999_499, "999 µs"),
        (1_000_000, "1 ms"),
        (1_500_000, "1.5 ms"),
        (1_234_567, "1.23 ms"),
        (12_345_678, "12.3 ms"),
        (500_000_000, "500 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1 s"),
        (1_000_000_000, "1 s"),
        (1_070_092_610, "1.07 s"),
        (1_500_000_000, "1.5 s"),
        (20_001_516_408, "20 s"),
        (59_960_000_000, "60 s"),
        (90_000_000_000, "90 s"),
        (119_400_000_000, "119 s"),
        (119_600_000_000, "2 min"),
        (120_000_000_000, "2 min"),
        (125_000_000_000, "2 min 5 s"),
        (3_599_900_000_000, "1 h"),
        (3_600_000_000_000, "1 h"),
        (5_400_000_000_000, "1 h 30 min"),
        (86_399_999_999_999, "1 d"),
        (277_200_000_000_000, "3 d 5 h"),
    ];
    for (nanoseconds, expected) in cases {
        assert_eq!(
            shown(Duration::from_nanos(nanoseconds)),
            expected,
            "{nanoseconds}"
        );
    }
    assert!(shown(Duration::MAX).ends_with(" h"));
}

/// Parses the text of `format_duration` into seconds.
fn read(text: &str) -> f64 {
    let words: Vec<&str> = text.split(' ').collect();
    words
        .chunks(2)
        .map(|pair| {
            let [number, unit] = pair else {
                panic!("{text}");
            };
            let seconds = match *unit {
                "µs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "min" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => panic!("{text}"),
            };
            number.parse::<f64>().expect("a number") * seconds
        })
        .sum()
}

#[test]
fn the_written_duration_is_near_the_real_one() {
    let mut nanoseconds = 1_000_u64;
    while nanoseconds < 10_u64.pow(17) {
        let text = shown(Duration::from_nanos(nanoseconds));
        let real = Duration::from_nanos(nanoseconds).as_secs_f64();
        assert!(
            (read(&text) - real).abs() <= real * 0.025 + 5e-7,
            "{nanoseconds}: {text}"
        );
        assert!(text.len() <= 12, "{nanoseconds}: {text}");
        nanoseconds += nanoseconds / 7 + 1;
    }
}
