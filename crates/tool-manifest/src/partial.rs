//! What is done with answers in part.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tool_core::{PartialRule, PartialSettings};

use crate::{
    field::{Field, Raw},
    node::Kind,
    place::Cx,
};

/// `accept`, `fail`, or `{rule, field}`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct PartialField(Raw);

impl JsonSchema for PartialField {
    fn schema_name() -> Cow<'static, str> {
        "Partial".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<PartialWord>();
        let body = generator.subschema_for::<PartialBody>();
        json_schema!({"anyOf": [word, body]})
    }
}

/// Whether an answer in part is taken: `accept` takes and marks it, `fail` has the call fail.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "PartialRule")]
enum PartialWord {
    Accept,
    Fail,
}

/// What is done with answers in part, and where the tool says that an answer is one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PartialAnswers")]
struct PartialBody {
    /// Whether an answer in part is taken; `accept` if it is not given.
    rule: Field<PartialWord>,
    /// Where in its answer the tool says so, as a JSON Pointer such as `/errors`: whatever stands there and is not `null`,
    /// `false`, 0 or empty. Without it, what runs the tool must know, or a server say so in its result's `_meta`.
    field: Field<String>,
}

/// Makes settings from what a file says.
pub(crate) fn partial(cx: Cx<'_>, field: PartialField) -> Option<PartialSettings> {
    let at = field.0.0?;
    let rule = |word| match word {
        PartialWord::Accept => PartialRule::Accept,
        PartialWord::Fail => PartialRule::Fail,
    };
    match cx.document.kind(at) {
        Kind::Null => None,
        Kind::Map(_) => {
            let body: PartialBody = cx.reading().read(at)?;
            let field = body.field.located().map(|(at, field)| {
                if !field.starts_with('/') {
                    cx.error(at, "this is no JSON Pointer", format!("write `/{field}`"));
                }
                field.into()
            });
            Some(PartialSettings {
                rule: body.rule.get().map(rule).unwrap_or_default(),
                field,
            })
        }
        _ => {
            let word: PartialWord = cx.reading().read(at)?;
            Some(PartialSettings {
                rule: rule(word),
                field: None,
            })
        }
    }
}
