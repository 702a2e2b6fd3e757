//! Visits an MCP server that listens on stdio, and over HTTP if it is started with an address: the same calls over
//! both, with what comes back. It drives `mcp-server`, ours and the peer's.
//!
//! Run it with `cargo run -p toolplane-examples --example visit-server -- SERVER`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error, process::Stdio};

use mcp_client::{
    Command, Connection, ConnectionOptions, HttpEndpoint, RawJson, RequestOptions,
    serde_json::{Value, json},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = env::args_os().nth(1).ok_or("usage: visit-server SERVER")?;
    println!("on stdio");
    let options = ConnectionOptions::default();
    visit(&Connection::spawn(&Command::new(&server), options.clone()).await?).await?;

    println!("over HTTP");
    let mut child = process::Command::new(server)
        .arg("127.0.0.1:0")
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.stderr.take().ok_or("the server has no output")?;
    let url = BufReader::new(output).lines().next_line().await?;
    let endpoint = HttpEndpoint::new(&url.ok_or("the server does not say where it listens")?)?;
    visit(&Connection::http(&endpoint, options).await?).await?;
    child.kill().await?;
    Ok(())
}

async fn visit(connection: &Connection) -> Result<(), Box<dyn Error>> {
    for tool in connection.list_tools().await? {
        let text = |key| tool.get(key).and_then(|value: RawJson| value.string());
        println!(
            "  {}: {}",
            text("name").unwrap_or_default(),
            text("description").unwrap_or_default()
        );
    }
    for (name, arguments) in [("add", json!({"a": 2, "b": 40})), ("count", json!({"to": 3}))] {
        let options = RequestOptions::default().on_progress(|progress| {
            let step = progress
                .to::<Value>()
                .ok()
                .and_then(|progress| progress["progress"].as_f64());
            println!("  progress {}", step.unwrap_or_default());
        });
        let result = connection.call_tool(name, &arguments, options).await?;
        println!("  {name}: {}", result.text());
    }
    connection.shutdown().await;
    Ok(())
}
