//! An HTTP API whose connection breaks at every possible byte, and one that is unreachable.

use std::process::Command;

use serde_json::json;
use toolplane_tests::own_directories;
use tp_fault::{ExecutionCounter, ExecutionCounterOptions, Proxy, ProxyOptions};

use super::{arguments, http_tool, outcome, repeatable, with};
use crate::support::{
    Client as _, Configuration, Gateway, Net, arrivals, base_environment, binary, is_cut, plan,
};

/// Number of breaks for one upstream: each costs a retry, and an upstream has ten in ten seconds.
const SHARE: usize = 8;

/// Result of a call whose connection was to break.
struct Broken {
    outcome: String,
    n_executions: u64,
    n_arrivals: usize,
}

/// Breaks calls after one byte more each time until one does not break.
fn at_every_byte(
    way: &str,
    mut call: impl FnMut(usize, &str) -> Option<Broken>,
    mut check: impl FnMut(usize, &Broken),
) {
    let mut n_broken = 0;
    while let Some(broken) = call(n_broken, &format!("{way}-{n_broken:04}")) {
        check(n_broken, &broken);
        n_broken += 1;
    }
    assert!(n_broken > 60, "{way} broke {n_broken} times only");
}

fn broken(
    gateway: &mut Gateway,
    tool: &str,
    id: &str,
    net: &Net,
    ledger: &ExecutionCounter,
    proxy: &Proxy,
) -> Option<Broken> {
    proxy.history().clear();
    let mut answer = gateway.client.call(tool, &arguments(id));
    if arrivals(proxy.history()) == 0 {
        // The call used a connection whose end was not seen yet.
        assert_eq!(outcome(&answer, id), "outcome_unknown");
        answer = gateway.client.call(tool, &arguments(id));
    }
    net.settle(proxy);
    let broken = Broken {
        outcome: outcome(&answer, id),
        n_executions: ledger.executions(id),
        n_arrivals: arrivals(proxy.history()),
    };
    if is_cut(proxy.history()) {
        return Some(broken);
    }
    assert_eq!(
        (broken.outcome.as_str(), broken.n_executions),
        ("fine", 1),
        "{id}"
    );
    None
}

#[test]
fn a_call_that_breaks_at_any_byte_is_done_once_at_most_and_told_as_unknown() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let proxy = net.proxy(ledger.address());
    // The retry settings must have no effect: the tool is not declared idempotent.
    let retry = json!({"retry": {"max_attempts": 3, "initial_delay": "1ms"}});
    let pay = with(http_tool(&proxy.url("/")), &retry);
    let mut gateway = Gateway::stdio(&Configuration::default().tool("pay", pay));
    // Once the answer is complete, the end after it does not matter; a reset may arrive before it is read.
    let mut whole_from = usize::MAX;
    for ending in ["cut", "reset"] {
        for way in ["request", "response"] {
            let call = |after: usize, id: &str| {
                proxy.set_plan(plan(&format!("{ending}:{way}={after}"))).unwrap();
                let id = format!("{ending}-{id}");
                broken(&mut gateway, "pay", &id, &net, &ledger, &proxy)
            };
            let mut n_done = 0;
            at_every_byte(way, call, |after, broken| {
                let at = format!("{ending}:{way}={after}");
                n_done += usize::from(broken.n_executions == 1);
                assert_eq!(broken.n_arrivals, 1, "{at}: it is never sent twice");
                assert!(
                    broken.n_executions <= 1,
                    "{at}: done {} times",
                    broken.n_executions
                );
                match (broken.outcome.as_str(), way) {
                    ("outcome_unknown", "request") => {}
                    ("outcome_unknown", _) => {
                        assert_eq!(broken.n_executions, 1, "{at}: it was done");
                        assert!(
                            after < whole_from || ending == "reset",
                            "{at}: the answer was there"
                        );
                    }
                    ("fine", "response") => {
                        assert_eq!(broken.n_executions, 1, "{at}: what is answered was done");
                        assert!(
                            ending == "cut" || after >= whole_from,
                            "{at}: there was no whole answer"
                        );
                        whole_from = whole_from.min(after);
                    }
                    (other, _) => panic!("{at}: {other}"),
                }
            });
            if way == "request" {
                // Only the last byte completes the request.
                assert_eq!(n_done, 1, "{ending}");
            }
        }
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_repeatable_call_that_breaks_at_any_byte_is_made_again_and_succeeds() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let proxies: Vec<_> = (0..80).map(|_| net.proxy(ledger.address())).collect();
    let mut configuration = Configuration::default();
    for (n, proxy) in proxies.iter().enumerate() {
        let tool = repeatable(http_tool(&proxy.url("/")), 2);
        configuration = configuration.tool(&format!("read-{n}"), tool);
    }
    let mut gateway = Gateway::stdio(&configuration);
    let mut n_calls = 0;
    for way in ["request", "response"] {
        let call = |after: usize, id: &str| {
            let n = n_calls / SHARE;
            n_calls += 1;
            let proxy = proxies.get(n).expect("there are enough upstreams");
            proxy
                .set_plan(plan(&format!("cut:{way}={after}")).times(1))
                .unwrap();
            broken(&mut gateway, &format!("read-{n}"), id, &net, &ledger, proxy)
        };
        at_every_byte(way, call, |after, broken| {
            assert_eq!(broken.outcome, "fine", "cut:{way}={after}");
            assert!(
                broken.n_arrivals <= 2,
                "cut:{way}={after}: {} attempts",
                broken.n_arrivals
            );
            // Both attempts are executions if the first request was complete.
            assert!((1..=2).contains(&broken.n_executions), "cut:{way}={after}");
        });
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_call_that_was_surely_not_sent_is_tried_again_whatever_it_does() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let closed = || {
        net.proxy_with(ProxyOptions {
            is_closed: true,
            ..ProxyOptions::new(ledger.address())
        })
    };
    let (never, soon) = (closed(), closed());
    let retry = |max_attempts: u32, pause: &str| json!({"retry": {"max_attempts": max_attempts, "initial_delay": pause}});
    let configuration = Configuration::default()
        .tool("never", with(http_tool(&never.url("/")), &retry(3, "1ms")))
        .tool("soon", with(http_tool(&soon.url("/")), &retry(9, "100ms")));
    // `--explain` shows every attempt.
    let folder = tempfile::tempdir().unwrap();
    let mut explained = Command::new(binary());
    explained.env_clear().envs(base_environment());
    own_directories(&mut explained, folder.path());
    let explained = explained
        .args(["call", "never", "id=never", "--explain", "--config"])
        .arg(configuration.write(folder.path()))
        .output()
        .unwrap();
    let told = String::from_utf8(explained.stderr).unwrap();
    assert_eq!(
        explained.status.code(),
        Some(6),
        "it is unavailable, not unknown: {told}"
    );
    assert_eq!(told.matches("again in").count(), 2, "{told}");
    // An attempt succeeds once the upstream listens.
    let mut gateway = Gateway::stdio(&configuration);
    let call = gateway.client.begin_call("soon", &arguments("soon"));
    net.open(&soon);
    assert_eq!(outcome(&gateway.client.wait(call), "soon"), "fine");
    assert_eq!(ledger.executions("soon"), 1);
    let answer = gateway.client.call("never", &arguments("never"));
    assert_eq!(outcome(&answer, "never"), "unavailable");
    assert_eq!(ledger.executions("never"), 0);
    assert_eq!(gateway.end().code(), Some(0));
}
