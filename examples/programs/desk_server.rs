//! The MCP server of `data/desk.yaml`, on stdio.
//!
//! Run it with `cargo run -p toolplane-examples --example desk-server`, or as the server of `mcp-client`.

use std::{error::Error, future::pending};

use mcp_mock::MockServer;
use tokio::io::{stdin, stdout};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = MockServer::from_yaml(include_str!("../data/desk.yaml"))?;
    server.serve_stdio(stdin(), stdout(), pending()).await?;
    Ok(())
}
