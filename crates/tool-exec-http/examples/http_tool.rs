//! One HTTP tool without the rest of toolplane: a local server, a tool that calls it, and the result.
//!
//! `cargo run -p tool-exec-http --example http_tool`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{
    error::Error,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use tool_core::{BoxFuture, Reference, Secret, SecretError, Secrets};
use tool_exec_http::{HttpExecutor, HttpExecutorOptions, serde_json::json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = serve()?;
    // Only public addresses may be reached unless the operator allows others.
    let options = HttpExecutorOptions::default().with_allow_private_networks(["127.0.0.1".parse()?]);
    let executor = HttpExecutor::new(options, Arc::new(OneKey));
    let weather = executor.tool(
        "weather",
        json!({
            "url": format!("http://{address}/v1/weather/{{city}}?days={{days}}"),
            "headers": {"Authorization": "Bearer ${secret:weather}"},
            "response_path": "$.forecast[*].temperature",
        }),
    )?;
    let arguments = json!({"city": "Bad Homburg/v. d. Höhe", "days": 2});
    println!("{}", weather.call(&arguments).await?.text());
    Ok(())
}

/// Secret store with one secret.
struct OneKey;

impl Secrets for OneKey {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let known = reference.name == "weather";
        Box::pin(async move { Ok(known.then(|| Secret::new("a-key-for-the-weather"))) })
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        Ok(reference.name == "weather")
    }
}

/// Starts an upstream that answers one request, and prints the request line.
fn serve() -> Result<SocketAddr, std::io::Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || -> Result<(), std::io::Error> {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer)?;
        let head = String::from_utf8_lossy(&buffer[..length]).into_owned();
        println!("{}", head.lines().next().unwrap_or_default());
        let body = r#"{"forecast": [{"temperature": 21.50}, {"temperature": 19}]}"#;
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    });
    Ok(address)
}
