//! Executors, sources and clients for tests of the gateway.

mod behavior_executor;
mod client;
mod source;

use std::{net::SocketAddr, sync::Arc};

use raw_json::RawJson;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tool_testkit::{ScriptedExecutor, TestTool};
use toolplane::Toolplane;

pub(crate) use self::{
    behavior_executor::BehaviorExecutor,
    client::{Client, Http},
    source::{ChangingSource, behavior_tool},
};

/// `_meta` of a modern request.
pub(crate) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Returns a toolplane with tools of these names, which a [`BehaviorExecutor`] runs.
pub(crate) fn behavior_plane(executor: &BehaviorExecutor, tools: &[&str]) -> Toolplane {
    let mut builder = Toolplane::builder().executor(Arc::new(executor.clone()));
    for tool in tools {
        builder = builder.tool(behavior_tool(tool));
    }
    builder.build().expect("it can be set up")
}

/// Returns the `_meta` of a modern request whose client declares these capabilities.
pub(crate) fn modern(capabilities: &str) -> String {
    MODERN.replace("{}", capabilities)
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("a test writes JSON")
}

pub(crate) fn plane(script: &ScriptedExecutor, tools: impl IntoIterator<Item = TestTool>) -> Toolplane {
    let mut builder = Toolplane::builder().executor(Arc::new(script.clone()));
    for tool in tools {
        builder = builder.tool(tool.descriptor);
    }
    builder.build().expect("the standard primitives can be set up")
}

/// Sends a request with `Connection: close` over a connection of its own, and returns the whole answer.
pub(crate) async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("the server reads");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer).await;
    read.expect("the server answers");
    answer
}
