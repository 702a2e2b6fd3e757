//! An executor and a source of the program itself: plug-ins that come and go while the program runs.
//!
//! Run it with `cargo run -p toolplane-examples --example extend-source`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{
        BoxFuture, Catalogue, Descriptor, DynBackend, ErrorKind, Executor, ExecutorSpec, Feature,
        PrepareError, Source, SourceState, SourceStatus, ToolError, invoke_fn, serde_json::json,
    },
    tokio::sync::watch,
};

// ANCHOR: executor
/// Executor of the kind `text`: changes a text in the way that its setting `to` names.
struct Text;

impl Executor for Text {
    fn kind(&self) -> &str {
        "text"
    }

    fn prepare(&self, tool: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let change: fn(&str) -> String = match tool.executor.config["to"].as_str() {
            Some("upper") => str::to_uppercase,
            Some("lower") => str::to_lowercase,
            _ => {
                let problem = PrepareError::at("/to", "unknown change");
                return Err(vec![problem.with_hint("write `upper` or `lower`")]);
            }
        };
        Ok(Arc::new(invoke_fn(move |arguments| async move {
            let text = arguments.value()["text"].as_str().unwrap_or_default();
            Ok::<_, ToolError>(json!(change(text)))
        })))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::from(json!({
            "type": "object",
            "properties": {"to": {"enum": ["upper", "lower"]}},
            "required": ["to"]
        }))
    }
}
// ANCHOR_END: executor

// ANCHOR: source
/// Source of the tools of plug-ins.
#[derive(Default)]
struct Plugins(watch::Sender<Arc<Catalogue>>);

impl Plugins {
    /// Replaces all tools.
    fn set(&self, tools: impl IntoIterator<Item = Descriptor>) {
        self.0.send_modify(|catalogue| {
            let tools = tools.into_iter().map(Arc::new).collect();
            *catalogue = Arc::new(Catalogue::new(catalogue.revision + 1, tools));
        });
    }
}

impl Source for Plugins {
    fn name(&self) -> &str {
        "plugins"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.0.borrow().clone()
    }

    /// The tools are known already. A source that must ask for them does so here.
    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut catalogues = self.0.subscribe();
        Box::pin(async move {
            // An error means that the source is gone.
            let _ = catalogues.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    /// No tool is unknown until a server has started.
    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::Ready)
    }
}
// ANCHOR_END: source

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // ANCHOR: build
    let text = |to: &str| ExecutorSpec::new("text").with_config(json!({"to": to}));
    let tool = |name: &str, to: &str| Descriptor::new(name, text(to));
    let plugins = Arc::new(Plugins::default());
    plugins.set([tool("shout", "upper")]);
    let plane = Toolplane::builder()
        .executor(Arc::new(Text))
        .source(plugins.clone())
        .tool(tool("whisper", "lower"))
        .tool(tool("sing", "song"))
        .build()?;

    let said: String = plane.call_json("shout", &json!({"text": "Good morning"})).await?;
    println!("shout: {said}");

    // Another plug-in replaces the first one. Whoever lists tools is notified.
    let mut changes = plane.changes();
    plugins.set([tool("murmur", "lower")]);
    changes.changed().await?;
    for tool in plane.view(&plane.local_caller()).await.tools() {
        println!("there is {}", tool.name());
    }

    // A tool that cannot be prepared is left out, with the reason.
    for refused in plane.refused() {
        println!("{}: {}", refused.name, refused.reason);
    }
    // ANCHOR_END: build
    let gone = plane.call(CallRequest::new("shout")).await;
    match gone {
        Err(error) if error.kind() == ErrorKind::NotFound && plane.refused().len() == 1 => Ok(()),
        other => Err(format!("the first plug-in is gone: {other:?}").into()),
    }
}
