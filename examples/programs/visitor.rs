//! A client of `embedded_gateway.rs` that writes its requests by hand, so that the example needs no HTTP client.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}"#;

/// Requests: the host that they are addressed to, the token, the message, and a part of the response.
const REQUESTS: [(&str, &str, &str, &str); 4] = [
    ("tools.example.com", "Bearer of-ada", LIST, r#""name":"greet""#),
    ("tools.example.com", "Bearer of-ada", CALL, "Hello, Ada!"),
    ("tools.example.com", "Bearer of-eve", CALL, "401 Unauthorized"),
    (
        "other.example.com",
        "Bearer of-ada",
        CALL,
        "this host name is not served here; admit it with `HttpServerOptions::allow_host`",
    ),
];

/// Makes some calls. Ends the process if a response is not as expected.
#[expect(
    clippy::exit,
    reason = "the server waits for the client and would hide its failure"
)]
pub(crate) async fn make_calls(address: SocketAddr) {
    for (host, token, message, expected) in REQUESTS {
        let response = post(address, host, token, message).await;
        let response = response.unwrap_or_else(|error| error.to_string());
        println!("> {host} {token} {message}\n{response}\n");
        if !response.contains(expected) {
            println!("the response holds no `{expected}`");
            std::process::exit(1);
        }
    }
}

async fn post(
    address: SocketAddr,
    host: &str,
    token: &str,
    message: &str,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\nconnection: close\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {}\r\n\r\n{message}",
        message.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}
