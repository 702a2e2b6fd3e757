//! An MCP server alone: two tools from closures, on stdio or, with an address, over HTTP.
//!
//! Run it with `cargo run -p toolplane-examples --example mcp-server [ADDRESS]`.

#![expect(clippy::print_stderr, reason = "it says where it listens")]

use std::{env, error::Error, future::pending};

use mcp_server::{ServerIdentity, ToolCall, ToolDefinition, Tools, serde_json::json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let n = json!({"type": "integer"});
    let terms = json!({"type": "object", "properties": {"a": n, "b": n}, "required": ["a", "b"]});
    let limit = json!({"type": "object", "properties": {"to": n}, "required": ["to"]});
    let add = ToolDefinition::new("add").description("Adds two numbers.");
    let count = ToolDefinition::new("count").description("Counts, step by step.");
    let tools = Tools::new(ServerIdentity::new("desk", "1.0.0"))
        .tool(add.input_schema(terms), async |call: ToolCall| {
            Ok((call.argument::<i64>("a")? + call.argument::<i64>("b")?).to_string())
        })?
        .tool(count.input_schema(limit), async |call: ToolCall| {
            let to: u32 = call.argument("to")?;
            (1..=to).for_each(|step| call.progress(step, to));
            Ok(format!("counted to {to}"))
        })?;
    let Some(address) = env::args().nth(1) else {
        return Ok(tools.serve_stdio().await?);
    };
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    Ok(tools.serve_http(listener, pending()).await?)
}
