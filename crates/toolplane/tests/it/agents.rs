//! Agents on the tools of a toolplane, with scripted models and with providers on this machine.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tool_testkit::ScriptStep;
use toolplane::{
    HttpModel, HttpModelSettings, Toolplane,
    agent::{
        Agent, AgentEnd, AgentError, Conversation, DefinitionOptions, Model as _, ProviderFormat,
        ScriptedModel,
    },
    core::Secret,
    policy::ApprovalVerdict,
};

use crate::world::World;

async fn run(plane: &Toolplane, conversation: &mut Conversation, script: &Value) -> AgentEnd {
    let caller = plane.local_caller();
    let format = conversation.format();
    let model = ScriptedModel::from_json(format, script).expect("it can be read");
    let definitions = plane
        .tool_definitions(format, &caller, DefinitionOptions::default())
        .await;
    let tools = plane.conversation_tools("c7", &caller);
    let agent = Agent::new(&model, &tools, &definitions).with_choice(plane.model_tool_choice());
    agent.run(conversation, &()).await.expect("it ends")
}

fn conversation(format: ProviderFormat) -> Conversation {
    let mut conversation = Conversation::new(format);
    conversation.user("Go.");
    conversation
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_turn_run_together_and_are_governed() {
    let world = World::default();
    let second = std::time::Duration::from_secs(1);
    world.script("a", [ScriptStep::After(second, json!("from a"))]);
    world.script("b", [ScriptStep::After(second, json!("from b"))]);
    let plane = world.plane(&["a", "b"], "policy: {limits: {calls_per_turn: 2}}\n");
    let script = json!([
        {"calls": [{"tool": "a"}, {"tool": "b"}, {"tool": "a", "arguments": {"n": 1}}]},
        {"expect": ["from a", "from b", "denied"], "text": "Done."},
    ]);
    let start = tokio::time::Instant::now();
    let end = run(&plane, &mut conversation(ProviderFormat::Anthropic), &script).await;
    assert!(matches!(end, AgentEnd::Answered { text, .. } if text == "Done."));
    assert_eq!(start.elapsed(), second);
    // The quota of the policy refused the third call.
    assert_eq!(world.called(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_suspends_a_conversation_and_no_call_is_repeated() {
    let world = World::default();
    world.script("pay", [ScriptStep::Value(json!("paid"))]);
    let plane = world.plane(&["look", "pay"], "policy: {approval: {required: [pay]}}\n");
    let mut conversation = conversation(ProviderFormat::OpenAiChat);
    let calls = json!([{"calls": [
        {"tool": "look", "arguments": {"n": 1}},
        {"tool": "pay", "arguments": {"amount": 5}},
    ]}]);
    let AgentEnd::Waiting(waiting) = run(&plane, &mut conversation, &calls).await else {
        panic!("it waits")
    };
    let handle = waiting[0].handle.clone().expect("it waits for a decision");
    plane
        .approvals()
        .decide(&handle, ApprovalVerdict::Approve, "operator")
        .await
        .expect("it can be decided");
    let script = json!([{"expect": ["paid"], "text": "Paid."}]);
    let end = run(&plane, &mut conversation, &script).await;
    assert!(matches!(end, AgentEnd::Answered { text, .. } if text == "Paid."));
    assert_eq!(world.called(), ["look", "pay"]);
}

/// A provider on this machine, which gives one answer after the other and keeps the requests.
struct Provider {
    url: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

/// Status, type and body of an answer, and further headers.
type ScriptedAnswer = (u16, &'static str, String, &'static str);

impl Provider {
    async fn start(answers: Vec<ScriptedAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let requests = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            for (status, kind, body, more) in answers {
                let (mut connection, _) = listener.accept().await.expect("a client connects");
                let mut received = Vec::new();
                let (head, body_start) = loop {
                    let mut chunk = [0; 4096];
                    let n = connection.read(&mut chunk).await.expect("it sends");
                    received.extend_from_slice(&chunk[..n]);
                    if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                        break (
                            String::from_utf8_lossy(&received[..end]).to_ascii_lowercase(),
                            end + 4,
                        );
                    }
                };
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length
                    .and_then(|length| length.trim().parse().ok())
                    .unwrap_or_default();
                while received.len() < body_start + length {
                    let mut chunk = [0; 4096];
                    let n = connection.read(&mut chunk).await.expect("it sends");
                    received.extend_from_slice(&chunk[..n]);
                }
                let request = serde_json::from_slice(&received[body_start..]).expect("JSON");
                kept.lock().expect("nothing panics with it").push((head, request));
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{more}connection: close\r\n\r\n{body}",
                    body.len()
                );
                // The client may have left.
                let _ = connection.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().expect("nothing panics with it").clone()
    }
}

/// Returns the streams of two turns: a call of `weather`, then an answer.
fn turns(format: ProviderFormat) -> Vec<ScriptedAnswer> {
    let sse = |events: &[Value]| {
        let lines: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        (200, "text/event-stream", lines, "")
    };
    match format {
        ProviderFormat::OpenAiChat => {
            let call = json!({"index": 0, "id": "c1", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}});
            let (status, kind, mut last, more) =
                sse(&[json!({"choices": [{"delta": {"content": "Sunny."}, "finish_reason": "stop"}]})]);
            last.push_str("data: [DONE]\n\n");
            vec![
                sse(&[
                    json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}),
                ]),
                (status, kind, last, more),
            ]
        }
        ProviderFormat::OpenAiResponses => {
            let call = json!({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}"});
            let said = json!({"type": "message", "content": [{"type": "output_text", "text": "Sunny."}]});
            let done = |item| json!({"type": "response.completed", "response": {"output": [item]}});
            vec![
                sse(&[done(call)]),
                sse(&[
                    json!({"type": "response.output_text.delta", "delta": "Sunny."}),
                    done(said),
                ]),
            ]
        }
        ProviderFormat::Anthropic => {
            let start =
                |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
            let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
            let stop = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}});
            vec![
                sse(&[
                    start(json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {}})),
                    delta(json!({"type": "input_json_delta", "partial_json": "{\"city\":\"Oslo\"}"})),
                    stop("tool_use"),
                ]),
                sse(&[
                    start(json!({"type": "text", "text": ""})),
                    delta(json!({"type": "text_delta", "text": "Sunny."})),
                    stop("end_turn"),
                ]),
            ]
        }
        ProviderFormat::Gemini => {
            let part = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]});
            vec![
                sse(&[part(
                    json!({"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}),
                )]),
                sse(&[part(json!({"text": "Sunny."}))]),
            ]
        }
        _ => {
            let line = |message: Value| {
                (
                    200,
                    "application/x-ndjson",
                    format!("{}\n", json!({"message": message, "done": true})),
                    "",
                )
            };
            let call = json!({"function": {"name": "weather", "arguments": {"city": "Oslo"}}});
            vec![
                line(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
                line(json!({"role": "assistant", "content": "Sunny."})),
            ]
        }
    }
}

#[tokio::test]
async fn a_conversation_runs_with_every_provider() {
    for &format in ProviderFormat::ALL {
        let world = World::default();
        world.script("weather", [ScriptStep::Value(json!({"sky": "clear"}))]);
        let plane = world.plane(&["weather"], "");
        let provider = Provider::start(turns(format)).await;
        let settings = HttpModelSettings::new(format, "model-1")
            .with_base_url(&provider.url)
            .with_api_key(Secret::new("key-1"));
        let model = HttpModel::new(settings);
        let caller = plane.local_caller();
        let definitions = plane
            .tool_definitions(model.format(), &caller, DefinitionOptions::default())
            .await;
        let tools = plane.conversation_tools("c7", &caller);
        let mut conversation = Conversation::new(format).with_system("Be brief.");
        conversation.user("What is the weather in Oslo?");
        let agent = Agent::new(&model, &tools, &definitions);
        let end = agent.run(&mut conversation, &()).await;
        let end = end.unwrap_or_else(|error| panic!("{format:?}: {error}"));
        assert!(
            matches!(&end, AgentEnd::Answered { text, .. } if text == "Sunny."),
            "{format:?}: {end:?}"
        );
        assert_eq!(
            world.calls(),
            [("weather".to_owned(), json!({"city": "Oslo"}))],
            "{format:?}"
        );
        let requests = provider.requests();
        let (head, body) = &requests[1];
        let key = match format {
            ProviderFormat::Anthropic => "x-api-key: key-1",
            ProviderFormat::Gemini => "x-goog-api-key: key-1",
            _ => "authorization: bearer key-1",
        };
        assert!(head.contains(key), "{format:?}: {head}");
        let text = body.to_string();
        for part in ["Be brief.", "What is the weather in Oslo?", "clear", "weather"] {
            assert!(text.contains(part), "{format:?}: {text}");
        }
        let is_named = head.contains("model-1") || body["model"] == "model-1";
        assert!(is_named, "{format:?}: {head}");
    }
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_and_a_refusal_is_told_without_the_key() {
    let busy = || {
        (
            429,
            "application/json",
            json!({"error": {"message": "slow down"}}).to_string(),
            "retry-after: 0\r\n",
        )
    };
    let mut answers = vec![busy()];
    answers.extend(turns(ProviderFormat::OpenAiChat).into_iter().skip(1));
    answers.extend([busy(), busy(), busy()]);
    let wrong = json!({"error": {"message": "the key key-1 is wrong"}}).to_string();
    answers.push((401, "application/json", wrong, ""));
    answers.push((
        200,
        "text/event-stream",
        "data: {\"error\": {\"type\": \"overloaded\"}}\n\n".to_owned(),
        "",
    ));
    let provider = Provider::start(answers).await;
    let settings = HttpModelSettings::new(ProviderFormat::OpenAiChat, "m")
        .with_base_url(format!("{}/", provider.url))
        .with_api_key(Secret::new("key-1"));
    let model = HttpModel::new(settings);
    let world = World::default();
    let plane = world.plane(&[], "");
    let caller = plane.local_caller();
    let definitions = plane
        .tool_definitions(model.format(), &caller, DefinitionOptions::default())
        .await;
    let tools = plane.conversation_tools("c7", &caller);
    let agent = Agent::new(&model, &tools, &definitions);
    let run = async || {
        agent
            .run(&mut conversation(ProviderFormat::OpenAiChat), &())
            .await
    };
    let end = run().await.expect("it answers");
    assert!(matches!(end, AgentEnd::Answered { text, .. } if text == "Sunny."));
    for (n_requests, message) in [
        (5, "it answered 429 Too Many Requests: slow down"),
        (6, "it answered 401 Unauthorized: the key [hidden] is wrong"),
        (
            7,
            "the message of the provider cannot be read: the provider reports an error: overloaded",
        ),
    ] {
        let Err(AgentError::Model(error)) = run().await else {
            panic!("it fails: {message}")
        };
        assert_eq!(error.message, message);
        assert_eq!(provider.requests().len(), n_requests, "{message}");
    }
    // Without tools, none are offered.
    assert_eq!(provider.requests()[0].1.get("tools"), None);
}
