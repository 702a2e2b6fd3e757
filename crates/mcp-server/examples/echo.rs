//! A server with one tool that returns its argument: `echo stdio`, or `echo 127.0.0.1:7080`.

use std::{env, error::Error, future::pending};

use mcp_server::{
    Answer, HttpServerOptions, HttpService, RequestContext, ServeOptions, ServerIdentity, Service,
    StdioOptions, serve_http, serve_stdio, unknown_method,
};
use mcp_wire::{Request, Revision, RpcError, code, method};
use raw_json::RawJson;
use tokio::{
    io::{stdin, stdout},
    net::TcpListener,
    signal::ctrl_c,
};

struct Echo;

const CAPABILITIES: &str = r#"{"tools":{}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Says what it is told.","inputSchema":{"type":"object","properties":{"payload":{"type":"string"}},"required":["payload"]}}],"ttlMs":60000,"cacheScope":"public"}"#;

impl Service for Echo {
    fn info(&self) -> ServerIdentity {
        ServerIdentity::new("echo", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self, _: Revision) -> RawJson {
        RawJson::parse(CAPABILITIES).expect("valid JSON")
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        match &*request.method {
            method::TOOLS_LIST => Ok(Answer::untyped(RawJson::parse(TOOLS).expect("valid JSON"))),
            method::TOOLS_CALL => {
                let arguments = cx.arguments();
                let payload = arguments.and_then(|arguments| arguments.get("payload"));
                let payload = payload.filter(|payload| payload.as_str().starts_with('"'));
                let invalid = || RpcError::new(code::INVALID_PARAMS, "`payload` must be a string");
                let payload = payload.ok_or_else(invalid)?;
                let result = format!(r#"{{"content":[{{"type":"text","text":{payload}}}]}}"#);
                Ok(Answer::untyped(RawJson::parse(result).expect("valid JSON")))
            }
            other => Err(unknown_method(other)),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1).as_deref() {
        Some("stdio") => {
            serve_stdio(Echo, stdin(), stdout(), StdioOptions::default(), pending()).await?;
        }
        address => {
            let listener = TcpListener::bind(address.unwrap_or("127.0.0.1:7080")).await?;
            let options = HttpServerOptions::default().path("/mcp");
            let service = HttpService::new(Echo, options);
            let shutdown = async {
                let _ = ctrl_c().await;
                service.end_streams();
            };
            serve_http(listener, ServeOptions::default(), |_| service.clone(), shutdown).await?;
        }
    }
    Ok(())
}
