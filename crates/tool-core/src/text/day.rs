use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::rfc3339;

/// Length of a day. Days in UTC have no leap seconds in the time of POSIX.
const DAY: Duration = Duration::from_secs(86_400);

/// Day in UTC. Its text form is that of RFC 3339, such as `2026-11-29`.
///
/// # Examples
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// use tool_core::UtcDay;
///
/// let day = UtcDay::of(UNIX_EPOCH + Duration::from_secs(1_709_210_096));
/// assert_eq!(day.to_string(), "2024-02-29");
/// assert_eq!(UtcDay::parse("2024-02-29"), Some(day));
/// assert_eq!(day.days_before(1).to_string(), "2024-02-28");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcDay(u32);

impl UtcDay {
    /// The first day, 1970-01-01. Earlier times count as this day.
    pub const FIRST: Self = Self(0);

    /// Returns the day of a time.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u32::try_from(since.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX))
    }

    /// Returns the day with this number of days since 1970-01-01.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of days since 1970-01-01.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the day that is this number of days earlier, at the earliest [`UtcDay::FIRST`].
    #[must_use]
    pub const fn days_before(self, n_days: u32) -> Self {
        Self(self.0.saturating_sub(n_days))
    }

    /// Reads a day such as `2026-11-29`. Returns `None` for any other text, and for a day before 1970 or after 9999.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let is_shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(index, byte)| match index {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !is_shaped {
            return None;
        }
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        if year < 1970 || !(1..=12).contains(&month) || day == 0 {
            return None;
        }
        // H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March.
        let (year, month) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let leap_days = year / 4 - year / 100 + year / 400;
        let since_march = (153 * month + 2) / 5 + day - 1;
        let parsed = Self((365 * year + leap_days + since_march).checked_sub(719_468)?);
        // A day that its month does not have is written otherwise.
        (parsed.to_string() == text).then_some(parsed)
    }
}

impl fmt::Display for UtcDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = UNIX_EPOCH + DAY * self.0;
        let text = rfc3339(start);
        f.pad(text.split('T').next().unwrap_or(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_is_read_as_it_is_written() {
        for number in 0..146_097 {
            let day = UtcDay::from_number(number);
            assert_eq!(UtcDay::parse(&day.to_string()), Some(day));
        }
    }

    #[test]
    fn other_texts_are_no_days() {
        for text in [
            "",
            "2026-1-01",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "2026-04-00",
            "1969-12-31",
            "2026/04/30",
            "+026-04-30",
            "2026-04-30T00:00:00Z",
            "２026-04-3",
        ] {
            assert_eq!(UtcDay::parse(text), None, "{text}");
        }
    }
}
