//! Result of an import.

use std::fmt;

use serde_json::{Map, Value, json};
use tool_core::{Descriptor, Executor};

/// Tools of an OpenAPI document, and its operations that are no tools.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ImportedApi {
    /// Title of the API.
    pub title: String,
    /// Version of the API.
    pub version: String,
    /// Format of the document, such as `OpenAPI 3.1.0`.
    pub format: String,
    /// Tools, in the order of the document.
    pub tools: Vec<ImportedTool>,
    /// Selected operations that cannot be tools.
    pub skipped: Vec<SkippedOperation>,
    /// Secrets that the tools need, by name.
    pub secrets: Vec<ImportedSecret>,
    /// Number of operations that the filter does not select.
    pub n_unselected: usize,
    /// Warnings about the import as a whole.
    pub warnings: Vec<String>,
}

/// Tool of one operation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImportedTool {
    /// Descriptor of the tool.
    pub descriptor: Descriptor,
    /// Operation that the tool calls.
    pub operation: ApiOperation,
    /// Warnings for the operator, such as parameters that are left out.
    pub warnings: Vec<String>,
}

/// Operation that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedOperation {
    /// Operation.
    pub operation: ApiOperation,
    /// Reason: a lower-case fragment.
    pub reason: String,
}

/// Method and path of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ApiOperation {
    /// Method, in upper case.
    pub method: String,
    /// Path template, as written.
    pub path: String,
    /// `operationId`, as written.
    pub id: Option<String>,
}

/// Secret that tools use as `${secret:NAME}`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedSecret {
    /// Name of the secret.
    pub name: String,
    /// Environment variable that the configuration reads it from.
    pub variable: String,
    /// Value that the API expects: a lower-case fragment.
    pub description: String,
}

impl ImportedApi {
    /// Prepares each tool with an executor, and moves those that it refuses to the skipped operations.
    pub fn check_with(&mut self, executor: &dyn Executor) {
        for tool in std::mem::take(&mut self.tools) {
            match executor.prepare(&tool.descriptor) {
                Ok(_) => self.tools.push(tool),
                Err(problems) => {
                    let reasons: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    self.skipped.push(SkippedOperation {
                        operation: tool.operation,
                        reason: format!("the executor refuses its settings: {}", reasons.join("; ")),
                    });
                }
            }
        }
        self.retain_used_secrets();
    }

    /// Moves a tool to the skipped operations, with the reason. Does nothing if there is no tool of this name.
    pub fn skip_tool(&mut self, name: &str, reason: impl Into<String>) {
        let found = self.tools.iter().position(|tool| &*tool.descriptor.name == name);
        if let Some(index) = found {
            let operation = self.tools.remove(index).operation;
            let reason = reason.into();
            self.skipped.push(SkippedOperation { operation, reason });
            self.retain_used_secrets();
        }
    }

    /// Removes the secrets that no tool uses.
    pub(crate) fn retain_used_secrets(&mut self) {
        let configs: Vec<String> = self
            .tools
            .iter()
            .map(|tool| tool.descriptor.executor.config.to_string())
            .collect();
        self.secrets.retain(|secret| {
            let reference = secret.reference();
            configs.iter().any(|config| config.contains(&reference))
        });
    }

    /// Returns the tools and secrets as a configuration, in the short form of `toolplane.yaml`.
    #[must_use]
    pub fn configuration(&self) -> Value {
        let mut configuration = Map::new();
        if !self.secrets.is_empty() {
            let secrets = self.secrets.iter();
            let secrets =
                secrets.map(|secret| (secret.name.clone(), json!(format!("${{{}}}", secret.variable))));
            configuration.insert("secrets".to_owned(), Value::Object(secrets.collect()));
        }
        let tools = self.tools.iter();
        let tools = tools.map(|tool| (tool.descriptor.name.to_string(), entry(&tool.descriptor)));
        configuration.insert("tools".to_owned(), Value::Object(tools.collect()));
        Value::Object(configuration)
    }
}

/// Returns a tool as an entry of `tools`.
fn entry(descriptor: &Descriptor) -> Value {
    let mut entry = Map::new();
    entry.insert("description".to_owned(), json!(descriptor.description));
    let metadata = &descriptor.metadata;
    if !metadata.tags.is_empty() {
        entry.insert("tags".to_owned(), json!(metadata.tags));
    }
    for (key, declared) in [
        ("read_only", metadata.read_only),
        ("idempotent", metadata.idempotent),
    ] {
        if let Some(declared) = declared {
            entry.insert(key.to_owned(), json!(declared));
        }
    }
    let schema: Value = descriptor.input_schema.to().unwrap_or(Value::Null);
    entry.insert("input_schema".to_owned(), schema);
    let mut executor = Map::from_iter([("kind".to_owned(), json!(descriptor.executor.kind))]);
    if let Value::Object(config) = &descriptor.executor.config {
        executor.extend(config.clone());
    }
    entry.insert("executor".to_owned(), Value::Object(executor));
    Value::Object(entry)
}

impl ImportedSecret {
    pub(crate) fn reference(&self) -> String {
        format!("${{secret:{}}}", self.name)
    }
}

impl fmt::Display for ApiOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl fmt::Display for SkippedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.reason)
    }
}
