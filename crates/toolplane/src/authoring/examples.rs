//! Test runs: the examples of a tool, called as its author.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{Caller, ExampleCall, ExpectedResult, Outcome, Reply, Tool, ToolError};
use tool_schema::Schema;

use super::Authoring;
use crate::CallRequest;

/// Maximum length of a result in a report, in characters.
const MAX_SHOWN: usize = 2000;

/// Report of a test.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TestReport {
    /// Name of the tool.
    pub tool: Arc<str>,
    /// The version.
    pub version: String,
    /// Outcome of each call, in the order of the examples.
    pub calls: Vec<ExampleOutcome>,
    /// `true` if one call was made with arguments of the request, instead of the examples.
    pub is_single: bool,
}

/// Outcome of one example.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExampleOutcome {
    /// Arguments of the call.
    pub arguments: RawJson,
    /// Result as text, shortened; for a failure its kind and message.
    pub got: String,
    /// Difference from what was expected; `None` if there is none.
    pub problem: Option<String>,
}

impl TestReport {
    /// Returns the number of examples that were called.
    #[must_use]
    pub fn n_examples(&self) -> usize {
        self.calls.len()
    }

    /// Returns `true` if no call failed.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.calls.iter().all(|call| call.problem.is_none())
    }

    /// Returns one sentence about the test, with its first problem.
    #[must_use]
    pub fn summary(&self) -> String {
        let (tool, version) = (&self.tool, &self.version);
        let n_failed = self.calls.iter().filter(|call| call.problem.is_some()).count();
        let first = self
            .calls
            .iter()
            .find_map(|call| Some((call, call.problem.as_ref()?)));
        match first {
            Some((call, problem)) => format!(
                "{n_failed} of {} examples of `{tool}@{version}` failed; with the arguments {}: {problem}",
                self.calls.len(),
                call.arguments
            ),
            None if self.calls.is_empty() => {
                format!(
                    "`{tool}@{version}` has no examples that are calls; add `examples: [{{arguments, result}}]`"
                )
            }
            None => format!(
                "all {} examples of `{tool}@{version}` succeeded",
                self.calls.len()
            ),
        }
    }

    /// Returns the report as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|call| {
                json!({
                    "arguments": call.arguments.to::<Value>().unwrap_or_default(),
                    "passed": call.problem.is_none(),
                    "got": call.got,
                    "problem": call.problem,
                })
            })
            .collect();
        RawJson::from(json!({
            "tool": &*self.tool,
            "version": self.version,
            "passed": self.is_passed(),
            "summary": self.summary(),
            "calls": calls,
        }))
    }
}

/// Calls the examples of a tool, one after the other.
pub(super) async fn run(authoring: &Authoring, caller: &Caller, tool: &Arc<Tool>) -> TestReport {
    let mut calls = Vec::new();
    for example in &tool.descriptor().metadata.example_calls {
        calls.push(call(authoring, caller, tool, example).await);
    }
    report(tool, calls, false)
}

/// Calls a tool once with arguments that are no example.
pub(super) async fn call_once(
    authoring: &Authoring,
    caller: &Caller,
    tool: &Arc<Tool>,
    arguments: RawJson,
) -> TestReport {
    let example = ExampleCall::new(arguments, ExpectedResult::Any);
    let outcome = call(authoring, caller, tool, &example).await;
    report(tool, vec![outcome], true)
}

fn report(tool: &Tool, calls: Vec<ExampleOutcome>, is_single: bool) -> TestReport {
    TestReport {
        tool: tool.name().clone(),
        version: tool.descriptor().version.clone().unwrap_or_default(),
        calls,
        is_single,
    }
}

async fn call(
    authoring: &Authoring,
    caller: &Caller,
    tool: &Arc<Tool>,
    example: &ExampleCall,
) -> ExampleOutcome {
    let request = CallRequest::new(tool.name().clone()).caller(Arc::new(caller.clone()));
    let result = match request.checked(example.arguments.clone()) {
        // Boxed: it holds the future of a whole call.
        Ok(request) => Box::pin(authoring.plane.call_tool(tool, request)).await,
        Err(error) => Err(error),
    };
    let result = result.and_then(Outcome::into_reply);
    let (got, problem) = match &result {
        Ok(reply) => (reply.text(), compare(reply, &example.expected)),
        Err(error) => (
            format!("{}: {}", error.kind(), error.message()),
            compare_failure(error, &example.expected),
        ),
    };
    ExampleOutcome {
        arguments: example.arguments.clone(),
        got: shortened(&got),
        problem,
    }
}

/// Returns the difference between a result and what is expected.
fn compare(reply: &Reply, expected: &ExpectedResult) -> Option<String> {
    if let ExpectedResult::Error(kind) = expected {
        return Some(format!(
            "expected the failure `{kind}`, got the result {}",
            shortened(&reply.text())
        ));
    }
    if reply.is_error {
        return Some(format!(
            "the tool reports a failure: {}",
            shortened(&reply.text())
        ));
    }
    let value = || -> RawJson {
        let structured = reply.structured();
        structured.unwrap_or_else(|| {
            let text = reply.text();
            RawJson::parse(text.clone()).unwrap_or_else(|_| RawJson::from(text.as_str()))
        })
    };
    match expected {
        ExpectedResult::Value(wanted) => {
            let got = value();
            // Text that reads like the value is the value: tools write texts.
            let is_same = raw_json::digest(&got) == raw_json::digest(wanted)
                || wanted.string().is_some_and(|wanted| wanted == reply.text());
            (!is_same).then(|| {
                format!(
                    "expected {}, got {}",
                    shortened(wanted.as_str()),
                    shortened(got.as_str())
                )
            })
        }
        ExpectedResult::Shape(shape) => {
            let schema = match Schema::compile(shape) {
                Ok(schema) => schema,
                Err(error) => return Some(format!("the shape is no usable schema: {error}")),
            };
            let value: Value = value().to().unwrap_or_default();
            let checked = schema.check(&value);
            checked
                .err()
                .map(|error| format!("the result does not have the shape: {error}"))
        }
        _ => None,
    }
}

fn compare_failure(error: &ToolError, expected: &ExpectedResult) -> Option<String> {
    match expected {
        ExpectedResult::Error(kind) if *kind == error.kind() => None,
        ExpectedResult::Error(kind) => Some(format!(
            "expected the failure `{kind}`, got `{}`: {}",
            error.kind(),
            error.message()
        )),
        _ => Some(format!(
            "the call failed: `{}`: {}",
            error.kind(),
            error.message()
        )),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
