//! An MCP client alone: starts a server, lists its tools and calls them. It shows progress and answers questions.
//!
//! Run it with `cargo run -p toolplane-examples --example mcp-client -- SERVER`, for example with the
//! example `desk-server`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error};

use mcp_client::{Command, Connection, ConnectionOptions, Handlers, RequestOptions, serde_json::json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Command::new(env::args().nth(1).ok_or("usage: mcp-client SERVER")?);
    let handlers = Handlers::new().elicitation(json!({}).into(), |_| async {
        Ok(json!({"action": "accept", "content": {"seat": "window"}}).into())
    });
    let options = ConnectionOptions::default().handlers(handlers);
    let connection = Connection::spawn(&server, options).await?;
    for tool in connection.list_tools().await? {
        println!("{}", tool.get("name").unwrap_or_default());
    }
    let options = RequestOptions::default().on_progress(|progress| println!("{progress}"));
    let flight = json!({"flight": "DY 620"});
    let result = connection.call_tool("book", &flight, options).await?;
    println!("{}", result.text());
    connection.shutdown().await;
    Ok(())
}
