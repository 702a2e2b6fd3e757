use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{ArgumentHandling, Descriptor, Overrides, Setting, SettingLevel};
use tool_settings::{Field, Section, SectionKeys, ToolSettings};

use crate::ValidationLayer;

/// Settings of arguments that do not match a tool's schema exactly.
///
/// [`ArgumentHandling`] is a type that the compiled schemas share: see
/// [`CheckJson::adapt`](tool_core::CheckJson::adapt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ArgumentSettings {
    /// Handling of arguments that do not match; [`ArgumentHandling::Strict`] if absent.
    pub handling: Option<ArgumentHandling>,
    /// Explicit setting for filling in defaults: see [`ArgumentSettings::fills_defaults`].
    pub fill_defaults: Option<bool>,
}

impl ArgumentSettings {
    /// Sets the handling of arguments that do not match.
    #[must_use]
    pub fn with_handling(mut self, handling: ArgumentHandling) -> Self {
        self.handling = Some(handling);
        self
    }

    /// Sets if absent arguments get the default of the schema.
    #[must_use]
    pub fn with_fill_defaults(mut self, fill_defaults: bool) -> Self {
        self.fill_defaults = Some(fill_defaults);
        self
    }

    /// Returns the handling of arguments that do not match.
    #[must_use]
    pub fn handling(&self) -> ArgumentHandling {
        self.handling.unwrap_or_default()
    }

    /// Returns `true` if absent arguments get the default of the tool's schema: if that is enabled or, where it is
    /// not set, if arguments are adapted at all.
    #[must_use]
    pub fn fills_defaults(&self) -> bool {
        self.fill_defaults
            .unwrap_or(self.handling() != ArgumentHandling::Strict)
    }
}

impl Setting for ArgumentSettings {
    fn merged(&self, wider: Option<&Self>, _: SettingLevel) -> Self {
        let wider = wider.copied().unwrap_or_default();
        Self {
            handling: self.handling.or(wider.handling),
            fill_defaults: self.fill_defaults.or(wider.fill_defaults),
        }
    }

    fn settled(&self, _: &Descriptor) -> Option<Self> {
        let is_usual = self.handling() == ArgumentHandling::Strict && !self.fills_defaults();
        (!is_usual).then_some(*self)
    }
}

impl ValidationLayer {
    /// The sections `arguments` and `fill_defaults`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|_, keys: ToolKeys, tool: &mut ToolSettings| {
                read(keys.arguments, keys.fill_defaults, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(|_, keys: ServerKeys, overrides| {
                read(keys.arguments, keys.fill_defaults, overrides);
            }))
            .for_defaults(SectionKeys::new(|_, keys: DefaultKeys, overrides| {
                read(keys.arguments, keys.fill_defaults, overrides);
            }))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Handling of arguments that do not match the input schema. Overrides `defaults`.
    arguments: Field<ArgumentsWord>,
    /// `true` fills in the `default` of the input schema for absent arguments. Overrides `defaults`.
    fill_defaults: Field<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Handling of arguments that do not match the input schema. Overrides `defaults`.
    arguments: Field<ArgumentsWord>,
    /// `true` fills in the `default` of the input schema for absent arguments. Overrides `defaults`.
    fill_defaults: Field<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Handling of arguments that do not match the input schema. Servers and tools can override it. Default:
    /// `strict`.
    arguments: Field<ArgumentsWord>,
    /// `true` fills in the `default` of the input schema for absent arguments. Servers and tools can override it.
    /// Default: `true` with `arguments: coerce` and `sanitize`, otherwise `false`.
    fill_defaults: Field<bool>,
}

/// Handling of arguments that do not match the input schema exactly: `strict` rejects them; `coerce` converts them
/// where no information is lost, such as `"5"` to 5; `sanitize` also drops unknown members, truncates texts and moves
/// numbers to their bounds. `coerce` and `sanitize` fill in the defaults of the schema, unless `fill_defaults` is
/// `false`. Every change is reported to the caller.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ArgumentHandling")]
enum ArgumentsWord {
    Strict,
    Coerce,
    Sanitize,
}

fn read(arguments: Field<ArgumentsWord>, fill_defaults: Field<bool>, overrides: &mut Overrides) {
    let settings = ArgumentSettings {
        handling: arguments.get().map(|word| match word {
            ArgumentsWord::Strict => ArgumentHandling::Strict,
            ArgumentsWord::Coerce => ArgumentHandling::Coerce,
            ArgumentsWord::Sanitize => ArgumentHandling::Sanitize,
        }),
        fill_defaults: fill_defaults.get(),
    };
    if settings != ArgumentSettings::default() {
        overrides.set(settings);
    }
}
