//! A client of `embedded_gateway` that writes its requests by hand, so that the program needs no HTTP client.

use std::{io::Result, net::SocketAddr};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Hosts that the requests are addressed to, and their tokens.
const REQUESTS: [(&str, &str); 3] = [
    ("tools.example.com", "Bearer of-ada"),
    ("tools.example.com", "Bearer of-eve"),
    ("other.example.com", "Bearer of-ada"),
];

/// Lists and calls tools, as a known and an unknown user and under two host names, and prints the responses.
pub async fn make_calls(address: SocketAddr) {
    let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
    for (method, params) in [("tools/list", json!({})), ("tools/call", call)] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        for (host, token) in REQUESTS {
            let response = post(address, host, token, &message.to_string()).await;
            let response = response.map_or_else(|error| error.to_string(), |text| shorten(&text));
            print(&format!("{method} at {host} with {token}: {response}"));
        }
    }
}

async fn post(address: SocketAddr, host: &str, token: &str, message: &str) -> Result<String> {
    let length = message.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\nconnection: close\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {length}\r\n\r\n{message}"
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

/// Returns the status of a response, and the part of its body that a user sees.
fn shorten(response: &str) -> String {
    let status = response.lines().next().unwrap_or_default();
    let status = status.trim_start_matches("HTTP/1.1 ");
    let (_, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let parts = [
        message.pointer("/result/tools/0/name"),
        message.pointer("/result/content/0/text"),
        message.pointer("/error/message"),
    ];
    match parts
        .into_iter()
        .flatten()
        .find_map(Value::as_str)
        .unwrap_or(body)
    {
        "" => status.to_owned(),
        shown => format!("{status}: {shown}"),
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn print(line: &str) {
    println!("{line}");
}
