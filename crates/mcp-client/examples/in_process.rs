//! A server and a client in one program, connected by a pipe in memory: what both take, and nothing else.
//!
//! ```text
//! cargo run -p mcp-client --example in_process
//! ```

use std::{
    error::Error,
    future::pending,
    io::{self, Write as _},
};

use mcp_client::{Connection, ConnectionOptions, RequestOptions};
use mcp_server::{
    Answer, RequestContext, ServerIdentity, Service, StdioOptions, serve_stdio, unknown_method,
};
use mcp_wire::{Request, Revision, RpcError, method};
use raw_json::RawJson;
use tokio::io::{duplex, split};

struct Greeter;

impl Service for Greeter {
    fn info(&self) -> ServerIdentity {
        ServerIdentity::new("greeter", "1.0.0")
    }

    fn capabilities(&self, _: Revision) -> RawJson {
        json(r#"{"tools":{}}"#)
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        match &*request.method {
            method::TOOLS_LIST => {
                Ok(json(r#"{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}"#).into())
            }
            method::TOOLS_CALL => {
                let name = cx.arguments().and_then(|arguments| arguments.get("name"));
                let text = format!(
                    "Hello, {}!",
                    name.and_then(|name| name.string()).unwrap_or_default()
                );
                let text = RawJson::from(text.as_str());
                Ok(json(&format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#)).into())
            }
            other => Err(unknown_method(other)),
        }
    }
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("it is written as JSON here")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (ours, theirs) = duplex(64 * 1024);
    let (reader, writer) = split(theirs);
    tokio::spawn(serve_stdio(
        Greeter,
        reader,
        writer,
        StdioOptions::default(),
        pending(),
    ));
    let (reader, writer) = split(ours);
    let connection = Connection::from_streams(reader, writer, ConnectionOptions::default()).await?;
    let mut out = io::stdout().lock();
    for tool in connection.list_tools().await? {
        writeln!(out, "{tool}")?;
    }
    let params = json(r#"{"name":"greet","arguments":{"name":"世界"}}"#);
    let result = connection
        .request(method::TOOLS_CALL, Some(params), RequestOptions::default())
        .await?;
    writeln!(out, "{result}")?;
    connection.shutdown().await;
    Ok(())
}
