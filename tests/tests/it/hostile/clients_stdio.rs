//! Clients over stdio that send invalid messages, or do not read.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{ChildStdin, ChildStdout},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{assert_memory, healthy};
use crate::support::{Gateway, LIMIT, Process, eventually};

/// A client that writes raw bytes.
struct RawClient {
    gateway: Process,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl RawClient {
    fn start() -> Self {
        let (gateway, input, output) = Gateway::pipes(&healthy());
        Self {
            gateway,
            input,
            lines: lines(output),
        }
    }

    fn send(&mut self, line: &[u8]) {
        self.input.write_all(&[line, b"\n"].concat()).unwrap();
        self.input.flush().unwrap();
    }

    fn receive(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(LIMIT).unwrap()).unwrap()
    }

    fn end(mut self) {
        let family = self.gateway.descendants();
        drop(self.input);
        assert_eq!(self.gateway.wait().code(), Some(0));
        crate::support::assert_all_end(&family);
    }
}

fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            if !line.is_ok_and(|line| sender.send(line).is_ok()) {
                return;
            }
        }
    });
    lines
}

fn request(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

fn call(id: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"healthy__echo","arguments":{arguments}}}}}"#
    )
}

/// Invalid requests are answered with one error of this code, or not at all, and the next request is served.
#[test]
fn what_is_no_request_is_refused_and_the_connection_lives() {
    let ping = request("1", "ping");
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let cases: Vec<(Vec<u8>, Option<i64>)> = vec![
        (Vec::new(), None),
        (b"\r".into(), None),
        (b"GET /mcp HTTP/1.1\r".into(), Some(-32700)),
        (b"\0\0\0".into(), Some(-32700)),
        (b"\xff\xfe\xc0".into(), Some(-32700)),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}".into(),
            Some(-32700),
        ),
        (b"{".into(), Some(-32700)),
        (format!("{ping}{ping}").into(), Some(-32700)),
        (b"[]".into(), Some(-32600)),
        (format!("[{ping},{ping}]").into(), Some(-32600)),
        (b"7".into(), Some(-32600)),
        (deep(1_000_000).into(), Some(-32600)),
        (
            call("1", &format!(r#"{{"a":{}}}"#, deep(1000))).into(),
            Some(-32600),
        ),
        (call("1", r#"{"a":1,"\u0061":2}"#).into(), Some(-32600)),
        (call("1", r#"{"a":{"b":1,"b":1}}"#).into(), Some(-32600)),
        (ping.replace(r#""id":1"#, r#""id":1,"id":2"#).into(), Some(-32600)),
        (ping.replace("\"id\"", "\"Id\"").into(), Some(-32600)),
        (ping.replace("2.0", "1.0").into(), Some(-32600)),
        (request("null", "ping").into(), Some(-32600)),
        (request("1.5", "ping").into(), Some(-32600)),
        (request("1e400", "ping").into(), Some(-32600)),
        (request("{}", "ping").into(), Some(-32600)),
        (request("[1]", "ping").into(), Some(-32600)),
        (request("true", "ping").into(), Some(-32600)),
        (
            request(&format!("\"{}\"", "x".repeat(2_000_000)), "ping").into(),
            Some(-32600),
        ),
        (request("1", &"m".repeat(2_000_000)).into(), Some(-32600)),
        (request("1", "no/such").into(), Some(-32601)),
        (request("1", "tools/call").into(), Some(-32602)),
        (br#"{"jsonrpc":"2.0","id":99,"result":{}}"#.into(), None),
        (br#"{"jsonrpc":"2.0","id":{},"error":7}"#.into(), None),
        (
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#.into(),
            None,
        ),
        (br#"{"jsonrpc":"2.0","method":"no/such"}"#.into(), None),
        // Larger than the maximum size of a message.
        (
            call("1", &format!(r#"{{"a":"{}"}}"#, "x".repeat(17 << 20))).into(),
            Some(-32600),
        ),
    ];
    let mut client = RawClient::start();
    for (line, code) in cases {
        let shown: String = String::from_utf8_lossy(&line).chars().take(80).collect();
        client.send(&line);
        if let Some(code) = code {
            let answer = client.receive();
            assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
            assert!(answer["id"].is_null() || answer["id"] == 1, "{shown}: {answer}");
        }
        client.send(request("\"next\"", "ping").as_bytes());
        assert_eq!(client.receive()["id"], "next", "{shown}");
    }
    assert_memory(&client.gateway);
    client.end();
}

/// Any valid JSON text reaches the tool verbatim, and every id that the protocol allows works.
#[test]
fn odd_but_valid_requests_are_served() {
    let mut client = RawClient::start();
    for (id, arguments) in [
        ("0", r#"{"a":"\ud800"}"#),
        ("-1", r#"{"a":12345678901234567890123,"b":1e2}"#),
        ("18446744073709551615", r#"{"":{"":[]}}"#),
        (r#""""#, r#"{ "__proto__" : null }"#),
        (r#""1""#, r#"{"a":"\u0000\u2028"}"#),
    ] {
        client.send(call(id, arguments).as_bytes());
        let answer = client.receive();
        assert_eq!(answer["id"].to_string(), id);
        assert_eq!(answer["result"]["content"][0]["text"], arguments, "{answer}");
    }
    client.end();
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    const CALLS: usize = 2500;
    let (gateway, mut input, output) = Gateway::pipes(&healthy());
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let arguments = format!(r#"{{"a":"{}"}}"#, "x".repeat(40_000));
    let writer = thread::spawn(move || {
        for id in 0..CALLS {
            input
                .write_all(format!("{}\n", call(&id.to_string(), &arguments)).as_bytes())
                .unwrap();
            counter.fetch_add(1, Ordering::Relaxed);
        }
        input
    });
    let mut before = usize::MAX;
    eventually("the client can write no more", || {
        let now = sent.load(Ordering::Relaxed);
        thread::sleep(Duration::from_secs(2));
        std::mem::replace(&mut before, now) == now
    });
    assert!(before < CALLS, "everything was taken in");
    assert_memory(&gateway);
    // Now that it reads, it receives every answer.
    let lines = lines(output);
    let mut ids: Vec<u64> = (0..CALLS)
        .map(|_| {
            let line = lines.recv_timeout(LIMIT).unwrap();
            let start = line.find(r#""id":"#).unwrap() + 5;
            let digits: String = line[start..].chars().take_while(char::is_ascii_digit).collect();
            assert!(line.contains("result"), "{line:.500}");
            digits.parse().unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..CALLS as u64));
    assert_memory(&gateway);
    drop(writer.join().unwrap());
}
