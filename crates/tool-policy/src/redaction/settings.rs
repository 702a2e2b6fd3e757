use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, RedactedFields, Setting};
use tool_settings::{Field, Section, SectionKeys, ToolSettings};

use crate::RedactionLayer;

/// Secrets that are hidden in results of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RedactionMode {
    /// Hides no secrets in results. Errors, which go to logs, alerts and traces, still never contain the operator's
    /// own secrets.
    Off,
    /// Hides the values of the operator's own secrets, wherever they come back.
    #[default]
    Secrets,
    /// Hides the operator's own secrets, and every value that has the form of a well-known kind of credential,
    /// whoever owns it.
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
    /// Secrets that are hidden in its results, instead of the setting in `defaults`.
    redaction: Field<RedactionWord>,
    /// Names of fields, at any depth, that are hidden in its results and in logs of its arguments, instead of those
    /// of its server or `defaults`.
    redact: Field<Vec<Field<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Secrets that are hidden in results of its tools, instead of the setting in `defaults`.
    redaction: Field<RedactionWord>,
    /// Names of fields, at any depth, that are hidden in results of its tools and in logs of their arguments, instead
    /// of those in `defaults`.
    redact: Field<Vec<Field<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Secrets that are hidden in results; `secrets` by default. A server or tool can override it.
    redaction: Field<RedactionWord>,
    /// Names of fields, at any depth, that are hidden in results and in logs of arguments; none by default. A server
    /// or tool can override it.
    redact: Field<Vec<Field<String>>>,
}

/// Secrets that are hidden in results: `secrets`, the values of your own `${…}` secrets wherever they come back;
/// `credentials`, those and everything in the form of a well-known kind of key or token; `off`, none in results.
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
