//! Servers over WebSocket, through the whole program.

use std::{
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::Value;
use tokio_tungstenite::tungstenite::{
    Message, WebSocket, accept_hdr,
    handshake::server::{Callback, ErrorResponse, Request, Response},
    http::StatusCode,
};

use crate::binary::{Place, Run};

/// Starts a server that requires the token `fresh-token` and returns its address. It calls `on_refusal` before it
/// refuses another token.
fn server(on_refusal: impl Fn() + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let on_refusal = on_refusal.clone();
            thread::spawn(move || {
                if let Ok(socket) = accept_hdr(socket.unwrap(), Greeting(on_refusal)) {
                    serve(socket);
                }
            });
        }
    });
    address
}

struct Greeting<F>(F);

impl<F: Fn()> Callback for Greeting<F> {
    fn on_request(self, request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
        let token = request.headers().get("authorization");
        if token.is_none_or(|token| token != "Bearer fresh-token") {
            (self.0)();
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = StatusCode::UNAUTHORIZED;
            return Err(refusal);
        }
        let name = "sec-websocket-protocol";
        let protocol = request.headers()[name].clone();
        response.headers_mut().insert(name, protocol);
        Ok(response)
    }
}

fn serve(mut socket: WebSocket<TcpStream>) {
    while let Ok(message) = socket.read() {
        let Message::Text(text) = message else { continue };
        let message: Value = serde_json::from_str(&text).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "initialize" => {
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sock","version":"1"}}"#
            }
            "tools/list" => {
                r#"{"tools":[{"name":"ask","inputSchema":{"type":"object"}},{"name":"leave","inputSchema":{"type":"object"}}]}"#
            }
            "tools/call" if message["params"]["name"] == "leave" => return,
            "tools/call" => r#"{"content":[{"type":"text","text":"1e2"}]}"#,
            _ if message["id"].is_null() => continue,
            _ => {
                let answer = serde_json::json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}});
                socket.send(Message::text(answer.to_string())).unwrap();
                continue;
            }
        };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]);
        socket.send(Message::text(answer)).unwrap();
    }
}

fn run(settings: &str, token: &str, arguments: &[&str]) -> Run {
    let text = format!(
        "servers: {{sock: {{{settings}, url: 'ws://{}/mcp', headers: {{Authorization: 'Bearer ${{SOCK_TOKEN}}'}}}}}}",
        server(|| ())
    );
    Place::with(&text).variable("SOCK_TOKEN", token).run(arguments)
}

#[test]
fn tools_of_a_server_over_websocket() {
    for settings in [
        "type: websocket",
        "transport: websocket",
        "type: ws",
        "disabled: false",
    ] {
        let called = run(settings, "fresh-token", &["call", "sock__ask", "-o", "json"]);
        assert_eq!(
            (called.code, &called.json()["content"][0]["text"]),
            (0, &"1e2".into()),
            "{settings}: {called:?}"
        );
    }
    let listed = run("type: ws", "fresh-token", &["servers", "ls", "-o", "json"]).json();
    assert_eq!(
        (&listed[0]["transport"], &listed[0]["state"]),
        (&"websocket".into(), &"ready".into()),
        "{listed}"
    );
}

#[test]
fn a_server_that_leaves_in_the_middle_of_a_call() {
    let called = run("type: ws", "fresh-token", &["call", "sock__leave", "-o", "json"]);
    let all = format!("{}{}", called.stdout, called.stderr);
    assert!(called.code == 1 && all.contains("outcome_unknown"), "{called:?}");
}

#[test]
fn a_server_that_refuses_the_credentials() {
    let called = run("type: ws", "stale-token", &["call", "sock__ask", "-o", "json"]);
    assert!(
        called.code == 6
            && called
                .stderr
                .contains("refused the credentials with HTTP status 401"),
        "{called:?}"
    );
}

#[test]
fn credentials_are_renewed_when_the_handshake_is_refused() {
    let place = Place::empty();
    let token = place.path().join("token");
    place.write("token", "stale-token");
    let address = server(move || std::fs::write(&token, "fresh-token").unwrap());
    place.write(
        "toolplane.yaml",
        format!(
            "servers: {{sock: {{url: 'ws://{address}/mcp', headers: {{Authorization: 'Bearer ${{file:token}}'}}}}}}"
        ),
    );
    let called = place.run(&["call", "sock__ask", "-o", "json"]);
    assert_eq!(
        (called.code, &called.json()["content"][0]["text"]),
        (0, &"1e2".into()),
        "{called:?}"
    );
}
