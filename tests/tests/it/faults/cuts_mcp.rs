//! An MCP server over HTTP whose connection breaks at every byte of a call there is.

use mcp_mock::{Misbehavior, MockHttp, MockReply, MockServer, MockTool};
use serde_json::json;
use tp_fault::{FaultEvent, Proxy};

use super::{arguments, outcome, repeatable};
use crate::support::{Client as _, Configuration, Era, Gateway, Net, is_cut, plan};

/// How many breaks are tried with one server: each costs a retry, and a server has ten in ten seconds.
const SHARE: usize = 8;

/// A server whose tool `run` answers with its arguments, and a proxy before it.
struct Stage {
    net: Net,
    server: MockServer,
    proxy: Proxy,
    era: Era,
    /// Whether answers are streams of events.
    has_events: bool,
    _http: MockHttp,
}

/// What came of a call whose connection was to break.
struct Broken {
    outcome: String,
    n_executions: usize,
    n_attempts: usize,
}

impl Stage {
    fn new(era: Era, reply: MockReply) -> Self {
        let net = Net::new();
        let spoken = match era {
            Era::Legacy => mcp_wire::Era::Legacy,
            Era::Modern => mcp_wire::Era::Modern,
        };
        let server = MockServer::builder()
            .era(spoken)
            .tool(MockTool::new("run").reply(reply))
            .build();
        let http = net.serve(&server);
        let proxy = net.proxy(http.address());
        Self {
            net,
            server,
            proxy,
            era,
            has_events: false,
            _http: http,
        }
    }

    /// Calls a tool whose exchange, of all that there are, breaks; nothing if it did not come to that.
    fn broken(&self, gateway: &mut Gateway, tool: &str, fault: &str, id: &str, times: u64) -> Option<Broken> {
        self.proxy.history().clear();
        self.proxy.set(plan(fault).matching(id).times(times)).unwrap();
        let mut answer = gateway.client.call(tool, &arguments(id));
        if self.n_attempts() == 0 {
            // It went to a connection of which nobody had seen yet that the call before was its last.
            assert_eq!(outcome(&answer, id), "outcome_unknown");
            answer = gateway.client.call(tool, &arguments(id));
        }
        self.net.settle(&self.proxy);
        let calls = self.server.calls("run");
        let executions = calls.iter().filter(|call| call.arguments().as_str().contains(id));
        let broken = Broken {
            outcome: outcome(&answer, id),
            n_executions: executions.count(),
            n_attempts: self.n_attempts(),
        };
        self.server.clear();
        if is_cut(self.proxy.history()) {
            return Some(broken);
        }
        assert_eq!(
            (broken.outcome.as_str(), broken.n_executions),
            ("fine", 1),
            "{fault}"
        );
        None
    }

    /// How often the call was sent of which the plan is, as far as the plan was not over.
    fn n_attempts(&self) -> usize {
        self.proxy
            .history()
            .count(|event| matches!(event, FaultEvent::Met(_)))
    }

    /// Breaks one byte later each time, until nothing breaks any more.
    fn breaks_once(&self, way: &str) {
        let retry = json!({"max_attempts": 3, "initial_delay": "1ms"});
        let server = json!({"url": self.proxy.url("/mcp"), "retry": retry});
        let mut gateway = Gateway::stdio_in(self.era, &Configuration::default().server("ledger", server));
        let (mut after, mut is_whole, mut n_done, mut n_fine) = (0, false, 0, 0);
        loop {
            let (fault, id) = (format!("cut:{way}={after}"), format!("{way}-{after:04}"));
            let Some(broken) = self.broken(&mut gateway, "ledger__run", &fault, &id, u64::MAX) else {
                break;
            };
            assert_eq!(broken.n_attempts, 1, "{fault}: it is never sent twice");
            assert!(
                broken.n_executions <= 1,
                "{fault}: done {} times",
                broken.n_executions
            );
            n_done += broken.n_executions;
            let is_fine = broken.outcome == "fine";
            assert!(
                !is_fine || broken.n_executions == 1,
                "{fault}: answered, and not done"
            );
            // Once an answer is whole, what follows does not matter.
            is_whole |= is_fine;
            n_fine += usize::from(is_fine);
            let expected = if is_whole { "fine" } else { "outcome_unknown" };
            assert_eq!(broken.outcome, expected, "{fault}");
            after += 1;
        }
        assert!(after > 100, "{way} broke {after} times only");
        match way {
            // Only the last byte makes it whole, and then its client has gone.
            "request" => assert!(!is_whole && n_done <= 1, "{n_done} done"),
            _ => {
                assert_eq!((is_whole, n_done), (true, after), "all of them were done");
                // Behind the event that is the answer comes the end of the stream; a body ends with its answer.
                assert_eq!(n_fine > 1, self.has_events, "{n_fine} whole answers");
            }
        }
        assert_eq!(gateway.end().code(), Some(0));
    }

    fn breaks_and_is_repeated(&self) {
        let mut configuration = Configuration::default();
        for n in 0..N_SERVERS {
            let tool = json!({
                "description": "May run twice.",
                "executor": {"kind": "mcp", "server": format!("s{n}"), "tool": "run"},
            });
            configuration = configuration
                .server(&format!("s{n}"), json!({"url": self.proxy.url("/mcp")}))
                .tool(&format!("read-{n}"), repeatable(tool, 2));
        }
        let mut gateway = Gateway::stdio_in(self.era, &configuration);
        let mut n_calls = 0;
        for way in ["request", "response"] {
            let mut after = 0;
            loop {
                let n = n_calls / SHARE;
                n_calls += 1;
                assert!(n < N_SERVERS, "there are enough servers");
                let (fault, id) = (format!("cut:{way}={after}"), format!("{way}-{after:04}"));
                let Some(broken) = self.broken(&mut gateway, &format!("read-{n}"), &fault, &id, 1) else {
                    break;
                };
                assert_eq!(broken.outcome, "fine", "{fault}");
                assert!((1..=2).contains(&broken.n_executions), "{fault}");
                after += 1;
            }
            assert!(after > 100, "{way} broke {after} times only");
        }
        assert_eq!(gateway.end().code(), Some(0));
    }
}

/// How many servers there are to break.
const N_SERVERS: usize = 160;

#[test]
fn a_legacy_call_that_breaks_at_any_byte_is_done_once_at_most_and_told_as_unknown() {
    let stage = Stage::new(Era::Legacy, MockReply::usual());
    stage.breaks_once("request");
    stage.breaks_once("response");
}

#[test]
fn a_modern_call_that_breaks_at_any_byte_is_done_once_at_most_and_told_as_unknown() {
    let stage = Stage::new(Era::Modern, MockReply::usual());
    stage.breaks_once("request");
    stage.breaks_once("response");
}

#[test]
fn a_call_answered_in_events_that_break_at_any_byte_is_done_once_and_told_as_unknown() {
    // Another message before the answer makes a stream of events of it.
    let reply = MockReply::usual().misbehave(Misbehavior::Flood(1));
    let stage = Stage {
        has_events: true,
        ..Stage::new(Era::Modern, reply)
    };
    stage.breaks_once("response");
}

#[test]
fn a_repeatable_legacy_call_that_breaks_at_any_byte_is_made_again_and_succeeds() {
    Stage::new(Era::Legacy, MockReply::usual()).breaks_and_is_repeated();
}

#[test]
fn a_repeatable_modern_call_that_breaks_at_any_byte_is_made_again_and_succeeds() {
    Stage::new(Era::Modern, MockReply::usual()).breaks_and_is_repeated();
}
