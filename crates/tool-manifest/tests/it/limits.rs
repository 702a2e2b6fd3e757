//! Limits: accepted settings, and the messages about wrong ones.

use std::time::Duration;

use tool_core::{ConcurrencySettings, RateLimitSettings};
use tool_policy::RateLimits;
use tool_runtime::ConcurrencyLimits;
use toolplane::manifest::{LoadOptions, Syntax, load};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn limits_by_default_of_a_server_and_of_a_tool() {
    let text = "
defaults:
  rate_limit:
    per_principal: {requests: 60, period: 1m, burst: 10}
    total: {requests: 500, period: 1m}
  concurrency:
    per_tool: {max: 8, queue: 0}
    per_upstream: {max: 16, wait: 10s}
servers:
  github: {command: x, rate_limit: {requests: 5000, period: 1h}, concurrency: {max: 4}}
tools:
  search:
    description: Searches.
    rate_limit: {requests: 100, period: 1m, per_principal: 20}
    concurrency: {max: 2, queue: 5}
    executor: {kind: mock, result: 1}
";
    let options = LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text);
    let configuration = load(&options).expect("usable").configuration;
    let defaults = &configuration.defaults.overrides;
    let RateLimits(limits) = defaults.get::<RateLimits>().copied().expect("given");
    let rate = |requests, period, burst, per_principal| {
        let mut new = RateLimitSettings::new(requests, period);
        new.burst = burst;
        new.per_principal = per_principal;
        new
    };
    assert_eq!(limits.principal, Some(rate(60, MINUTE, Some(10), None)));
    assert_eq!(limits.total, Some(rate(500, MINUTE, None, None)));
    assert_eq!((limits.tool, limits.upstream), (None, None));
    let ConcurrencyLimits(places) = defaults.get::<ConcurrencyLimits>().copied().expect("given");
    assert_eq!(places.tool.map(|limit| (limit.max, limit.queue)), Some((8, 0)));
    assert_eq!(
        places.upstream.map(|limit| (limit.max, limit.queue, limit.wait)),
        Some((16, ConcurrencySettings::QUEUE, Some(10 * MINUTE / 60)))
    );
    let server = &configuration.servers[0];
    let of_server = server.overrides.get::<RateLimits>().expect("given").0;
    assert_eq!(of_server.upstream, Some(rate(5000, 60 * MINUTE, None, None)));
    let of_server = server.overrides.get::<ConcurrencyLimits>().expect("given").0;
    assert_eq!(of_server.upstream, Some(ConcurrencySettings::new(4)));
    let metadata = &configuration.tools[0].metadata;
    assert_eq!(metadata.rate_limit, Some(rate(100, MINUTE, None, Some(20))));
    assert_eq!(
        metadata.concurrency.map(|limit| (limit.max, limit.queue)),
        Some((2, 5))
    );
}

#[test]
fn limits_that_cannot_be_meant() {
    for (limit, expected) in [
        ("rate_limit: {requests: 0, period: 1m}", "would refuse every call"),
        ("rate_limit: {requests: 5, period: 0s}", "would refuse every call"),
        (
            "rate_limit: {requests: 5, period: 1m, burst: 0}",
            "would refuse every call",
        ),
        (
            "rate_limit: {requests: 5, period: 1m, per_principal: 6}",
            "6 is more than the 5",
        ),
        ("rate_limit: {period: 1m}", "`requests` is missing"),
        ("concurrency: {max: 0}", "no call could ever run"),
        ("concurrency: {queue: 3}", "`max` is missing"),
        ("concurrency: {maximum: 3}", "`maximum`"),
    ] {
        let text = format!("servers:\n  a:\n    command: x\n    {limit}\n");
        let problems = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect_err(limit);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains("a.yaml:4"),
            "{limit}: {said}"
        );
    }
}
