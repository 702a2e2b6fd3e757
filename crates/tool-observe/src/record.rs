//! Health and alerts as JSON: what webhooks, edges and the command line show.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tool_core::{Alert, HealthReport};

/// A report as one JSON object: `status`, `calls`, `failures`, `reported_failures`, and where there were calls
/// `success_rate`, `mean_ms`, `p50_ms`, `p95_ms` and `p99_ms`; where there were checks `check` with
/// `failures_in_row` and `took_ms`.
#[must_use]
pub fn health_record(report: &HealthReport) -> Value {
    let mut record = Map::new();
    let mut add = |key: &str, value: Value| record.insert(key.to_owned(), value);
    add("status", report.status.as_str().into());
    add("calls", report.n_calls.into());
    add("failures", report.n_failures.into());
    add("reported_failures", report.n_reported.into());
    if let Some(rate) = report.success_rate() {
        add("success_rate", rounded(rate, 10_000.0));
        for (key, time) in [
            ("mean_ms", report.mean),
            ("p50_ms", report.p50),
            ("p95_ms", report.p95),
            ("p99_ms", report.p99),
        ] {
            add(key, milliseconds(time));
        }
    }
    if let Some(check) = report.check {
        let took = milliseconds(check.took);
        add(
            "check",
            json!({"failures_in_row": check.n_failures, "took_ms": took}),
        );
    }
    Value::Object(record)
}

/// An alert as one JSON object, in the shape that Standard Webhooks recommend: `type`, `timestamp` and `data`.
pub(crate) fn alert_record(alert: &Alert) -> Value {
    let mut data = json!({
        "alert": alert.kind.as_str(),
        "phase": alert.phase.as_str(),
        "subject": {"kind": alert.subject.kind(), "name": &**alert.subject.name()},
        "message": alert.message,
    });
    if let (Some(health), Value::Object(data)) = (&alert.health, &mut data) {
        data.insert("health".to_owned(), health_record(health));
    }
    json!({"type": "toolplane.alert", "timestamp": rfc3339(alert.at), "data": data})
}

/// Milliseconds to the microsecond.
fn milliseconds(time: Duration) -> Value {
    rounded(time.as_secs_f64() * 1000.0, 1000.0)
}

fn rounded(number: f64, parts: f64) -> Value {
    Value::from((number * parts).round() / parts)
}

/// The time of day in UTC, to the second.
fn rfc3339(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date so many days after 1970-01-01, in the Gregorian calendar. Years begin with March here, so that the day that
/// leap years have more is their last.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // From 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months from March, and again from August, have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_written_as_the_standard_says() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
