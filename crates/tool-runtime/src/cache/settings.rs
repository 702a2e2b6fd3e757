use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Feature, LatencyClass, Metadata, Overrides, Setting};
use tool_settings::{
    ByteSize, DeferredCheck, Field, NodeId, Period, Section, SectionContext, SectionKeys, ToolSettings,
};

use super::semantic::{self, LocatedSemantics, SemanticBody};
use crate::CacheLayer;

/// Settings of the response cache: how long results of a tool are cached for later calls. Identical concurrent calls
/// share one execution.
///
/// Only a tool whose result depends solely on its arguments and its caller, and which changes nothing, may have a
/// cache. Settings of a server or the defaults apply only to tools that their operator declares `read_only` and
/// `idempotent`; a server's claims about its own tools do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheSettings {
    /// `true` if the cache is disabled.
    pub disabled: bool,
    /// Time for which a result is fresh; see [`CacheSettings::ttl_of`] if absent. With zero, only concurrent calls
    /// share a result.
    pub ttl: Option<Duration>,
    /// Time after the TTL for which a stale result is still returned, while a new one is fetched in the background.
    pub stale_while_revalidate: Duration,
    /// Time after the TTL for which a stale result is returned if no new one can be fetched.
    pub stale_if_error: Duration,
    /// Maximum size of a cached result, in bytes.
    pub max_bytes: usize,
    /// Callers that share results.
    pub scope: CacheScope,
}

/// Callers that share results of a tool. Tenants never share results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CacheScope {
    /// Calls of one principal.
    #[default]
    Principal,
    /// Calls of all principals of a tenant: only for tools whose result does not depend on the caller.
    Shared,
}

/// Maximum memory for the cached results of all tools, in bytes. Default: 64 MiB. Set in the defaults only, and read
/// when the program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheCapacity(pub usize);

/// Capability of tools that report the present moment.
const REALTIME: &str = "realtime-data";

impl CacheSettings {
    /// Enables or disables the cache.
    #[must_use]
    pub fn with_disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }

    /// Sets the time for which a result is fresh.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the time for which a stale result is returned while a new one is fetched.
    #[must_use]
    pub fn with_stale_while_revalidate(mut self, stale_while_revalidate: Duration) -> Self {
        self.stale_while_revalidate = stale_while_revalidate;
        self
    }

    /// Sets the time for which a stale result is returned if no new one can be fetched.
    #[must_use]
    pub fn with_stale_if_error(mut self, stale_if_error: Duration) -> Self {
        self.stale_if_error = stale_if_error;
        self
    }

    /// Sets the maximum size of a cached result, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets the callers that share results.
    #[must_use]
    pub fn with_scope(mut self, scope: CacheScope) -> Self {
        self.scope = scope;
        self
    }

    /// Returns the time for which a result is fresh: the configured TTL, or else 5 minutes if the tool is slow, 30
    /// seconds if `realtime-data` is among its capabilities, and 1 minute otherwise.
    #[must_use]
    pub fn ttl_of(&self, metadata: &Metadata) -> Duration {
        let by_metadata = || {
            let seconds = if metadata.latency == Some(LatencyClass::Slow) {
                300
            } else if metadata
                .capabilities
                .iter()
                .any(|capability| capability == REALTIME)
            {
                30
            } else {
                60
            };
            Duration::from_secs(seconds)
        };
        self.ttl.unwrap_or_else(by_metadata)
    }
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            disabled: false,
            ttl: None,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            max_bytes: 1 << 20,
            scope: CacheScope::Principal,
        }
    }
}

impl Setting for CacheSettings {
    fn settled(&self, tool: &Descriptor) -> Option<Self> {
        (!self.disabled && may_be_shared(tool)).then_some(*self)
    }

    fn forks_calls(&self) -> bool {
        true
    }
}

/// Returns `true` if results of the tool may be cached where a cache is configured: the operator declared the tool
/// read-only and idempotent, or configured a cache for this very tool.
pub(crate) fn may_be_shared(tool: &Descriptor) -> bool {
    let metadata = &tool.metadata;
    let is_declared = metadata.read_only == Some(true) && metadata.idempotent == Some(true);
    tool.feature == Feature::Tool
        && tool.origin.declarations_count()
        && (is_declared || tool.overrides.get::<CacheSettings>().is_some())
}

impl Default for CacheCapacity {
    fn default() -> Self {
        Self(64 << 20)
    }
}

impl Setting for CacheCapacity {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        None
    }
}

impl CacheLayer {
    /// The section `cache`, and `cache_bytes` of the defaults.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(read_tool))
            .for_servers(SectionKeys::new(|cx, keys: ServerKeys, overrides| {
                read_many(cx, keys.cache, overrides);
            }))
            .for_defaults(SectionKeys::new(
                |cx, keys: DefaultKeys, overrides: &mut Overrides| {
                    read_many(cx, keys.cache, overrides);
                    read_capacity(cx, keys.cache_bytes, overrides);
                },
            ))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Response cache of the tool. Overrides `defaults`. For a tool that changes nothing, and whose result depends
    /// only on its arguments and its caller.
    cache: Field<CacheBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Response cache of those of the server's tools that are declared `read_only` and `idempotent` here. The
    /// server's claims about its tools do not count. Overrides `defaults`.
    cache: Field<CacheBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Response cache of tools that are declared `read_only` and `idempotent`. Servers and tools can override it.
    /// Default: no cache.
    cache: Field<CacheBody>,
    /// Maximum memory for the cached results of all tools. Read at the start: a reload does not change it. Default:
    /// 64MiB.
    cache_bytes: Field<ByteSize>,
}

/// Response cache: results are cached for later calls with the same arguments, and identical concurrent calls are
/// executed once.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Cache")]
struct CacheBody {
    /// `true` disables the cache.
    disabled: Field<bool>,
    /// Time for which a result is fresh. With 0s only concurrent calls share a result. Default: 5m for a tool with
    /// `latency: slow`, 30s for one with `realtime-data` among its capabilities, and 1m for others.
    ttl: Field<Period>,
    /// Time after `ttl` for which a stale result is still returned, while a new one is fetched in the background.
    /// Default: 0s.
    stale_while_revalidate: Field<Period>,
    /// Time after `ttl` for which a stale result is returned if no new one can be fetched. Default: 0s.
    stale_if_error: Field<Period>,
    /// Maximum size of a cached result. Default: 1MiB.
    max_bytes: Field<ByteSize>,
    /// Callers that share results. Default: `principal`.
    scope: Field<Scope>,
    /// Semantic cache, for one tool only. Default: none, only equal calls share results.
    semantic: Field<SemanticBody>,
}

/// Callers that share results: with `principal`, only calls of one principal; with `shared`, all principals of a
/// tenant. `shared` is for tools whose result does not depend on the caller.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CacheScope")]
enum Scope {
    Principal,
    Shared,
}

fn read_tool(cx: SectionContext<'_>, keys: ToolKeys, tool: &mut ToolSettings) {
    let at = keys.cache.given();
    if let Some(semantics) = read(cx, keys.cache, &mut tool.overrides) {
        tool.overrides.set(semantics.settings.clone());
        tool.checks
            .push(DeferredCheck::new(move |tool| semantics.check(tool)));
    }
    let settings = tool.overrides.get::<CacheSettings>();
    if let (Some(at), Some(_)) = (at, settings.filter(|cache| !cache.disabled)) {
        check(cx, at, &tool.metadata);
    }
}

/// Reads the cache of many tools, which cannot be semantic: each tool has its own arguments.
fn read_many(cx: SectionContext<'_>, field: Field<CacheBody>, overrides: &mut Overrides) {
    let semantic = field.as_ref().and_then(|body| body.semantic.given());
    if let Some(at) = semantic {
        cx.key_error(
            at,
            "this cannot be for many tools, whose arguments differ",
            "write it in the `cache` of the tool that it is for",
        );
    }
    read(cx, field, overrides);
}

/// Reads the cache of a tool or of many. Returns the settings of the semantic cache.
fn read(
    cx: SectionContext<'_>,
    field: Field<CacheBody>,
    overrides: &mut Overrides,
) -> Option<LocatedSemantics> {
    let body = field.get()?;
    let usual = CacheSettings::default();
    let max_bytes = body.max_bytes.located().map(|(at, ByteSize(bytes))| {
        if bytes == 0 {
            cx.error(at, "no answer fits into 0 bytes", "write `ttl: 0s` to keep none");
        }
        bytes
    });
    let period = |field: Field<Period>| field.get().map(|Period(period)| period);
    let ttl = period(body.ttl);
    overrides.set(CacheSettings {
        disabled: body.disabled.get().unwrap_or_default(),
        ttl,
        stale_while_revalidate: period(body.stale_while_revalidate).unwrap_or_default(),
        stale_if_error: period(body.stale_if_error).unwrap_or_default(),
        max_bytes: max_bytes.unwrap_or(usual.max_bytes),
        scope: match body.scope.get() {
            Some(Scope::Shared) => CacheScope::Shared,
            Some(Scope::Principal) | None => CacheScope::Principal,
        },
    });
    let (at, semantic) = body.semantic.located()?;
    if ttl == Some(Duration::ZERO) {
        cx.key_error(
            at,
            "no result is fresh with `ttl: 0s`, so none answers another call",
            "set a longer `ttl`, or remove `semantic`",
        );
    }
    semantic::read(cx, at, semantic)
}

fn read_capacity(cx: SectionContext<'_>, field: Field<ByteSize>, overrides: &mut Overrides) {
    if let Some((at, ByteSize(bytes))) = field.located() {
        if bytes == 0 {
            cx.error(
                at,
                "no answer fits into 0 bytes",
                "leave `cache` out to keep none",
            );
        }
        overrides.set(CacheCapacity(bytes));
    }
}

/// Reports the cache of a tool that is declared to change something.
fn check(cx: SectionContext<'_>, at: NodeId, metadata: &Metadata) {
    for (said, key) in [
        (metadata.read_only, "read_only"),
        (metadata.idempotent, "idempotent"),
    ] {
        if said == Some(false) {
            cx.error(
                at,
                format!(
                    "a tool with `{key}: false` cannot have a cache: calls answered from it have no effect"
                ),
                "remove one of the two lines",
            );
        }
    }
}
