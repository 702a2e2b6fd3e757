//! The facade with an executor, a layer and an observer of the program itself.
//!
//! Run it with `cargo run -p toolplane-examples --example own-executor`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use toolplane::{
    Place, RawJson, Toolplane,
    core::{
        CallContext, Descriptor, DynBackend, Executor, Invoke, Outcome, PrepareError, ToolError, invoke_fn,
    },
    serde_json::{Value, json},
};

const TOOLS: &str = "tools: {next: {description: Counts on., executor: {kind: add, plus: 1}}}";

struct Add;

impl Executor for Add {
    fn kind(&self) -> &str {
        "add"
    }

    fn prepare(&self, tool: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let plus = tool.executor.config["plus"].as_i64();
        let plus = plus.ok_or_else(|| vec![PrepareError::at("/plus", "must be an integer")])?;
        Ok(Arc::new(invoke_fn(move |arguments| async move {
            let n = arguments.value()["n"].as_i64().unwrap_or_default();
            Ok::<_, ToolError>(json!({"sum": n + plus}))
        })))
    }

    fn config_schema(&self) -> RawJson {
        json!({"properties": {"plus": {"type": "integer"}}}).into()
    }
}

struct Audit<S>(S);

impl<S: Invoke> Invoke for Audit<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        println!("audit: {} {}", cx.tool().name(), cx.arguments.raw());
        self.0.invoke(cx).await
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = Toolplane::builder()
        .yaml(TOOLS)?
        .executor(Arc::new(Add))
        .layer(Place::Call, Audit)
        .on_event(|event| println!("event: {}", event.name()))
        .build()?;
    let answer: Value = plane.call_json("next", &json!({"n": 41})).await?;
    println!("{}", answer["sum"]);
    Ok(())
}
