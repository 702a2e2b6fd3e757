//! HTTP tools whose API goes on to work after its answer, as clients see them.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    binary::Place,
    code::{call, text},
    serve::Served,
    versions::{ERAS, ask},
};

/// API on loopback that accepts every `POST`, and says that the work is done once it is let.
struct Api {
    address: String,
    is_done: Arc<AtomicBool>,
    /// Bodies of the requests that began work.
    begun: Arc<Mutex<Vec<Value>>>,
}

impl Api {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (is_done, begun) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<Value>>>::default());
        let (done, bodies) = (Arc::clone(&is_done), Arc::clone(&begun));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (head, body) = read(&stream);
                let (status, body) = if head.starts_with("POST ") {
                    bodies.lock().unwrap().push(body);
                    ("202 Accepted", json!({"id": 7}))
                } else if done.load(Ordering::SeqCst) {
                    ("200 OK", json!({"rows": 3, "token": "not for you"}))
                } else {
                    ("202 Accepted", json!({}))
                };
                write(&stream, status, &body.to_string());
            }
        });
        Self {
            address,
            is_done,
            begun,
        }
    }

    /// Configuration with a tool that uses the API. A call takes a second at most.
    fn place(&self, operation: &str, more: &str) -> Place {
        Place::with(&format!(
            "defaults: {{call_timeout: 1s, attempt_timeout: 1s}}
tools:
  report:
    description: Makes a report.
    input_schema: {{type: object, properties: {{table: {{type: string}}}}, required: [table]}}
    output_schema: {{type: object, properties: {{rows: {{type: integer}}}}, required: [rows]}}
    executor:
      kind: http
      url: http://{}/reports
      method: POST
      allow_private: true
      redact: [token]
      async: {operation}
{more}",
            self.address
        ))
    }

    fn finish(&self) {
        self.is_done.store(true, Ordering::SeqCst);
    }

    fn begun(&self) -> Vec<Value> {
        self.begun.lock().unwrap().clone()
    }
}

/// Reads a request: its head, and its body as JSON.
fn read(stream: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut n_bytes) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            n_bytes = length.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; n_bytes];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap_or_default())
}

fn write(mut stream: &TcpStream, status: &str, body: &str) {
    let length = body.len();
    // The client may be gone.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nLocation: /reports/7\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
}

/// Sends a request with these headers. Returns the status and the body.
fn send(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (
        status.unwrap_or_else(|| panic!("{answer}")),
        body.unwrap_or_default(),
    )
}

/// Makes a request of a modern client that supports tasks.
pub(crate) fn modern(served: &Served, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let name = params["name"]
        .as_str()
        .or(params["taskId"].as_str())
        .unwrap_or_default();
    let headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n");
    result_of(served, &headers, method, &params)
}

/// Makes a request of a client of 2025-11-25.
pub(crate) fn legacy(served: &Served, method: &str, params: &Value) -> Value {
    result_of(served, "MCP-Protocol-Version: 2025-11-25\r\n", method, params)
}

fn result_of(served: &Served, headers: &str, method: &str, params: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (status, body) = send(&served.address, "POST", "/mcp", headers, &message.to_string());
    assert_eq!(status, 200, "{method}: {body}");
    let answer: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    assert!(answer.get("result").is_some(), "{method}: {answer}");
    answer["result"].clone()
}

/// Returns the task once it has ended.
pub(crate) fn ended(look: impl Fn() -> Value) -> Value {
    for _ in 0..200 {
        let task = look();
        if task["status"] != "working" {
            return task;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("the task does not end")
}

#[test]
fn a_client_without_tasks_makes_the_same_call_again() {
    let api = Api::start();
    let served = Served::start(&api.place("{interval: 100ms}", ""));
    for (n_before, era) in ERAS.into_iter().enumerate() {
        api.is_done.store(false, Ordering::SeqCst);
        let arguments = json!({"table": format!("t{n_before}")});
        let pending = call(&served, era, "report", arguments.clone());
        assert_eq!(pending["isError"], true, "{pending}");
        assert!(
            text(&pending).starts_with("pending: the tool is still at work"),
            "{pending}"
        );
        let details = &pending["_meta"]["dev.toolplane/pending"];
        assert!(details["retryAfterMs"].as_u64().is_some(), "{pending}");
        api.finish();
        let done = call(&served, era, "report", arguments);
        assert_eq!(done["structuredContent"]["rows"], 3, "{done}");
        assert!(!done.to_string().contains("not for you"), "{done}");
        assert_eq!(api.begun().len(), n_before + 1, "no other work was begun");
        let tools = ask(&served, era, "tools/list", json!({}));
        assert_eq!(
            tools["tools"][0]["execution"]["taskSupport"], "optional",
            "{tools}"
        );
    }
}

#[test]
fn clients_that_support_tasks_get_one_in_both_eras() {
    let api = Api::start();
    let served = Served::start(&api.place("{interval: 100ms}", ""));
    let arguments = json!({"table": "t"});

    let made = modern(
        &served,
        "tools/call",
        json!({"name": "report", "arguments": arguments}),
    );
    assert_eq!(made["resultType"], "task", "{made}");
    assert_eq!(made["status"], "working", "{made}");
    let look = || modern(&served, "tasks/get", json!({"taskId": made["taskId"]}));
    assert_eq!(look()["status"], "working");
    api.finish();
    let done = ended(look);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"]["rows"], 3, "{done}");
    assert!(!done.to_string().contains("not for you"), "{done}");

    api.is_done.store(false, Ordering::SeqCst);
    let made = legacy(
        &served,
        "tools/call",
        &json!({"name": "report", "arguments": arguments, "task": {"ttl": 60_000}}),
    );
    assert_eq!(made["task"]["status"], "working", "{made}");
    let id = json!({"taskId": made["task"]["taskId"]});
    let look = || legacy(&served, "tasks/get", &id);
    assert_eq!(look()["status"], "working");
    api.finish();
    assert_eq!(ended(look)["status"], "completed");
    let done = legacy(&served, "tasks/result", &id);
    assert_eq!(done["structuredContent"]["rows"], 3, "{done}");
    assert!(!done.to_string().contains("not for you"), "{done}");
    assert_eq!(api.begun().len(), 2);
}

/// The end of an operation passes the layers of a call.
#[test]
fn the_result_of_a_task_is_validated() {
    let api = Api::start();
    let served = Served::start(&api.place("{interval: 100ms, result: $.token}", ""));
    api.finish();
    let made = modern(
        &served,
        "tools/call",
        json!({"name": "report", "arguments": {"table": "t"}}),
    );
    for _ in 0..200 {
        let params = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {
        "taskId": made["taskId"], "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        }}});
        let id = made["taskId"].as_str().unwrap();
        let headers =
            format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tasks/get\r\nMcp-Name: {id}\r\n");
        let (_, body) = send(&served.address, "POST", "/mcp", &headers, &params.to_string());
        if body.contains("\"working\"") {
            thread::sleep(Duration::from_millis(50));
            continue;
        }
        assert!(
            body.contains("result_invalid") || body.contains("does not fit"),
            "{body}"
        );
        assert!(!body.contains("not for you"), "{body}");
        return;
    }
    panic!("the task does not end")
}

#[test]
fn an_api_calls_back_at_the_public_url() {
    let api = Api::start();
    // The gateway tells the URL that it is told; here, nothing stands in front of it.
    let more = "      body: {table: '{table}', notify: '{callback_url}'}\ngateway: {public_url: 'https://tools.example/gateway/'}";
    let served = Served::start(&api.place("{callback: true, expires: 1m}", more));
    for (n_before, era) in ERAS.into_iter().enumerate() {
        let arguments = json!({"table": format!("t{n_before}")});
        let pending = call(&served, era, "report", arguments.clone());
        assert!(text(&pending).starts_with("pending: "), "{pending}");
        let body = api.begun().pop().unwrap();
        let url = body["notify"].as_str().unwrap().to_owned();
        let token = url
            .strip_prefix("https://tools.example/gateway/callbacks/")
            .unwrap_or_else(|| panic!("{url}"));
        let path = format!("/callbacks/{token}");
        let post = |path: &str, body: &str| send(&served.address, "POST", path, "", body).0;
        assert_eq!(send(&served.address, "GET", &path, "", "").0, 405);
        assert_eq!(post("/callbacks/00", "{}"), 404);
        assert_eq!(post(&path, "{"), 400);
        assert_eq!(post(&path, r#"{"rows":4,"token":"not for you"}"#), 204);
        assert_eq!(post(&path, r#"{"rows":5}"#), 404);
        let done = call(&served, era, "report", arguments);
        assert_eq!(done["structuredContent"]["rows"], 4, "{done}");
        assert!(!done.to_string().contains("not for you"), "{done}");
    }
}

/// Without a URL for callbacks, `check` says so, with the place.
#[test]
fn a_callback_needs_a_public_url() {
    let api = Api::start();
    let more = "      body: {notify: '{callback_url}'}";
    let place = api.place("{callback: true}", more);
    let run = place.run(&["check"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("public_url"), "{run:?}");
    let line = api.place(
        "{callback: true}",
        &format!("{more}\ngateway: {{public_url: tools.example}}"),
    );
    let run = line.run(&["check"]);
    assert!(run.stderr.contains("no URL that others can be told"), "{run:?}");
}

/// The command line waits as long as the work takes.
#[test]
fn a_call_of_the_command_line_waits_for_the_work() {
    let api = Api::start();
    let place = api.place("{interval: 100ms}", "");
    let is_done = Arc::clone(&api.is_done);
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(2500));
        is_done.store(true, Ordering::SeqCst);
    });
    let run = place.run(&["call", "report", "table=orders", "-o", "json"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("\"rows\""), "{run:?}");
    assert_eq!(api.begun().len(), 1);

    api.is_done.store(false, Ordering::SeqCst);
    let run = place.run(&["call", "report", "table=orders", "--timeout", "500ms"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(
        run.stderr.contains("still at work") && run.stderr.contains("--timeout"),
        "{run:?}"
    );
}
