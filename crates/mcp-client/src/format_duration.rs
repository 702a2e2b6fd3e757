use std::{fmt, time::Duration};

/// Formats a duration for people: `250 µs`, `1.5 ms`, `20 s`, `1.07 s`, `2 min 5 s`, `1 h 30 min`.
///
/// A copy of `format_duration` of `tool-core`, since this crate does not depend on that one.
#[must_use]
pub(crate) const fn format_duration(duration: Duration) -> FormattedDuration {
    FormattedDuration(duration)
}

/// Duration with a human-readable `Display`, created by [`format_duration`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FormattedDuration(Duration);

const MICROSECOND: u128 = 1_000;
const MILLISECOND: u128 = 1_000 * MICROSECOND;
const SECOND: u128 = 1_000 * MILLISECOND;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;
const DAY: u128 = 24 * HOUR;

impl fmt::Display for FormattedDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        if nanoseconds == 0 {
            return f.write_str("0 s");
        }
        // A value that rounds up to the next unit is written in that unit.
        if rounded(nanoseconds, MICROSECOND) < MILLISECOND {
            let whole = (nanoseconds + MICROSECOND / 2) / MICROSECOND;
            return if whole == 0 {
                f.write_str("under 1 µs")
            } else {
                write!(f, "{whole} µs")
            };
        }
        for (unit, name, end) in [(MILLISECOND, "ms", SECOND), (SECOND, "s", 2 * MINUTE)] {
            let rounded = rounded(nanoseconds, unit);
            if rounded < end {
                return decimal(f, rounded, unit, name);
            }
        }
        let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];
        for pair in units.windows(2) {
            let [(unit, name), (small, small_name)] = pair else {
                continue;
            };
            let n_small = (nanoseconds + small / 2) / small;
            let (n, rest) = (n_small / (unit / small), n_small % (unit / small));
            match (n, rest) {
                (0, _) => {}
                (n, 0) => return write!(f, "{n} {name}"),
                (n, rest) => return write!(f, "{n} {name} {rest} {small_name}"),
            }
        }
        Ok(())
    }
}

/// Rounds to three significant digits of the unit.
const fn rounded(nanoseconds: u128, unit: u128) -> u128 {
    let step = if nanoseconds < 10 * unit {
        unit / 100
    } else if nanoseconds < 100 * unit {
        unit / 10
    } else {
        unit
    };
    (nanoseconds + step / 2) / step * step
}

fn decimal(f: &mut fmt::Formatter<'_>, nanoseconds: u128, unit: u128, name: &str) -> fmt::Result {
    let (whole, hundredths) = (nanoseconds / unit, nanoseconds % unit * 100 / unit);
    match hundredths {
        0 => write!(f, "{whole} {name}"),
        tenths if tenths % 10 == 0 => write!(f, "{whole}.{} {name}", tenths / 10),
        hundredths => write!(f, "{whole}.{hundredths:02} {name}"),
    }
}
