//! Endpoints for tests: scripts of a shell.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tool_core::{
    Descriptor, DispatchState, ErrorKind, Executor, ExecutorSpec, Reply, Template, Tool, ToolBuilder,
    ToolError,
};
use tool_exec_endpoint::{CommandEndpoint, EndpointCommand, EndpointExecutor, EndpointSettings};
use tool_testkit::FixedSecrets;

/// A text without references.
pub(crate) fn text(text: &str) -> Template {
    Template::parse(&text.replace('$', "$$")).unwrap()
}

/// Settings of an endpoint `e` that runs this script.
pub(crate) fn script(script: &str) -> EndpointSettings {
    EndpointSettings::new(
        "e",
        EndpointCommand::new(text("sh")).args([text("-c"), text(script)]),
    )
}

pub(crate) fn endpoint(settings: EndpointSettings) -> Arc<CommandEndpoint> {
    let secrets = BTreeMap::from([("token", "s3cret-value-123"), ("SHARED", "from outside")]);
    CommandEndpoint::new(settings, Arc::new(FixedSecrets(secrets)))
}

/// The tool `t` of an endpoint.
pub(crate) fn tool(endpoint: &Arc<CommandEndpoint>) -> Arc<Tool> {
    let executor = EndpointExecutor::new([endpoint.clone()]);
    let config = json!({"endpoint": "e", "tool": "t"});
    let descriptor = Descriptor::new("t", ExecutorSpec::new("endpoint").with_config(config));
    let backend = executor
        .prepare(&descriptor)
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    ToolBuilder::from_descriptor(descriptor).run_on_dyn(backend)
}

/// Calls the tool `t`, and returns how far the call got.
pub(crate) async fn call_with_mark(
    endpoint: &Arc<CommandEndpoint>,
    arguments: Value,
) -> (Result<Reply, ToolError>, DispatchState) {
    tool_testkit::call_with_mark(&tool(endpoint), arguments).await
}

/// Calls the tool `t` of an endpoint that runs this script.
pub(crate) async fn call(script_text: &str, arguments: Value) -> Result<Reply, ToolError> {
    call_with_mark(&endpoint(script(script_text)), arguments).await.0
}

/// Kind and message of a call that fails.
#[track_caller]
pub(crate) fn failure(reply: Result<Reply, ToolError>) -> (ErrorKind, String) {
    let error = reply.expect_err("a failure");
    (error.kind(), error.message().to_owned())
}
