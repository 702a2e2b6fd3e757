//! Start and stop of servers, and the lists that are kept.

use std::time::Duration;

use toolplane::manifest::{LoadOptions, StartMode, Syntax, load};

fn options(text: &str) -> LoadOptions {
    LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)
}

#[test]
fn starts_by_default_and_of_a_server() {
    let usual = load(&options("servers: {s: {command: x}}"))
        .expect("usable")
        .configuration;
    let defaults = &usual.defaults;
    assert_eq!((defaults.start, defaults.idle_timeout), (StartMode::Lazy, None));
    assert_eq!(
        (defaults.max_concurrent_starts.get(), defaults.keep_lists),
        (8, true)
    );
    assert_eq!(usual.gateway.list_wait, Duration::from_secs(4));
    let server = &usual.servers[0];
    assert_eq!(
        (server.start, server.idle_timeout, server.keep_lists),
        (None, None, None)
    );

    let text = "
gateway: {list_wait: 0s}
defaults: {start: eager, idle_timeout: 1h, max_concurrent_starts: 3, keep_lists: false}
servers:
  a: {command: x, start: lazy, idle_timeout: 15m, keep_lists: true}
  b: {url: 'http://localhost/mcp', idle_timeout: 0s}
";
    let written = load(&options(text)).expect("usable").configuration;
    let defaults = &written.defaults;
    assert_eq!(
        (defaults.start, defaults.idle_timeout),
        (StartMode::Eager, Some(Duration::from_secs(3600)))
    );
    assert_eq!(
        (defaults.max_concurrent_starts.get(), defaults.keep_lists),
        (3, false)
    );
    assert_eq!(written.gateway.list_wait, Duration::ZERO);
    let server = &written.servers[0];
    let idle_timeout = Some(Duration::from_secs(900));
    assert_eq!(
        (server.start, server.idle_timeout, server.keep_lists),
        (Some(StartMode::Lazy), idle_timeout, Some(true))
    );
    assert_eq!(written.servers[1].idle_timeout, Some(Duration::ZERO));
}

#[test]
fn settings_that_cannot_both_hold_are_refused() {
    for (text, expected) in [
        (
            "servers: {s: {url: 'http://localhost/', idle_timeout: 5m}}",
            "is not stopped",
        ),
        (
            "servers: {s: {command: x, start: eager, idle_timeout: 5m}}",
            "an eager server is not stopped",
        ),
        (
            "servers: {s: {command: x, required: true, idle_timeout: 5m}}",
            "a required server is not stopped",
        ),
        ("servers: {s: {command: x, start: later}}", "start"),
        (
            "defaults: {max_concurrent_starts: 0}",
            "no server could ever be started",
        ),
    ] {
        let problems = load(&options(text)).expect_err(text).render(false);
        assert!(problems.contains(expected), "{problems}");
    }
}
