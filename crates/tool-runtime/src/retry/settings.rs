use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting};
use tool_settings::{
    Field, Period, Section, SectionContext, SectionKeys, ToolSettings, at_least_one, longer_than_zero,
};

use crate::RetryLayer;

/// Settings of retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetrySettings {
    /// Maximum number of attempts of a call. With 1 there is no retry.
    pub max_attempts: u32,
    /// Maximum pause before the second attempt. It doubles with every further attempt.
    pub initial_delay: Duration,
    /// Upper bound of all pauses, unless the upstream asks for more.
    pub max_delay: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(20),
        }
    }
}

impl RetrySettings {
    /// Sets the maximum number of attempts, the first included.
    #[must_use]
    pub fn with_max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets the maximum pause before the second attempt.
    #[must_use]
    pub fn with_initial_delay(mut self, initial_delay: Duration) -> Self {
        self.initial_delay = initial_delay;
        self
    }

    /// Sets the upper bound of all pauses.
    #[must_use]
    pub fn with_max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = max_delay;
        self
    }
}

impl Setting for RetrySettings {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        (self.max_attempts > 1).then_some(*self)
    }
}

impl RetryLayer {
    /// The section `retry`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|cx, keys: ToolKeys, tool: &mut ToolSettings| {
                read(cx, keys.retry, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(|cx, keys: ServerKeys, overrides| {
                read(cx, keys.retry, overrides);
            }))
            .for_defaults(SectionKeys::new(|cx, keys: DefaultKeys, overrides| {
                read(cx, keys.retry, overrides);
            }))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Retries of the tool's failed calls. Overrides `defaults`.
    retry: Field<RetryBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Retries of failed calls of the server's tools. Overrides `defaults`.
    retry: Field<RetryBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Retries of failed calls. Servers and tools can override it. Default: no retries.
    retry: Field<RetryBody>,
}

/// Retries: a failed call is attempted again only if the failure may be transient, if the tool cannot have run or is
/// declared `idempotent` or `read_only`, and within the call's time and the upstream's retry budget.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Retry")]
struct RetryBody {
    /// Maximum number of attempts of a call, the first included. With 1 there is no retry. Default: 3.
    max_attempts: Field<u32>,
    /// Maximum pause before the second attempt. It doubles with every further attempt. Pauses have a random length up
    /// to the maximum. Default: 200ms.
    initial_delay: Field<Period>,
    /// Upper bound of all pauses, unless the upstream asks for more. Default: 20s.
    max_delay: Field<Period>,
}

fn read(cx: SectionContext<'_>, field: Field<RetryBody>, overrides: &mut Overrides) {
    let Some(body) = field.get() else { return };
    let mut settings = RetrySettings::default();
    let hint = "write `max_attempts: 1` for calls without retries";
    at_least_one(cx, body.max_attempts, &mut settings.max_attempts, hint);
    longer_than_zero(cx, body.initial_delay, &mut settings.initial_delay);
    longer_than_zero(cx, body.max_delay, &mut settings.max_delay);
    overrides.set(settings);
}
