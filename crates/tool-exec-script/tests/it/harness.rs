//! Tools of code for tests.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tool_core::{
    Descriptor, ErrorKind, Executor, ExecutorSpec, PrepareError, Reply, Tool, ToolBuilder, ToolError,
};
use tool_exec_script::{ScriptExecutor, ScriptLanguage, ScriptOptions, ScriptRuntime};
use tool_testkit::FixedSecrets;

pub(crate) use tool_testkit::call_with_mark;

/// Runtime with the secret `token`.
pub(crate) fn runtime() -> ScriptRuntime {
    let secrets = FixedSecrets(BTreeMap::from([("token", "s3cret-value")]));
    ScriptRuntime::new(ScriptOptions::default(), Arc::new(secrets))
}

pub(crate) fn language(kind: &str) -> ScriptLanguage {
    let mut languages = ScriptLanguage::ALL.iter().copied();
    languages.find(|language| language.kind() == kind).unwrap()
}

pub(crate) fn descriptor(kind: &str, config: Value) -> Descriptor {
    Descriptor::new("tool", ExecutorSpec::new(kind).with_config(config))
}

/// Tool of this descriptor.
pub(crate) fn tool_of(descriptor: Descriptor, runtime: &ScriptRuntime) -> Arc<Tool> {
    let executor = ScriptExecutor::new(language(&descriptor.executor.kind), runtime.clone());
    let backend = executor
        .prepare(&descriptor)
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    ToolBuilder::from_descriptor(descriptor).run_on_dyn(backend)
}

pub(crate) fn tool(kind: &str, config: Value) -> Arc<Tool> {
    tool_of(descriptor(kind, config), &runtime())
}

/// Problems of these settings.
pub(crate) fn problems(descriptor: &Descriptor) -> Vec<PrepareError> {
    let executor = ScriptExecutor::new(language(&descriptor.executor.kind), runtime());
    executor.prepare(descriptor).err().unwrap_or_default()
}

pub(crate) async fn call(tool: &Arc<Tool>, arguments: Value) -> Result<Reply, ToolError> {
    call_with_mark(tool, arguments).await.0
}

/// Result of a call that succeeds.
#[track_caller]
pub(crate) fn value(reply: Result<Reply, ToolError>) -> Value {
    let reply = reply.unwrap_or_else(|error| panic!("{error:?}"));
    serde_json::from_str(reply.raw().as_str()).unwrap()
}

/// Kind and message of a call that fails.
#[track_caller]
pub(crate) fn failure(reply: Result<Reply, ToolError>) -> (ErrorKind, String) {
    let error = reply.expect_err("a failure");
    (error.kind(), error.message().to_owned())
}
