use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{ConcurrencySettings, Descriptor, Overrides, Scopes, Setting, Trust};
use tool_settings::{Field, Period, Section, SectionContext, SectionKeys, ToolSettings};

use crate::ConcurrencyLimitLayer;

/// Limits of concurrent attempts, one for each scope.
///
/// The limit of one tool is declared in its [metadata](tool_core::Metadata::concurrency), which operators are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConcurrencyLimits(pub Scopes<ConcurrencySettings>);

impl Setting for ConcurrencyLimits {
    fn merged(&self, wider: Option<&Self>, _: tool_core::SettingLevel) -> Self {
        Self(self.0.or(wider.map(|wider| wider.0).unwrap_or_default()))
    }

    fn settled(&self, tool: &Descriptor) -> Option<Self> {
        let declared = tool.metadata.concurrency;
        let declared = declared.filter(|_| tool.origin.trust == Trust::Operator);
        let limits = Scopes {
            tool: declared.or(self.0.tool),
            ..self.0
        };
        (!limits.is_empty()).then_some(Self(limits))
    }
}

impl ConcurrencyLimitLayer {
    /// The section `concurrency`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(
                SectionKeys::new(|cx, keys: ToolKeys, tool: &mut ToolSettings| {
                    tool.metadata.concurrency = limit(cx, keys.concurrency);
                })
                .in_group(1),
            )
            .for_servers(SectionKeys::new(
                |cx, keys: ServerKeys, overrides: &mut Overrides| {
                    let upstream = limit(cx, keys.concurrency);
                    if upstream.is_some() {
                        overrides.set(ConcurrencyLimits(Scopes {
                            upstream,
                            ..Scopes::default()
                        }));
                    }
                },
            ))
            .for_defaults(SectionKeys::new(read_defaults).in_group(1))
            .always(ConcurrencyLimits::default())
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Limit of its calls that run at once.
    concurrency: Field<ConcurrencyBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Limit of calls of its tools that run at once.
    concurrency: Field<ConcurrencyBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Limits of calls that run at once; none by default.
    concurrency: Field<ConcurrenciesBody>,
}

/// Limit of calls that run at once, and of those that wait.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Concurrency", extend("required" = ["max"]))]
struct ConcurrencyBody {
    /// Maximum number of running calls.
    max: Field<u32>,
    /// Maximum number of waiting calls, first come first served; 100 by default. One more is refused at once.
    queue: Field<u32>,
    /// Longest time that a call waits, such as `10s`; a quarter of the time that it has left by default.
    wait: Field<Period>,
}

/// Limits of calls that run at once. A call needs a permit of each of these.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Concurrencies")]
struct ConcurrenciesBody {
    /// Limit of the calls of each principal, whatever it calls.
    per_principal: Field<ConcurrencyBody>,
    /// Limit of the calls of each tool that has no `concurrency` of its own.
    per_tool: Field<ConcurrencyBody>,
    /// Limit of the calls of each server, or of each host of HTTP tools; a server's own `concurrency` overrides it.
    per_upstream: Field<ConcurrencyBody>,
    /// Limit of the calls of all tools.
    total: Field<ConcurrencyBody>,
}

fn read_defaults(cx: SectionContext<'_>, keys: DefaultKeys, overrides: &mut Overrides) {
    let Some(body) = keys.concurrency.get() else {
        return;
    };
    overrides.set(ConcurrencyLimits(Scopes {
        principal: limit(cx, body.per_principal),
        tool: limit(cx, body.per_tool),
        upstream: limit(cx, body.per_upstream),
        total: limit(cx, body.total),
    }));
}

/// Reads one limit. Returns `None`, and reports it, if the limit is not usable.
fn limit(cx: SectionContext<'_>, field: Field<ConcurrencyBody>) -> Option<ConcurrencySettings> {
    let (at, body) = field.located()?;
    if body.max.is_absent() {
        cx.key_error(at, "`max` is missing", "write `{max: 8}`");
    }
    let (max_at, max) = body.max.located()?;
    if max == 0 {
        cx.error(
            max_at,
            "no call could ever run",
            "use the policy's `blocklist` to refuse calls",
        );
    }
    let limit = ConcurrencySettings::new(max);
    Some(ConcurrencySettings {
        queue: body.queue.get().unwrap_or(limit.queue),
        wait: body.wait.get().map(|Period(wait)| wait),
        ..limit
    })
}
