//! Tools that ask the client: during the call in the legacy era, with their answer in the modern era.

use futures_util::future::join_all;
use mcp_server::{Answer, ClientRequestError, InputRequired, RequestContext};
use mcp_wire::{Era, Request, RpcError, method};
use raw_json::RawJson;
use serde_json::{Value, json};

use crate::{
    Fixture,
    content::{argument, failure, invalid, text},
};

/// Question to the client: a key, a method, and parameters.
pub(crate) type Question = (&'static str, &'static str, RawJson);

/// Result of asking.
pub(crate) enum Asked {
    /// Answers, in the order of the questions.
    Given(Vec<RawJson>),
    /// No answers: the request is answered with this.
    Not(Answer),
}

/// Creates a question to the user with one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> RawJson {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"message": message, "requestedSchema": schema}).into()
}

/// Asks in the way of the client's era; `state` is returned by a modern client.
pub(crate) async fn ask(
    request: &Request,
    cx: &RequestContext,
    questions: Vec<Question>,
    state: Option<String>,
) -> Result<Asked, RpcError> {
    if cx.era() == Era::Legacy {
        let asked = questions
            .iter()
            .map(|(_, method, params)| cx.ask(method, Some(params)));
        let answers: Result<Vec<_>, _> = join_all(asked).await.into_iter().collect();
        return match answers {
            Ok(answers) => Ok(Asked::Given(answers)),
            Err(ClientRequestError::NotDeclared(error)) => Err(error),
            Err(error) => Ok(Asked::Not(failure(&error.to_string()))),
        };
    }
    let given: Option<Vec<_>> = questions.iter().map(|(key, ..)| cx.input_response(key)).collect();
    if let Some(given) = given {
        return Ok(Asked::Given(given));
    }
    let mut asked = InputRequired::new();
    for (key, method, params) in questions {
        asked = asked.ask(key, method, Some(params));
    }
    if let Some(state) = state {
        asked = asked.state(state);
    }
    asked.answer(request, cx).map(Asked::Not)
}

/// Asks one question, and interprets its answer.
async fn ask_once(
    request: &Request,
    cx: &RequestContext,
    question: Question,
    say: impl FnOnce(&RawJson) -> String,
) -> Result<Answer, RpcError> {
    Ok(match ask(request, cx, vec![question], None).await? {
        Asked::Given(answers) => text(&answers.first().map(say).unwrap_or_default()),
        Asked::Not(answer) => answer,
    })
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
            let question = ("completion", method::SAMPLING_CREATE_MESSAGE, params);
            ask_once(request, cx, question, |said| {
                let text = said
                    .get("content")
                    .and_then(|content| content.get("text")?.string());
                format!("LLM response: {}", text.unwrap_or_default())
            })
            .await
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
            elicit(request, cx, "User response", params).await
        }
        "test_elicitation_sep1034_defaults" => elicit(request, cx, "Elicitation completed", defaults()).await,
        "test_elicitation_sep1330_enums" => elicit(request, cx, "Elicitation completed", enums()).await,
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            confirmed(fixture, request, cx).await
        }
        "test_input_required_result_multi_round" => rounds(fixture, request, cx).await,
        "test_input_required_result_capabilities" => declared(request, cx).await,
        "test_input_required_result_multiple_inputs" => several(fixture, request, cx).await,
        other => one(other, request, cx).await,
    }
}

/// Asks the user.
async fn elicit(
    request: &Request,
    cx: &RequestContext,
    title: &str,
    params: Value,
) -> Result<Answer, RpcError> {
    let question = ("form", method::ELICITATION_CREATE, params.into());
    ask_once(request, cx, question, |answer| {
        let action = answer.get("action").and_then(|action| action.string());
        let content = answer.get("content").unwrap_or_default();
        format!(
            "{title}: action={}, content={content}",
            action.unwrap_or_default()
        )
    })
    .await
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

/// Asks one question, whose answer completes the call.
async fn one(name: &str, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    let question = match name {
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
    ask_once(request, cx, question, |answer| {
        format!("The client gave {answer}")
    })
    .await
}

/// Asks a question with a sealed state.
async fn confirmed(fixture: &Fixture, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    const STATE: &str = "confirming";
    let is_right = match cx.request_state() {
        Some(state) => fixture.seal.open(&state, request, cx)? == STATE,
        None => cx.era() == Era::Legacy,
    };
    let params = form("Please confirm", "ok", "boolean");
    let question = ("confirm", method::ELICITATION_CREATE, params);
    let state = fixture.seal.seal(STATE, request, cx);
    Ok(match ask(request, cx, vec![question], Some(state)).await? {
        Asked::Given(_) if is_right => text("state-ok: the state is the one that was given out"),
        Asked::Given(_) => return Err(invalid("the answer belongs to a state, which is missing")),
        Asked::Not(answer) => answer,
    })
}

/// Asks in two rounds; the state names the round.
async fn rounds(fixture: &Fixture, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    const DONE: &str = "Every round is done.";
    let step = |number: u8| match number {
        1 => ("step1", "Step 1: What is your name?", "name"),
        _ => ("step2", "Step 2: What is your favorite color?", "color"),
    };
    let question = |number| {
        let (key, message, field) = step(number);
        (key, method::ELICITATION_CREATE, form(message, field, "string"))
    };
    if cx.era() == Era::Legacy {
        for number in [1, 2] {
            if let Asked::Not(answer) = ask(request, cx, vec![question(number)], None).await? {
                return Ok(answer);
            }
        }
        return Ok(text(DONE));
    }
    let state = cx.request_state();
    let state = state
        .map(|state| fixture.seal.open(&state, request, cx))
        .transpose()?;
    let has = |number| cx.input_response(step(number).0).is_some();
    let next = match state.as_deref() {
        Some("step2") if has(2) => return Ok(text(DONE)),
        Some("step2") => 2,
        Some("step1") if has(1) => 2,
        _ => 1,
    };
    let (key, method, params) = question(next);
    InputRequired::new()
        .ask(key, method, Some(params))
        .state(fixture.seal.seal(key, request, cx))
        .answer(request, cx)
}

/// Asks only questions whose capability the client declared.
async fn declared(request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    let questions = [
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
    ];
    let askable = |(_, method, params): &Question| cx.check_askable(method, Some(params)).is_ok();
    let questions: Vec<_> = questions.into_iter().filter(askable).collect();
    if questions.is_empty() {
        return Ok(text("The client can be asked nothing."));
    }
    Ok(match ask(request, cx, questions, None).await? {
        Asked::Given(_) => text("The client gave what it can give."),
        Asked::Not(answer) => answer,
    })
}

/// Asks three questions at once.
async fn several(fixture: &Fixture, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    const STATE: &str = "several";
    if let Some(state) = cx.request_state()
        && fixture.seal.open(&state, request, cx)? != STATE
    {
        return Err(invalid("the state belongs to something else"));
    }
    let questions = vec![
        (
            "user_name",
            method::ELICITATION_CREATE,
            form("What is your name?", "name", "string"),
        ),
        (
            "greeting",
            method::SAMPLING_CREATE_MESSAGE,
            sampling("Generate a greeting", 50),
        ),
        ("client_roots", method::ROOTS_LIST, RawJson::object()),
    ];
    let state = fixture.seal.seal(STATE, request, cx);
    Ok(match ask(request, cx, questions, Some(state)).await? {
        Asked::Given(_) => text("All of it was given."),
        Asked::Not(answer) => answer,
    })
}
