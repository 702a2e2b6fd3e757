use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{ConcurrencySettings, Descriptor, Overrides, Scopes, Setting};
use tool_settings::{Field, Period, Section, SectionContext, SectionKeys, ToolSettings};

use crate::ConcurrencyLimitLayer;

/// Limits of concurrent attempts, one for each scope.
///
/// The limit of one tool is declared in its [metadata](tool_core::Metadata::concurrency), which operators are shown. It counts
/// once the settings of the tool contain this type, if only its default. A limit of the upstream counts for tools that have
/// one: see [`ToolBuilder::upstream`](tool_core::ToolBuilder::upstream).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConcurrencyLimits(pub Scopes<ConcurrencySettings>);

impl ConcurrencyLimits {
    /// Limits the attempts of each tool with these settings that run at once, for all callers together.
    #[must_use]
    pub fn for_tool(limit: ConcurrencySettings) -> Self {
        Self(Scopes {
            tool: Some(limit),
            ..Scopes::default()
        })
    }
}

impl Setting for ConcurrencyLimits {
    fn merged(&self, wider: Option<&Self>, _: tool_core::SettingLevel) -> Self {
        Self(self.0.or(wider.map(|wider| wider.0).unwrap_or_default()))
    }

    fn settled(&self, tool: &Descriptor) -> Option<Self> {
        let declared = tool.metadata.concurrency;
        let declared = declared.filter(|_| tool.origin.declarations_count());
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
    /// Concurrency limit of the tool's calls.
    concurrency: Field<ConcurrencyBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Concurrency limit of all calls of the server's tools together.
    concurrency: Field<ConcurrencyBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Concurrency limits of calls. Default: no limit.
    concurrency: Field<ConcurrenciesBody>,
}

/// Concurrency limit: maximum number of running calls, and of calls that wait.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Concurrency", extend("required" = ["max"]))]
struct ConcurrencyBody {
    /// Maximum number of running calls.
    max: Field<u32>,
    /// Maximum number of calls that wait, in order of arrival. Further calls are rejected at once. Default: 100.
    queue: Field<u32>,
    /// Maximum time that a call waits, such as `10s`. Default: a quarter of the time that the call has left.
    wait: Field<Period>,
}

/// Concurrency limits by scope, where nothing more specific is set. A call must fit into all of them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Concurrencies")]
struct ConcurrenciesBody {
    /// Concurrency limit of each principal, for all tools together.
    per_principal: Field<ConcurrencyBody>,
    /// Concurrency limit of each tool without its own `concurrency`.
    per_tool: Field<ConcurrencyBody>,
    /// Concurrency limit of each server, or of each host of HTTP tools. A server's own `concurrency` overrides it.
    per_upstream: Field<ConcurrencyBody>,
    /// Concurrency limit of all tools together.
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
    let mut limit = ConcurrencySettings::new(max);
    limit.queue = body.queue.get().unwrap_or(limit.queue);
    limit.wait = body.wait.get().map(|Period(wait)| wait);
    Some(limit)
}
