use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{ConcurrencySettings, Limits, RateLimitSettings, Scopes};

use crate::{field::Field, node::NodeId, place::Cx, units::Period};

/// How often tools may be called.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RateLimit", extend("required" = ["requests", "period"]))]
pub(crate) struct RateLimitBody {
    /// How many calls.
    requests: Field<u32>,
    /// In what time, such as `1m`.
    period: Field<Period>,
    /// How many at once; as many as `requests` if it is not given.
    burst: Field<u32>,
    /// How many of `requests` may be of one principal; all of them if it is not given.
    per_principal: Field<u32>,
}

/// How many calls may run at once, and how many more may wait.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Concurrency", extend("required" = ["max"]))]
pub(crate) struct ConcurrencyBody {
    /// How many may run.
    max: Field<u32>,
    /// How many may wait, first come first served; 100 if it is not given. One more is refused at once.
    queue: Field<u32>,
    /// How long one may wait, such as `10s`; a quarter of the time that the call has left if it is not given.
    wait: Field<Period>,
}

/// How often tools may be called where nothing else is said. A call must fit into all of these.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RateLimits")]
pub(crate) struct RateLimitsBody {
    /// How often each principal may call, whatever it calls.
    per_principal: Field<RateLimitBody>,
    /// How often each tool may be called that has no `rate_limit` of its own.
    per_tool: Field<RateLimitBody>,
    /// How often the tools of each server, or of each host of HTTP tools, may be called in all; a server's own
    /// `rate_limit` is in its place.
    per_upstream: Field<RateLimitBody>,
    /// How often all tools may be called.
    total: Field<RateLimitBody>,
}

/// How many calls may run at once where nothing else is said. A call needs a place in all of these.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Concurrencies")]
pub(crate) struct ConcurrenciesBody {
    /// How many calls each principal may have, whatever it calls.
    per_principal: Field<ConcurrencyBody>,
    /// How many calls there may be of each tool that has no `concurrency` of its own.
    per_tool: Field<ConcurrencyBody>,
    /// How many calls there may be at each server, or at each host of HTTP tools; a server's own `concurrency` is in its
    /// place.
    per_upstream: Field<ConcurrencyBody>,
    /// How many calls there may be of all tools.
    total: Field<ConcurrencyBody>,
}

/// The limits for whatever sets none of its own.
pub(crate) fn limits(
    cx: Cx<'_>,
    rate: Field<RateLimitsBody>,
    concurrency: Field<ConcurrenciesBody>,
) -> Limits {
    let mut limits = Limits::default();
    let rate = rate.get().unwrap_or_default();
    limits.rate = Scopes {
        principal: rate_limit(cx, rate.per_principal),
        tool: rate_limit(cx, rate.per_tool),
        upstream: rate_limit(cx, rate.per_upstream),
        total: rate_limit(cx, rate.total),
    };
    let places = concurrency.get().unwrap_or_default();
    limits.concurrency = Scopes {
        principal: self::concurrency(cx, places.per_principal),
        tool: self::concurrency(cx, places.per_tool),
        upstream: self::concurrency(cx, places.per_upstream),
        total: self::concurrency(cx, places.total),
    };
    limits
}

/// How often something may be called; nothing if that is not usable, which is then reported.
pub(crate) fn rate_limit(cx: Cx<'_>, field: Field<RateLimitBody>) -> Option<RateLimitSettings> {
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
    Some(RateLimitSettings {
        requests,
        period,
        burst: part(body.burst),
        per_principal: part(body.per_principal),
    })
}

fn nothing_left(cx: Cx<'_>, at: NodeId) {
    cx.error(
        at,
        "a rate limit of nothing would refuse every call",
        "use the policy's `blocklist` to refuse calls",
    );
}

/// How many calls may run at once; nothing if that is not usable, which is then reported.
pub(crate) fn concurrency(cx: Cx<'_>, field: Field<ConcurrencyBody>) -> Option<ConcurrencySettings> {
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
