//! What becomes of calls with an idempotency key.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    configuration::{Defaults, KeyPlaceSpec},
    field::Field,
    place::Cx,
    units::{Bytes, Period},
};

/// What becomes of calls with an idempotency key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Idempotency")]
pub(crate) struct IdempotencyBody {
    /// How long is remembered what came of them; 24h if it is not given.
    ttl: Field<Period>,
}

/// What becomes of calls with an idempotency key where nothing else is said, and how many are remembered.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Idempotencies")]
pub(crate) struct IdempotenciesBody {
    /// How long is remembered what came of them; 24h if it is not given.
    ttl: Field<Period>,
    /// How many are remembered; 10000 if it is not given. Beyond that, the oldest of whoever has the most are forgotten. It
    /// counts from the start: a reload does not change it.
    max_entries: Field<u32>,
    /// How much they may take, answers included; 64MiB if it is not given. Beyond that, the oldest answers are
    /// forgotten. It counts from the start: a reload does not change it.
    max_bytes: Field<Bytes>,
}

/// What becomes of calls with an idempotency key, and how a server is told the key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ServerIdempotency")]
pub(crate) struct ServerIdempotencyBody {
    /// How long is remembered what came of them; 24h if it is not given.
    ttl: Field<Period>,
    /// The key of `_meta` under which the server takes it, such as `dev.toolplane/idempotency-key`. Say this only of a
    /// server that does once what it is told twice with the same key: failed calls are then made again.
    meta: Field<String>,
    /// The argument as which its tools take it: as `meta`.
    argument: Field<String>,
}

/// How long is remembered what came of a tool's calls.
pub(crate) fn ttl(cx: Cx<'_>, field: Field<IdempotencyBody>) -> Option<Duration> {
    period(cx, field.get()?.ttl)
}

/// The same of a server's tools, and how it is told the key.
pub(crate) fn server(
    cx: Cx<'_>,
    field: Field<ServerIdempotencyBody>,
) -> (Option<Duration>, Option<KeyPlaceSpec>) {
    let Some(body) = field.get() else {
        return (None, None);
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
        (Some(meta), _) => Some(KeyPlaceSpec::Meta(meta)),
        (None, argument) => argument.map(KeyPlaceSpec::Argument),
    };
    (period(cx, body.ttl), place)
}

/// Puts what holds for all tools into the defaults.
pub(crate) fn defaults(cx: Cx<'_>, field: Field<IdempotenciesBody>, defaults: &mut Defaults) {
    let Some(body) = field.get() else { return };
    defaults.overrides.key_ttl = period(cx, body.ttl);
    if let Some((at, most)) = body.max_entries.located() {
        if most == 0 {
            cx.error(
                at,
                "no call with a key could be made",
                "leave it out for the default",
            );
        }
        defaults.max_keys = usize::try_from(most).ok();
    }
    if let Some((at, Bytes(most))) = body.max_bytes.located() {
        if most == 0 {
            cx.error(
                at,
                "no call with a key could be made",
                "leave it out for the default",
            );
        }
        defaults.max_key_bytes = Some(most);
    }
}

fn period(cx: Cx<'_>, field: Field<Period>) -> Option<Duration> {
    let (at, Period(period)) = field.located()?;
    if period.is_zero() {
        cx.error(at, "this must be longer than 0", "leave it out for the usual one");
    }
    Some(period)
}
