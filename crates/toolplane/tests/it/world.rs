//! Tools with scripts in the standard stack, which record their calls.

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
pub(crate) struct World(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    scripts: HashMap<&'static str, VecDeque<ScriptStep>>,
    calls: Vec<(String, Value)>,
    n_running: usize,
    most_running: usize,
}

impl World {
    /// Sets what a tool does, one step per call. The last step is repeated. A tool without a script echoes.
    pub(crate) fn script(&self, tool: &'static str, steps: impl IntoIterator<Item = ScriptStep>) -> &Self {
        self.0
            .lock()
            .expect("nothing panics with it")
            .scripts
            .insert(tool, steps.into_iter().collect());
        self
    }

    /// Returns the calls so far, in the order in which they began.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        self.0.lock().expect("nothing panics with it").calls.clone()
    }

    /// Returns the names of the tools that were called, in order.
    pub(crate) fn called(&self) -> Vec<String> {
        self.calls().into_iter().map(|(tool, _)| tool).collect()
    }

    pub(crate) fn most_running(&self) -> usize {
        self.0.lock().expect("nothing panics with it").most_running
    }

    /// Returns a builder with these tools and what else the configuration has.
    pub(crate) fn builder(&self, tools: &[&str], more: &str) -> Builder {
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

    /// Builds a toolplane with these tools and what else the configuration has.
    pub(crate) fn plane(&self, tools: &[&str], more: &str) -> Toolplane {
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

pub(crate) fn request(tool: &str, arguments: &Value) -> CallRequest {
    CallRequest::new(tool)
        .json(arguments.to_string())
        .expect("it is there")
}

/// Makes a call that completes.
pub(crate) async fn reply(plane: &Toolplane, tool: &str, arguments: &Value) -> Reply {
    let outcome = plane.call(request(tool, arguments)).await;
    outcome
        .unwrap_or_else(|error| panic!("{error}"))
        .into_reply()
        .expect("it is there")
}

/// Makes a call and returns its result.
pub(crate) async fn value(plane: &Toolplane, tool: &str, arguments: &Value) -> Value {
    let reply = reply(plane, tool, arguments).await;
    reply.raw().to().expect("it is there")
}

/// Makes a call that fails.
pub(crate) async fn failure(plane: &Toolplane, tool: &str, arguments: &Value) -> ToolError {
    plane.call(request(tool, arguments)).await.expect_err("it fails")
}

pub(crate) fn failed(kind: ErrorKind) -> ScriptStep {
    ScriptStep::Fail(ToolError::new(kind, "as scripted"))
}
