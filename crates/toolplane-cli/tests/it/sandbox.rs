//! The report about the sandbox.

use serde_json::Value;
use tool_testkit::skip;

use crate::binary::Place;

/// Probes a level. `None`, and a report, if this machine lacks it.
fn probed(level: &str) -> Option<(i32, Value)> {
    let run = Place::empty().run(&["sandbox", "probe", "--level", level, "-o", "json"]);
    if run.code == 6 {
        skip(run.stderr.trim());
        return None;
    }
    Some((run.code, run.json()))
}

#[test]
fn the_probe_reports_attacks_and_limits() {
    for level in ["bwrap", "landlock"] {
        let Some((code, report)) = probed(level) else {
            continue;
        };
        assert_eq!(code, 0, "{report:#}");
        assert_eq!(report["enforcement"]["level"], level);
        assert_eq!(report["enforcement"]["cpu"], "process");
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 24);
        let read = rows.iter().find(|row| row["id"] == "E01").unwrap();
        assert_eq!(
            (&read["held"], &read["tried"]),
            (&Value::from(true), &Value::from(true))
        );
    }
}

#[test]
fn the_probe_is_a_table_for_people() {
    let run = Place::empty().run(&["sandbox", "probe"]);
    if run.code == 6 {
        skip(run.stderr.trim());
        return;
    }
    assert!(run.stdout.contains("E24"), "{run:?}");
    assert!(run.stdout.contains("held against 23 of 23 attacks"), "{run:?}");
    assert!(run.stdout.contains("CPU time: process"), "{run:?}");
}

#[test]
fn the_doctor_includes_the_sandbox() {
    let run = Place::empty().run(&["doctor", "-o", "json"]);
    let findings = run.json();
    let finding = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["name"] == "sandbox");
    let finding = finding.unwrap_or_else(|| panic!("{findings:#}"));
    assert_ne!(finding["status"], "fail", "{finding:#}");
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains("level `"), "{finding:#}");
}
