//! Semantic cache of a gateway, with a service of embeddings on loopback.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::{Value, json};

use crate::{
    binary::Place,
    serve::{Served, call},
};

/// Service with the API of OpenAI, to which all texts mean the same. Returns its URL.
fn embeddings() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || while answer(stream.as_ref().unwrap()).is_some() {});
        }
    });
    format!("http://{address}/v1/embeddings")
}

/// Answers one request of a connection. `None` at its end.
fn answer(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).unwrap();
    let texts = request["input"].as_array().unwrap();
    let vector = |index| json!({"index": index, "embedding": [3.0, 4.0]});
    let vectors: Vec<Value> = (0..texts.len()).map(vector).collect();
    let body = json!({"model": request["model"], "data": vectors}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()
}

#[test]
fn a_client_gets_the_result_of_a_call_that_means_the_same_and_is_told() {
    let configuration = "
search: {embeddings: {url: 'URL', model: m}}
tools:
  answer:
    description: Answers.
    input_schema: {type: object, properties: {question: {type: string}, language: {type: string}}}
    cache: {ttl: 1h, semantic: {fields: [question]}}
    executor: {kind: mock, result: an answer}
";
    let place = Place::with(&configuration.replace("URL", &embeddings()));
    let served = Served::start(&place);
    let ask = |arguments: Value| served.post_with("", &call(1, "answer", &arguments));
    let first = ask(json!({"question": "What is the capital of Norway?"}));
    assert!(
        first.contains("an answer") && !first.contains("dev.toolplane/cache"),
        "{first}"
    );
    let second = ask(json!({"question": "please tell me the capital of Norway"}));
    assert!(
        second.contains(r#""dev.toolplane/cache":{"status":"semantic","age_ms":"#),
        "{second}"
    );
    assert!(second.contains(r#""distance":0.0000}"#), "{second}");
    for other in [
        json!({"question": "please tell me the capital of Sweden"}),
        json!({"question": "please tell me the capital of Norway", "language": "no"}),
    ] {
        let other = ask(other);
        assert!(!other.contains("dev.toolplane/cache"), "{other}");
    }
}
