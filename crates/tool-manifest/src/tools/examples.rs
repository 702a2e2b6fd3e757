//! Examples of a tool: sentences, and calls with their expected results.

use std::borrow::Cow;

use raw_json::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tool_core::{ErrorKind, ExampleCall, ExpectedResult, Metadata};
use tool_settings::{Field, NodeId, Raw};

use crate::document::{node::Kind, place::Cx, suggest};

/// Example as it is written: a sentence, or a map.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct ExampleField(Raw);

/// Example call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ExampleCall")]
struct ExampleBody {
    /// Sentence for which this call is the answer: a search finds the tool by its words.
    query: Field<String>,
    /// Arguments of the call; none by default.
    arguments: Raw,
    /// Expected result.
    result: Raw,
    /// JSON Schema of the expected result.
    shape: Raw,
    /// Kind of the expected failure, such as `invalid_arguments`.
    error: Field<String>,
}

impl JsonSchema for ExampleField {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Example".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
        json_schema!({
            "type": ["string", "object"],
            "properties": {
                "query": {"type": "string", "description": "Sentence for which this call is the answer: a search finds the tool by its words."},
                "arguments": {"type": "object", "description": "Arguments of the call; none by default."},
                "result": {"description": "Expected result."},
                "shape": {"type": ["object", "boolean"], "description": "JSON Schema of the expected result."},
                "error": {"enum": kinds, "description": "Kind of the expected failure."},
            },
            "additionalProperties": false,
        })
    }
}

/// Reads examples into the metadata of their tool.
pub(crate) fn read(cx: Cx<'_>, field: Field<Vec<ExampleField>>, metadata: &mut Metadata) {
    for ExampleField(Raw(at)) in field.get().unwrap_or_default() {
        let Some(at) = at else { continue };
        match cx.document.kind(at) {
            Kind::String(sentence) => metadata.examples.push(sentence.clone()),
            Kind::Map(_) => {
                if let Some(call) = call(cx, at, metadata) {
                    metadata.example_calls.push(call);
                }
            }
            _ => {
                let found = cx.document.describe(at);
                cx.error(
                    at,
                    format!("expected a sentence or a call, found {found}"),
                    "write a text, or `{arguments: {..}, result: ..}`",
                );
            }
        }
    }
}

fn call(cx: Cx<'_>, at: NodeId, metadata: &mut Metadata) -> Option<ExampleCall> {
    let body: ExampleBody = cx.read(at)?;
    metadata.examples.extend(body.query.get());
    let json = |at: NodeId| RawJson::parse(cx.document.to_json(at)).ok();
    let arguments = match body.arguments.0 {
        Some(at) if !matches!(cx.document.kind(at), Kind::Map(_)) => {
            let found = cx.document.describe(at);
            cx.error(at, format!("expected a map of arguments, found {found}"), "");
            return None;
        }
        Some(at) => json(at)?,
        None => RawJson::object(),
    };
    let error = body.error.located();
    let given = [body.result.0, body.shape.0, error.as_ref().map(|(at, _)| *at)];
    if let Some(second) = given.into_iter().flatten().nth(1) {
        cx.key_error(
            second,
            "an example expects one result",
            "keep one of `result`, `shape` and `error`",
        );
        return None;
    }
    let expected = match (body.result.0, body.shape.0, error) {
        (Some(result), ..) => ExpectedResult::Value(json(result)?),
        (_, Some(shape), _) => ExpectedResult::Shape(json(shape)?),
        (_, _, Some((at, name))) => match ErrorKind::named(&name) {
            Some(kind) => ExpectedResult::Error(kind),
            None => {
                let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
                let message = format!("unknown kind of failure `{}`", suggest::shown(&name));
                cx.error(at, message, suggest::value(&name, &kinds));
                return None;
            }
        },
        _ => ExpectedResult::Any,
    };
    Some(ExampleCall::new(arguments, expected))
}
