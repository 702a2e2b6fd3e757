use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{CacheScope, CacheSettings, Metadata};

use crate::{
    field::Field,
    node::NodeId,
    place::Cx,
    units::{Bytes, Period},
};

/// When answers are kept for later calls with the same arguments, and identical calls at the same time are made once.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Cache")]
pub(crate) struct CacheBody {
    /// Whether there is no cache after all.
    disabled: Field<bool>,
    /// How long an answer is fresh. If it is not given, 5m for a tool with `latency: slow`, 30s for one with
    /// `realtime-data` among its capabilities, and 1m for others. With 0s only calls at the same time share one.
    ttl: Field<Period>,
    /// For how long after that it is still given, while a new one is fetched in the background; 0s if it is not given.
    stale_while_revalidate: Field<Period>,
    /// For how long after that it is given if no new one can be had; 0s if it is not given.
    stale_if_error: Field<Period>,
    /// How large an answer may be to be kept; 1MiB if it is not given.
    max_bytes: Field<Bytes>,
    /// Who shares answers; `principal` if it is not given.
    scope: Field<Scope>,
}

/// Who shares answers: `principal` is each principal with itself, `shared` all principals of a tenant. The latter is for
/// tools whose answer does not depend on who asks.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CacheScope")]
pub(crate) enum Scope {
    Principal,
    Shared,
}

/// Makes settings from what a file says.
pub(crate) fn cache(cx: Cx<'_>, body: CacheBody) -> CacheSettings {
    let usual = CacheSettings::default();
    let max_bytes = body.max_bytes.located().map(|(at, Bytes(bytes))| {
        if bytes == 0 {
            cx.error(at, "no answer fits into 0 bytes", "write `ttl: 0s` to keep none");
        }
        bytes
    });
    let period = |field: Field<Period>| field.get().map(|Period(period)| period);
    CacheSettings {
        disabled: body.disabled.get().unwrap_or_default(),
        ttl: period(body.ttl),
        stale_while_revalidate: period(body.stale_while_revalidate).unwrap_or_default(),
        stale_if_error: period(body.stale_if_error).unwrap_or_default(),
        max_bytes: max_bytes.unwrap_or(usual.max_bytes),
        scope: match body.scope.get() {
            Some(Scope::Shared) => CacheScope::Shared,
            Some(Scope::Principal) | None => CacheScope::Principal,
        },
    }
}

/// Reports a cache, set up for a tool at this place, which is said to change something.
pub(crate) fn check(cx: Cx<'_>, at: Option<NodeId>, settings: Option<CacheSettings>, metadata: &Metadata) {
    let (Some(at), Some(_)) = (at, settings.filter(|cache| !cache.disabled)) else {
        return;
    };
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
