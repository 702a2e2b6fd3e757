use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;
use serde_json::Value;
use toolplane::{
    RawJson,
    core::{DataClassification, LatencyClass, Metadata, PiiHandling, Tool},
    endpoint_facts,
    runtime::{FailureStep, FallbackLadder},
};

use super::disabled::DisabledTool;
use crate::{
    error::CliError,
    exit::Exit,
    output::{Console, table::Table, text},
    verbs::call::schema::{Property, properties},
};

/// All data of a tool.
#[derive(Serialize)]
struct ToolDetails<'a> {
    name: &'a str,
    /// Another spelling that calls accept.
    #[serde(skip_serializing_if = "Option::is_none")]
    spelling: Option<&'a str>,
    /// Definition as agents see it.
    definition: &'a RawJson,
    /// SHA-256 of the definition.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    source: &'a str,
    /// State of its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_state: Option<Value>,
    trust: &'static str,
    kind: &'a str,
    /// Statements of its endpoint about it: `command`, `origin` and `safety`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    endpoint: BTreeMap<&'static str, String>,
    timeout_ms: u64,
    call_timeout_ms: u64,
    /// Gateways that have disabled it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    disabled: &'a [DisabledTool],
    /// Steps of `on_failure`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on_failure: Vec<String>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    metadata: serde_json::Map<String, Value>,
}

pub(super) fn show(
    tool: &Tool,
    spelling: Option<&str>,
    server_state: Option<Value>,
    disabled: &[DisabledTool],
    console: Console,
) -> Result<Exit, CliError> {
    let descriptor = tool.descriptor();
    let settings = tool.settings();
    let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let shown = ToolDetails {
        name: tool.name(),
        spelling,
        definition: tool.definition(),
        digest: raw_json::hex(tool.digest()),
        version: descriptor.version.as_deref(),
        source: &descriptor.origin.place,
        server_state,
        trust: descriptor.origin.trust.as_str(),
        kind: &descriptor.executor.kind,
        endpoint: endpoint_facts(descriptor).into_iter().collect(),
        timeout_ms: milliseconds(settings.attempt_timeout),
        call_timeout_ms: milliseconds(settings.call_timeout),
        disabled,
        on_failure: settings
            .get::<FallbackLadder>()
            .iter()
            .flat_map(|ladder| ladder.0.iter())
            .map(step)
            .collect(),
        metadata: metadata(&descriptor.metadata),
    };
    console.value(&shown, || page(tool, &shown))?;
    Ok(Exit::Done)
}

/// Formats the tool for people.
fn page(tool: &Tool, shown: &ToolDetails<'_>) -> String {
    let descriptor = tool.descriptor();
    let settings = tool.settings();
    let mut page = text::line(shown.name).into_owned();
    if let Some(title) = &descriptor.title {
        let _ = write!(page, " ({})", text::line(title));
    }
    page.push('\n');
    for line in text::lines(descriptor.description.trim()).lines() {
        let _ = writeln!(page, "  {line}");
    }
    page.push('\n');
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(page, "{name:<22}{}", text::line(value));
    };
    if let Some(version) = shown.version {
        fact("version", version);
    }
    if let Some(spelling) = shown.spelling {
        fact("also called", spelling);
    }
    fact("source", shown.source);
    if let Some(server) = &shown.server_state {
        let word = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
        let (state, start, lists) = (word("state"), word("start"), word("lists"));
        fact("server", &format!("{state}; {start} start; list {lists}"));
    }
    fact("executor", shown.kind);
    for (name, value) in &shown.endpoint {
        fact(name, value);
    }
    let (attempt, call) = (
        text::time(settings.attempt_timeout),
        text::time(settings.call_timeout),
    );
    fact("time limit", &format!("{attempt}, {call} for the whole call"));
    if !shown.on_failure.is_empty() {
        fact("on failure", &shown.on_failure.join(", then "));
    }
    for (name, value) in &shown.metadata {
        fact(&name.replace('_', " "), &words(value));
    }
    fact("digest", &shown.digest[..16]);
    for one in shown.disabled {
        let reason = text::line(&one.reason);
        let state = format!("in the gateway {} since {}: {reason}", one.gateway, one.since);
        fact("disabled", &state);
        fact(
            "",
            &format!("`toolplane tools enable {}` enables it again", shown.name),
        );
    }
    arguments(&mut page, tool);
    page
}

fn arguments(page: &mut String, tool: &Tool) {
    let schema: Value = tool.descriptor().input_schema.to().unwrap_or_default();
    let properties = properties(&schema);
    if properties.is_empty() {
        page.push_str("\nIt takes no arguments that its schema names.\n");
        return;
    }
    let rows = properties.iter().map(|property| {
        let required = if property.required { "yes" } else { "" };
        let description = text::line(property.description).into_owned();
        [
            property.name.to_owned(),
            text::line(&property.values).into_owned(),
            required.to_owned(),
            description,
        ]
    });
    let table = Table::new(false, text::terminal_width())
        .header(["ARGUMENT", "TYPE", "REQUIRED", "DESCRIPTION"])
        .rows(rows);
    let _ = write!(page, "\n{table}\n\ncall it with: toolplane call {}", tool.name());
    for Property { name, .. } in properties.iter().filter(|property| property.required) {
        let _ = write!(page, " {}=…", text::line(name));
    }
    page.push('\n');
}

/// Formats a step as a configuration writes it.
fn step(step: &FailureStep) -> String {
    match step {
        FailureStep::Fallback(tool) => format!("fallback: {tool}"),
        FailureStep::Stale(age) => format!("stale: {}", text::time(*age)),
        FailureStep::Default(value) => format!("default: {}", value.as_str()),
        _ => "another step".to_owned(),
    }
}

/// Formats a value of the metadata in words.
fn words(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Returns the metadata of a tool under the keys of a configuration.
fn metadata(metadata: &Metadata) -> serde_json::Map<String, Value> {
    let texts = |list: &[String]| (!list.is_empty()).then(|| Value::from(list));
    let rate_limit = metadata.rate_limit.map(|limit| {
        let burst = limit
            .burst
            .map(|burst| format!(", {burst} at once"))
            .unwrap_or_default();
        Value::from(format!(
            "{} in {}{burst}",
            limit.requests,
            text::time(limit.period)
        ))
    });
    let latency = metadata.latency.map(LatencyClass::as_str);
    let classification = metadata.data_classification.map(DataClassification::as_str);
    let pii = metadata.pii_handling.map(PiiHandling::as_str);
    let known = [
        ("capabilities", texts(&metadata.capabilities)),
        ("tags", texts(&metadata.tags)),
        ("aliases", texts(&metadata.aliases)),
        ("examples", texts(&metadata.examples)),
        ("latency", latency.map(Value::from)),
        ("rate_limit", rate_limit),
        ("cost_per_call", metadata.cost_per_call.map(Value::from)),
        (
            "sla",
            metadata.sla.map(|percent| Value::from(format!("{percent}%"))),
        ),
        ("retryable", metadata.retryable.map(Value::from)),
        ("idempotent", metadata.idempotent.map(Value::from)),
        ("read_only", metadata.read_only.map(Value::from)),
        ("required_permissions", texts(&metadata.required_permissions)),
        ("data_classification", classification.map(Value::from)),
        ("pii_handling", pii.map(Value::from)),
        ("fallbacks", texts(&metadata.fallbacks)),
        (
            "health_check_endpoint",
            metadata.health_check_endpoint.as_deref().map(Value::from),
        ),
    ];
    known
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
