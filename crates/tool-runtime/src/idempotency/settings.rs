use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting};
use tool_settings::{ByteSize, Field, Period, Section, SectionContext, SectionKeys, ToolSettings, positive};

use crate::IdempotencyLayer;

/// Settings of calls with an idempotency key.
///
/// Several layers need to know if the backend receives the key:
/// [`Settings::passes_key`](tool_core::Settings::passes_key).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdempotencySettings {
    /// Time for which outcomes are remembered.
    pub ttl: Duration,
}

impl Default for IdempotencySettings {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl IdempotencySettings {
    /// Sets the time for which outcomes are remembered.
    #[must_use]
    pub const fn new(ttl: Duration) -> Self {
        Self { ttl }
    }
}

impl Setting for IdempotencySettings {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        Some(*self).filter(|settings| *settings != Self::default())
    }
}

/// Position at which a server takes the idempotency key of a call. Set for a server only, for its executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotencyKeyPlace {
    /// Under this key of `_meta`.
    Meta(String),
    /// As this argument of the tool.
    Argument(String),
}

impl Setting for IdempotencyKeyPlace {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        None
    }
}

/// Limits of the ledger of calls with a key, where they are set. Set in the defaults only, and read when the program
/// starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LedgerCapacity {
    /// Maximum number of calls.
    pub max_entries: Option<usize>,
    /// Maximum memory, replies included, in bytes.
    pub max_bytes: Option<usize>,
}

impl LedgerCapacity {
    /// Sets the maximum number of calls.
    #[must_use]
    pub fn with_max_entries(mut self, max_entries: usize) -> Self {
        self.max_entries = Some(max_entries);
        self
    }

    /// Sets the maximum memory, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = Some(max_bytes);
        self
    }
}

impl Setting for LedgerCapacity {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        None
    }
}

impl IdempotencyLayer {
    /// The section `idempotency`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|cx, keys: ToolKeys, tool: &mut ToolSettings| {
                let body = keys.idempotency.get().unwrap_or_default();
                set_ttl(cx, body.ttl, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(read_server).in_group(1))
            .for_defaults(SectionKeys::new(read_defaults).in_group(4))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Handling of the tool's calls with an idempotency key.
    idempotency: Field<IdempotencyBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Handling of calls with an idempotency key, and the position at which the server takes the key.
    idempotency: Field<ServerIdempotencyBody>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Handling of calls with an idempotency key. Servers and tools can override it.
    idempotency: Field<IdempotenciesBody>,
}

/// Handling of calls with an idempotency key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Idempotency")]
struct IdempotencyBody {
    /// Time for which outcomes of calls are remembered. Default: 24h.
    ttl: Field<Period>,
}

/// Handling of calls with an idempotency key, where nothing more specific is set, and limits of the ledger.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Idempotencies")]
struct IdempotenciesBody {
    /// Time for which outcomes of calls are remembered. Default: 24h.
    ttl: Field<Period>,
    /// Maximum number of remembered calls. Beyond it, the oldest calls of the principal with the most calls are
    /// evicted. Read at the start: a reload does not change it. Default: 10000.
    max_entries: Field<u32>,
    /// Maximum memory for remembered calls, replies included. Beyond it, the oldest replies are evicted. Read at the
    /// start: a reload does not change it. Default: 64MiB.
    max_bytes: Field<ByteSize>,
}

/// Handling of calls with an idempotency key, and the position at which the server takes the key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ServerIdempotency")]
struct ServerIdempotencyBody {
    /// Time for which outcomes of calls are remembered. Default: 24h.
    ttl: Field<Period>,
    /// Key of `_meta` under which the server takes the idempotency key, such as `dev.toolplane/idempotency-key`. Set
    /// it only for a server that executes two calls with the same key once: failed calls are then retried.
    meta: Field<String>,
    /// Argument in which the server's tools take the idempotency key. The rule of `meta` applies.
    argument: Field<String>,
}

fn set_ttl(cx: SectionContext<'_>, field: Field<Period>, overrides: &mut Overrides) {
    if let Some(ttl) = positive(cx, field) {
        overrides.set(IdempotencySettings { ttl });
    }
}

/// Reads the settings of a server's tools, and the position at which the server takes the key.
fn read_server(cx: SectionContext<'_>, keys: ServerKeys, overrides: &mut Overrides) {
    let Some(body) = keys.idempotency.get() else {
        return;
    };
    if let (Some(_), Some(second)) = (body.meta.given(), body.argument.given()) {
        cx.error(
            second,
            "the key is passed on in one way only",
            "remove `meta` or `argument`",
        );
    }
    for (at, text) in [&body.meta, &body.argument]
        .into_iter()
        .filter_map(|field| Some((field.given()?, field.as_ref()?)))
    {
        if text.is_empty() {
            cx.error(
                at,
                "this names nothing",
                "leave it out if the server takes no key",
            );
        }
    }
    let place = match (body.meta.get(), body.argument.get()) {
        (Some(meta), _) => Some(IdempotencyKeyPlace::Meta(meta)),
        (None, argument) => argument.map(IdempotencyKeyPlace::Argument),
    };
    if let Some(place) = place {
        overrides.set(place);
    }
    set_ttl(cx, body.ttl, overrides);
}

/// Reads the settings of all tools, and the limits of the ledger.
fn read_defaults(cx: SectionContext<'_>, keys: DefaultKeys, overrides: &mut Overrides) {
    let Some(body) = keys.idempotency.get() else {
        return;
    };
    set_ttl(cx, body.ttl, overrides);
    let limit = |at, limit: usize| {
        if limit == 0 {
            cx.error(
                at,
                "no call with a key could be made",
                "leave it out for the default",
            );
        }
        limit
    };
    let max_entries = body.max_entries.located();
    let capacity = LedgerCapacity {
        max_entries: max_entries.map(|(at, most)| limit(at, usize::try_from(most).unwrap_or(usize::MAX))),
        max_bytes: body
            .max_bytes
            .located()
            .map(|(at, ByteSize(most))| limit(at, most)),
    };
    if capacity != LedgerCapacity::default() {
        overrides.set(capacity);
    }
}
