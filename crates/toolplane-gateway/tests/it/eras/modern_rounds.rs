//! Questions to modern clients: they are the answer to one request, and the client's answers come with the next.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{advance, sleep};
use toolplane::{
    Toolplane,
    core::{ClientKey, Event, Observe},
};
use toolplane_gateway::{Gateway, GatewayOptions};

use crate::support::{BehaviorExecutor, Client, Http, behavior_plane, behavior_tool, modern};

const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;

fn client(executor: &BehaviorExecutor, tools: &[&str]) -> Client {
    Client::new(behavior_plane(executor, tools))
}

async fn call(client: &mut Client, tool: &str, more: &str) -> Value {
    let params = format!(r#""name":"{tool}"{more},{}"#, modern(ALL));
    client.value("tools/call", &params).await
}

/// Returns the parameters of the next round: the answers, and the state of the last round.
fn given(answers: &str, last: &Value) -> String {
    let state = &last["result"]["requestState"];
    assert!(state.is_string(), "no state: {last}");
    format!(r#","inputResponses":{answers},"requestState":{state}"#)
}

fn said(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["said"]
}

const ACCEPTED: &str = r#"{"question-1":{"action":"accept","content":{"n":1e2}}}"#;

#[tokio::test]
async fn a_legacy_upstream_that_asks_is_bridged() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["ask"]);
    let asked = client
        .ask("tools/call", &format!(r#""name":"ask",{}"#, modern(ALL)))
        .await;
    assert!(
        asked.contains(
            r#""result":{"resultType":"input_required","inputRequests":{"question-1":{"method":"elicitation/create","params":{"message":"one","requestedSchema":{"n":1e2}}}},"requestState":""#
        ),
        "{asked}"
    );
    let asked: Value = serde_json::from_str(&asked).expect("JSON");
    assert_eq!(executor.n_running(), 1);
    let answer = call(&mut client, "ask", &given(ACCEPTED, &asked)).await;
    assert_eq!(
        said(&answer),
        &json!([r#"{"action":"accept","content":{"n":1e2}}"#])
    );
    assert_eq!(answer["result"]["resultType"], json!("complete"));
    // The tool ran once.
    assert_eq!((executor.n_calls(), executor.n_running()), (1, 0));
    assert!(matches!(&executor.clients()[..], [ClientKey::Session(_)]));
}

#[tokio::test]
async fn rounds_continue_while_the_upstream_asks() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["ask_twice"]);
    let first = call(&mut client, "ask_twice", "").await;
    let second = call(&mut client, "ask_twice", &given(ACCEPTED, &first)).await;
    let questions = &second["result"]["inputRequests"];
    assert_eq!(
        questions["question-2"]["params"]["message"],
        json!("two"),
        "{second}"
    );
    assert_eq!(questions.as_object().map(serde_json::Map::len), Some(1));
    let answers = r#"{"question-2":{"action":"decline"}}"#;
    let last = call(&mut client, "ask_twice", &given(answers, &second)).await;
    assert_eq!(said(&last)[1], json!(r#"{"action":"decline"}"#));
    assert_eq!(executor.n_calls(), 1);
}

#[tokio::test]
async fn progress_and_log_messages_reach_the_latest_request() {
    let mut client = client(&BehaviorExecutor::default(), &["ask_twice"]);
    let meta = |token: &str| {
        let meta = modern(ALL);
        let meta = meta.strip_suffix('}').expect("an object");
        format!(r#"{meta},"progressToken":"{token}","io.modelcontextprotocol/logLevel":"info"}}"#)
    };
    let first = client
        .value("tools/call", &format!(r#""name":"ask_twice",{}"#, meta("first")))
        .await;
    let params = format!(
        r#""name":"ask_twice"{},{}"#,
        given(ACCEPTED, &first),
        meta("second")
    );
    let progress = client.ask("tools/call", &params).await;
    assert_eq!(
        progress,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"second"}}"#
    );
    let message = client.receive().await;
    assert!(message.contains(r#""level":"warning""#), "{message}");
    assert!(client.receive().await.contains("input_required"));
}

#[tokio::test]
async fn questions_asked_together_share_one_round() {
    let mut client = client(&BehaviorExecutor::default(), &["ask_both"]);
    let asked = call(&mut client, "ask_both", "").await;
    let questions = asked["result"]["inputRequests"].as_object().expect("questions");
    assert_eq!(questions.len(), 2, "{asked}");
    // A question without an answer is asked again.
    let again = call(&mut client, "ask_both", &given(ACCEPTED, &asked)).await;
    let questions = again["result"]["inputRequests"].as_object().expect("questions");
    assert_eq!(questions.keys().collect::<Vec<_>>(), ["question-2"], "{again}");
    for nonsense in ["{}", r#"{"question-2":7}"#, r#"{"question-1":{"late":true}}"#] {
        // A new call each time, since a state can be used once.
        let asked = call(&mut client, "ask_both", "").await;
        let again = call(&mut client, "ask_both", &given(nonsense, &asked)).await;
        assert!(
            again["result"]["inputRequests"].get("question-2").is_some(),
            "{nonsense}: {again}"
        );
    }
    let answers = r#"{"question-2":{"action":"cancel"}}"#;
    let last = call(&mut client, "ask_both", &given(answers, &again)).await;
    assert_eq!(said(&last)[1], json!(r#"{"action":"cancel"}"#));
}

#[tokio::test]
async fn clients_are_not_asked_what_they_did_not_declare() {
    let mut client = client(&BehaviorExecutor::default(), &["ask", "sample", "roots", "input"]);
    for (capabilities, tool, expected) in [
        ("{}", "ask", "no way"),
        (r#"{"elicitation":{}}"#, "sample", "cannot be asked this"),
        (r#"{"sampling":{}}"#, "roots", "cannot be asked this"),
        (r#"{"elicitation":{"url":{}}}"#, "ask", "cannot be asked this"),
    ] {
        let params = format!(r#""name":"{tool}",{}"#, modern(capabilities));
        let answer = client.value("tools/call", &params).await;
        let text = said(&answer)[0].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(expected), "{capabilities} {tool}: {answer}");
    }
    // Questions of a modern upstream are for its client. The error names the missing capability.
    for (capabilities, missing) in [("{}", "elicitation"), (r#"{"elicitation":{}}"#, "roots")] {
        let params = format!(r#""name":"input",{}"#, modern(capabilities));
        let error = client.value("tools/call", &params).await["error"].clone();
        assert_eq!(error["code"], json!(-32021), "{capabilities}: {error}");
        assert!(
            error["data"]["requiredCapabilities"].get(missing).is_some(),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_call_ends_if_its_client_cannot_be_asked_any_more() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["ask_both"]);
    let asked = call(&mut client, "ask_both", "").await;
    assert_eq!(executor.n_running(), 1);
    // The client of this round cannot be asked the remaining question.
    let params = format!(r#""name":"ask_both"{},{}"#, given(ACCEPTED, &asked), modern("{}"));
    let refused = client.value("tools/call", &params).await;
    assert_eq!(refused["error"]["code"], json!(-32021), "{refused}");
    executor.running(0).await;
}

#[tokio::test]
async fn a_resume_token_can_be_used_once() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["ask", "ask_twice"]);
    let asked = call(&mut client, "ask", "").await;
    let params = given(ACCEPTED, &asked);
    // A state is valid for the same tool and the same arguments only.
    for (tool, more) in [("ask_twice", ""), ("ask", r#","arguments":{"x":1}"#)] {
        let error = call(&mut client, tool, &format!("{params}{more}")).await["error"].clone();
        assert_eq!(error["code"], json!(-32602), "{tool}{more}: {error}");
    }
    assert!(said(&call(&mut client, "ask", &params).await).is_array());
    let replayed = call(&mut client, "ask", &params).await["error"].clone();
    assert_eq!(replayed["code"], json!(-32602), "{replayed}");
    let message = replayed["message"].as_str().unwrap_or_default();
    assert!(message.contains("make the call again"), "{message}");
    // None of these ran the tool again.
    assert_eq!(executor.n_calls(), 1);
    // Another gateway has another seal, and so has a restarted one.
    let mut other = Client::new(behavior_plane(&executor, &["ask"]));
    let error = call(&mut other, "ask", &params).await["error"].clone();
    assert_eq!(error["code"], json!(-32602), "{error}");
    for made_up in ["", "parked 1", "ffff.00.parked 1"] {
        let params = format!(r#","requestState":"{made_up}""#);
        let error = call(&mut client, "ask", &params).await["error"].clone();
        assert_eq!(error["code"], json!(-32602), "{made_up}: {error}");
    }
}

#[tokio::test]
async fn a_resume_token_belongs_to_its_principal() {
    let executor = BehaviorExecutor::default();
    let http = Http::new(behavior_plane(&executor, &["ask"]));
    let asked = http.call("alice", "ask", "").await;
    let params = given(ACCEPTED, &asked);
    let stolen = http.call("mallory", "ask", &params).await;
    assert_eq!(stolen["error"]["code"], json!(-32602), "{stolen}");
    // The failed attempt did not use up the state.
    let answer = http.call("alice", "ask", &params).await;
    assert!(said(&answer).is_array(), "{answer}");
    assert_eq!(executor.clients(), [ClientKey::Principal("alice".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_is_cancelled_after_the_answer_timeout() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["ask"]);
    let asked = call(&mut client, "ask", "").await;
    sleep(Duration::from_secs(599)).await;
    assert_eq!(executor.n_running(), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(executor.n_running(), 0);
    let late = call(&mut client, "ask", &given(ACCEPTED, &asked)).await;
    assert_eq!(late["error"]["code"], json!(-32602), "{late}");
}

/// Servers must not end in the middle of a parked call, whose outcome would then be unknown.
#[tokio::test]
async fn parked_calls_are_cancelled_at_shutdown_and_raise_no_alert() {
    let (executor, alerts) = (BehaviorExecutor::default(), Arc::new(Alerts::default()));
    let plane = Toolplane::builder()
        .executor(Arc::new(executor.clone()))
        .tool(behavior_tool("ask"))
        .observer(alerts.clone())
        .build()
        .expect("usable");
    let gateway = Gateway::new(plane.clone(), GatewayOptions::default());
    let mut client = Client::on(gateway.clone());
    let asked = call(&mut client, "ask", "").await;
    assert!(asked["result"]["requestState"].is_string(), "{asked}");
    assert_eq!(executor.n_running(), 1);
    gateway.cancel_parked().await;
    assert_eq!(executor.n_running(), 0, "it has ended when this returns");
    plane.shutdown().await;
    assert_eq!(alerts.0.load(Ordering::SeqCst), 0);
}

/// Counts alerts.
#[derive(Default)]
struct Alerts(AtomicUsize);

impl Observe for Alerts {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { .. } = event {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn time_of_the_user_does_not_count_as_time_of_the_tool() {
    let mut client = client(&BehaviorExecutor::default(), &["ask"]);
    let asked = call(&mut client, "ask", "").await;
    advance(Duration::from_secs(500)).await;
    let answer = call(&mut client, "ask", &given(ACCEPTED, &asked)).await;
    assert!(said(&answer).is_array(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_question_needs_no_answer() {
    let mut client = client(&BehaviorExecutor::default(), &["ask_and_take_back"]);
    let asked = call(&mut client, "ask_and_take_back", "").await;
    sleep(Duration::from_secs(61)).await;
    let answer = call(&mut client, "ask_and_take_back", &given("{}", &asked)).await;
    assert_eq!(said(&answer), &json!(["taken back"]), "{answer}");
}

#[tokio::test]
async fn cancelling_a_later_round_cancels_the_call() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["ask_and_hang"]);
    let asked = call(&mut client, "ask_and_hang", "").await;
    let params = format!(
        r#""name":"ask_and_hang"{},{}"#,
        given(ACCEPTED, &asked),
        modern(ALL)
    );
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{{{params}}}}}"#
        ))
        .await;
    // Requests are started in order: the call has started once the ping is answered.
    client.ask("ping", "").await;
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#)
        .await;
    executor.running(0).await;
    // Over HTTP, a client cancels by dropping the request.
    let http = Http::new(behavior_plane(&executor, &["ask_and_hang"]));
    let asked = http.call("alice", "ask_and_hang", "").await;
    let params = given(ACCEPTED, &asked);
    assert_eq!(executor.n_running(), 1);
    let waiting = tokio::spawn({
        let (http, params) = (http.clone(), params.clone());
        async move { http.call("alice", "ask_and_hang", &params).await }
    });
    // The state is used up once the request is in progress.
    tokio::task::yield_now().await;
    waiting.abort();
    executor.running(0).await;
    let late = http.call("alice", "ask_and_hang", &params).await;
    assert_eq!(late["error"]["code"], json!(-32602), "{late}");
}

#[tokio::test]
async fn the_number_of_parked_calls_is_limited() {
    let executor = BehaviorExecutor::default();
    let http = Http::new(behavior_plane(&executor, &["ask"]));
    for _ in 0..8 {
        let asked = http.call("alice", "ask", "").await;
        assert!(asked["result"]["requestState"].is_string(), "{asked}");
    }
    // One more call cannot be parked, and its tool receives an error.
    let refused = http.call("alice", "ask", "").await;
    let text = said(&refused)[0].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("too many calls"), "{refused}");
    // Other principals have their own limit, up to the limit of all together.
    for number in 0..248 {
        let asked = http.call(&format!("other {}", number / 8), "ask", "").await;
        assert!(asked["result"]["requestState"].is_string(), "{number}: {asked}");
    }
    let refused = http.call("newcomer", "ask", "").await;
    assert!(refused["result"].get("requestState").is_none(), "{refused}");
    assert_eq!(executor.n_running(), 256);
}

#[tokio::test]
async fn a_tool_that_panics_when_answered_fails_its_call() {
    let mut client = client(&BehaviorExecutor::default(), &["panic_when_answered"]);
    let asked = call(&mut client, "panic_when_answered", "").await;
    let answer = call(&mut client, "panic_when_answered", &given(ACCEPTED, &asked)).await;
    let why = &answer["result"]["_meta"]["dev.toolplane/error"];
    assert_eq!(why["kind"], json!("internal"), "{answer}");
}

#[tokio::test]
async fn questions_of_a_modern_upstream_are_relayed() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["input", "stateless"]);
    let asked = client
        .ask("tools/call", &format!(r#""name":"input",{}"#, modern(ALL)))
        .await;
    assert!(
        asked.contains(
            r#""resultType":"input_required","inputRequests":{ "name":{"method":"elicitation/create","params":{"message":"name?","requestedSchema":{},"x":1e2}},"roots":{"method":"roots/list"} },"requestState":""#
        ),
        "{asked}"
    );
    let asked: Value = serde_json::from_str(&asked).expect("JSON");
    let answers = r#"{"name":{"action":"accept"}, "roots":{"roots":[1e2]}}"#;
    let params = given(answers, &asked);
    let answer = call(&mut client, "input", &params).await;
    assert_eq!(said(&answer), &json!([format!(r#"{answers} "upstream state""#)]));
    assert_eq!(executor.n_calls(), 2);
    // The state is sealed: a changed one is refused.
    let changed = params.replace("upstream state", "upstream stat");
    assert_ne!(changed, params, "the state can be read");
    let error = call(&mut client, "input", &changed).await["error"].clone();
    assert_eq!(error["code"], json!(-32602), "{error}");
    assert_eq!(executor.n_calls(), 2);
    // An upstream without a state receives none.
    let asked = call(&mut client, "stateless", "").await;
    assert!(asked["result"].get("requestState").is_none(), "{asked}");
    let answer = call(
        &mut client,
        "stateless",
        r#","inputResponses":{"q":{"roots":[]}}"#,
    )
    .await;
    assert_eq!(said(&answer), &json!([r#"{"q":{"roots":[]}} None"#]));
}

#[tokio::test]
async fn missing_capabilities_are_reported_in_the_form_of_the_era() {
    let mut client = client(&BehaviorExecutor::default(), &["incapable"]);
    let answer = call(&mut client, "incapable", "").await;
    assert_eq!(
        answer["error"],
        json!({"code": -32021, "message": "no sampling", "data": {"requiredCapabilities": {"sampling": {}}}})
    );
    let answer = client.value("tools/call", r#""name":"incapable""#).await;
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
}

#[tokio::test]
async fn a_page_visit_is_asked_of_a_modern_client() {
    let executor = BehaviorExecutor::default();
    let mut client = client(&executor, &["visit"]);
    let asked = call(&mut client, "visit", "").await;
    assert_eq!(
        asked["result"]["inputRequests"]["page-1"],
        json!({"method": "elicitation/create", "params": {"elicitationId": "e", "mode": "url", "url": "https://example.com/a", "message": "log in", "x": 100.0}}),
        "{asked}"
    );
    // The call is made again after the visit. This tool asks again.
    let again = call(
        &mut client,
        "visit",
        &given(r#"{"page-1":{"action":"accept"}}"#, &asked),
    )
    .await;
    assert!(again["result"]["inputRequests"].is_object(), "{again}");
    assert_eq!(executor.n_calls(), 2);
    for declined in ["{}", r#"{"page-1":{"action":"decline"}}"#] {
        let answer = call(&mut client, "visit", &given(declined, &asked)).await;
        assert_eq!(answer["result"]["isError"], json!(true), "{declined}: {answer}");
    }
    assert_eq!(executor.n_calls(), 2);
    let params = format!(r#""name":"visit",{}"#, modern(r#"{"elicitation":{}}"#));
    let answer = client.value("tools/call", &params).await;
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
}
