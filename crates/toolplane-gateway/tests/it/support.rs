use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use raw_json::RawJson;
use serde_json::Value;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    sync::watch,
    time::timeout,
};
use tool_testkit::{ScriptedExecutor, TestTool};
use toolplane::{
    Toolplane,
    core::{
        BoxFuture, Catalogue, ClientGroup, ClientIdentity, Descriptor, ErrorKind, Feature, OnUpdate, Source,
        SourceState, SourceStatus, ToolError, Update,
    },
};
use toolplane_gateway::{
    Gateway, GatewayOptions, HttpServerOptions, HttpService, Identify, Principal, StdioOptions,
};

use crate::acting::Acting;

/// The `_meta` of a request of the modern era.
pub(crate) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A toolplane with tools of these names, which [`Acting`] runs.
pub(crate) fn acting_plane(acting: &Acting, tools: &[&str]) -> Toolplane {
    let mut builder = Toolplane::builder().executor(Arc::new(acting.clone()));
    for tool in tools {
        builder = builder.tool(self::acting(tool));
    }
    builder.build().expect("it can be set up")
}

/// The `_meta` of a request of the modern era whose client declares this.
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

/// A client of a gateway over pipes.
pub(crate) struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    pub(crate) fn of(plane: Toolplane) -> Self {
        Self::with(plane, GatewayOptions::default())
    }

    pub(crate) fn with(plane: Toolplane, options: GatewayOptions) -> Self {
        Self::on(Gateway::new(plane, options))
    }

    /// A client of a gateway that has others.
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

    /// Opens a connection of the legacy era, for a client that declares this.
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

    /// The answer to a request with these parameters.
    pub(crate) async fn ask(&mut self, method: &str, params: &str) -> String {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#
        ))
        .await;
        self.receive().await
    }

    /// The result of a request with these parameters, as it was written.
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
    /// The principal of a request is in its header `x-principal`.
    pub(crate) fn of(plane: Toolplane) -> Self {
        Self::on(&Gateway::new(plane, GatewayOptions::default()))
    }

    pub(crate) fn on(gateway: &Gateway) -> Self {
        let identify: Identify = Arc::new(|parts| {
            let name = parts
                .headers
                .get("x-principal")
                .and_then(|name| name.to_str().ok());
            Ok(Principal::new(name.unwrap_or("anonymous")))
        });
        Self(gateway.http_service(HttpServerOptions {
            identify: Some(identify),
            ..HttpServerOptions::default()
        }))
    }

    /// The answer to a call of a tool by this principal, whose client declares elicitation.
    pub(crate) async fn call(&self, principal: &str, tool: &str, more: &str) -> Value {
        self.call_with(&[("x-principal", principal)], tool, more).await
    }

    pub(crate) async fn call_with(&self, headers: &[(&str, &str)], tool: &str, more: &str) -> Value {
        let meta = modern(r#"{"elicitation":{}}"#);
        let params = format!(r#""name":"{tool}"{more},{meta}"#);
        self.ask(headers, "tools/call", tool, &params).await
    }

    /// The answer to a modern request to read a resource.
    pub(crate) async fn read(&self, principal: &str, uri: &str) -> Value {
        let params = format!(r#""uri":"{uri}",{MODERN}"#);
        let headers = [("x-principal", principal)];
        self.ask(&headers, "resources/read", uri, &params).await
    }

    /// The answer to a modern request about something.
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

    /// The answer to a request of the legacy era outside of any session.
    pub(crate) async fn legacy(&self, method: &str, params: &str) -> Value {
        self.legacy_with(&[], method, params).await
    }

    pub(crate) async fn legacy_with(&self, headers: &[(&str, &str)], method: &str, params: &str) -> Value {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        self.post(headers, body).await
    }

    /// The id of a session of 2025-11-25 that is opened now, by nobody in particular.
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

/// A source whose tools, prompts and resources a test changes.
pub(crate) struct Changing {
    catalogue: Mutex<Arc<Catalogue>>,
    revision: watch::Sender<u64>,
    /// The resources of which news is wanted, and where it goes.
    subscribed: Mutex<BTreeSet<String>>,
    tell: Mutex<Vec<OnUpdate>>,
    /// The lists of some clients alone.
    own: Mutex<Option<(ClientGroup, Arc<Catalogue>)>>,
    /// The resources of which these clients want news.
    own_subscribed: Mutex<BTreeSet<String>>,
}

impl Changing {
    pub(crate) fn new(names: &[&str]) -> Arc<Self> {
        let changing = Self {
            catalogue: Mutex::default(),
            revision: watch::Sender::new(0),
            subscribed: Mutex::default(),
            tell: Mutex::default(),
            own: Mutex::default(),
            own_subscribed: Mutex::default(),
        };
        changing.set(names);
        Arc::new(changing)
    }

    /// The resources of which news is wanted.
    pub(crate) fn subscribed(&self) -> Vec<String> {
        let subscribed = self.subscribed.lock().expect("no test panics with it");
        subscribed.iter().cloned().collect()
    }

    /// The resources of which the clients with lists of their own want news.
    pub(crate) fn own_subscribed(&self) -> Vec<String> {
        let subscribed = self.own_subscribed.lock().expect("no test panics with it");
        subscribed.iter().cloned().collect()
    }

    /// Tells that a resource has changed.
    pub(crate) fn update(&self, params: &str) {
        self.tell(&Update::Resource(raw(params)));
    }

    /// Tells something of its own accord.
    pub(crate) fn tell(&self, update: &Update) {
        for tell in &*self.tell.lock().expect("no test panics with it") {
            tell(update);
        }
    }

    /// Replaces the prompts and resources: features with their names or URIs.
    pub(crate) fn set_others(&self, others: &[(Feature, &str)]) {
        let others = others.iter().map(|(feature, key)| beside(*feature, key));
        let others: Vec<_> = others.map(Arc::new).collect();
        self.change(|catalogue| {
            let known = std::mem::take(&mut catalogue.others);
            // What did not change stays what it was, as with a real server.
            let kept = others
                .into_iter()
                .map(|new| known.iter().find(|old| **old == new).cloned().unwrap_or(new));
            catalogue.others = kept.collect();
        });
    }

    fn change(&self, change: impl FnOnce(&mut Catalogue)) {
        let mut catalogue = self.catalogue.lock().expect("no test panics with it");
        let mut next = Catalogue {
            revision: catalogue.revision + 1,
            tools: catalogue.tools.clone(),
            others: catalogue.others.clone(),
            rejected: Vec::new(),
            is_kept: false,
            warnings: Vec::new(),
        };
        change(&mut next);
        let revision = next.revision;
        *catalogue = Arc::new(next);
        drop(catalogue);
        self.revision.send_replace(revision);
    }

    /// Has tools of these names for these clients alone, and tells of it; none but the shared ones if there are no names.
    pub(crate) fn set_own(&self, clients: &ClientGroup, names: &[&str]) {
        let catalogue = Arc::new(Catalogue {
            is_kept: false,
            warnings: Vec::new(),
            revision: 1,
            tools: names.iter().map(|name| Arc::new(acting(name))).collect(),
            others: vec![
                Arc::new(beside(Feature::Prompt, "own_prompt")),
                Arc::new(beside(Feature::Resource, "own://note")),
                Arc::new(beside(Feature::Resource, "test://both")),
            ],
            rejected: Vec::new(),
        });
        let own = (!names.is_empty()).then(|| (clients.clone(), catalogue));
        *self.own.lock().expect("no test panics with it") = own;
        self.tell(&Update::ClientLists {
            source: self.name().into(),
            clients: clients.clone(),
            changed: vec![Feature::Tool],
        });
    }

    pub(crate) fn set(&self, names: &[&str]) {
        let tools = names.iter().map(|name| Arc::new(acting(name))).collect();
        self.change(|catalogue| catalogue.tools = tools);
    }
}

/// A tool that [`Acting`](crate::acting::Acting) runs.
pub(crate) fn acting(name: &str) -> Descriptor {
    let mut descriptor = TestTool::new(name).descriptor;
    descriptor.executor.kind = "acting".to_owned();
    descriptor
}

/// A prompt, resource or template, by name or URI.
fn beside(feature: Feature, key: &str) -> Descriptor {
    let mut descriptor = acting(key);
    descriptor.feature = feature;
    descriptor.definition = Some(raw(&match feature {
        Feature::Prompt => format!(r#"{{"name":"{key}","arguments":[],"x":1e2}}"#),
        Feature::Resource => format!(r#"{{"uri":"{key}","name":"n","x":1e2}}"#),
        _ => format!(r#"{{"uriTemplate":"{key}","name":"n","x":1e2}}"#),
    }));
    if feature != Feature::Prompt {
        descriptor.uri = Some(key.into());
        descriptor.name = format!("s_{key}").into();
    }
    descriptor
}

impl Source for Changing {
    fn name(&self) -> &'static str {
        "changing"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.lock().expect("no test panics with it"))
    }

    fn snapshot_for(&self, client: &ClientIdentity) -> Option<Arc<Catalogue>> {
        let own = self.own.lock().expect("no test panics with it");
        let own = own.as_ref().filter(|(clients, _)| clients.includes(client));
        own.map(|(_, catalogue)| catalogue.clone())
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut revision = self.revision.subscribe();
        Box::pin(async move {
            let _ = revision.wait_for(|revision| *revision != seen).await;
        })
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn subscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let mut subscribed = self.subscribed.lock().expect("no test panics with it");
        let result = match uri.contains("quiet") {
            true => Err(ToolError::new(ErrorKind::UpstreamError, "no news")),
            false => {
                subscribed.insert(uri.to_owned());
                Ok(())
            }
        };
        Box::pin(std::future::ready(result))
    }

    fn subscribe_for<'a>(
        &'a self,
        uri: &'a str,
        client: &'a ClientIdentity,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        let is_own = self.snapshot_for(client).is_some();
        if is_own {
            let mut subscribed = self.own_subscribed.lock().expect("no test panics with it");
            subscribed.insert(uri.to_owned());
        }
        Box::pin(std::future::ready(Ok(is_own)))
    }

    fn end_unwatched(&self, _: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        let own = self.own.lock().expect("no test panics with it").clone();
        let mut subscribed = self.own_subscribed.lock().expect("no test panics with it");
        subscribed.retain(|uri| own.as_ref().is_some_and(|(clients, _)| is_watched(uri, clients)));
    }

    fn unsubscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        self.subscribed
            .lock()
            .expect("no test panics with it")
            .remove(uri);
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_update(&self, tell: OnUpdate) {
        self.tell.lock().expect("no test panics with it").push(tell);
    }

    fn status(&self) -> SourceStatus {
        SourceStatus {
            n_tools: self.snapshot().tools.len(),
            ..SourceStatus::new(SourceState::Ready)
        }
    }
}
