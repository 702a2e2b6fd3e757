//! Executor and documents of the tests.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tool_core::{
    Arguments, BoxFuture, CallContext, Executor, Reference, Secret, SecretError, Secrets, ToolError,
};
use tool_exec_http::{HttpExecutor, HttpExecutorOptions};
use tool_openapi::{ImportOptions, ImportedApi, import};
use toolplane::manifest::{LoadOptions, Loaded, Syntax, load};

/// Secrets of which each has its own name as its value.
pub(crate) struct NamedSecrets;

impl Secrets for NamedSecrets {
    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }

    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async { Ok(Some(Secret::new(reference.name.as_str()))) })
    }
}

pub(crate) fn executor() -> HttpExecutor {
    HttpExecutor::new(HttpExecutorOptions::default(), Arc::new(NamedSecrets))
}

/// Imports a document and checks its tools with the executor.
pub(crate) fn imported(document: &Value, options: &ImportOptions) -> ImportedApi {
    let mut api = import(document.to_string().as_bytes(), options).unwrap();
    api.check_with(&executor());
    api
}

/// Returns a document of OpenAPI 3.0 with these paths.
pub(crate) fn document(paths: &Value) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Test", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": paths,
    })
}

/// Loads the configuration of an import, as `toolplane check` does.
pub(crate) fn loaded(api: &ImportedApi) -> Loaded {
    let text = api.configuration().to_string();
    load(&LoadOptions::new().text("imported.json", Syntax::Json, text)).unwrap()
}

/// Returns the reason for which each operation is skipped.
pub(crate) fn reasons(api: &ImportedApi) -> BTreeMap<String, String> {
    let skipped = api.skipped.iter();
    skipped
        .map(|skipped| (skipped.operation.to_string(), skipped.reason.clone()))
        .collect()
}

/// Returns the request that a call of a tool would send: method, URL, headers and body.
pub(crate) async fn request_of(api: &ImportedApi, name: &str, arguments: &Value) -> Result<Value, ToolError> {
    let tool = api
        .tools
        .iter()
        .find(|tool| &*tool.descriptor.name == name)
        .unwrap_or_else(|| panic!("no tool `{name}`: {:?}", reasons(api)));
    let http = executor()
        .tool_with(tool.descriptor.clone(), |tool| tool)
        .unwrap();
    let cx = CallContext::local(http.tool(), Arguments::from_serialize(arguments).unwrap());
    let backend = executor().prepare(&tool.descriptor).unwrap();
    let preview = backend.preview_boxed(&cx).await?;
    Ok(preview.unwrap().request.to().unwrap())
}

/// Returns the part of the URL after the server of [`document`].
pub(crate) async fn target_of(api: &ImportedApi, name: &str, arguments: &Value) -> String {
    let request = request_of(api, name, arguments).await.unwrap();
    let url = request["url"].as_str().unwrap();
    url.strip_prefix("https://api.example.com/v1").unwrap().to_owned()
}

/// Returns a header of a request.
pub(crate) fn header<'a>(request: &'a Value, name: &str) -> Option<&'a str> {
    let headers = request["headers"].as_array().unwrap();
    let found = headers.iter().find(|header| header["name"] == name)?;
    found["value"].as_str()
}

/// Returns the input schema of a tool.
pub(crate) fn schema_of(api: &ImportedApi, name: &str) -> Value {
    let tool = api
        .tools
        .iter()
        .find(|tool| &*tool.descriptor.name == name)
        .unwrap();
    tool.descriptor.input_schema.to().unwrap()
}

/// Returns the warnings about a tool.
pub(crate) fn warnings_of<'a>(api: &'a ImportedApi, name: &str) -> &'a [String] {
    let tool = api
        .tools
        .iter()
        .find(|tool| &*tool.descriptor.name == name)
        .unwrap();
    &tool.warnings
}
