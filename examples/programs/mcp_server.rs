//! An MCP server alone: two tools from closures, on stdio or, with an address, over HTTP.
//!
//! Run it with `cargo run -p toolplane-examples --example mcp-server [ADDRESS]`.

#![expect(clippy::print_stderr, reason = "it says where it listens")]

use std::{env, error::Error};

use mcp_server::{ServerIdentity, ServerListener, ToolCall, ToolDefinition, Tools, serde_json::json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let n = json!({"type": "integer"});
    let add = ToolDefinition::new("add")
        .description("Adds two numbers.")
        .input_schema(json!({"type": "object", "properties": {"a": n, "b": n}, "required": ["a", "b"]}));
    let count = ToolDefinition::new("count")
        .description("Counts, and reports each step.")
        .input_schema(json!({"type": "object", "properties": {"to": n}, "required": ["to"]}));
    let tools = Tools::new(ServerIdentity::new("desk", "1.0.0"))
        .tool(add, async |call: ToolCall| {
            let (a, b): (i64, i64) = (call.argument("a")?, call.argument("b")?);
            Ok((a + b).to_string())
        })?
        .tool(count, async |call: ToolCall| {
            let to = call.argument::<u32>("to")?;
            (1..=to).for_each(|step| call.report_progress(step, to));
            Ok(format!("counted to {to}"))
        })?;
    let listener = ServerListener::bind(env::args().nth(1)).await?;
    eprintln!("{listener}");
    Ok(listener.serve(tools).await?)
}
