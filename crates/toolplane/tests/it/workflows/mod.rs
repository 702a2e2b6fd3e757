//! Workflows in the standard stack, with scripted tools.

mod agents;
mod durable;
mod failures;
mod order;
mod rounds;
mod seen;
mod values;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tool_testkit::{ScriptStep, ScriptedExecutor, executor};
use toolplane::{
    Builder, CallRequest, Toolplane,
    core::{CallContext, ErrorKind, Invoke, Outcome, Reply, ToolError},
    manifest::{LoadOptions, Syntax, load},
};

/// Tools with scripts, which record their calls.
#[derive(Clone, Default)]
struct World(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    scripts: HashMap<&'static str, VecDeque<ScriptStep>>,
    calls: Vec<(String, Value)>,
    n_running: usize,
    most_running: usize,
}

impl World {
    /// Sets what a tool does, one step per call. The last step is repeated. A tool without a script echoes.
    fn script(&self, tool: &'static str, steps: impl IntoIterator<Item = ScriptStep>) -> &Self {
        self.0
            .lock()
            .expect("nothing panics with it")
            .scripts
            .insert(tool, steps.into_iter().collect());
        self
    }

    /// Returns the calls so far, in the order in which they began.
    fn calls(&self) -> Vec<(String, Value)> {
        self.0.lock().expect("nothing panics with it").calls.clone()
    }

    /// Returns the names of the tools that were called, in order.
    fn called(&self) -> Vec<String> {
        self.calls().into_iter().map(|(tool, _)| tool).collect()
    }

    fn most_running(&self) -> usize {
        self.0.lock().expect("nothing panics with it").most_running
    }

    /// Returns a builder with these tools and workflows.
    fn builder(&self, tools: &[&str], more: &str) -> Builder {
        let mut text = "tools:\n".to_owned();
        for tool in tools {
            text.push_str(&format!(
                "  {tool}: {{description: A tool., executor: {{kind: world}}}}\n"
            ));
        }
        text.push_str(more);
        let loaded = load(&LoadOptions::new().text("test", Syntax::Yaml, text));
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
        Toolplane::builder()
            .loaded(&loaded)
            .executor(executor("world", self.clone()))
    }

    /// Builds a toolplane with these tools and workflows.
    fn plane(&self, tools: &[&str], more: &str) -> Toolplane {
        let plane = self.builder(tools, more).build().expect("it can be built");
        let refused: Vec<_> = plane
            .refused()
            .into_iter()
            .map(|refused| refused.reason)
            .collect();
        assert!(refused.is_empty(), "{refused:?}");
        plane
    }
}

impl Invoke for World {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let step = {
            let mut inner = self.0.lock().expect("nothing panics with it");
            inner.n_running += 1;
            inner.most_running = inner.most_running.max(inner.n_running);
            let name = cx.tool().name().to_string();
            let script = inner.scripts.get_mut(&*name);
            let step = script.and_then(|script| match script.len() {
                0 | 1 => script.front().cloned(),
                _ => script.pop_front(),
            });
            inner.calls.push((name, cx.arguments.value().clone()));
            step.unwrap_or(ScriptStep::Echo)
        };
        let result = ScriptedExecutor::new([step]).invoke(cx).await;
        self.0.lock().expect("nothing panics with it").n_running -= 1;
        result
    }
}

fn request(workflow: &str, arguments: &Value) -> CallRequest {
    CallRequest::new(workflow)
        .json(arguments.to_string())
        .expect("it is there")
}

/// Calls a workflow that completes.
async fn reply(plane: &Toolplane, workflow: &str, arguments: &Value) -> Reply {
    let outcome = plane.call(request(workflow, arguments)).await;
    outcome
        .unwrap_or_else(|error| panic!("{error}"))
        .into_reply()
        .expect("it is there")
}

/// Calls a workflow and returns its result.
async fn value(plane: &Toolplane, workflow: &str, arguments: &Value) -> Value {
    let reply = reply(plane, workflow, arguments).await;
    reply.raw().to().expect("it is there")
}

/// Calls a workflow that fails.
async fn failure(plane: &Toolplane, workflow: &str, arguments: &Value) -> ToolError {
    plane
        .call(request(workflow, arguments))
        .await
        .expect_err("it fails")
}

/// Returns step and status of each record, in the order in which they ended.
fn statuses(summary: &Value) -> Vec<(String, String)> {
    let steps = summary["steps"].as_array().expect("it is there").iter();
    let text = |value: &Value| value.as_str().expect("it is there").to_owned();
    steps
        .map(|step| (text(&step["step"]), text(&step["status"])))
        .collect()
}

/// Returns the summary of a completed run.
fn summary(reply: &Reply) -> Value {
    let (_, summary) = reply
        .meta()
        .iter()
        .find(|(key, _)| *key == "dev.toolplane/workflow")
        .expect("it has a summary");
    summary.to().expect("it is there")
}

/// Returns the summary of a run that failed.
fn failed_summary(error: &ToolError) -> Value {
    error
        .detail()
        .expect("it is there")
        .get("workflow")
        .expect("it is there")
        .to()
        .expect("it is there")
}

fn failed(kind: ErrorKind) -> ScriptStep {
    ScriptStep::Fail(ToolError::new(kind, "as scripted"))
}
