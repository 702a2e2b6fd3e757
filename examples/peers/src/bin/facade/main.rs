//! `facade` with rmcp, tower and jsonschema.

mod tools;

use std::{collections::BTreeMap, error::Error, time::Duration};

use futures_util::future::join_all;
use jsonschema::Validator;
use rmcp::{
    Peer, RoleClient, ServiceError, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, JsonObject},
    serde_json::{Value, json},
};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::duplex;
use tower::{
    BoxError, Service, ServiceBuilder, ServiceExt as _, service_fn, timeout::error::Elapsed,
    util::BoxCloneSyncService,
};

use crate::tools::{Tools, Weather};

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
    input: BTreeMap<String, Validator>,
    stack: BoxCloneSyncService<CallToolRequestParams, CallToolResult, BoxError>,
}

impl Agent {
    async fn new(client: Peer<RoleClient>) -> Result<Self, Box<dyn Error>> {
        let mut input = BTreeMap::new();
        for tool in client.list_all_tools().await? {
            let schema = Value::Object((*tool.input_schema).clone());
            input.insert(tool.name.into_owned(), jsonschema::validator_for(&schema)?);
        }
        let call = move |request: CallToolRequestParams| {
            let client = client.clone();
            async move { Ok::<_, ServiceError>(client.call_tool(request).await?) }
        };
        let stack = ServiceBuilder::new()
            .layer_fn(BoxCloneSyncService::new)
            .timeout(Duration::from_millis(100))
            .service(service_fn(call));
        Ok(Self { input, stack })
    }

    fn tools(&self) -> impl Iterator<Item = &String> {
        self.input.keys().filter(|name| !BLOCKED.contains(&name.as_str()))
    }

    async fn call<T: DeserializeOwned>(&self, name: &str, arguments: Value) -> Result<T, CallError> {
        let result = self.call_quietly(name, arguments).await;
        let outcome = if result.is_ok() { "ok" } else { "error" };
        println!("event: {name} {outcome}");
        let result = result?;
        result
            .into_typed()
            .map_err(|error| CallError::Failed(error.into()))
    }

    async fn call_quietly(&self, name: &str, arguments: Value) -> Result<CallToolResult, CallError> {
        let Some(validator) = self.input.get(name) else {
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
        let nearest = self.tools().min_by_key(|known| strsim::levenshtein(known, name));
        CallError::NotFound {
            name: name.to_owned(),
            nearest: nearest.cloned().unwrap_or_default(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (near, far) = duplex(1 << 16);
    tokio::spawn(async { Tools.serve(far).await?.waiting().await.map_err(BoxError::from) });
    let client = ().serve(near).await?;
    let agent = Agent::new(client.peer().clone()).await?;
    for tool in agent.tools() {
        println!("{tool}");
    }
    let Weather { city, sky } = agent.call("weather", json!({"city": "Oslo"})).await?;
    println!("{city}: {sky}");

    let cities = ["Bergen", "Oslo", "Tromsø"];
    let turn = cities.map(|city| agent.call("weather", json!({"city": city})));
    for result in join_all(turn).await {
        let Weather { city, sky } = result?;
        println!("{city}: {sky}");
    }
    for (name, arguments) in [
        ("wether", json!({})),
        ("weather", json!({"city": 7})),
        ("shutdown", json!({})),
        ("survey", json!({})),
    ] {
        if let Err(error) = agent.call::<Value>(name, arguments).await {
            println!("{name}: {error}");
        }
    }
    client.cancel().await?;
    Ok(())
}
