//! Calls of imported tools, as a server on loopback receives them.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
};
use tool_openapi::ImportOptions;

use crate::support::{executor, imported};

/// Starts a server that answers one request, and returns its address and the request.
async fn server() -> (String, oneshot::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = String::new();
        while !is_whole(&text) {
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer).await.unwrap();
            text.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer.as_bytes()).await.unwrap();
        sender.send(text).unwrap();
    });
    (address, receiver)
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

#[tokio::test]
async fn a_server_receives_what_the_document_describes() {
    let operation = json!({
        "operationId": "updatePet",
        "security": [{"key": []}],
        "parameters": [
            {"name": "petId", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
            {"name": "X-Request-Id", "in": "header", "schema": {"type": "string"}},
            {"name": "session", "in": "cookie", "required": true, "schema": {"type": "string"}},
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "number"}}}}}},
        "responses": {},
    });
    let (address, request) = server().await;
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "paths": {"/pets/{petId}": {"patch": operation}},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    });
    let options = ImportOptions::new()
        .with_server(format!("http://{address}/v1"))
        .with_allow_private(true);
    let api = imported(&document, &options);
    let tool = executor()
        .tool_with(api.tools[0].descriptor.clone(), |tool| tool)
        .unwrap();
    let arguments: Value = json!({"petId": "a/b", "fields": ["name", "tags&x"], "X-Request-Id": "7", "session": "s1", "name": "Rex", "age": 2.50});
    assert_eq!(tool.call(&arguments).await.unwrap().text(), "{}");
    let request = request.await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(
        lines.next(),
        Some("PATCH /v1/pets/a%2Fb?fields=name&fields=tags%26x HTTP/1.1")
    );
    let headers: Vec<String> = lines.map(str::to_ascii_lowercase).collect();
    for expected in [
        "authorization: bearer key",
        "x-request-id: 7",
        "cookie: session=s1",
        "content-type: application/json",
    ] {
        assert!(
            headers.iter().any(|line| line == expected),
            "{expected}: {headers:?}"
        );
    }
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({"name": "Rex", "age": 2.5}));
}
