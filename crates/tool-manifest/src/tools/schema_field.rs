use std::borrow::Cow;

use raw_json::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tool_settings::{NodeId, Raw};

use crate::{
    dialects::kiwi,
    document::{node::Kind, place::Cx},
};

/// A JSON Schema, left as it stands.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct SchemaField(pub(crate) Raw);

/// A JSON Schema or a list of parameters, left as it stands.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct ParametersField(pub(crate) Raw);

impl JsonSchema for SchemaField {
    fn schema_name() -> Cow<'static, str> {
        "JsonSchema".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["object", "boolean"]})
    }
}

impl JsonSchema for ParametersField {
    fn schema_name() -> Cow<'static, str> {
        "Parameters".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["object", "boolean", "array"],
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "type": {"type": "string"},
                    "required": {"type": "boolean"},
                    "description": {"type": "string"},
                },
                "required": ["name"],
            },
        })
    }
}

/// Reads the schema of arguments, which has two names.
pub(crate) fn either(
    cx: Cx<'_>,
    input_schema: SchemaField,
    parameters: ParametersField,
) -> Option<(Option<NodeId>, RawJson)> {
    let (schema_field, parameters) = (input_schema.0, parameters.0);
    if let (Some(_), Some(second)) = (schema_field.0, parameters.0) {
        cx.key_error(
            second,
            "`parameters` and `input_schema` say the same thing",
            "remove one of them",
        );
        return None;
    }
    match parameters.0 {
        Some(at) if matches!(cx.document.kind(at), Kind::List(_)) => {
            kiwi::parameters(cx, at).map(|schema| (Some(at), schema))
        }
        Some(_) => arguments(cx, parameters),
        None => arguments(cx, schema_field),
    }
}

/// Reads a schema of arguments, which are always an object: the protocol requires it to say so.
pub(crate) fn arguments(cx: Cx<'_>, raw: Raw) -> Option<(Option<NodeId>, RawJson)> {
    let (at, schema) = schema(cx, raw)?;
    let document = cx.document;
    if let Kind::Bool(fits) = document.kind(at) {
        if !fits {
            cx.error(
                at,
                "no arguments fit this schema, so nobody could call the tool",
                "",
            );
        }
        return Some((Some(at), any_object()));
    }
    let schema = match document.get(at, "type") {
        None => schema.with_members(&[("type", RawJson::from("object"))]).ok()?,
        Some(stated) if document.text(stated) == Some("object") => schema,
        Some(stated) => {
            cx.error(
                stated,
                "the arguments of a tool are always an object",
                "write `type: object`",
            );
            return None;
        }
    };
    Some((Some(at), schema))
}

/// Reads a JSON Schema; null counts as absent.
pub(crate) fn schema(cx: Cx<'_>, raw: Raw) -> Option<(NodeId, RawJson)> {
    let at = raw.0?;
    match cx.document.kind(at) {
        Kind::Null => None,
        Kind::Map(_) | Kind::Bool(_) => Some((at, json(cx, at)?)),
        _ => {
            let found = cx.document.describe(at);
            cx.error(
                at,
                format!("expected a JSON Schema, found {found}"),
                "write a map, such as `{type: object}`",
            );
            None
        }
    }
}

/// Converts a value to JSON text.
pub(crate) fn json(cx: Cx<'_>, at: NodeId) -> Option<RawJson> {
    cx.words().json(at)
}

/// Returns the schema of a tool that declares none for its arguments.
pub(crate) fn any_object() -> RawJson {
    RawJson::parse(r#"{"type":"object"}"#).expect("the text is JSON")
}
