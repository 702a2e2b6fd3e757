//! The gateway as a process.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::binary::{BINARY, Place, Run, end_of, signal};

const TOOLS: &str = "
tools:
  greet:
    description: Greets
    input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
    executor: {kind: mock, template: '{\"greeting\": \"Hello, {{ name }}!\"}'}
";

/// Returns a gateway with its own tool, a healthy and a failing server.
pub(crate) fn place() -> Place {
    let place = Place::with(&format!(
        "{TOOLS}
servers:
  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}
  broken: {{command: sh, args: ['-c', 'echo no luck >&2; exit 3']}}
"
    ));
    place.write("inner.yaml", TOOLS);
    place
}

pub(crate) fn requests() -> String {
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}),
        call(3, "greet", &json!({"name": "us"})),
        call(4, "inner__greet", &json!({"name": "them"})),
        call(5, "greet", &json!({})),
        call(6, "nothing", &json!({})),
    ];
    messages.iter().map(|message| format!("{message}\n")).collect()
}

pub(crate) fn call(id: u32, name: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

/// Checks that stdout contains answers only.
#[track_caller]
fn check_answers(run: &Run) {
    let answers: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}")))
        .filter(|message: &Value| message.get("method").is_none())
        .collect();
    assert!(answers.iter().all(|answer| answer["jsonrpc"] == "2.0"), "{run:?}");
    assert_eq!(answers.len(), 6, "{run:?}");
    let by_id = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let tools = by_id("list".into())["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["greet", "inner__greet"]);
    assert_eq!(
        by_id(3.into())["result"]["structuredContent"]["greeting"],
        "Hello, us!"
    );
    assert_eq!(
        by_id(4.into())["result"]["structuredContent"]["greeting"],
        "Hello, them!"
    );
    assert_eq!(by_id(5.into())["result"]["isError"], true);
    assert_eq!(by_id(6.into())["error"]["code"], -32602);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn stdout_holds_answers_only_however_much_is_logged() {
    for options in [
        &["--log", "trace"][..],
        &["--log", "trace", "--log-format", "json"],
        &["-q"],
        &["-vvv", "-o", "json"],
    ] {
        let arguments = [&["serve", "--stdio"], options].concat();
        let run = place().run_with(&arguments, &requests());
        check_answers(&run);
        if options[0] == "-q" {
            assert_eq!(run.stderr, "");
        } else {
            assert!(run.stderr.contains("no luck"), "{run:?}");
        }
    }
}

/// Node gives its children sockets, a shell may give them files.
#[test]
fn any_kind_of_stdin_and_stdout_will_do() {
    let place = place();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut child = place
        .command(&["serve", "--stdio"])
        .stdin(OwnedFd::from(theirs.try_clone().unwrap()))
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (&ours).write_all(requests().as_bytes()).unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut stdout = String::new();
    (&ours).read_to_string(&mut stdout).unwrap();
    check_answers(&Run {
        code: end_of(&mut child),
        stdout,
        stderr: String::new(),
    });

    let input = place.write("requests", requests());
    let output = place.path().join("answers");
    let status = place
        .command(&["serve", "--stdio"])
        .stdin(File::open(input).unwrap())
        .stdout(File::create(&output).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let stdout = std::fs::read_to_string(output).unwrap();
    check_answers(&Run {
        code: status.code().unwrap(),
        stdout,
        stderr: String::new(),
    });
}

/// The mode of a pipe belongs to all its users.
#[test]
fn pipes_are_left_as_they_were_found() {
    use rustix::fs::{OFlags, fcntl_getfl};

    let place = Place::with(TOOLS);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (mut answers, answer) = std::io::pipe().unwrap();
    writer.write_all(requests().as_bytes()).unwrap();
    drop(writer);
    let mut child = place
        .command(&["serve", "--stdio"])
        .stdin(reader.try_clone().unwrap())
        .stdout(answer.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(end_of(&mut child), 0);
    for flags in [fcntl_getfl(&reader).unwrap(), fcntl_getfl(&answer).unwrap()] {
        assert!(!flags.contains(OFlags::NONBLOCK));
    }
    drop(answer);
    let mut text = String::new();
    answers.read_to_string(&mut text).unwrap();
    assert!(text.contains("Hello, us!"));
}

/// A gateway over HTTP, with its address.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) stderr: BufReader<std::process::ChildStderr>,
    /// Messages before the address.
    pub(crate) said: String,
}

impl Served {
    pub(crate) fn start(place: &Place) -> Self {
        Self::start_with(place, &[])
    }

    pub(crate) fn start_with(place: &Place, options: &[&str]) -> Self {
        Self::start_at(place, "127.0.0.1:0", options)
    }

    pub(crate) fn start_at(place: &Place, address: &str, options: &[&str]) -> Self {
        let mut child = place
            .command(&[&["serve", "--http", address], options].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            let n_read = stderr.read_line(&mut line).unwrap();
            let address = line
                .strip_prefix("serving at http://")
                .and_then(|rest| rest.strip_suffix("/mcp\n"));
            if let Some(address) = address {
                break address.to_owned();
            }
            said.push_str(&line);
            assert!(n_read > 0, "{said}");
        };
        Self {
            child,
            address,
            stderr,
            said,
        }
    }

    /// Sends a message and returns the answer with its head.
    pub(crate) fn post(&self, host: &str, message: &Value) -> String {
        self.send(host, "", message)
    }

    /// Sends a message with these headers.
    pub(crate) fn post_with(&self, headers: &str, message: &Value) -> String {
        self.send(&self.address, headers, message)
    }

    /// Sends a message of 2026-07-28.
    pub(crate) fn post_modern(&self, message: &Value) -> String {
        let method = message["method"].as_str().unwrap();
        let headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
        self.send(&self.address, &headers, message)
    }

    fn send(&self, host: &str, headers: &str, message: &Value) -> String {
        let mut answer = String::new();
        let mut stream = self.begin(host, headers, message);
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Gets a page. Returns the status and the JSON of the answer.
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.page(path);
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Gets a page. Returns the status and the text of the answer.
    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        self.page_with(path, &format!("Host: {}\r\n", self.address))
    }

    /// Gets a page with these headers.
    pub(crate) fn page_with(&self, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    /// Sends a message over its own connection, which carries the answer and ends.
    pub(crate) fn begin(&self, host: &str, headers: &str, message: &Value) -> TcpStream {
        let body = message.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pages of another origin are refused, also if they use the gateway's own name.
#[test]
fn pages_for_operators_are_for_no_page_of_another_origin() {
    let place = Place::with("gateway: {metrics: true, allowed_origins: ['https://app.example.com']}\n");
    let served = Served::start(&place);
    for path in ["/metrics", "/health"] {
        for (origin, status) in [
            (format!("http://{}", served.address), 200),
            ("https://app.example.com".to_owned(), 200),
            ("https://evil.example.com".to_owned(), 403),
            ("http://localhost:1".to_owned(), 403),
            ("null".to_owned(), 403),
        ] {
            let headers = format!("Host: {}\r\nOrigin: {origin}\r\n", served.address);
            assert_eq!(served.page_with(path, &headers).0, status, "{path} {origin}");
            // No other page may read any answer.
            let mut stream = TcpStream::connect(&served.address).unwrap();
            write!(
                stream,
                "GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
            )
            .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(
                !answer.to_ascii_lowercase().contains("access-control"),
                "{answer}"
            );
        }
    }
}

#[test]
fn http_serves_the_same_tools() {
    let place = place();
    let served = Served::start(&place);
    let answer = served.post(
        &served.address,
        &call(3, "inner__greet", &json!({"name": "them"})),
    );
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("Hello, them!"),
        "{answer}"
    );
    // Another name for this machine indicates DNS rebinding.
    let answer = served.post("evil.example.com", &call(3, "greet", &json!({"name": "us"})));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn an_address_in_use_is_said_before_any_server_is_started() {
    let place = place();
    let served = Served::start(&place);
    let run = place.run(&["serve", "--http", &served.address]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains("cannot listen at") && !run.stderr.contains("no luck"),
        "{run:?}"
    );
}

/// The address is in use, which is said after what is told here.
#[test]
fn a_gateway_by_http_is_no_server_of_itself() {
    let served = Served::start(&place());
    let own = format!("servers: {{me: {{url: 'http://{}/mcp'}}}}\n", served.address);
    let run = Place::with(&own).run(&["serve", "--http", &served.address]);
    assert!(
        run.stderr
            .contains("the server `me` is not used: it is this gateway"),
        "{run:?}"
    );
}

#[test]
fn metrics_have_an_address_of_their_own_also_beside_stdio() {
    let place = Place::with(TOOLS);
    let mut child = place
        .command(&["serve", "--stdio", "--metrics", "127.0.0.1:0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    writeln!(stdin, "{}", call(1, "greet", &json!({"name": "us"}))).unwrap();
    let mut answer = String::new();
    stdout.read_line(&mut answer).unwrap();
    assert!(answer.contains("Hello, us!"), "{answer}");
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(
        page.contains("toolplane_calls_total{tool=\"greet\",outcome=\"ok\"} 1"),
        "{page}"
    );
    drop(stdin);
    assert_eq!(end_of(&mut child), 0);
}

/// Answers one request of an exporter and returns its head and its body.
fn collect(stream: &mut TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .unwrap();
    (head, String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn spans_are_exported_before_the_end_and_an_absent_collector_costs_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    // Traces and metrics only: nothing is logged.
    let collector = std::thread::spawn(move || {
        let mut requests = [(); 2].map(|()| collect(&mut listener.accept().unwrap().0));
        requests.sort();
        requests
    });
    let arguments = ["call", "greet", "name=us"];
    let place = Place::with(TOOLS).variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    // The proxy of the environment, which does not listen, is not used.
    let place = place
        .variable("HTTP_PROXY", "http://127.0.0.1:1")
        .variable("http_proxy", "http://127.0.0.1:1");
    let run = place.variable("OTEL_SERVICE_NAME", "the-test").run(&arguments);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let [metrics, traces] = collector.join().unwrap();
    let expected = [
        (
            metrics,
            "POST /v1/metrics ",
            ["the-test", "toolplane.calls", "greet"],
        ),
        (
            traces,
            "POST /v1/traces ",
            ["the-test", "tools/call greet", "execute_tool greet"],
        ),
    ];
    for ((head, body), start, texts) in expected {
        assert!(head.starts_with(start), "{head}");
        for text in texts {
            assert!(body.contains(text), "{text} in {body}");
        }
    }
    // The collector is gone.
    let place = Place::with(TOOLS).variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    let run = place.run(&arguments);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("Hello, us!"), "{run:?}");
}

#[test]
fn variables_of_traces_that_lead_nowhere_are_told_of_once() {
    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let run = |variables: &[(&'static str, &str)]| {
        let place = variables.iter().fold(Place::with(TOOLS), |place, (name, value)| {
            place.variable(name, value)
        });
        let run = place.run(&["call", "greet", "name=us"]);
        assert_eq!(run.code, 0, "{run:?}");
        run.stderr
    };
    let no_url =
        format!("warning: `{ENDPOINT}` is not an `http` or `https` URL: nothing is exported to it\n");
    assert_eq!(run(&[(ENDPOINT, "collector:4318")]), no_url);
    // Disabled telemetry is not reported.
    let off = ("OTEL_SDK_DISABLED", "true");
    assert_eq!(run(&[(ENDPOINT, "collector:4318"), off]), "");
    let certificate = ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem");
    assert_eq!(run(&[certificate, ("OTEL_TRACES_SAMPLER", "mine")]), "");
    let told = run(&[(ENDPOINT, "http://127.0.0.1:1/v1/traces"), certificate]);
    assert_eq!(
        told.matches("`OTEL_EXPORTER_OTLP_CERTIFICATE` is not supported")
            .count(),
        1,
        "{told}"
    );
}

#[test]
fn spans_that_are_lost_are_told_once() {
    // Accepts connections and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let place = place()
        .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &endpoint)
        .variable("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
        .variable("OTEL_BSP_MAX_QUEUE_SIZE", "2")
        .variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1");
    let mut served = Served::start(&place);
    for id in 0..20 {
        served.post("localhost", &call(id, "greet", &json!({"name": "us"})));
    }
    signal(served.child.id(), Signal::TERM);
    let mut said = String::new();
    served.stderr.read_to_string(&mut said).unwrap();
    end_of(&mut served.child);
    assert_eq!(
        said.matches("BatchSpanProcessor.SpanDroppingStarted").count(),
        1,
        "{said}"
    );
    assert!(said.contains("due to queue full"), "{said}");
    assert!(said.contains("traces cannot be exported"), "{said}");
    assert!(!said.contains("ExportError"), "{said}");
}
