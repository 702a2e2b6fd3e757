//! Upstreams that are slower than any time limit.

use serde_json::json;
use tp_fault::{ExecutionCounterOptions, FaultEvent};

use super::{GRACE, SHORT, arguments, http_tool, outcome, repeatable, with};
use crate::support::{
    Client as _, Configuration, Era, Gateway, Net, Stopwatch, arrivals, eventually, hostile_arguments,
    hostile_program, plan, tp_fault,
};

/// Faults that are too slow for a call, in either direction, or never end.
const SLOW: [&str; 5] = [
    "drip:response=1@100ms",
    "drip:request=1@100ms",
    "delay:response=6s",
    "rate:response=10",
    "black-hole",
];

#[test]
fn a_call_of_an_api_that_is_too_slow_ends_at_its_limit_and_the_api_is_told() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let limit = json!({"timeout_ms": SHORT.as_millis() as u64});
    let mut configuration = Configuration::default();
    let mut proxies = Vec::new();
    for n in 0..SLOW.len() {
        let proxy = net.proxy(ledger.address());
        let tool = with(http_tool(&proxy.url("/")), &limit);
        configuration = configuration
            .tool(&format!("pay-{n}"), tool.clone())
            .tool(&format!("read-{n}"), with(tool, &json!({"read_only": true})));
        proxies.push(proxy);
    }
    let mut gateway = Gateway::stdio(&configuration);
    let watch = Stopwatch::start();
    let mut calls = Vec::new();
    for (n, proxy) in proxies.iter().enumerate() {
        proxy.set_plan(plan(SLOW[n]).matching("slow")).unwrap();
        for (tool, kind) in [("pay", "outcome_unknown"), ("read", "timeout")] {
            let call = gateway
                .client
                .begin_call(&format!("{tool}-{n}"), &arguments("slow"));
            calls.push((n, tool, kind, call));
        }
    }
    for (n, tool, kind, call) in calls {
        assert_eq!(
            outcome(&gateway.client.wait(call), "slow"),
            kind,
            "{tool}: {}",
            SLOW[n]
        );
    }
    assert!(watch.elapsed() < SHORT + GRACE, "{:?}", watch.elapsed());
    for (n, proxy) in proxies.iter().enumerate() {
        eventually("the upstream is told that nobody waits", || {
            proxy.history().count(|event| *event == FaultEvent::Left) == 2
        });
        // A late answer is dropped: each of these calls has its own.
        for id in ["after-1", "after-2"] {
            let answer = gateway.client.call(&format!("pay-{n}"), &arguments(id));
            assert_eq!(outcome(&answer, id), "fine", "{}", SLOW[n]);
        }
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_call_that_is_withdrawn_is_withdrawn_from_the_api() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions {
        is_mute: true,
        ..ExecutionCounterOptions::default()
    });
    let tool = http_tool(&ledger.url("/"));
    let mut gateway = Gateway::stdio(&Configuration::default().tool("api", tool));
    let call = gateway.client.begin_call("api", &arguments("gone"));
    eventually("the call arrives", || ledger.executions("gone") == 1);
    let left = || ledger.history().count(|event| *event == FaultEvent::Left);
    assert_eq!(left(), 0);
    gateway.client.cancel(call);
    eventually("the upstream is told", || left() == 1);
    gateway.client.tools();
    assert!(
        !gateway.client.order.contains(&call),
        "nobody waits for an answer"
    );
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn one_deadline_is_above_all_attempts() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let proxy = net.proxy(ledger.address());
    proxy.set_plan(plan("black-hole")).unwrap();
    let tool = with(
        repeatable(http_tool(&proxy.url("/")), 9),
        &json!({"timeout_ms": 500}),
    );
    let configuration = Configuration::default()
        .tool("api", tool)
        .defaults(json!({"call_timeout": "2s"}));
    let mut gateway = Gateway::stdio(&configuration);
    let watch = Stopwatch::start();
    let answer = gateway.client.call("api", &arguments("slow"));
    assert_eq!(outcome(&answer, "slow"), "timeout");
    assert!(watch.elapsed() < SHORT + GRACE, "{:?}", watch.elapsed());
    // Attempts of half a second each: no more fit into two seconds.
    let n_attempts = arrivals(proxy.history());
    assert!((2..=4).contains(&n_attempts), "{n_attempts} attempts");
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn an_answer_over_stdio_that_comes_after_the_limit_is_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let mut configuration = Configuration::default();
    let faults = ["delay:response=4s", "drip:response=8@400ms", "black-hole"];
    for (n, fault) in faults.iter().enumerate() {
        let notes = folder.path().join(format!("notes-{n}"));
        let mut args = vec![
            "stdio",
            "--fault",
            fault,
            "--matching",
            "slow-one",
            "--",
            hostile_program(),
        ];
        args.extend(hostile_arguments(Era::Legacy, &notes));
        let server = json!({
            "command": tp_fault().to_str().unwrap(), "args": args, "timeout_ms": SHORT.as_millis() as u64,
        });
        configuration = configuration.server(&format!("s{n}"), server);
    }
    let mut gateway = Gateway::stdio(&configuration);
    let watch = Stopwatch::start();
    gateway.client.tools();
    let calls: Vec<_> = (0..faults.len())
        .map(|n| {
            gateway
                .client
                .begin_call(&format!("s{n}__echo"), &arguments("slow-one"))
        })
        .collect();
    for (call, fault) in calls.into_iter().zip(faults) {
        assert_eq!(
            outcome(&gateway.client.wait(call), "slow-one"),
            "outcome_unknown",
            "{fault}"
        );
    }
    assert!(watch.elapsed() < SHORT + GRACE, "{:?}", watch.elapsed());
    for (n, fault) in faults.iter().enumerate() {
        // The pipe is shared: the next answers wait for the late one, and may be late as well.
        eventually("the server answers again", || {
            let answer = gateway
                .client
                .call(&format!("s{n}__echo"), &arguments("next-one"));
            match outcome(&answer, "next-one").as_str() {
                "fine" => true,
                "outcome_unknown" if *fault == "black-hole" => true,
                other => {
                    assert_eq!(other, "outcome_unknown", "{fault}");
                    false
                }
            }
        });
    }
    assert_eq!(gateway.end().code(), Some(0));
}
