//! Hedges: accepted settings, and the messages about wrong ones.

use std::time::Duration;

use tool_runtime::{HedgeAfter, HedgePercent, HedgeSettings};
use toolplane::manifest::{LoadOptions, Syntax, load};

const SECOND: Duration = Duration::from_secs(1);

fn options(text: &str) -> LoadOptions {
    LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)
}

/// A tool with this hedge, from line 5 on.
fn search(lines: &str) -> String {
    format!(
        "tools:\n  search:\n    description: Searches.\n    executor: {{kind: mock, result: 1}}\n{lines}\n"
    )
}

#[test]
fn a_time_or_a_percentile() {
    let percentile = |percent, at_first| HedgeAfter::Percentile { percent, at_first };
    for (hedge, after, max) in [
        ("{after: 200ms}", HedgeAfter::Time(SECOND / 5), 1),
        ("{}", percentile(HedgePercent::P95, SECOND), 1),
        (
            "{after: p99, at_first: 3s, max: 2}",
            percentile(HedgePercent::P99, 3 * SECOND),
            2,
        ),
    ] {
        for declared in ["idempotent", "read_only"] {
            let text = search(&format!("    {declared}: true\n    hedge: {hedge}"));
            let configuration = load(&options(&text)).expect("usable").configuration;
            let found = configuration.tools[0].overrides.get::<HedgeSettings>().copied();
            assert_eq!(found, Some(HedgeSettings::new(after).with_max(max)), "{hedge}");
        }
    }
    let configuration = load(&options(&search(""))).expect("usable").configuration;
    assert_eq!(
        configuration.tools[0].overrides.get::<HedgeSettings>().copied(),
        None
    );
}

#[test]
fn what_is_wrong_is_shown_in_its_line() {
    for (lines, line, expected) in [
        ("    hedge: {after: 200ms}", 5, "may run twice for one call"),
        (
            "    idempotent: false\n    hedge: {after: 200ms}",
            6,
            "may run twice for one call",
        ),
        (
            "    idempotent: true\n    hedge: {after: p50}",
            6,
            "neither a time with its unit nor a percentile",
        ),
        ("    idempotent: true\n    hedge: {after: 0s}", 6, "longer than 0"),
        ("    idempotent: true\n    hedge: {max: 0}", 6, "at least 1"),
        ("    idempotent: true\n    hedge: {max: 9}", 6, "at most 3"),
        (
            "    idempotent: true\n    hedge: {after: 1s, at_first: 2s}",
            6,
            "`at_first` belongs to",
        ),
        (
            "    idempotent: true\n    timeout_ms: 500\n    hedge: {after: 1s}",
            7,
            "never gets company",
        ),
        ("    idempotent: true\n    hedge: {afer: 1s}", 6, "afer"),
    ] {
        let problems = load(&options(&search(lines))).expect_err(lines);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains(&format!("toolplane.yaml:{line}")),
            "{lines}: {said}"
        );
    }
}

#[test]
fn there_is_none_by_default_and_none_of_a_server() {
    for text in [
        "defaults: {hedge: {after: 1s}}\n",
        "servers: {s: {command: x, hedge: {after: 1s}}}\n",
    ] {
        let problems = load(&options(text)).expect_err(text);
        assert!(problems.render(false).contains("hedge"), "{text}");
    }
}
