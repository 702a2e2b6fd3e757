//! Tools in containers for tests.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tool_core::{
    Descriptor, ErrorKind, Executor, ExecutorSpec, PrepareError, Reply, Tool, ToolBuilder, ToolError,
};
use tool_exec_container::{ContainerExecutor, ContainerOptions, ContainerRuntime, EngineSockets};
use tool_testkit::FixedSecrets;

pub(crate) use tool_testkit::call_with_mark;

/// Options for an engine at a socket, with a time limit that no test reaches.
pub(crate) fn options(socket: &Path) -> ContainerOptions {
    ContainerOptions::default()
        .with_sockets(EngineSockets::written(socket))
        .with_timeout(Duration::from_secs(600))
}

/// Runtime with the secret `token`.
pub(crate) fn runtime(options: ContainerOptions) -> ContainerRuntime {
    let secrets = FixedSecrets(BTreeMap::from([("token", "s3cret-value")]));
    ContainerRuntime::new(options, Arc::new(secrets))
}

pub(crate) fn descriptor(config: Value) -> Descriptor {
    Descriptor::new("tool", ExecutorSpec::new("docker").with_config(config))
}

pub(crate) fn tool_of(descriptor: Descriptor, runtime: &ContainerRuntime) -> Arc<Tool> {
    let executor = ContainerExecutor::new(runtime.clone());
    let backend = executor
        .prepare(&descriptor)
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    ToolBuilder::from_descriptor(descriptor).run_on_dyn(backend)
}

/// Members of an object.
pub(crate) fn members(object: Value) -> serde_json::Map<String, Value> {
    match object {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

/// Tool that runs a command of the shell in an image.
pub(crate) fn shell(image: &str, script: &str, more: Value, runtime: &ContainerRuntime) -> Arc<Tool> {
    let mut config = json!({"image": image, "command": ["sh", "-c", script]});
    config.as_object_mut().unwrap().extend(members(more));
    tool_of(descriptor(config), runtime)
}

/// Problems of these settings.
pub(crate) fn problems(descriptor: &Descriptor) -> Vec<PrepareError> {
    let executor = ContainerExecutor::default();
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

/// Text of a call that succeeds.
#[track_caller]
pub(crate) fn text(reply: Result<Reply, ToolError>) -> String {
    value(reply).as_str().unwrap().to_owned()
}

/// Error of a call that fails with this kind.
#[track_caller]
pub(crate) fn failure(reply: Result<Reply, ToolError>, kind: ErrorKind) -> ToolError {
    let error = reply.expect_err("a failure");
    assert_eq!(error.kind(), kind, "{error:?}");
    error
}

/// Member of the details of an error, as JSON.
#[track_caller]
pub(crate) fn detail(error: &ToolError, member: &str) -> String {
    let detail = error.detail().unwrap_or_else(|| panic!("{error:?}"));
    let member = detail.get(member).unwrap_or_else(|| panic!("{error:?}"));
    member.as_str().to_owned()
}
