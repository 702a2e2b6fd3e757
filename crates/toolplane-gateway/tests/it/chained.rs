//! A gateway in front of a gateway. Both retry failed calls, and the attempts do not multiply.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::{net::TcpListener, task::JoinSet};
use tool_testkit::executor;
use toolplane::{
    Toolplane,
    core::{CallContext, ErrorKind, Invoke, Outcome, ToolError},
    manifest::{LoadOptions, Syntax, load},
};
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, ServeOptions};

use crate::support::Http;

/// Key in `_meta` that marks a retry.
const MARK: &str = "dev.toolplane/retry-attempt";

/// An upstream that is down. It counts the attempts that arrive, by the number of the call.
#[derive(Clone)]
struct DownUpstream {
    hangs: bool,
    arrivals: Arc<Mutex<HashMap<u64, Vec<bool>>>>,
}

impl DownUpstream {
    fn note(&self, number: u64, is_marked: bool) {
        let mut arrivals = self.arrivals.lock().expect("no test panics with it");
        arrivals.entry(number).or_default().push(is_marked);
    }
}

impl Invoke for DownUpstream {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let number = cx.arguments.value()["n"]
            .as_u64()
            .expect("the test numbers its calls");
        let is_marked = cx
            .extras
            .meta
            .as_ref()
            .is_some_and(|meta| meta.get(MARK).is_some());
        self.note(number, is_marked);
        if self.hangs {
            cx.dispatch().sent();
            std::future::pending::<()>().await;
        }
        Err(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
    }
}

fn plane(yaml: String, down: Option<DownUpstream>) -> Toolplane {
    let loaded = load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, yaml)).expect("usable");
    let builder = Toolplane::builder().loaded(&loaded);
    let builder = down
        .into_iter()
        .fold(builder, |builder, down| builder.executor(executor("down", down)));
    builder.build().expect("it can be set up")
}

/// Starts an upstream, a gateway in front of it on a socket, and a gateway in front of that.
async fn chain(hangs: bool) -> (DownUpstream, Http) {
    let down = DownUpstream {
        hangs,
        arrivals: Arc::default(),
    };
    let inner = "
defaults: {retry: {max_attempts: 3, initial_delay: 1ms}, attempt_timeout: 120ms}
tools: {work: {description: d, idempotent: true, executor: {kind: down}}}
";
    let inner = Gateway::new(
        plane(inner.to_owned(), Some(down.clone())),
        GatewayOptions::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let never = std::future::pending();
        inner
            .serve_http(
                listener,
                HttpServerOptions::default(),
                ServeOptions::default(),
                never,
            )
            .await
    });
    let outer = format!(
        "
defaults: {{retry: {{max_attempts: 3, initial_delay: 1ms}}}}
servers: {{inner: {{url: \"http://{address}/mcp\"}}}}
tools:
  work:
    description: d
    idempotent: true
    timeout_ms: 300
    executor: {{kind: mcp, server: inner, tool: work}}
"
    );
    let http = Http::new(plane(outer, None));
    // The first call opens the server, which takes longer.
    for _ in 0..20 {
        http.call("ann", "work", r#","arguments":{"n":0}"#).await;
        if !down.arrivals.lock().expect("no test panics with it").is_empty() {
            break;
        }
    }
    (down, http)
}

/// Makes a number of calls, up to 100 at a time. Returns the attempts of each that reached the upstream.
async fn arrivals(hangs: bool, n_calls: u64) -> Vec<Vec<bool>> {
    let (down, http) = chain(hangs).await;
    down.arrivals.lock().expect("no test panics with it").clear();
    let mut calls = JoinSet::new();
    for number in 1..=n_calls {
        if calls.len() >= 100 {
            calls
                .join_next()
                .await
                .expect("there are some")
                .expect("no panic");
        }
        let http = http.clone();
        calls.spawn(async move {
            let arguments = format!(r#","arguments":{{"n":{number}}}"#);
            let answer = http.call("ann", "work", &arguments).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        });
    }
    calls.join_all().await;
    let mut arrivals = down.arrivals.lock().expect("no test panics with it");
    arrivals.remove(&0);
    std::mem::take(&mut *arrivals).into_values().collect()
}

/// R02: with an upstream that refuses, and with one that hangs, which both gateways notice by a timeout.
#[tokio::test]
async fn two_gateways_with_three_attempts_each_make_a_fifth_more() {
    for hangs in [false, true] {
        let arrivals = arrivals(hangs, 600).await;
        let n_arrivals: usize = arrivals.iter().map(Vec::len).sum();
        assert!(n_arrivals <= 726, "{n_arrivals} attempts of 600 calls");
        assert!(n_arrivals > arrivals.len(), "some were tried again");
    }
}

/// A single call, for which both gateways have retries left. The inner one retries until the outer one marks its own retry.
#[tokio::test]
async fn a_call_that_the_outer_gateway_repeats_is_not_repeated_by_the_inner_one() {
    let arrivals = arrivals(true, 1).await;
    let n_arrivals = arrivals[0].len();
    // Three attempts for the outer gateway's first one, and one for each other; without the mark there would be nine.
    assert!((2..=5).contains(&n_arrivals), "{n_arrivals}");
    let is_marked = &arrivals[0];
    assert!(
        !is_marked[0] && is_marked[1..].iter().all(|marked| *marked),
        "{is_marked:?}"
    );
}
