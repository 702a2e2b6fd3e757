//! JSON Schema of the settings, for editors and the reference.
#![expect(
    dead_code,
    reason = "these types describe the settings, which `definition` reads"
)]

use std::collections::BTreeMap;

use raw_json::RawJson;
use schemars::{JsonSchema, schema_for};
use serde_json::Value;

/// Returns the JSON Schema of the settings.
pub(crate) fn config_schema() -> RawJson {
    RawJson::from(schema_for!(Route).to_value())
}

/// Settings of a route: which tools it chooses from, and by what.
#[derive(JsonSchema)]
struct Route {
    /// Capability that a tool must have to be a candidate.
    capability: Option<String>,
    /// Labels that a tool with the capability must have as well.
    tags: Option<Vec<String>>,
    /// Tools that are candidates without the capability: names, or patterns with `*`. Tools of MCP servers are named here.
    tools: Option<Vec<String>>,
    /// Capabilities or labels that a candidate is the better for.
    requirements: Option<Vec<String>>,
    /// Bounds that a candidate must keep. One that neither declares nor shows the figure keeps none.
    constraints: Option<Constraints>,
    /// Figures that count besides health: `speed`, `cost`, `reliability`, or a list of them.
    priority: Option<Value>,
    /// Weights of the score.
    weights: Option<Weights>,
    /// Points by which another candidate must be better to take the place of the leading one. Default: 10.
    hysteresis: Option<f64>,
    /// Maximum number of candidates that are called for one call. Default: 3.
    max_attempts: Option<u32>,
    /// Arguments for a candidate, by its name, made of those of the route: `{q: $input.query}`. Others get those of the route.
    arguments: Option<BTreeMap<String, BTreeMap<String, Value>>>,
}

/// Bounds that a candidate must keep.
#[derive(JsonSchema)]
struct Constraints {
    /// Maximum latency, such as `2s`: the measured one, or the declared `latency`.
    max_latency: Option<String>,
    /// Maximum cost of a call, in US dollars.
    max_cost: Option<f64>,
    /// Minimum share of successful calls, such as `99.5%`: the measured one, or the declared `sla`.
    min_sla: Option<String>,
}

/// Weights of a score, which begins with 100 points.
#[derive(JsonSchema)]
struct Weights {
    /// Points off for a degraded tool. Default: 20.
    degraded: Option<f64>,
    /// Points off for a slow tool, with the priority `speed`. Default: 30.
    slow: Option<f64>,
    /// Points for a fast tool, with the priority `speed`. Default: 20.
    fast: Option<f64>,
    /// Latency above which a tool is slow. Default: 1s.
    slow_above: Option<String>,
    /// Latency below which a tool is fast. Default: 200ms.
    fast_below: Option<String>,
    /// Points off for each US dollar of a call, with the priority `cost`. Default: 1000.
    cost: Option<f64>,
    /// Points off for each percent of failed calls, with the priority `reliability`. Default: 5.
    failures: Option<f64>,
    /// Points for each requirement that a tool meets. Default: 30.
    requirement: Option<f64>,
}
