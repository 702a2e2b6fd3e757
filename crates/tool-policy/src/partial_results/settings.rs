use std::{borrow::Cow, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use tool_core::{Overrides, Setting};
use tool_settings::{Field, Section, SectionContext, SectionKeys, ToolSettings, WordOrMap};

use crate::PartialResultsLayer;

/// Settings of results that the tool itself marks as incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PartialSettings {
    /// Rule for such results.
    pub rule: PartialRule,
    /// Position of the tool's mark in the result, as a JSON Pointer (RFC 6901) into the plain value, the structured
    /// part or, without one, the object that is the result's only text. The result is incomplete if the value there
    /// is not `null`, `false`, 0 or empty.
    pub field: Option<Arc<str>>,
}

/// Rule for results that are incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PartialRule {
    /// They are accepted and marked.
    #[default]
    Accept,
    /// The call fails.
    Fail,
}

impl PartialSettings {
    /// Key of `_meta` under which a server, and a reply, marks a result as incomplete.
    pub const META_KEY: &'static str = "dev.toolplane/partial";

    /// Sets the rule for incomplete results.
    #[must_use]
    pub fn with_rule(mut self, rule: PartialRule) -> Self {
        self.rule = rule;
        self
    }

    /// Sets the position of the tool's mark, as a JSON Pointer.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<Arc<str>>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl Setting for PartialSettings {}

impl PartialResultsLayer {
    /// The section `partial`: a word, or a map.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|cx, keys: ToolKeys, tool: &mut ToolSettings| {
                read(cx, keys.partial, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(|cx, keys: ServerKeys, overrides| {
                read(cx, keys.partial, overrides);
            }))
            .for_defaults(
                SectionKeys::new(|cx, keys: DefaultKeys, overrides| {
                    read(cx, keys.partial, overrides);
                })
                .in_group(3),
            )
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Rule for results that the tool marks as incomplete. Overrides `defaults`.
    partial: Field<Partial>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Rule for results that the server's tools mark as incomplete. Overrides `defaults`.
    partial: Field<Partial>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Rule for results that the tool marks as incomplete. Servers and tools can override it. Default: `accept`.
    partial: Field<Partial>,
}

// `accept`, `fail`, or `{rule, field}`. A separate type, for its name in the JSON Schema.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Partial(WordOrMap<PartialWord, PartialBody>);

impl JsonSchema for Partial {
    fn schema_name() -> Cow<'static, str> {
        "Partial".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WordOrMap::<PartialWord, PartialBody>::json_schema(generator)
    }
}

/// Rule for incomplete results: `accept` accepts and marks the result, `fail` makes the call fail.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "PartialRule")]
enum PartialWord {
    Accept,
    Fail,
}

/// Rule for incomplete results, and the position of the tool's mark.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PartialAnswers")]
struct PartialBody {
    /// Rule for incomplete results. Default: `accept`.
    rule: Field<PartialWord>,
    /// Position of the tool's mark in the result, as a JSON Pointer such as `/errors`. The result is incomplete if
    /// the value there is not `null`, `false`, 0 or empty. Without it, the backend must report incomplete results, or
    /// a server must mark them in the `_meta` of its result.
    field: Field<String>,
}

fn read(cx: SectionContext<'_>, field: Field<Partial>, overrides: &mut Overrides) {
    let Some(Partial(written)) = field.get() else {
        return;
    };
    let rule = |word| match word {
        PartialWord::Accept => PartialRule::Accept,
        PartialWord::Fail => PartialRule::Fail,
    };
    overrides.set(match written {
        WordOrMap::Word(word) => PartialSettings {
            rule: rule(word),
            field: None,
        },
        WordOrMap::Map(body) => PartialSettings {
            rule: body.rule.get().map(rule).unwrap_or_default(),
            field: body.field.located().map(|(at, field)| {
                if !field.starts_with('/') {
                    cx.error(at, "this is no JSON Pointer", format!("write `/{field}`"));
                }
                field.into()
            }),
        },
    });
}
