//! Servers that send too much.

use super::{LONG, assert_healthy, assert_lives_on, assert_memory, healthy};
use crate::support::{Carrier, Client as _, Era, Gateway, Stage, Stopwatch, eventually};

fn check(carrier: Carrier, era: Era) {
    let mut cases = vec![
        ("huge", Some("result_too_large")),
        // More than a gibibyte. A process that writes it is ended, and another one is started.
        ("gigantic", Some("result_too_large")),
    ];
    match carrier {
        Carrier::Stdio => cases.extend([
            ("floods-notifications", None),
            ("floods-questions", None),
            ("floods-stderr", None),
        ]),
        Carrier::Events => cases.extend([("floods-notifications", None), ("floods-questions", None)]),
        // A body is one message, and the stderr of a server over HTTP is not read.
        Carrier::Json => {}
    }
    let stage = Stage::new(carrier, era);
    let configuration = cases.iter().fold(healthy(), |configuration, (mode, _)| {
        configuration.server(mode, stage.server(mode, LONG))
    });
    let configuration = configuration.server("too-much", stage.server("lists-too-much", LONG));
    let mut gateway = Gateway::stdio_in(era, &configuration.waiting_for_lists());
    for (mode, kind) in &cases {
        let call = gateway.client.begin_call(&format!("{mode}__act"), "{}");
        assert_healthy(&mut gateway);
        let answer = gateway.client.wait(call);
        assert_eq!(answer.error_kind().as_deref(), *kind, "{mode}: {answer:.2000?}");
        assert_healthy(&mut gateway);
        if *mode == "gigantic" {
            // The call fails before the line is given up; messages to this process in the meantime are lost with it.
            eventually("it is called like any other", || {
                let answer = gateway.client.call("gigantic__echo", "{}");
                answer.error_kind().is_none()
            });
        }
        assert_lives_on(&mut gateway, mode);
    }
    // A list is read up to its limit. A log line for every entry would be a flood itself.
    assert_lives_on(&mut gateway, "too-much");
    // Warnings about a list are logged beside the calls.
    eventually("the limit is reported", || {
        gateway.client.process.stderr().contains("`list_limits.tools`")
    });
    let log = gateway.client.process.stderr();
    assert!(log.matches("tool not offered").count() <= 20, "{log:.2000}");
    assert!(
        log.contains("more entries of `too-much` are not offered"),
        "{log:.2000}"
    );
    assert_memory(&gateway.client.process);
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn over_stdio() {
    check(Carrier::Stdio, Era::Legacy);
    check(Carrier::Stdio, Era::Modern);
}

#[test]
fn in_bodies() {
    check(Carrier::Json, Era::Legacy);
    check(Carrier::Json, Era::Modern);
}

#[test]
fn in_events() {
    check(Carrier::Events, Era::Legacy);
    check(Carrier::Events, Era::Modern);
}

/// A server that permanently announces changes of its list is asked for it now and then, and called as any other.
#[test]
fn changes_without_end_are_few_changes() {
    for (carrier, era) in [
        (Carrier::Stdio, Era::Legacy),
        (Carrier::Stdio, Era::Modern),
        (Carrier::Events, Era::Legacy),
        (Carrier::Events, Era::Modern),
    ] {
        let stage = Stage::new(carrier, era);
        let configuration = healthy().server("loud", stage.server("never-quiet", LONG));
        let mut gateway = Gateway::stdio_in(era, &configuration);
        let watch = Stopwatch::start();
        gateway.client.tools();
        eventually("the list is read again", || stage.noted("tools/list") >= 3);
        for _ in 0..5 {
            assert_lives_on(&mut gateway, "loud");
            assert_healthy(&mut gateway);
        }
        // Once a second, and once more at the start.
        let allowed = 2 + watch.elapsed().as_secs() as usize;
        let n_lists = stage.noted("tools/list");
        assert!(
            n_lists <= allowed,
            "{carrier:?} {era:?}: {n_lists} in {:?}",
            watch.elapsed()
        );
        assert_memory(&gateway.client.process);
        assert_eq!(gateway.end().code(), Some(0));
    }
}
