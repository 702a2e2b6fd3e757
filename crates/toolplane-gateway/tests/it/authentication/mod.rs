//! Clients over HTTP that authenticate by tokens.

mod credentials;
mod principals;
mod search;
mod sessions;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mcp_server::ResponseBody;
use serde_json::Value;
use tool_testkit::ScriptedExecutor;
use toolplane::{
    Toolplane,
    core::{TokenRecord, Tokens},
    policy::{MemoryTokens, NewToken},
};
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, HttpService};

use crate::support::MODERN;

/// A gateway that asks for tokens, without a network.
struct World {
    plane: Toolplane,
    gateway: Gateway,
    mcp: HttpService<Gateway>,
    tokens: Arc<MemoryTokens>,
    executor: ScriptedExecutor,
}

impl World {
    /// Sets up a gateway with this policy and these tools, both as the values of flow mappings in YAML.
    fn new(policy: &str, tools: &str) -> Self {
        Self::with_options(policy, tools, GatewayOptions::default())
    }

    fn with_options(policy: &str, tools: &str, options: GatewayOptions) -> Self {
        let tokens = Arc::new(MemoryTokens::default());
        let executor = ScriptedExecutor::new([]);
        let plane = Toolplane::builder()
            .yaml(configuration(policy, tools))
            .expect("it is valid")
            .executor(Arc::new(executor.clone()))
            .tokens(tokens.clone())
            .build()
            .expect("it can be set up");
        let gateway = Gateway::new(plane.clone(), options);
        let options = HttpServerOptions::default().path("/mcp").sse_path("/sse");
        Self {
            mcp: gateway.http_service(options),
            gateway,
            plane,
            tokens,
            executor,
        }
    }

    /// Creates a token of a principal, and returns the value of its header.
    async fn token(&self, principal: &str) -> String {
        self.token_with(principal, |_| {}).await
    }

    async fn token_with(&self, principal: &str, change: impl FnOnce(&mut TokenRecord)) -> String {
        let mut token = NewToken::generate(principal, SystemTime::now()).expect("randomness");
        change(&mut token.record);
        self.tokens.insert(token.record).await.expect("it is new");
        format!("Bearer {}", token.text.expose())
    }

    /// Sends a request with this value of `Authorization`.
    async fn send(
        &self,
        request: http::request::Builder,
        token: Option<&str>,
        body: &str,
    ) -> Response<ResponseBody> {
        let mut request = request
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        self.mcp.respond(request.body(body).expect("a request")).await
    }

    /// Calls a tool by a modern request. `more` is written into the parameters.
    async fn call(&self, token: &str, tool: &str, more: &str) -> Value {
        let response = self.try_call(token, tool, more).await;
        assert_eq!(response.status(), StatusCode::OK);
        json(response).await
    }

    async fn try_call(&self, token: &str, tool: &str, more: &str) -> Response<ResponseBody> {
        let meta = if more.contains("_meta") {
            String::new()
        } else {
            format!(",{MODERN}")
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"{more}{meta}}}}}"#
        );
        let request = http::Request::post("/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool);
        self.send(request, Some(token), &body).await
    }

    /// Returns the names of the tools that a principal sees.
    async fn tools(&self, token: &str) -> Vec<String> {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{MODERN}}}}}"#);
        let request = http::Request::post("/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list");
        let answer = json(self.send(request, Some(token), &body).await).await;
        let tools = answer["result"]["tools"].as_array().expect("a list");
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect()
    }
}

fn configuration(policy: &str, tools: &str) -> String {
    format!("{{gateway: {{auth: tokens}}, policy: {policy}, tools: {tools}}}")
}

/// Returns the body of a response as JSON.
async fn json(response: Response<ResponseBody>) -> Value {
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a whole body")
        .to_bytes();
    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("no JSON: {body:?}"))
}

/// Returns the kind of the error with which a call ended; `None` if it was answered.
fn kind(answer: &Value) -> Option<&str> {
    let error = &answer["result"]["_meta"]["dev.toolplane/error"]["kind"];
    assert!(answer.get("result").is_some(), "{answer}");
    error.as_str()
}

/// Expiry of a token that is over, and of one that is not.
fn hours_from_now(hours: i64) -> Option<SystemTime> {
    let time = Duration::from_secs(hours.unsigned_abs() * 3_600);
    match hours {
        0.. => SystemTime::now().checked_add(time),
        _ => SystemTime::now().checked_sub(time),
    }
}
