//! Tools of the scenarios.

use std::{sync::atomic::Ordering, time::Duration};

use mcp_server::{Answer, RequestContext};
use mcp_wire::{LogLevel, Request, RpcError, method};
use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    Fixture, asking,
    content::{AUDIO, IMAGE, blocks, failure, invalid, text},
    tasks,
};

/// All tools, with the string argument of those that have one.
const TOOLS: [(&str, Option<&str>); 29] = [
    ("json_schema_2020_12_tool", None),
    ("test_audio_content", None),
    ("test_custom_header", Some("region")),
    ("test_elicitation", Some("message")),
    ("test_elicitation_sep1034_defaults", None),
    ("test_elicitation_sep1330_enums", None),
    ("test_embedded_resource", None),
    ("test_error_handling", None),
    ("test_image_content", None),
    ("test_input_required_result_capabilities", None),
    ("test_input_required_result_elicitation", None),
    ("test_input_required_result_list_roots", None),
    ("test_input_required_result_multi_round", None),
    ("test_input_required_result_multiple_inputs", None),
    ("test_input_required_result_request_state", None),
    ("test_input_required_result_sampling", None),
    ("test_input_required_result_tampered_state", None),
    ("test_logging_tool", None),
    ("test_missing_capability", None),
    ("test_multiple_content_types", None),
    ("test_reconnection", None),
    ("test_sampling", Some("prompt")),
    ("test_simple_text", None),
    ("test_streaming_elicitation", None),
    ("test_tool_with_logging", None),
    ("test_tool_with_progress", None),
    ("test_trigger_prompt_change", None),
    ("test_trigger_tool_change", None),
    ("test_trigger_resource_update", None),
];

/// Returns the list after this number of changes, each of which adds a tool: a gateway reads the list again before it
/// forwards a notification, and withholds tools whose definition has changed.
pub(crate) fn list(n_changes: usize) -> Value {
    let tool = |name: &str, argument: Option<&str>| json!({"name": name, "description": "A tool for tests.", "inputSchema": schema(name, argument)});
    let own = TOOLS.iter().map(|(name, argument)| tool(name, *argument));
    let added = (1..=n_changes).map(|change| tool(&format!("test_added_{change}"), None));
    let tools: Vec<Value> = own.chain(tasks::list()).chain(added).collect();
    json!({ "tools": tools })
}

fn schema(name: &str, argument: Option<&str>) -> Value {
    match argument {
        _ if name == "json_schema_2020_12_tool" => vocabulary(),
        Some("region") => mirrored(),
        Some(argument) => {
            json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]})
        }
        None => json!({"type": "object", "properties": {}}),
    }
}

/// Returns a schema with an argument that clients mirror in a header.
pub(crate) fn mirrored() -> Value {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    json!({"type": "object", "properties": {"region": region}, "required": ["region"]})
}

/// Returns a schema that must be returned unchanged.
fn vocabulary() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) async fn call(
    fixture: &Fixture,
    request: &Request,
    cx: &RequestContext,
) -> Result<Answer, RpcError> {
    let name = cx.name().unwrap_or_default();
    match &*name {
        "test_simple_text" => Ok(text("This is a simple text response for testing.")),
        "test_image_content" => Ok(blocks(&json!([image()]))),
        "test_audio_content" => Ok(blocks(
            &json!([{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}]),
        )),
        "test_embedded_resource" => Ok(blocks(&json!([resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]))),
        "test_multiple_content_types" => Ok(blocks(&json!([
            {"type": "text", "text": "Multiple content types test:"},
            image(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]))),
        "test_error_handling" => Ok(failure("This tool intentionally returns an error for testing")),
        "test_tool_with_progress" | "test_streaming_elicitation" => progress(cx).await,
        "test_tool_with_logging" | "test_logging_tool" => logging(cx).await,
        "test_reconnection" => {
            cx.pause_stream(STEP);
            sleep(STEP).await;
            Ok(text("The client came back."))
        }
        "test_missing_capability" => {
            cx.check_askable(method::SAMPLING_CREATE_MESSAGE, None)?;
            Ok(text("The client can be asked for a completion."))
        }
        "test_trigger_tool_change" => {
            fixture.n_tool_changes.fetch_add(1, Ordering::Relaxed);
            Ok(changed(fixture, method::TOOLS_LIST_CHANGED, None))
        }
        "test_trigger_prompt_change" => {
            fixture.n_prompt_changes.fetch_add(1, Ordering::Relaxed);
            Ok(changed(fixture, method::PROMPTS_LIST_CHANGED, None))
        }
        "test_trigger_resource_update" => {
            let params = json!({"uri": "test://watched-resource"}).into();
            Ok(changed(fixture, method::RESOURCES_UPDATED, Some(&params)))
        }
        "test_custom_header" => Ok(text("The header says what the argument says.")),
        "json_schema_2020_12_tool" => Ok(text("The schema is what matters.")),
        other if tasks::TOOLS.contains(&other) => fixture.tasks.call(other, request, cx).await,
        other if TOOLS.iter().any(|(name, _)| *name == other) => {
            asking::call(fixture, other, request, cx).await
        }
        other => Err(invalid(format!("there is no tool `{other}`"))),
    }
}

/// Pause between two messages.
const STEP: Duration = Duration::from_millis(50);

async fn progress(cx: &RequestContext) -> Result<Answer, RpcError> {
    for amount in [0, 50, 100] {
        cx.progress()
            .report(&json!({"progress": amount, "total": 100}).into());
        sleep(STEP).await;
    }
    Ok(text("Every step is done."))
}

async fn logging(cx: &RequestContext) -> Result<Answer, RpcError> {
    for message in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        cx.log(
            LogLevel::Info,
            &json!({"logger": "conformance", "data": message}).into(),
        );
        sleep(STEP).await;
    }
    Ok(text("Every message is logged."))
}

fn changed(fixture: &Fixture, notification: &str, params: Option<&RawJson>) -> Answer {
    fixture.notifier.send(notification, params);
    text("Those who listen are told.")
}

fn image() -> Value {
    json!({"type": "image", "data": IMAGE, "mimeType": "image/png"})
}

fn resource(uri: &str, media_type: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": text}})
}
