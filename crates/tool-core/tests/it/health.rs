use tool_core::{CheckReport, ErrorKind, HealthReport, HealthStatus};

fn report(n_calls: u64, n_failures: u64, check: Option<u32>) -> HealthReport {
    let mut report = HealthReport::UNKNOWN;
    (report.n_calls, report.n_failures) = (n_calls, n_failures);
    report.check = check.map(|n_failures| CheckReport::new(n_failures, std::time::Duration::ZERO));
    report.with_status()
}

#[test]
fn the_worse_of_attempts_and_checks_counts() {
    use HealthStatus::{Degraded, Healthy, Unhealthy, Unknown};
    for (n_calls, n_failures, check, expected) in [
        (0, 0, None, Unknown),
        (100, 0, None, Healthy),
        (100, 4, None, Healthy),
        // 95 % is not more than 95 %.
        (100, 5, None, Degraded),
        (100, 19, None, Degraded),
        (100, 20, None, Unhealthy),
        (1, 1, None, Unhealthy),
        (0, 0, Some(0), Healthy),
        (0, 0, Some(1), Degraded),
        (0, 0, Some(3), Unhealthy),
        (100, 0, Some(2), Degraded),
        (100, 0, Some(7), Unhealthy),
        (100, 50, Some(0), Unhealthy),
    ] {
        let status = report(n_calls, n_failures, check).status;
        assert_eq!(status, expected, "{n_failures} of {n_calls}, checks {check:?}");
    }
}

#[test]
fn what_the_caller_or_we_did_says_nothing_of_the_tool() {
    let counting: Vec<_> = ErrorKind::ALL
        .iter()
        .copied()
        .filter(|kind| kind.counts_for_health())
        .map(ErrorKind::as_str)
        .collect();
    let expected = [
        "result_invalid",
        "auth",
        "unavailable",
        "timeout",
        "upstream_error",
        "protocol",
        "outcome_unknown",
    ];
    assert_eq!(counting, expected);
}
