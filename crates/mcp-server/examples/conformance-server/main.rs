//! The server that the official conformance suite of MCP tests: `conformance-server 127.0.0.1:7081`, or with `--stdio` on
//! its standard input and output, for a gateway in between.
//!
//! It offers the tools, resources and prompts that the suite's scenarios call. The library implements the protocol; the code
//! here is that of any service.

mod asking;
mod content;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::{
    env,
    error::Error,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_server::{
    Answer, HeaderParams, HttpServerOptions, HttpService, Notifier, Peer, RequestContext, ServeOptions,
    ServerIdentity, Service, StateSeal, StdioOptions, serve_http, serve_stdio, unknown_method,
};
use mcp_wire::{Era, MirroredParams, Request, Revision, RpcError, extension, method};
use raw_json::RawJson;
use serde_json::json;
use tokio::{
    io::{stdin, stdout},
    net::TcpListener,
    signal::ctrl_c,
};

use self::tasks::Tasks;

/// Service that the suite tests.
#[derive(Debug)]
pub(crate) struct Fixture {
    notifier: Notifier,
    seal: StateSeal,
    mirrored: Option<Arc<MirroredParams>>,
    tasks: Tasks,
    n_tool_changes: AtomicUsize,
    n_prompt_changes: AtomicUsize,
}

impl Service for Fixture {
    fn info(&self) -> ServerIdentity {
        ServerIdentity::new("conformance-server", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self, revision: Revision) -> RawJson {
        let mut offered = json!({
            "tools": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "prompts": {"listChanged": true},
            "completions": {},
            "logging": {},
        });
        if revision.era() == Era::Modern {
            offered["extensions"] = json!({extension::TASKS: {}});
        }
        offered.into()
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        match &*request.method {
            method::TOOLS_LIST => Ok(content::cacheable(tools::list(
                self.n_tool_changes.load(Ordering::Relaxed),
            ))),
            method::TOOLS_CALL => tools::call(self, &request, cx).await,
            method::RESOURCES_LIST => Ok(content::cacheable(resources::list())),
            method::RESOURCES_TEMPLATES_LIST => Ok(content::cacheable(resources::templates())),
            method::RESOURCES_READ => resources::read(cx),
            method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => Ok(RawJson::object().into()),
            method::PROMPTS_LIST => Ok(content::cacheable(prompts::list(
                self.n_prompt_changes.load(Ordering::Relaxed),
            ))),
            method::PROMPTS_GET => prompts::get(&request, cx).await,
            method::COMPLETION_COMPLETE => {
                let completion =
                    json!({"completion": {"values": ["paris", "park"], "total": 2, "hasMore": false}});
                Ok(RawJson::from(completion).into())
            }
            method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL if cx.era() == Era::Modern => {
                self.tasks.answer(&request, cx)
            }
            other => Err(unknown_method(other)),
        }
    }

    fn header_params(&self, tool: &str, _: &Peer) -> HeaderParams<'_> {
        self.mirrored
            .clone()
            .filter(|_| tool == "test_custom_header")
            .into()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7081".to_owned());
    let notifier = Notifier::default();
    let options = HttpServerOptions::default()
        .path("/mcp")
        .notifier(notifier.clone());
    let fixture = Fixture {
        notifier: notifier.clone(),
        seal: StateSeal::new(Duration::from_secs(600))?,
        tasks: Tasks::default(),
        n_tool_changes: AtomicUsize::new(0),
        n_prompt_changes: AtomicUsize::new(0),
        mirrored: Some(Arc::new(MirroredParams::from_schema(&tools::mirrored().into()))),
    };
    if address == "--stdio" {
        let options = StdioOptions::default().notifier(notifier);
        return Ok(serve_stdio(fixture, stdin(), stdout(), options, pending()).await?);
    }
    let listener = TcpListener::bind(address).await?;
    let service = HttpService::new(fixture, options);
    let shutdown = async {
        let _ = ctrl_c().await;
        service.end_streams();
    };
    serve_http(listener, ServeOptions::default(), |_| service.clone(), shutdown).await?;
    Ok(())
}
