use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, RedactedFields, Setting};
use tool_settings::{Field, Section, SectionKeys, ToolSettings};

use crate::RedactionLayer;

/// Secrets that are hidden in results of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RedactionMode {
    /// None in results. Errors, which go to logs, alerts and traces, are without the operator's own secrets all the same.
    Off,
    /// The values of the operator's own secrets, wherever they come back.
    #[default]
    Secrets,
    /// Those, and whatever has the form of a well-known kind of credential, whoever it belongs to.
    Credentials,
}

impl Setting for RedactionMode {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        Some(*self).filter(|mode| *mode != Self::default())
    }
}

impl RedactionLayer {
    /// The sections `redaction` and `redact`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|_, keys: ToolKeys, tool: &mut ToolSettings| {
                read(keys.redaction, keys.redact, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(|_, keys: ServerKeys, overrides| {
                read(keys.redaction, keys.redact, overrides);
            }))
            .for_defaults(SectionKeys::new(|_, keys: DefaultKeys, overrides| {
                read(keys.redaction, keys.redact, overrides);
            }))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// What is hidden in what it gives back, in the place of what `defaults` say.
    redaction: Field<RedactionWord>,
    /// Names of fields, at any depth, that are hidden in what it gives back and in what is logged of its arguments, in the
    /// place of what its server or `defaults` say.
    redact: Field<Vec<Field<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// What is hidden in what its tools give back, in the place of what `defaults` say.
    redaction: Field<RedactionWord>,
    /// Names of fields, at any depth, that are hidden in what its tools give back and in what is logged of their arguments, in
    /// the place of what `defaults` say.
    redact: Field<Vec<Field<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// What is hidden in what tools give back; `secrets` if it is not given. That of a server or tool is in its place.
    redaction: Field<RedactionWord>,
    /// Names of fields, at any depth, that are hidden in what tools give back and in what is logged of their arguments; none
    /// if it is not given. That of a server or tool is in its place.
    redact: Field<Vec<Field<String>>>,
}

/// What is hidden in what a tool gives back: `secrets`, the values of your own `${…}` secrets wherever they come back;
/// `credentials`, those and whatever has the form of a well-known kind of key or token; `off`, nothing in results.
/// Errors never hold your secrets.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Redaction")]
enum RedactionWord {
    Off,
    Secrets,
    Credentials,
}

fn read(redaction: Field<RedactionWord>, redact: Field<Vec<Field<String>>>, overrides: &mut Overrides) {
    if let Some(word) = redaction.get() {
        overrides.set(match word {
            RedactionWord::Off => RedactionMode::Off,
            RedactionWord::Secrets => RedactionMode::Secrets,
            RedactionWord::Credentials => RedactionMode::Credentials,
        });
    }
    if let Some(names) = redact.get() {
        let names = names.into_iter().filter_map(Field::get);
        overrides.set(RedactedFields(names.collect()));
    }
}
