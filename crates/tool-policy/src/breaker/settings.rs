use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting, SettingLevel};
use tool_settings::{
    Field, Percent, Period, Section, SectionContext, SectionKeys, ToolSettings, at_least_one,
    longer_than_zero,
};

use super::BreakerLayer;

/// Settings of one circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerSettings {
    /// `true` if the breaker is disabled.
    pub disabled: bool,
    /// Scope of failures that occur after a connection was made.
    pub per: BreakerScope,
    /// Number of consecutive failures that opens the breaker.
    pub max_failures: u32,
    /// Share of failed calls in the window that opens the breaker, in percent.
    pub failure_percent: u8,
    /// Minimum number of calls in the window for the share to count.
    pub min_calls: u32,
    /// Length of the window in which calls count.
    pub window: Duration,
    /// Time for which the breaker stays open at first. It doubles with every failed probe.
    pub pause: Duration,
    /// Maximum time for which the breaker stays open.
    pub max_pause: Duration,
}

/// Calls that a circuit breaker rejects after failures. A failure to connect always counts for the upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BreakerScope {
    /// Calls of the tool only.
    #[default]
    Tool,
    /// Calls of the tool and, if the upstream itself fails, of all tools of its upstream.
    Upstream,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            disabled: false,
            per: BreakerScope::Tool,
            max_failures: 5,
            failure_percent: 50,
            min_calls: 10,
            window: Duration::from_secs(30),
            pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(60),
        }
    }
}

impl BreakerSettings {
    /// Enables or disables the breaker.
    #[must_use]
    pub fn with_disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }

    /// Sets the scope of failures after a connection was made.
    #[must_use]
    pub fn with_per(mut self, per: BreakerScope) -> Self {
        self.per = per;
        self
    }

    /// Sets the number of consecutive failures that opens the breaker.
    #[must_use]
    pub fn with_max_failures(mut self, max_failures: u32) -> Self {
        self.max_failures = max_failures;
        self
    }

    /// Sets the share of failed calls that opens the breaker, in percent.
    #[must_use]
    pub fn with_failure_percent(mut self, failure_percent: u8) -> Self {
        self.failure_percent = failure_percent;
        self
    }

    /// Sets the minimum number of calls for the share to count.
    #[must_use]
    pub fn with_min_calls(mut self, min_calls: u32) -> Self {
        self.min_calls = min_calls;
        self
    }

    /// Sets the length of the window in which calls count.
    #[must_use]
    pub fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets the time for which the breaker stays open at first.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the maximum time for which the breaker stays open.
    #[must_use]
    pub fn with_max_pause(mut self, max_pause: Duration) -> Self {
        self.max_pause = max_pause;
        self
    }
}

/// Settings of the two breakers that an attempt passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Breakers {
    /// Breaker of the tool.
    pub tool: BreakerSettings,
    /// Breaker of the upstream: the settings of the server or the defaults, or the settings of a tool with
    /// [`BreakerScope::Upstream`]. Each upstream has one breaker: a tool sets how its own failures count for it.
    pub upstream: BreakerSettings,
}

impl Breakers {
    /// Creates the settings of both breakers. `From<BreakerSettings>` uses the same for both.
    #[must_use]
    pub const fn new(tool: BreakerSettings, upstream: BreakerSettings) -> Self {
        Self { tool, upstream }
    }
}

impl From<BreakerSettings> for Breakers {
    /// Uses the same settings for both breakers.
    fn from(settings: BreakerSettings) -> Self {
        Self {
            tool: settings,
            upstream: settings,
        }
    }
}

impl Setting for Breakers {
    fn merged(&self, wider: Option<&Self>, level: SettingLevel) -> Self {
        if level != SettingLevel::Tool {
            return *self;
        }
        let mut upstream = wider.map_or_else(BreakerSettings::default, |wider| wider.upstream);
        if !self.tool.disabled {
            match self.tool.per {
                BreakerScope::Upstream => {
                    upstream = BreakerSettings {
                        disabled: upstream.disabled,
                        ..self.tool
                    };
                }
                BreakerScope::Tool => upstream.per = BreakerScope::Tool,
            }
        }
        Self {
            tool: self.tool,
            upstream,
        }
    }

    fn settled(&self, _: &Descriptor) -> Option<Self> {
        (!self.tool.disabled).then_some(*self)
    }
}

impl BreakerLayer {
    /// The section `breaker`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|cx, keys: ToolKeys, tool: &mut ToolSettings| {
                read(cx, keys.breaker, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(|cx, keys: ServerKeys, overrides| {
                read(cx, keys.breaker, overrides);
            }))
            .for_defaults(SectionKeys::new(|cx, keys: DefaultKeys, overrides| {
                read(cx, keys.breaker, overrides);
            }))
            .suggest("circuitbreaker", "breaker")
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Circuit breaker of the tool, which rejects its calls after failures. Overrides `defaults`.
    breaker: Field<BreakerBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Circuit breakers of the server and its tools, which reject calls after failures. Overrides `defaults`.
    breaker: Field<BreakerBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Circuit breakers of tools and their upstreams, which reject calls after failures. Servers and tools can
    /// override it. Default: no breaker.
    breaker: Field<BreakerBody>,
}

/// Circuit breaker: after failures, calls of a tool fail at once, until a probe call that is let through succeeds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Breaker")]
struct BreakerBody {
    /// `true` disables the breaker.
    disabled: Field<bool>,
    /// Calls that the breaker rejects: `tool`, only those of the tool; `upstream`, also those of all tools of its
    /// server or HTTP host if the server or host itself fails. A failure to connect always counts for the server or
    /// host. Default: `tool`.
    per: Field<BreakerScopeWord>,
    /// Number of consecutive failures that opens the breaker. Default: 5.
    max_failures: Field<u32>,
    /// Share of failed calls that opens the breaker. Default: 50%.
    failure_share: Field<Percent>,
    /// Minimum number of calls for the share to count. Default: 10.
    min_calls: Field<u32>,
    /// Length of the window in which calls count. Default: 30s.
    window: Field<Period>,
    /// Time for which the breaker stays open at first, plus up to a fifth of it. It doubles with every failed probe
    /// call. Default: 1s.
    pause: Field<Period>,
    /// Maximum pause. Default: 60s.
    max_pause: Field<Period>,
}

/// Calls that a breaker rejects.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BreakerScope")]
enum BreakerScopeWord {
    /// Calls of the tool only.
    Tool,
    /// Calls of all tools of the server or host.
    Upstream,
}

fn read(cx: SectionContext<'_>, field: Field<BreakerBody>, overrides: &mut Overrides) {
    let Some(body) = field.get() else { return };
    let mut settings = BreakerSettings {
        disabled: body.disabled.get().unwrap_or_default(),
        per: match body.per.get() {
            Some(BreakerScopeWord::Upstream) => BreakerScope::Upstream,
            _ => BreakerScope::Tool,
        },
        ..BreakerSettings::default()
    };
    let hint = "write `disabled: true` for tools without a breaker";
    at_least_one(cx, body.max_failures, &mut settings.max_failures, hint);
    at_least_one(cx, body.min_calls, &mut settings.min_calls, hint);
    if let Some((at, Percent(share))) = body.failure_share.located() {
        if share < 1.0 {
            cx.error(at, "a share of less than 1% would open it for nothing", hint);
        }
        // Whole percents: `share` is between 0 and 100.
        settings.failure_percent = share.round() as u8;
    }
    longer_than_zero(cx, body.window, &mut settings.window);
    longer_than_zero(cx, body.pause, &mut settings.pause);
    longer_than_zero(cx, body.max_pause, &mut settings.max_pause);
    overrides.set(Breakers::from(settings));
}
