//! JSON form of health reports and alerts, as webhooks, surfaces and the command line show them.

use serde_json::{Map, Value, json};
use tool_core::{Alert, HealthReport, rfc3339};

use crate::milliseconds::milliseconds;

/// Returns a report as one JSON object.
///
/// Members: `status`, `calls`, `failures`, `reported_failures`; if there were calls, also `success_rate`, `mean_ms`,
/// `p50_ms`, `p95_ms` and `p99_ms`; if there were checks, also `check` with `failures_in_row` and `took_ms`.
///
/// # Examples
///
/// ```
/// use tool_core::HealthReport;
/// use tool_observe::health_record;
///
/// let record = health_record(&HealthReport::UNKNOWN);
/// assert_eq!(record["status"], "unknown");
/// assert_eq!(record["calls"], 0);
/// ```
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
            add(key, milliseconds(time).into());
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

/// Returns an alert as one JSON object, in the shape that Standard Webhooks recommends: `type`, `timestamp` and `data`.
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

fn rounded(number: f64, parts: f64) -> Value {
    Value::from((number * parts).round() / parts)
}
