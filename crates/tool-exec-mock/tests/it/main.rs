//! Settings and calls of mock tools.

mod call;
mod settings;
mod template;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tool_core::{
    CallContext, Clock, Descriptor, DynBackend, Executor, Instant, Invoke, Outcome, PrepareError, ToolError,
};
use tool_exec_mock::MockExecutor;
use tool_testkit::{TestTool, call};

/// Clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Instant {
        Instant::default()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Placeholder backend of the context. The tests call the mock itself.
struct Nothing;

impl Invoke for Nothing {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        unreachable!("the tests call the mock itself")
    }
}

fn executor() -> MockExecutor {
    MockExecutor::new(Arc::new(|delay: Duration| Box::pin(tokio::time::sleep(delay))))
}

fn descriptor(config: Value) -> Descriptor {
    let mut descriptor = TestTool::new("mock").descriptor;
    descriptor.executor.kind = "mock".to_owned();
    descriptor.executor.config = config;
    descriptor
}

fn prepare(config: Value) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
    executor().prepare(&descriptor(config))
}

/// Returns a mock with these settings, and a call of it.
fn context(config: Value, arguments: Value) -> (Arc<dyn DynBackend>, CallContext) {
    let mock = prepare(config).expect("the settings are usable");
    let tool = TestTool::new("mock").build(Nothing);
    (mock, call(tool, arguments, Arc::new(Still)))
}

/// Calls a mock with these settings, and returns its answer as text.
async fn answer(config: Value, arguments: Value) -> Result<String, ToolError> {
    let (mock, mut cx) = context(config, arguments);
    match mock.invoke_boxed(&mut cx).await? {
        Outcome::Reply(reply) => {
            assert!(!reply.is_error);
            Ok(reply.raw().as_str().to_owned())
        }
        other => panic!("not a reply: {other:?}"),
    }
}

/// Renders a template with these arguments.
async fn render(template: &str, arguments: Value) -> Result<String, ToolError> {
    answer(json!({"template": template}), arguments).await
}
