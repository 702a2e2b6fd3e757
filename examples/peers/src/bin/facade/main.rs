//! `facade` with rmcp, tower and jsonschema.

mod tools;

use std::{collections::BTreeMap, error::Error, time::Duration};

use futures_util::future::join_all;
use jsonschema::Validator;
use rmcp::{
    Peer, RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
    serde_json::{Value, json},
};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::duplex;
use tower::{
    BoxError, Service, ServiceBuilder, ServiceExt as _, service_fn, timeout::error::Elapsed,
    util::BoxCloneSyncService,
};

use crate::tools::Tools;

const BLOCKED: [&str; 1] = ["shutdown"];

#[derive(Debug, Error)]
enum CallError {
    #[error("not_found: there is no tool `{name}`; did you mean `{nearest}`?")]
    NotFound { name: String, nearest: String },
    #[error("denied: `{0}` is blocked")]
    Denied(String),
    #[error("invalid_arguments: {0}")]
    InvalidArguments(String),
    #[error("timeout: no answer in time")]
    Timeout,
    #[error("failed: {0}")]
    Failed(#[source] BoxError),
}

struct Agent {
    tools: BTreeMap<String, (Tool, Validator)>,
    stack: BoxCloneSyncService<CallToolRequestParams, CallToolResult, BoxError>,
}

impl Agent {
    async fn new(client: Peer<RoleClient>) -> Result<Self, Box<dyn Error>> {
        let mut tools = BTreeMap::new();
        for tool in client.list_all_tools().await? {
            let schema = Value::Object((*tool.input_schema).clone());
            let validator = jsonschema::validator_for(&schema)?;
            tools.insert(tool.name.to_string(), (tool, validator));
        }
        let call = move |request| {
            let client = client.clone();
            async move { client.call_tool(request).await }
        };
        let stack = ServiceBuilder::new()
            .layer_fn(BoxCloneSyncService::new)
            .timeout(Duration::from_millis(100))
            .service(service_fn(call));
        Ok(Self { tools, stack })
    }

    fn allowed(&self) -> impl Iterator<Item = &Tool> {
        let tools = self.tools.values().map(|(tool, _)| tool);
        tools.filter(|tool| !BLOCKED.contains(&&*tool.name))
    }

    async fn call<T: DeserializeOwned>(&self, name: &str, arguments: Value) -> Result<T, CallError> {
        let result = self.checked_call(name, arguments).await;
        println!("event: {name} {}", if result.is_ok() { "ok" } else { "failed" });
        result?
            .into_typed()
            .map_err(|error| CallError::Failed(error.into()))
    }

    async fn checked_call(&self, name: &str, arguments: Value) -> Result<CallToolResult, CallError> {
        let Some((_, validator)) = self.tools.get(name) else {
            return Err(self.not_found(name));
        };
        if BLOCKED.contains(&name) {
            return Err(CallError::Denied(name.to_owned()));
        }
        let errors = validator.iter_errors(&arguments).map(|error| error.to_string());
        let errors = errors.collect::<Vec<_>>().join("; ");
        if !errors.is_empty() {
            return Err(CallError::InvalidArguments(errors));
        }
        let arguments: JsonObject = serde_json::from_value(arguments).unwrap_or_default();
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let mut stack = self.stack.clone();
        let ready = stack.ready().await.map_err(CallError::Failed)?;
        ready
            .call(request)
            .await
            .map_err(|error| match error.is::<Elapsed>() {
                true => CallError::Timeout,
                false => CallError::Failed(error),
            })
    }

    fn not_found(&self, name: &str) -> CallError {
        let names = self.allowed().map(|tool| &*tool.name);
        let nearest = names.min_by_key(|known| strsim::levenshtein(known, name));
        CallError::NotFound {
            name: name.to_owned(),
            nearest: nearest.unwrap_or_default().to_owned(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (near, far) = duplex(1 << 16);
    tokio::spawn(async { Tools.serve(far).await?.waiting().await.map_err(BoxError::from) });
    let client = ().serve(near).await?;
    let agent = Agent::new(client.peer().clone()).await?;
    for tool in agent.allowed() {
        println!(
            "{}: {}",
            tool.name,
            tool.description.as_deref().unwrap_or_default()
        );
    }
    let weather: Value = agent.call("weather", json!({"city": "Oslo"})).await?;
    println!("{}", weather["sky"]);

    let turn = ["Bergen", "Oslo", "Tromsø"].map(|city| agent.call("weather", json!({"city": city})));
    for weather in join_all(turn).await {
        println!("{}", Value::to_string(&weather?));
    }
    for tool in ["weather", "wether", "shutdown", "survey"] {
        if let Err(error) = agent.call::<Value>(tool, json!({})).await {
            println!("{error}");
        }
    }
    client.cancel().await?;
    Ok(())
}
