//! Signals and the end of the process.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdout, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    binary::{BINARY, Place, children, end_of, eventually, is_alive, signal, until_it_listens},
    serve::{Served, call, place, requests},
};

/// Returns a slow tool, as a mock and in a server.
fn slow(milliseconds: u32) -> Place {
    let tools = format!(
        "tools: {{slow: {{description: d, executor: {{kind: mock, result: done, latency_ms: {milliseconds}}}}}}}"
    );
    let place = Place::with(&format!(
        "{tools}\nservers: {{inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}}}"
    ));
    place.write("inner.yaml", tools);
    place
}

#[test]
fn a_call_that_is_cut_short_says_by_what() {
    let place = slow(600_000);
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut child = place
            .command(&["call", "inner__slow"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until_it_listens(child.id());
        eventually("the start of the server", || !children(child.id()).is_empty());
        let servers = children(child.id());
        signal(child.id(), sent);
        assert_eq!(end_of(&mut child), code);
        for server in servers {
            eventually("the end of the server", || !is_alive(server));
        }
    }
}

/// Returns a gateway over stdio after the handshake, with a slow call in flight.
fn under_way(place: &Place, tool: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = place
        .command(&["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let handshake = requests()
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    stdin.write_all(handshake.as_bytes()).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    answer(&mut stdout, &json!("list"));
    writeln!(stdin, "{}", call(7, tool, &json!({}))).unwrap();
    // Requests begin in order: with the answer to the second, the first is in flight.
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 8, "method": "ping"})).unwrap();
    answer(&mut stdout, &json!(8));
    // The client's end stays open, as it does when a client ends its servers.
    child.stdin = Some(stdin);
    (child, stdout)
}

fn answer(stdout: &mut BufReader<ChildStdout>, id: &Value) -> Value {
    loop {
        let mut line = String::new();
        assert!(
            stdout.read_line(&mut line).unwrap() > 0,
            "the output ended before the answer to {id}"
        );
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == *id {
            return message;
        }
    }
}

#[test]
fn a_call_that_is_under_way_is_answered_before_the_end() {
    let place = slow(300);
    for tool in ["slow", "inner__slow"] {
        let (mut child, mut stdout) = under_way(&place, tool);
        // With a kept list the server starts with the call.
        if tool == "inner__slow" {
            eventually("the start of the server", || !children(child.id()).is_empty());
        }
        let servers = children(child.id());
        signal(child.id(), Signal::TERM);
        let answered = answer(&mut stdout, &json!(7));
        assert!(answered.to_string().contains("done"), "{answered}");
        assert_eq!(end_of(&mut child), 0);
        assert!(servers.into_iter().all(|server| !is_alive(server)));
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    // A server that ignores signals does not delay the end: it is killed with the gateway.
    let place = slow(600_000);
    let stubborn = format!("trap '' TERM INT; {BINARY} -c inner.yaml serve --stdio; sleep 600");
    let configuration = json!({
        "servers": {"stubborn": {"command": "sh", "args": ["-c", stubborn]}},
        "tools": {"slow": {"description": "d", "executor": {"kind": "mock", "result": 1, "latency_ms": 600_000}}},
    });
    place.write("toolplane.yaml", configuration.to_string());
    let (mut child, _stdout) = under_way(&place, "slow");
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    signal(child.id(), Signal::TERM);
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("ending: "), "{line}");
    let servers = children(child.id());
    assert!(!servers.is_empty());
    signal(child.id(), Signal::INT);
    assert_eq!(end_of(&mut child), 130);
    for server in servers {
        eventually("the end of the server", || !is_alive(server));
    }
}

#[test]
fn the_end_of_input_is_the_end_of_the_servers_too() {
    let place = slow(1);
    let (mut child, mut stdout) = under_way(&place, "slow");
    let servers = children(child.id());
    drop(child.stdin.take());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(end_of(&mut child), 0);
    assert!(servers.iter().all(|server| !is_alive(*server)));
}

#[test]
fn http_ends_in_order() {
    let place = place();
    let mut served = Served::start(&place);
    let answer = served.post(
        &served.address,
        &call(3, "inner__greet", &json!({"name": "them"})),
    );
    assert!(answer.contains("Hello, them!"), "{answer}");
    let servers = children(served.child.id());
    assert_eq!(servers.len(), 1);
    signal(served.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut served.child), 0);
    assert!(!is_alive(servers[0]));
    let mut said = String::new();
    served.stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("ending: "), "{said}");
}

/// Waits for the message that the gateway ends.
fn until_it_ends(served: &mut Served) {
    let mut line = String::new();
    served.stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("ending: "), "{line}");
}

/// Returns a tool that calls an HTTP API of the test, so that its calls last as long as the test wants, and a server.
fn held() -> (Place, TcpListener) {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", upstream.local_addr().unwrap());
    let place = slow(1);
    let executor = json!({"kind": "http", "url": url, "allow_private": true});
    let configuration = json!({
        "tools": {"api": {"description": "d", "executor": executor}},
        "servers": {"inner": {"command": BINARY, "args": ["-c", "inner.yaml", "serve", "--stdio"]}},
    });
    place.write("toolplane.yaml", configuration.to_string());
    (place, upstream)
}

/// Begins calls. Returns the clients' ends of them, and the API's.
fn begun(served: &Served, upstream: &TcpListener) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let message = call(1, "api", &json!({}));
    let begin = |_| served.begin(&served.address, "", &message);
    let calls = (0..4).map(begin).collect();
    let mut requests: Vec<_> = (0..4).map(|_| upstream.accept().unwrap().0).collect();
    for request in &mut requests {
        assert!(request.read(&mut [0; 4096]).unwrap() > 0);
    }
    (calls, requests)
}

#[test]
fn calls_over_http_are_answered_before_the_end() {
    let (place, upstream) = held();
    let mut served = Served::start(&place);
    let (calls, requests) = begun(&served, &upstream);
    signal(served.child.id(), Signal::TERM);
    until_it_ends(&mut served);
    for mut request in requests {
        let done = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\ndone";
        request.write_all(done.as_bytes()).unwrap();
    }
    for mut call in calls {
        let mut answer = String::new();
        call.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("done"), "{answer}");
    }
    assert_eq!(end_of(&mut served.child), 0);
}

#[test]
fn a_second_signal_cuts_off_calls_over_http() {
    let (place, upstream) = held();
    let mut served = Served::start(&place);
    let (calls, _requests) = begun(&served, &upstream);
    eventually("the start of the server", || {
        !children(served.child.id()).is_empty()
    });
    let servers = children(served.child.id());
    signal(served.child.id(), Signal::TERM);
    until_it_ends(&mut served);
    signal(served.child.id(), Signal::INT);
    assert_eq!(end_of(&mut served.child), 130);
    for mut call in calls {
        // Closed or reset.
        let mut answer = String::new();
        let _ = call.read_to_string(&mut answer);
        assert_eq!(answer, "");
    }
    for server in servers {
        eventually("the end of the server", || !is_alive(server));
    }
}

/// A legacy server asks in the middle of a call, whose modern client is to return with the answer. If the gateway ends
/// before that, no alert is raised.
#[test]
fn a_call_that_waits_for_its_client_raises_no_alert_at_the_end() {
    let place = Place::with(&format!(
        "servers: {{asking: {{command: {BINARY}, args: [mock-server, --stdio, --scenario, asking.yaml]}}}}\n"
    ));
    let scenario = "
name: asking
era: legacy
tools:
  plan:
    replies:
      - text: planned
        before: [{elicit: {key: city, message: Which?, schema: {type: object, properties: {name: {type: string}}}}}]
";
    place.write("asking.yaml", scenario);
    let mut served = Served::start(&place);
    let mut message = call(1, "asking__plan", &json!({}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: asking__plan\r\n";
    let mut asked = String::new();
    let mut stream = served.begin(&served.address, headers, &message);
    stream.read_to_string(&mut asked).unwrap();
    assert!(
        asked.contains("requestState"),
        "the call waits for its client: {asked}"
    );
    let servers = children(served.child.id());
    assert!(!servers.is_empty());
    signal(served.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut served.child), 0);
    let mut said = String::new();
    served.stderr.read_to_string(&mut said).unwrap();
    assert!(
        !said.contains("outcome_unknown") && !said.contains("alert"),
        "{said}"
    );
    eventually("the end of the server", || !is_alive(servers[0]));
}
