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
    /// Calls of the tool alone.
    #[default]
    Tool,
    /// Calls of the tool, and of all tools of its upstream where the upstream itself fails.
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

/// Settings of the two breakers that an attempt passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breakers {
    /// Breaker of the tool.
    pub tool: BreakerSettings,
    /// Breaker of its upstream: the settings of the server or the defaults, or those of a tool that says
    /// [`BreakerScope::Upstream`]. One upstream has one breaker: a tool sets how its own failures count for that.
    pub upstream: BreakerSettings,
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
    /// Circuit breaker of the tool, instead of the one in `defaults`.
    breaker: Field<BreakerBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Circuit breaker of the server and its tools, instead of the one in `defaults`.
    breaker: Field<BreakerBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Circuit breaker of each tool and its upstream; none by default. A server or tool can override it.
    breaker: Field<BreakerBody>,
}

/// Circuit breaker: after failures, calls of a tool fail at once, until a probe succeeds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Breaker")]
struct BreakerBody {
    /// Switches the breaker off.
    disabled: Field<bool>,
    /// Scope of the breaker: `tool`, the tool alone, by default; `upstream`, also all tools of its server or HTTP
    /// host when that itself fails. A connection that cannot be made always counts for the server or host.
    per: Field<BreakerScopeWord>,
    /// Number of failures in a row that opens it; 5 by default.
    max_failures: Field<u32>,
    /// Share of failed calls that opens it; 50% by default.
    failure_share: Field<Percent>,
    /// Minimum number of calls for the share to count; 10 by default.
    min_calls: Field<u32>,
    /// Time for which calls count; 30s by default.
    window: Field<Period>,
    /// Time for which it stays open at first, and up to a fifth longer; 1s by default. It doubles with every probe
    /// that fails.
    pause: Field<Period>,
    /// Longest time for which it stays open; 60s by default.
    max_pause: Field<Period>,
}

/// Scope of a breaker.
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
