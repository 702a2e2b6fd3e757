use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    time::timeout,
};
use toolplane::Toolplane;
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, HttpService, Principal, StdioOptions};

use super::{MODERN, modern, raw};

/// A client of a gateway over pipes.
pub(crate) struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    pub(crate) fn new(plane: Toolplane) -> Self {
        Self::with(plane, GatewayOptions::default())
    }

    pub(crate) fn with(plane: Toolplane, options: GatewayOptions) -> Self {
        Self::on(Gateway::new(plane, options))
    }

    /// Connects another client to a gateway.
    pub(crate) fn on(gateway: Gateway) -> Self {
        let (ours, theirs) = duplex(1 << 20);
        let (reader, writer) = split(theirs);
        tokio::spawn(async move {
            let never = std::future::pending();
            gateway
                .serve_stdio(reader, writer, StdioOptions::default(), never)
                .await
        });
        let (output, input) = split(ours);
        Self {
            input,
            output: BufReader::new(output).lines(),
        }
    }

    /// Initializes a legacy connection with these capabilities.
    pub(crate) async fn initialize(&mut self, capabilities: &str) -> String {
        let params = format!(
            r#""protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"0"}}"#
        );
        let answer = self.ask("initialize", &params).await;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        answer
    }

    pub(crate) async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input
            .write_all(line.as_bytes())
            .await
            .expect("the gateway reads");
    }

    pub(crate) async fn receive(&mut self) -> String {
        let line = timeout(Duration::from_secs(120), self.output.next_line()).await;
        line.expect("the gateway answers")
            .expect("the gateway writes")
            .expect("the gateway lives")
    }

    /// Sends a request, and returns the next message.
    pub(crate) async fn ask(&mut self, method: &str, params: &str) -> String {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#
        ))
        .await;
        self.receive().await
    }

    /// Sends a request, and returns its result as it was written.
    pub(crate) async fn result(&mut self, method: &str, params: &str) -> String {
        let answer = self.ask(method, params).await;
        let result = raw(&answer).get("result");
        result
            .unwrap_or_else(|| panic!("no result: {answer}"))
            .to_string()
    }

    pub(crate) async fn value(&mut self, method: &str, params: &str) -> Value {
        serde_json::from_str(&self.ask(method, params).await).expect("an answer is JSON")
    }
}

/// Requests of the modern era over HTTP, without a network.
#[derive(Clone)]
pub(crate) struct Http(HttpService<Gateway>);

impl Http {
    /// Creates a client whose requests name their principal in the header `x-principal`.
    pub(crate) fn new(plane: Toolplane) -> Self {
        Self::on(&Gateway::new(plane, GatewayOptions::default()))
    }

    pub(crate) fn on(gateway: &Gateway) -> Self {
        let identify = |parts: &http::request::Parts| {
            let name = parts
                .headers
                .get("x-principal")
                .and_then(|name| name.to_str().ok());
            Ok(Principal::new(name.unwrap_or("anonymous")))
        };
        Self(gateway.http_service(HttpServerOptions::default().identify(identify)))
    }

    /// Calls a tool for this principal, with a client that declares elicitation.
    pub(crate) async fn call(&self, principal: &str, tool: &str, more: &str) -> Value {
        self.call_with(&[("x-principal", principal)], tool, more).await
    }

    pub(crate) async fn call_with(&self, headers: &[(&str, &str)], tool: &str, more: &str) -> Value {
        let meta = modern(r#"{"elicitation":{}}"#);
        let params = format!(r#""name":"{tool}"{more},{meta}"#);
        self.ask(headers, "tools/call", tool, &params).await
    }

    /// Reads a resource with a modern request.
    pub(crate) async fn read(&self, principal: &str, uri: &str) -> Value {
        let params = format!(r#""uri":"{uri}",{MODERN}"#);
        let headers = [("x-principal", principal)];
        self.ask(&headers, "resources/read", uri, &params).await
    }

    /// Sends a modern request. `name` is the value of `Mcp-Name`.
    pub(crate) async fn ask(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        name: &str,
        params: &str,
    ) -> Value {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        let mut all = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", name),
        ];
        all.extend(headers);
        self.post(&all, body).await
    }

    /// Sends a legacy request without a session.
    pub(crate) async fn legacy(&self, method: &str, params: &str) -> Value {
        self.legacy_with(&[], method, params).await
    }

    pub(crate) async fn legacy_with(&self, headers: &[(&str, &str)], method: &str, params: &str) -> Value {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        self.post(headers, body).await
    }

    /// Opens a session of 2025-11-25 for the anonymous principal, and returns its id.
    pub(crate) async fn session(&self) -> String {
        let params =
            r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}"#;
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{params}}}}}"#);
        let answer = self.send(&[], body).await;
        let id = answer.headers().get("mcp-session-id").expect("a session");
        id.to_str().expect("an id is ASCII").to_owned()
    }

    async fn post(&self, headers: &[(&str, &str)], body: String) -> Value {
        let answer = self.send(headers, body).await.into_body().collect().await;
        let bytes = answer.expect("a whole body").to_bytes();
        serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("no JSON: {bytes:?}"))
    }

    async fn send(&self, headers: &[(&str, &str)], body: String) -> http::Response<mcp_server::ResponseBody> {
        let mut request = http::Request::post("http://localhost/")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        self.0.respond(request).await
    }
}
