use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DataClassification, LatencyClass, Metadata, PiiHandling};
use tool_settings::{Field, Percent};

use super::examples::{self, ExampleField};
use crate::document::place::Cx;

/// The metadata keys of a tool, next to its other keys.
#[derive(Debug, Default)]
pub(crate) struct MetadataFields {
    pub(crate) capabilities: Field<Vec<Field<String>>>,
    pub(crate) tags: Field<Vec<Field<String>>>,
    pub(crate) aliases: Field<Vec<Field<String>>>,
    pub(crate) examples: Field<Vec<ExampleField>>,
    pub(crate) latency: Field<Latency>,
    pub(crate) cost_per_call: Field<f64>,
    pub(crate) sla: Field<Percent>,
    pub(crate) retryable: Field<bool>,
    pub(crate) idempotent: Field<bool>,
    pub(crate) read_only: Field<bool>,
    pub(crate) required_permissions: Field<Vec<Field<String>>>,
    pub(crate) data_classification: Field<Classification>,
    pub(crate) pii_handling: Field<Pii>,
    pub(crate) health_check_endpoint: Field<String>,
}

/// Usual latency of a tool: `fast` is below 100 ms, `medium` below 1 s, `slow` 1 s and more.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Latency {
    Fast,
    Medium,
    Slow,
}

/// Confidentiality of a tool's data.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Classification {
    Public,
    Internal,
    Sensitive,
}

/// Handling of personal data in a tool's arguments.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pii {
    None,
    Anonymize,
    Encrypt,
}

/// Reads the metadata of a tool, except for the keys of sections.
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
    let mut metadata = Metadata::default();
    metadata.capabilities = texts(fields.capabilities);
    metadata.tags = texts(fields.tags);
    metadata.aliases = texts(fields.aliases);
    examples::read(cx, fields.examples, &mut metadata);
    metadata.latency = fields.latency.get().map(|latency| match latency {
        Latency::Fast => LatencyClass::Fast,
        Latency::Medium => LatencyClass::Medium,
        Latency::Slow => LatencyClass::Slow,
    });
    metadata.cost_per_call = cost_per_call;
    metadata.sla = fields.sla.get().map(|Percent(share)| share);
    metadata.retryable = fields.retryable.get();
    metadata.idempotent = fields.idempotent.get();
    metadata.read_only = fields.read_only.get();
    metadata.required_permissions = texts(fields.required_permissions);
    metadata.data_classification = fields.data_classification.get().map(|class| match class {
        Classification::Public => DataClassification::Public,
        Classification::Internal => DataClassification::Internal,
        Classification::Sensitive => DataClassification::Sensitive,
    });
    metadata.pii_handling = fields.pii_handling.get().map(|handling| match handling {
        Pii::None => PiiHandling::None,
        Pii::Anonymize => PiiHandling::Anonymize,
        Pii::Encrypt => PiiHandling::Encrypt,
    });
    metadata.health_check_endpoint = health_check_endpoint;
    metadata
}

/// Returns the usable texts of a list.
pub(crate) fn texts(field: Field<Vec<Field<String>>>) -> Vec<String> {
    let items = field.get().unwrap_or_default();
    items.into_iter().filter_map(Field::get).collect()
}
