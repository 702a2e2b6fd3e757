//! Upstreams that refuse all requests for a while.

use std::time::Duration;

use mcp_mock::{MockServer, MockTool};
use serde_json::json;
use tp_fault::{ExecutionCounterOptions, FaultEvent, Proxy};

use super::{GRACE, arguments, http_tool, outcome, repeatable, with};
use crate::support::{Client as _, Configuration, Gateway, Net, Stopwatch, arrivals, plan};

/// Number of calls during a total outage.
const CALLS: usize = 1000;

#[test]
fn a_total_outage_sees_a_tenth_more_attempts_than_calls_at_most() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let storms = [
        ("status=503", "unavailable"),
        ("status=429;retry-after=0", "rate_limited"),
        ("reset:response=0", "unavailable"),
        ("black-hole", "timeout"),
    ];
    let mut configuration = Configuration::default();
    let mut proxies = Vec::new();
    for (n, (fault, _)) in storms.iter().enumerate() {
        let proxy = net.proxy(ledger.address());
        proxy.set_plan(plan(fault)).unwrap();
        let tool = repeatable(http_tool(&proxy.url("/")), 3);
        let tool = with(
            tool,
            // Long enough for every request to arrive on a busy machine; otherwise some attempts would not be counted.
            &json!({"timeout_ms": if *fault == "black-hole" { 3000 } else { 30_000 }}),
        );
        configuration = configuration.tool(&format!("storm-{n}"), tool);
        proxies.push(proxy);
    }
    let mut gateway = Gateway::stdio(&configuration);
    for (n, ((fault, kind), proxy)) in storms.iter().zip(&proxies).enumerate() {
        let calls: Vec<_> = (0..CALLS)
            .map(|_| {
                gateway
                    .client
                    .begin_call(&format!("storm-{n}"), &arguments("storm"))
            })
            .collect();
        for call in calls {
            assert_eq!(outcome(&gateway.client.wait(call), "storm"), *kind, "{fault}");
        }
        let n_arrivals = arrivals(proxy.history());
        assert!(n_arrivals > CALLS, "{fault}: there are retries");
        assert!(
            n_arrivals <= CALLS + CALLS / 10,
            "{fault}: {n_arrivals} attempts of {CALLS} calls"
        );
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_total_outage_of_an_mcp_server_sees_a_tenth_more_attempts_than_calls_at_most() {
    let net = Net::new();
    let server = MockServer::builder().tool(MockTool::new("run")).build();
    let http = net.serve(&server);
    let proxy = net.proxy(http.address());
    let run =
        json!({"description": "May run twice.", "executor": {"kind": "mcp", "server": "ill", "tool": "run"}});
    let configuration = Configuration::default()
        .server("ill", json!({"url": proxy.url("/mcp")}))
        .tool("run", repeatable(run, 3));
    let mut gateway = Gateway::stdio(&configuration);
    assert_eq!(
        outcome(&gateway.client.call("run", &arguments("before")), "before"),
        "fine"
    );
    proxy.set_plan(plan("status=503").matching("tools/call")).unwrap();
    proxy.history().clear();
    let calls: Vec<_> = (0..CALLS)
        .map(|_| gateway.client.begin_call("run", &arguments("storm")))
        .collect();
    for call in calls {
        assert_eq!(outcome(&gateway.client.wait(call), "storm"), "unavailable");
    }
    let n_arrivals = proxy.history().count(|event| matches!(event, FaultEvent::Met(_)));
    assert!(
        (CALLS + 1..=CALLS + CALLS / 10).contains(&n_arrivals),
        "{n_arrivals} attempts of {CALLS} calls"
    );
    assert_eq!(gateway.end().code(), Some(0));
}

/// Returns the time between the first answer and the second request.
fn pause(proxy: &Proxy) -> Duration {
    let entries = proxy.history().entries();
    let met = entries
        .iter()
        .find(|entry| matches!(entry.event, FaultEvent::Met(_)))
        .expect("it was met");
    let told = entries
        .iter()
        .find(|entry| entry.event == FaultEvent::Answering && entry.exchange == met.exchange)
        .expect("it was answered");
    let again = entries.iter().find(|entry| {
        matches!(entry.event, FaultEvent::Request { .. })
            && entry.at > told.at
            && entry.exchange > told.exchange
    });
    again.expect("it was tried again").at - told.at
}

#[test]
fn who_is_told_when_to_come_again_does_not_come_earlier() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let server = MockServer::builder().tool(MockTool::new("run")).build();
    let http = net.serve(&server);
    let mut configuration = Configuration::default();
    let mut cases = Vec::new();
    for status in [429, 503] {
        let api = net.proxy(ledger.address());
        configuration = configuration.tool(&format!("api-{status}"), repeatable(http_tool(&api.url("/")), 2));
        cases.push((status, format!("api-{status}"), api));
        let mcp = net.proxy(http.address());
        let run = json!({
            "description": "May run twice.",
            "executor": {"kind": "mcp", "server": format!("s{status}"), "tool": "run"},
        });
        configuration = configuration
            .server(&format!("s{status}"), json!({"url": mcp.url("/mcp")}))
            .tool(&format!("mcp-{status}"), repeatable(run, 2));
        cases.push((status, format!("mcp-{status}"), mcp));
    }
    let mut gateway = Gateway::stdio(&configuration);
    let calls: Vec<_> = cases
        .iter()
        .map(|(status, tool, proxy)| {
            assert_eq!(
                outcome(&gateway.client.call(tool, &arguments("before")), "before"),
                "fine"
            );
            proxy.history().clear();
            let fault = format!("status={status};retry-after=1");
            proxy.set_plan(plan(&fault).matching("storm").times(1)).unwrap();
            (tool, proxy, gateway.client.begin_call(tool, &arguments("storm")))
        })
        .collect();
    for (tool, proxy, call) in calls {
        assert_eq!(outcome(&gateway.client.wait(call), "storm"), "fine", "{tool}");
        let pause = pause(proxy);
        assert!(pause >= Duration::from_secs(1), "{tool}: again after {pause:?}");
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn who_is_told_to_come_again_too_late_does_not_wait() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let proxy = net.proxy(ledger.address());
    let tool = repeatable(http_tool(&proxy.url("/")), 3);
    let mut gateway = Gateway::stdio(&Configuration::default().tool("api", tool));
    for after in [
        "3600",
        "99999999999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ] {
        for (status, kind) in [(429, "rate_limited"), (503, "unavailable")] {
            proxy.history().clear();
            proxy
                .set_plan(plan(&format!("status={status};retry-after={after}")))
                .unwrap();
            let watch = Stopwatch::start();
            let answer = gateway.client.call("api", &arguments("late"));
            assert_eq!(outcome(&answer, "late"), kind, "{status} {after}");
            assert_eq!(arrivals(proxy.history()), 1, "{status} {after}");
            // The call has a minute, but does not wait for it.
            assert!(watch.elapsed() < GRACE, "{status} {after}: {:?}", watch.elapsed());
        }
    }
    // An invalid value is ignored.
    let calls = |after: &str, gateway: &mut Gateway| {
        proxy.history().clear();
        let fault = format!("status=503;retry-after={after}");
        proxy.set_plan(plan(&fault).times(1)).unwrap();
        let answer = gateway.client.call("api", &arguments("odd"));
        (outcome(&answer, "odd"), arrivals(proxy.history()))
    };
    assert_eq!(calls("soon", &mut gateway), ("fine".to_owned(), 2));
    // Part of a second is rounded up.
    assert_eq!(calls("0.5", &mut gateway), ("fine".to_owned(), 2));
    let waited = pause(&proxy);
    assert!(waited >= Duration::from_secs(1), "again after {waited:?}");
    // A negative time means that no retry is wanted.
    assert_eq!(calls("-5", &mut gateway), ("unavailable".to_owned(), 1));
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_call_that_may_not_run_twice_is_not_tried_again_in_a_storm() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let server = MockServer::builder().tool(MockTool::new("run")).build();
    let http = net.serve(&server);
    let (api, mcp) = (net.proxy(ledger.address()), net.proxy(http.address()));
    let retry = json!({"retry": {"max_attempts": 3, "initial_delay": "1ms"}});
    let configuration = Configuration::default()
        .tool("api", with(http_tool(&api.url("/")), &retry))
        .server("mcp", with(json!({"url": mcp.url("/mcp")}), &retry));
    let mut gateway = Gateway::stdio(&configuration);
    gateway.client.tools();
    // Both statuses mean that the call was not accepted.
    for (tool, proxy, status, kind) in [
        ("api", &api, 429, "rate_limited"),
        ("api", &api, 503, "unavailable"),
        ("mcp__run", &mcp, 429, "rate_limited"),
        ("mcp__run", &mcp, 503, "unavailable"),
    ] {
        proxy.history().clear();
        let fault = format!("status={status};retry-after=0");
        proxy.set_plan(plan(&fault).matching("storm")).unwrap();
        let answer = gateway.client.call(tool, &arguments("storm"));
        assert_eq!(outcome(&answer, "storm"), kind, "{tool} {status}");
        let n_attempts = proxy.history().count(|event| matches!(event, FaultEvent::Met(_)));
        assert_eq!(n_attempts, 1, "{tool} {status}");
    }
    assert_eq!((ledger.total(), server.calls("run").len()), (0, 0));
    assert_eq!(gateway.end().code(), Some(0));
}
