use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, RateLimitSettings, Scopes, Setting, SettingLevel};
use tool_settings::{Field, NodeId, Period, Section, SectionContext, SectionKeys, ToolSettings};

use crate::RateLimitLayer;

/// Rate limits of calls, one for each scope.
///
/// The limit of one tool is declared in its [metadata](tool_core::Metadata::rate_limit), which operators are shown. It counts
/// once the settings of the tool contain this type, if only its default. A limit of the upstream counts for tools that have
/// one: see [`ToolBuilder::upstream`](tool_core::ToolBuilder::upstream).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimits(pub Scopes<RateLimitSettings>);

impl RateLimits {
    /// Limits the calls of each tool with these settings, for all callers together.
    #[must_use]
    pub fn for_tool(limit: RateLimitSettings) -> Self {
        Self(Scopes {
            tool: Some(limit),
            ..Scopes::default()
        })
    }

    /// Limits the calls of each tool with these settings to this number in a second.
    #[must_use]
    pub fn per_second(requests: u32) -> Self {
        Self::for_tool(RateLimitSettings::new(requests, Duration::from_secs(1)))
    }
}

impl Setting for RateLimits {
    fn merged(&self, wider: Option<&Self>, _: SettingLevel) -> Self {
        Self(self.0.or(wider.map(|wider| wider.0).unwrap_or_default()))
    }

    fn settled(&self, tool: &Descriptor) -> Option<Self> {
        let declared = tool.metadata.rate_limit;
        let declared = declared.filter(|_| tool.origin.declarations_count());
        let limits = Scopes {
            tool: declared.or(self.0.tool),
            ..self.0
        };
        (!limits.is_empty()).then_some(Self(limits))
    }
}

impl RateLimitLayer {
    /// The section `rate_limit`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(
                SectionKeys::new(|cx, keys: ToolKeys, tool: &mut ToolSettings| {
                    tool.metadata.rate_limit = limit(cx, keys.rate_limit);
                })
                .spelling("rateLimit", "rate_limit")
                .in_group(1),
            )
            .for_servers(
                SectionKeys::new(|cx, keys: ServerKeys, overrides: &mut Overrides| {
                    let upstream = limit(cx, keys.rate_limit);
                    if upstream.is_some() {
                        overrides.set(RateLimits(Scopes {
                            upstream,
                            ..Scopes::default()
                        }));
                    }
                })
                .spelling("rateLimit", "rate_limit"),
            )
            .for_defaults(SectionKeys::new(read_defaults).in_group(1))
            .always(RateLimits::default())
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Rate limit of the tool's calls.
    rate_limit: Field<RateLimitBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Rate limit of all calls of the server's tools together.
    rate_limit: Field<RateLimitBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Rate limits of calls. Default: no limit.
    rate_limit: Field<RateLimitsBody>,
}

/// Rate limit of calls.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RateLimit", extend("required" = ["requests", "period"]))]
struct RateLimitBody {
    /// Number of calls in each period.
    requests: Field<u32>,
    /// Length of the period, such as `1m`.
    period: Field<Period>,
    /// Maximum number of calls at once. Default: `requests`.
    burst: Field<u32>,
    /// Maximum number of `requests` that one principal may use. Default: all of them.
    per_principal: Field<u32>,
}

/// Rate limits of calls by scope, where nothing more specific is set. A call must fit into all of them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RateLimits")]
struct RateLimitsBody {
    /// Rate limit of each principal, for all tools together.
    per_principal: Field<RateLimitBody>,
    /// Rate limit of each tool without its own `rate_limit`.
    per_tool: Field<RateLimitBody>,
    /// Rate limit of each server, or of each host of HTTP tools, for all of its tools together. A server's own
    /// `rate_limit` overrides it.
    per_upstream: Field<RateLimitBody>,
    /// Rate limit of all tools together.
    total: Field<RateLimitBody>,
}

fn read_defaults(cx: SectionContext<'_>, keys: DefaultKeys, overrides: &mut Overrides) {
    let Some(body) = keys.rate_limit.get() else {
        return;
    };
    overrides.set(RateLimits(Scopes {
        principal: limit(cx, body.per_principal),
        tool: limit(cx, body.per_tool),
        upstream: limit(cx, body.per_upstream),
        total: limit(cx, body.total),
    }));
}

/// Reads one limit. Returns `None`, and reports it, if the limit is not usable.
fn limit(cx: SectionContext<'_>, field: Field<RateLimitBody>) -> Option<RateLimitSettings> {
    let (at, body) = field.located()?;
    for (name, missing) in [
        ("requests", body.requests.is_absent()),
        ("period", body.period.is_absent()),
    ] {
        if missing {
            cx.key_error(
                at,
                format!("`{name}` is missing"),
                "write `{requests: 100, period: 1m}`",
            );
        }
    }
    let (requests_at, requests) = body.requests.located()?;
    let Period(period) = body.period.get()?;
    if requests == 0 || period.is_zero() {
        nothing_left(cx, requests_at);
        return None;
    }
    let part = |field: Field<u32>| {
        let (at, part) = field.located()?;
        if part == 0 {
            nothing_left(cx, at);
        } else if part > requests {
            cx.error(
                at,
                format!("{part} is more than the {requests} of `requests`"),
                "leave it out if it limits nothing",
            );
        }
        Some(part)
    };
    let mut limit = RateLimitSettings::new(requests, period);
    limit.burst = part(body.burst);
    limit.per_principal = part(body.per_principal);
    Some(limit)
}

fn nothing_left(cx: SectionContext<'_>, at: NodeId) {
    cx.error(
        at,
        "a rate limit of nothing would refuse every call",
        "use the policy's `blocklist` to refuse calls",
    );
}
