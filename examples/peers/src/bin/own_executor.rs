//! `own_executor` with tower.

use std::{
    collections::BTreeMap,
    future::{Ready, ready},
    task::{Context, Poll},
};

use serde::Deserialize;
use serde_json::{Value, json};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, util::BoxCloneService};

/// Tools as data: the kind selects the executor, the other keys are its settings.
const TOOLS: &str = r#"{"next": {"kind": "add", "plus": 1}}"#;

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Executor {
    Add { plus: i64 },
}

#[derive(Clone)]
struct Add {
    plus: i64,
}

impl Service<Value> for Add {
    type Response = Value;
    type Error = BoxError;
    type Future = Ready<Result<Value, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, arguments: Value) -> Self::Future {
        let n = arguments["n"]
            .as_i64()
            .ok_or_else(|| "`n` must be an integer".into());
        ready(n.map(|n| json!({"sum": n + self.plus})))
    }
}

#[derive(Clone)]
struct AuditLayer {
    tool: String,
}

impl<S> Layer<S> for AuditLayer {
    type Service = Audit<S>;

    fn layer(&self, inner: S) -> Audit<S> {
        let tool = self.tool.clone();
        Audit { inner, tool }
    }
}

#[derive(Clone)]
struct Audit<S> {
    inner: S,
    tool: String,
}

impl<S: Service<Value>> Service<Value> for Audit<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, arguments: Value) -> S::Future {
        println!("audit: {} {arguments}", self.tool);
        self.inner.call(arguments)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut tools = BTreeMap::new();
    for (tool, executor) in serde_json::from_str::<BTreeMap<String, Executor>>(TOOLS)? {
        let Executor::Add { plus } = executor;
        let observed = tool.clone();
        let service = ServiceBuilder::new()
            .layer_fn(BoxCloneService::new)
            .map_result(move |result: Result<Value, BoxError>| {
                println!(
                    "event: {observed} {}",
                    if result.is_ok() { "ok" } else { "failed" }
                );
                result
            })
            .layer(AuditLayer { tool: tool.clone() })
            .service(Add { plus });
        tools.insert(tool, service);
    }
    let next = tools.get_mut("next").ok_or("there is no tool `next`")?;
    let answer = next.ready().await?.call(json!({"n": 41})).await?;
    println!("{}", answer["sum"]);
    Ok(())
}
