//! Calls with typed arguments and typed replies.

use std::sync::Arc;

use serde_json::{Value, json};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Outcome, PendingCall, Reply, ToolError},
};

#[derive(serde::Serialize)]
struct Place {
    city: String,
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Weather {
    sky: String,
}

fn plane(step: ScriptStep) -> Toolplane {
    Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([step])))
        .tool(TestTool::new("weather").descriptor)
        .build()
        .expect("usable")
}

fn city() -> Place {
    Place {
        city: "Saint \"Oslo\"".to_owned(),
    }
}

async fn weather(step: ScriptStep) -> Result<Weather, ToolError> {
    plane(step).call_json::<_, Weather>("weather", &city()).await
}

fn failure(result: Result<Weather, ToolError>) -> (ErrorKind, String) {
    let error = result.expect_err("no weather");
    (error.kind(), error.message().to_owned())
}

#[tokio::test]
async fn arguments_are_serialized_and_the_reply_is_read() {
    let sent: Value = plane(ScriptStep::Echo)
        .call_json("weather", &city())
        .await
        .expect("it echoes");
    assert_eq!(sent, json!({"city": "Saint \"Oslo\""}));
    let clear = ScriptStep::Value(json!({"sky": "clear", "more": 1}));
    let expected = Weather {
        sky: "clear".to_owned(),
    };
    assert_eq!(weather(clear).await.expect("it is clear"), expected);
}

#[tokio::test]
async fn whatever_is_no_reply_of_the_type_is_an_error() {
    let mut failed = Reply::value("no such city".into());
    failed.is_error = true;
    assert_eq!(
        failure(weather(ScriptStep::Reply(failed)).await),
        (ErrorKind::UpstreamError, "no such city".to_owned())
    );
    let pending = PendingCall::new("h7", "somebody must agree");
    let (kind, message) = failure(weather(ScriptStep::Outcome(Outcome::Pending(Box::new(pending)))).await);
    assert_eq!(kind, ErrorKind::Denied);
    assert!(
        message.contains("h7") && message.contains("somebody must agree"),
        "{message}"
    );
    let (kind, message) = failure(weather(ScriptStep::Value(json!({"sky": 7}))).await);
    assert_eq!(kind, ErrorKind::ResultInvalid);
    assert!(message.contains("invalid type"), "{message}");
    let down = ToolError::new(ErrorKind::Unavailable, "nobody answers");
    assert_eq!(
        failure(weather(ScriptStep::Fail(down)).await),
        (ErrorKind::Unavailable, "nobody answers".to_owned())
    );
    let unknown = plane(ScriptStep::Echo)
        .call_json::<_, Weather>("wether", &city())
        .await;
    assert_eq!(failure(unknown).0, ErrorKind::NotFound);
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    for wrong in [json!(7), json!("text"), json!([1])] {
        let error = CallRequest::new("t").args(&wrong).expect_err("no object");
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{wrong}");
    }
}
