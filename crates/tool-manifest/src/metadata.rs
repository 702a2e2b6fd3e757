use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DataClassification, LatencyClass, Metadata, PiiHandling, RateLimit};

use crate::{
    field::Field,
    place::Cx,
    units::{Percent, Period},
};

/// The metadata keys of a tool, as they stand beside its other keys.
#[derive(Debug, Default)]
pub(crate) struct MetadataFields {
    pub(crate) capabilities: Field<Vec<Field<String>>>,
    pub(crate) tags: Field<Vec<Field<String>>>,
    pub(crate) latency: Field<Latency>,
    pub(crate) rate_limit: Field<RateLimitBody>,
    pub(crate) cost_per_call: Field<f64>,
    pub(crate) sla: Field<Percent>,
    pub(crate) retryable: Field<bool>,
    pub(crate) idempotent: Field<bool>,
    pub(crate) read_only: Field<bool>,
    pub(crate) required_permissions: Field<Vec<Field<String>>>,
    pub(crate) data_classification: Field<Classification>,
    pub(crate) pii_handling: Field<Pii>,
    pub(crate) fallbacks: Field<Vec<Field<String>>>,
    pub(crate) health_check_endpoint: Field<String>,
}

/// How fast a tool usually is: `fast` is below 100 ms, `medium` below 1 s, `slow` 1 s and more.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Latency {
    Fast,
    Medium,
    Slow,
}

/// How confidential a tool's data are.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Classification {
    Public,
    Internal,
    Sensitive,
}

/// What happens to personal data in a tool's arguments.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pii {
    None,
    Anonymize,
    Encrypt,
}

/// How often a tool may be called.
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
}

/// Makes metadata from what a file says.
pub(crate) fn metadata(cx: Cx<'_>, fields: MetadataFields) -> Metadata {
    let cost_per_call = fields.cost_per_call.located().and_then(|(at, cost)| {
        let fits = cost.is_finite() && cost >= 0.0;
        if !fits {
            cx.error(
                at,
                "a cost cannot be negative",
                "write it in US dollars, such as `0.001`",
            );
        }
        fits.then_some(cost)
    });
    let health_check_endpoint = fields.health_check_endpoint.located().map(|(at, url)| {
        if !url.starts_with("http://") && !url.starts_with("https://") && !url.starts_with("${") {
            cx.error(
                at,
                "a health check endpoint is a URL with `http://` or `https://`",
                "",
            );
        }
        url
    });
    Metadata {
        capabilities: texts(fields.capabilities),
        tags: texts(fields.tags),
        latency: fields.latency.get().map(|latency| match latency {
            Latency::Fast => LatencyClass::Fast,
            Latency::Medium => LatencyClass::Medium,
            Latency::Slow => LatencyClass::Slow,
        }),
        rate_limit: rate_limit(cx, fields.rate_limit),
        cost_per_call,
        sla: fields.sla.get().map(|Percent(share)| share),
        retryable: fields.retryable.get(),
        idempotent: fields.idempotent.get(),
        read_only: fields.read_only.get(),
        required_permissions: texts(fields.required_permissions),
        data_classification: fields.data_classification.get().map(|class| match class {
            Classification::Public => DataClassification::Public,
            Classification::Internal => DataClassification::Internal,
            Classification::Sensitive => DataClassification::Sensitive,
        }),
        pii_handling: fields.pii_handling.get().map(|handling| match handling {
            Pii::None => PiiHandling::None,
            Pii::Anonymize => PiiHandling::Anonymize,
            Pii::Encrypt => PiiHandling::Encrypt,
        }),
        fallbacks: texts(fields.fallbacks),
        health_check_endpoint,
    }
}

/// The usable texts of a list.
pub(crate) fn texts(field: Field<Vec<Field<String>>>) -> Vec<String> {
    let items = field.get().unwrap_or_default();
    items.into_iter().filter_map(Field::get).collect()
}

fn rate_limit(cx: Cx<'_>, field: Field<RateLimitBody>) -> Option<RateLimit> {
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
        cx.error(
            requests_at,
            "a rate limit of nothing would refuse every call",
            "use the policy's `blocklist` to refuse calls",
        );
        return None;
    }
    Some(RateLimit {
        requests,
        period,
        burst: body.burst.get(),
    })
}
