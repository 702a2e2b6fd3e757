//! The gateway inside a program with other routes: `/mcp` is a route of an axum router.
//!
//! The program asks itself for its tools and calls one over loopback, prints both answers, and exits. Run it with
//! `cargo run -p toolplane-examples --example embedded-gateway`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, net::SocketAddr};

use axum::{Router, routing::get};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use toolplane::Toolplane;
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions};

const CONFIGURATION: &str = r#"
tools:
  greet:
    description: Greets someone.
    input_schema:
      type: object
      properties:
        name: {type: string}
      required: [name]
    executor:
      kind: mock
      template: '{"greeting": "Hello, {{ name }}!"}'
"#;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = Toolplane::from_yaml(CONFIGURATION)?;
    let gateway = Gateway::new(plane, GatewayOptions::default());
    let options = HttpServerOptions::default();
    let notifier = options.notifier.clone();

    let router = Router::new()
        .route("/", get(async || "this program also serves other things\n"))
        .route_service("/mcp", gateway.http_service(options));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        // Stops on a message, or if the sender is gone.
        let _ = stopped.await;
    });
    let visit = async {
        let result = visit(address).await;
        drop(stop);
        result
    };
    tokio::select! {
        (served, visited) = async { tokio::join!(server, visit) } => {
            served?;
            visited?;
        }
        // Notifies clients of changed tools, as long as it is polled.
        () = gateway.announce(&notifier) => {}
    }
    gateway.plane().shutdown().await;
    Ok(())
}

/// Acts as an MCP client.
async fn visit(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    for (message, expected) in [(LIST, r#""name":"greet""#), (CALL, "Hello, Ada!")] {
        let answer = post(address, message).await?;
        println!("> {message}\n< {answer}");
        if !answer.contains(expected) {
            return Err(format!("the answer holds no `{expected}`").into());
        }
    }
    Ok(())
}

/// Sends one HTTP request by hand: the example needs no HTTP client.
async fn post(address: SocketAddr, message: &str) -> Result<String, Box<dyn Error>> {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{message}",
        message.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response
        .split_once("\r\n\r\n")
        .ok_or("the response has no body")?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("unexpected response: {response}").into());
    }
    Ok(body.to_owned())
}
