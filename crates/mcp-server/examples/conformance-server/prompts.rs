//! Prompts of the scenarios.

use mcp_server::{Answer, RequestContext};
use mcp_wire::{Request, RpcError, method};
use raw_json::RawJson;
use serde_json::{Value, json};

use crate::{
    asking::{Asked, ask, form},
    content::{IMAGE, argument, invalid},
};

/// Returns the list after this number of changes, each of which adds a prompt.
pub(crate) fn list(n_changes: usize) -> Value {
    let argument = |name: &str| json!({"name": name, "description": "An argument.", "required": true});
    let prompt = |name: &str, arguments: Value| json!({"name": name, "description": "A prompt for tests.", "arguments": arguments});
    let own = [
        prompt("test_input_required_result_prompt", json!([])),
        prompt(
            "test_prompt_with_arguments",
            json!([argument("arg1"), argument("arg2")]),
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            json!([argument("resourceUri")]),
        ),
        prompt("test_prompt_with_image", json!([])),
        prompt("test_simple_prompt", json!([])),
    ];
    let added = (1..=n_changes).map(|change| prompt(&format!("test_added_{change}"), json!([])));
    let prompts: Vec<Value> = own.into_iter().chain(added).collect();
    json!({ "prompts": prompts })
}

pub(crate) async fn get(request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    let name = cx.name().unwrap_or_default();
    let messages = match &*name {
        "test_simple_prompt" => json!([said("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument(cx, "arg1")?, argument(cx, "arg2")?);
            json!([said(&format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))])
        }
        "test_prompt_with_embedded_resource" => json!([
            {"role": "user", "content": {"type": "resource", "resource": {
                "uri": argument(cx, "resourceUri")?,
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}},
            said("Please process the embedded resource above."),
        ]),
        "test_prompt_with_image" => json!([
            {"role": "user", "content": {"type": "image", "data": IMAGE, "mimeType": "image/png"}},
            said("Please analyze the image above."),
        ]),
        "test_input_required_result_prompt" => {
            let params = form("What context should the prompt use?", "context", "string");
            let question = ("user_context", method::ELICITATION_CREATE, params);
            let answers = match ask(request, cx, vec![question], None).await? {
                Asked::Given(answers) => answers,
                Asked::Not(answer) => return Ok(answer),
            };
            let context = answers
                .first()
                .and_then(|response| response.get("content")?.get("context")?.string());
            json!([said(&format!(
                "Use this context: {}",
                context.unwrap_or_default()
            ))])
        }
        other => return Err(invalid(format!("there is no prompt `{other}`"))),
    };
    Ok(RawJson::from(json!({"description": "A prompt for tests.", "messages": messages})).into())
}

fn said(text: &str) -> Value {
    json!({"role": "user", "content": {"type": "text", "text": text}})
}
