//! Server processes: starts, ends and leftovers. The gateway does not start or end servers over HTTP.

use super::{LONG, SHORT, assert_healthy, healthy};
use crate::support::{Carrier, Client as _, Era, Gateway, Stage, Stopwatch, eventually};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

#[test]
fn a_server_that_ends_at_once_is_not_started_for_every_call() {
    let stage = Stage::new(Carrier::Stdio, Era::Legacy);
    let configuration = healthy().server("loop", stage.server("exits-at-once", LONG));
    let mut gateway = Gateway::stdio(&configuration);
    let watch = Stopwatch::start();
    for _ in 0..200 {
        let answer = gateway.client.call("loop__act", "{}");
        assert_eq!(answer.error_kind().as_deref(), Some("unavailable"), "{answer:?}");
    }
    let n_starts = stage.noted("start") as u64;
    // At most six starts in the first minute and one in each further minute.
    let allowed = 6 + watch.elapsed().as_secs() / 60;
    assert!(n_starts <= allowed, "{n_starts} starts in {:?}", watch.elapsed());
    assert_healthy(&mut gateway);
    let tools = gateway.client.tools();
    assert!(
        tools.iter().all(|(name, _)| name.starts_with("healthy__")),
        "{tools:?}"
    );
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn what_a_server_has_started_ends_with_it() {
    for era in ERAS {
        let stage = Stage::new(Carrier::Stdio, era);
        let configuration = healthy().server("parent", stage.server("leaves-a-child", LONG));
        let mut gateway = Gateway::stdio_in(era, &configuration);
        gateway.client.call("parent__act", "{}").result();
        eventually("the server's child runs", || stage.noted("child ") == 1);
        gateway.client.tools();
        gateway.client.call("healthy__echo", "{}").result();
        // The healthy server, the hostile one and its child, which would outlive its parent if nobody ended it.
        assert_eq!(gateway.client.process.descendants().len(), 3);
        assert_eq!(gateway.end().code(), Some(0));
    }
}

#[test]
fn servers_that_ignore_the_end_are_ended() {
    for era in ERAS {
        let stage = Stage::new(Carrier::Stdio, era);
        for by_signal in [false, true] {
            let configuration =
                ["ignores-the-end", "deaf", "never-opens"]
                    .iter()
                    .fold(healthy(), |configuration, mode| {
                        let mut server = stage.server(mode, SHORT);
                        server["start_timeout_ms"] = serde_json::json!(SHORT.as_millis() as u64);
                        configuration.server(mode, server)
                    });
            let mut gateway = Gateway::stdio_in(era, &configuration);
            // All servers have been started, and some calls are running.
            gateway.client.tools();
            gateway.client.begin_call("ignores-the-end__echo", "{}");
            let status = if by_signal {
                gateway.terminate()
            } else {
                gateway.end()
            };
            assert_eq!(status.code(), Some(0));
        }
    }
}
