//! Behaviour of modern servers alone: input requests as results, and client capabilities in each request.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{ErrorKind, Feature, Outcome, Resume, Target};

use crate::{
    client::Client,
    fixture::{Call, Fixture, load, tool},
};

fn fixture() -> Fixture {
    let fixture = Fixture::new(&[tool("asks")]);
    fixture.offers(&json!({"tools": {}, "prompts": {}, "resources": {}}));
    fixture.has("prompts", r#"[{"name":"asks"}]"#);
    fixture
}

#[tokio::test]
async fn an_input_request_ends_a_round_and_the_answers_continue_it() {
    let fixture = fixture();
    let server = fixture.server("modern");
    let catalogue = load(&server).await;
    let prompt = (*catalogue.others[0]).clone();
    assert_eq!(prompt.feature, Feature::Prompt);
    let calls = [
        Call::new(&server, "asks", json!({})),
        Call::for_tool(&server, prompt, json!({})).to(Target::Prompt),
    ];
    for mut call in calls {
        let Outcome::NeedsInput(request) = call.come().await.unwrap() else {
            panic!("a question is no reply");
        };
        assert_eq!(
            request.requests.as_str(),
            r#"{"who":{"method":"elicitation/create"}}"#
        );
        assert_eq!(request.state.as_ref().unwrap().as_str(), r#""s1""#);
        let responses = RawJson::parse(r#"{"who":{ "action":"accept" }}"#).unwrap();
        call.cx.extras.resume = Some(Arc::new(Resume::new(responses.clone()).with_state(request.state)));
        let reply = call.make().await.unwrap();
        let params = reply.raw().get("params").unwrap_or(reply.raw().clone());
        assert_eq!(params.get("inputResponses"), Some(responses));
        assert_eq!(params.get("requestState"), Some(RawJson::from("s1")));
    }
    server.shutdown().await;
}

#[tokio::test]
async fn invalid_results_are_protocol_errors() {
    let fixture = fixture();
    let server = fixture.server("modern");
    let many: serde_json::Map<_, _> = (0..65)
        .map(|number| (number.to_string(), json!({"method": "roots/list"})))
        .collect();
    let cases = [
        (json!({"resultType": "input_required"}), "asks for nothing"),
        (
            json!({"resultType": "input_required", "inputRequests": [1]}),
            "not an object",
        ),
        (
            json!({"resultType": "input_required", "inputRequests": {"a": 7}}),
            "no client answers",
        ),
        (
            json!({"resultType": "input_required", "inputRequests": {"a": {"method": "tools/call"}}}),
            "no client answers",
        ),
        (
            json!({"resultType": "input_required", "inputRequests": many}),
            "more than 64 input requests",
        ),
        (
            json!({"resultType": "task", "taskId": "1", "status": "working"}),
            "a task",
        ),
        (json!({"resultType": "later"}), "unknown type"),
        (json!({"resultType": 7}), "unknown type"),
    ];
    for (result, message) in cases {
        let error = Call::new(&server, "says", result.clone())
            .make()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{result}");
        assert!(error.message().contains(message), "{result}: {error}");
    }
    let complete = json!({"resultType": "complete", "content": []});
    let reply = Call::new(&server, "says", complete.clone()).make().await.unwrap();
    assert_eq!(reply.raw(), &RawJson::from(complete));
    server.shutdown().await;
}

#[tokio::test]
async fn a_legacy_server_may_use_the_words_of_a_modern_one() {
    let fixture = fixture();
    let server = fixture.server("");
    let result = json!({"content": [], "resultType": "vendor"});
    let mut call = Call::new(&server, "says", result.clone());
    call.cx.extras.resume = Some(Arc::new(Resume::new(RawJson::object())));
    let reply = call.make().await.unwrap();
    assert_eq!(reply.raw(), &RawJson::from(result));
    let reply = Call::new(&server, "echo", json!({})).make().await.unwrap();
    assert_eq!(reply.raw().get("inputResponses"), None);
    server.shutdown().await;
}

#[tokio::test]
async fn each_request_says_what_its_client_can_be_asked() {
    let fixture = fixture();
    let server = fixture.server("modern");
    let meta = |mut call: Call| async move {
        let sent = r#"{"io.modelcontextprotocol/logLevel":"debug","v":1}"#;
        call.cx.extras.meta = Some(RawJson::parse(sent).unwrap());
        let reply = call.make().await.unwrap();
        let meta: Value = reply.raw().get("_meta").unwrap().to().unwrap();
        assert_eq!(meta["v"], 1);
        (
            meta["io.modelcontextprotocol/clientCapabilities"].clone(),
            meta["io.modelcontextprotocol/logLevel"].clone(),
        )
    };
    let asked = Client::session("anna", r#"{"elicitation":{ "form":{} }}"#);
    let listening = Client::listening("otto", "info");
    let cases = [
        (
            asked.call(&server, "echo", json!({})),
            (json!({"elicitation": {"form": {}}}), json!(null)),
        ),
        (
            listening.call(&server, "echo", json!({})),
            (json!({}), json!("info")),
        ),
        (Call::new(&server, "echo", json!({})), (json!({}), json!(null))),
    ];
    for (call, expected) in cases {
        assert_eq!(meta(call).await, expected);
    }
    assert_eq!(
        server.n_dedicated_connections(),
        0,
        "all share the one connection"
    );
    server.shutdown().await;
}
