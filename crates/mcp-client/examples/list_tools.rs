//! Lists the tools of an MCP server.
//!
//! ```text
//! cargo run -p mcp-client --example list_tools -- mcp-server-time --local-timezone UTC
//! cargo run -p mcp-client --example list_tools -- http://127.0.0.1:7301/mcp
//! ```

use std::{
    error::Error,
    io::{self, Write as _},
};

use mcp_client::{Command, Connection, ConnectionOptions, HttpEndpoint};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let target = args.next().ok_or("give the command of a server, or its URL")?;
    let options = ConnectionOptions::default();
    let connection = if target.starts_with("http://") || target.starts_with("https://") {
        Connection::http(&HttpEndpoint::new(&target)?.with_sse_fallback(), options).await?
    } else {
        Connection::spawn(&Command::new(target).args(args), options).await?
    };
    let server = connection.server();
    let mut out = io::stdout().lock();
    writeln!(out, "{} {}", server.name().unwrap_or_default(), server.revision)?;
    for tool in connection.list_tools().await? {
        let name = tool
            .get("name")
            .and_then(|name| name.string())
            .unwrap_or_default();
        let about = tool
            .get("description")
            .and_then(|text| text.string())
            .unwrap_or_default();
        writeln!(out, "{name:24} {}", about.lines().next().unwrap_or_default())?;
    }
    connection.shutdown().await;
    Ok(())
}
