//! The tools that ask the client: in the middle of the call in the legacy era, by their answer in the modern one.

use mcp_server::{Answer, AskError, InputRequired, RequestContext};
use mcp_wire::{Request, RpcError, method};
use raw_json::RawJson;
use serde_json::{Value, json};

use crate::{
    Fixture,
    content::{argument, failure, invalid, text},
};

/// A question to the user with one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> RawJson {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"message": message, "requestedSchema": schema}).into()
}

pub(crate) async fn call(
    fixture: &Fixture,
    name: &str,
    request: &Request,
    cx: &RequestContext,
) -> Result<Answer, RpcError> {
    match name {
        "test_sampling" => {
            let params = sampling(&argument(cx, "prompt")?, 100);
            let said = cx.ask(method::SAMPLING_CREATE_MESSAGE, Some(&params)).await;
            given(said, |said| {
                let text = said
                    .get("content")
                    .and_then(|content| content.get("text")?.string());
                format!("LLM response: {}", text.unwrap_or_default())
            })
        }
        "test_elicitation" => {
            let params = json!({"message": argument(cx, "message")?, "requestedSchema": {
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                },
                "required": ["username", "email"],
            }});
            elicit(cx, "User response", params).await
        }
        "test_elicitation_sep1034_defaults" => elicit(cx, "Elicitation completed", defaults()).await,
        "test_elicitation_sep1330_enums" => elicit(cx, "Elicitation completed", enums()).await,
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            confirmed(fixture, request, cx)
        }
        "test_input_required_result_multi_round" => rounds(fixture, request, cx),
        "test_input_required_result_capabilities" => declared(request, cx),
        "test_input_required_result_multiple_inputs" => several(fixture, request, cx),
        other => one(other, request, cx),
    }
}

/// Asks the user while the call is worked on.
async fn elicit(cx: &RequestContext, title: &str, params: Value) -> Result<Answer, RpcError> {
    let answer = cx.ask(method::ELICITATION_CREATE, Some(&params.into())).await;
    given(answer, |answer| {
        let action = answer.get("action").and_then(|action| action.string());
        let content = answer.get("content").unwrap_or_default();
        format!(
            "{title}: action={}, content={content}",
            action.unwrap_or_default()
        )
    })
}

fn given(answer: Result<RawJson, AskError>, say: impl FnOnce(RawJson) -> String) -> Result<Answer, RpcError> {
    match answer {
        Ok(answer) => Ok(text(&say(answer))),
        Err(AskError::NotDeclared(error)) => Err(error),
        Err(error) => Ok(failure(&error.to_string())),
    }
}

fn defaults() -> Value {
    json!({"message": "Please review the defaults.", "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
    }})
}

fn enums() -> Value {
    let titled = |titles: [&str; 3]| -> Vec<Value> {
        let numbered = titles.iter().zip(1..);
        numbered
            .map(|(title, number)| json!({"const": format!("value{number}"), "title": title}))
            .collect()
    };
    let options = json!(["option1", "option2", "option3"]);
    json!({"message": "Please choose.", "requestedSchema": {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"])},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {
                "type": "array",
                "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])},
            },
        },
    }})
}

fn sampling(prompt: &str, max_tokens: u32) -> RawJson {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    json!({"messages": [message], "maxTokens": max_tokens}).into()
}

/// One question, whose answer is all that is needed.
fn one(name: &str, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    let (key, method, params) = match name {
        "test_input_required_result_elicitation" => {
            let params = form("What is your name?", "name", "string");
            ("user_name", method::ELICITATION_CREATE, params)
        }
        "test_input_required_result_sampling" => {
            let params = sampling("What is the capital of France?", 100);
            ("capital_question", method::SAMPLING_CREATE_MESSAGE, params)
        }
        _ => ("client_roots", method::ROOTS_LIST, RawJson::object()),
    };
    match cx.input_response(key) {
        Some(response) => Ok(text(&format!("The client gave {response}"))),
        None => InputRequired::new()
            .ask(key, method, Some(params))
            .answer(request, cx),
    }
}

/// A question with a state that nobody may change.
fn confirmed(fixture: &Fixture, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    const STATE: &str = "confirming";
    if let Some(state) = cx.request_state() {
        let state = fixture.seal.open(&state, request, cx)?;
        if state == STATE && cx.input_response("confirm").is_some() {
            return Ok(text("state-ok: the state is the one that was given out"));
        }
    }
    InputRequired::new()
        .ask(
            "confirm",
            method::ELICITATION_CREATE,
            Some(form("Please confirm", "ok", "boolean")),
        )
        .state(fixture.seal.seal(STATE, request, cx))
        .answer(request, cx)
}

/// Two rounds of questions; the state says which round it is.
fn rounds(fixture: &Fixture, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    let state = cx.request_state();
    let state = state
        .map(|state| fixture.seal.open(&state, request, cx))
        .transpose()?;
    let (key, message, field) = match (
        state.as_deref(),
        cx.input_response("step1"),
        cx.input_response("step2"),
    ) {
        (Some("step2"), _, Some(_)) => return Ok(text("Every round is done.")),
        (Some("step1"), Some(_), _) | (Some("step2"), _, None) => {
            ("step2", "Step 2: What is your favorite color?", "color")
        }
        _ => ("step1", "Step 1: What is your name?", "name"),
    };
    InputRequired::new()
        .ask(
            key,
            method::ELICITATION_CREATE,
            Some(form(message, field, "string")),
        )
        .state(fixture.seal.seal(key, request, cx))
        .answer(request, cx)
}

/// Asks only what the client says it can be asked.
fn declared(request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    if cx.input_responses().is_some() {
        return Ok(text("The client gave what it can give."));
    }
    let mut asked = InputRequired::new();
    let mut is_asked = false;
    for (key, method, params) in [
        (
            "elicit_input",
            method::ELICITATION_CREATE,
            form("A value", "value", "string"),
        ),
        (
            "sample_input",
            method::SAMPLING_CREATE_MESSAGE,
            sampling("Anything", 50),
        ),
    ] {
        if cx.check_askable(method, Some(&params)).is_ok() {
            asked = asked.ask(key, method, Some(params));
            is_asked = true;
        }
    }
    match is_asked {
        true => asked.answer(request, cx),
        false => Ok(text("The client can be asked nothing.")),
    }
}

/// Three questions at once.
fn several(fixture: &Fixture, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    const STATE: &str = "several";
    if let Some(state) = cx.request_state() {
        if fixture.seal.open(&state, request, cx)? != STATE {
            return Err(invalid("the state belongs to something else"));
        }
        let keys = ["user_name", "greeting", "client_roots"];
        if keys.iter().all(|key| cx.input_response(key).is_some()) {
            return Ok(text("All of it was given."));
        }
    }
    InputRequired::new()
        .ask(
            "user_name",
            method::ELICITATION_CREATE,
            Some(form("What is your name?", "name", "string")),
        )
        .ask(
            "greeting",
            method::SAMPLING_CREATE_MESSAGE,
            Some(sampling("Generate a greeting", 50)),
        )
        .ask("client_roots", method::ROOTS_LIST, Some(RawJson::object()))
        .state(fixture.seal.seal(STATE, request, cx))
        .answer(request, cx)
}
