//! Failures of steps: what ends a workflow, and what does not.

use std::time::Duration;

use serde_json::json;
use tool_testkit::ScriptStep;
use toolplane::{CallRequest, core::ErrorKind};

use super::{World, failed, failed_summary, failure, reply, statuses, summary, value};

fn status(step: &str, status: &str) -> (String, String) {
    (step.to_owned(), status.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_ends_the_workflow_as_itself() {
    let world = World::default();
    world.script("broken", [failed(ErrorKind::Auth)]);
    let plane = world.plane(
        &["broken", "after", "beside"],
        "
workflows:
  stops:
    description: A.
    steps: [{tool: beside}, {tool: broken}, {tool: after, depends_on: [broken]}]
",
    );
    let error = failure(&plane, "stops", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert_eq!(error.message(), "step `broken`: as scripted");
    let summary = failed_summary(&error);
    assert_eq!(summary["status"], "failed");
    assert_eq!(summary["failed_at"], "broken");
    assert_eq!(
        statuses(&summary),
        [status("beside", "success"), status("broken", "error")]
    );
    assert_eq!(
        summary["steps"][1]["error"],
        json!({"kind": "auth", "message": "as scripted"})
    );
    assert_eq!(world.called(), ["beside", "broken"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_result_of_a_tool_is_a_failed_step() {
    let world = World::default();
    let text = r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#;
    let reply = toolplane::core::Reply::result(toolplane::RawJson::parse(text.to_owned()).unwrap(), true);
    world.script("weather", [ScriptStep::Reply(reply)]);
    let plane = world.plane(
        &["weather"],
        "workflows: {ask: {description: A., steps: [{tool: weather}]}}",
    );
    let error = failure(&plane, "ask", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::UpstreamError);
    assert_eq!(error.message(), "step `weather`: no such city");
}

#[tokio::test(start_paused = true)]
async fn optional_steps_and_fallbacks_let_it_go_on() {
    let world = World::default();
    world.script("broken", [failed(ErrorKind::Unavailable)]);
    let plane = world.plane(
        &["broken", "spare", "echo"],
        "
workflows:
  optional:
    description: A.
    steps:
      - {tool: broken, optional: true}
      - {name: needs, tool: echo, optional: true, input: {of: $results.broken}}
      - {tool: echo, depends_on: [needs], optional: true}
      - {name: end, tool: echo, input: {got: {$cel: 'has(results.broken)'}}}
  instead:
    description: A.
    steps: [{tool: broken, fallback: {tool: spare, input: {instead: true}}}]
  both:
    description: A.
    steps: [{tool: broken, fallback: broken}]
",
    );
    let gone_on = reply(&plane, "optional", &json!({})).await;
    assert_eq!(gone_on.raw().as_str(), r#"{"got":false}"#);
    assert!(gone_on.is_partial());
    let summary_of_it = summary(&gone_on);
    assert_eq!(summary_of_it["status"], "partial");
    let mut ended = statuses(&summary_of_it);
    ended.sort();
    assert_eq!(
        ended,
        [
            status("broken", "error"),
            status("echo", "error"),
            status("end", "success"),
            status("needs", "error"),
        ]
    );
    let spare = reply(&plane, "instead", &json!({})).await;
    assert_eq!(spare.raw().as_str(), r#"{"instead":true}"#);
    assert!(!spare.is_partial());
    assert_eq!(
        statuses(&summary(&spare)),
        [status("broken", "error"), status("broken!fallback", "fallback")]
    );
    let error = failure(&plane, "both", &json!({})).await;
    assert_eq!(
        error.message(),
        "step `broken`: as scripted (and its fallback: as scripted)"
    );
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_continues_does_what_it_can() {
    let world = World::default();
    world.script("broken", [failed(ErrorKind::Unavailable)]);
    let plane = world.plane(
        &["broken", "fine", "needs"],
        "
workflows:
  most:
    description: A.
    errorHandling: continue-on-error
    steps: [{tool: broken}, {tool: fine}, {tool: needs, input: {of: $results.broken}}]
    output: {broken: $results.broken, fine: $results.fine}
",
    );
    let reply = reply(&plane, "most", &json!({"n": 1})).await;
    assert_eq!(reply.raw().as_str(), r#"{"broken":null,"fine":{"n":1}}"#);
    assert_eq!(
        statuses(&summary(&reply)),
        [
            status("broken", "error"),
            status("fine", "success"),
            status("needs", "error")
        ]
    );
    assert_eq!(summary(&reply)["steps"][2]["error"]["kind"], "unavailable");
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_step_replace_those_of_its_tool() {
    let world = World::default();
    world.script("flaky", [failed(ErrorKind::Unavailable)]);
    let plane = world.plane(
        &["flaky"],
        "
defaults: {retry: {max_attempts: 5}}
workflows:
  usual: {description: A., retryable: false, steps: [{tool: flaky}]}
  three: {description: A., retryable: false, steps: [{tool: flaky, retry: {max_attempts: 3, initial_delay: 10ms}}]}
  once: {description: A., retryable: false, steps: [{tool: flaky, retry: {max_attempts: 1}}]}
",
    );
    for (workflow, n_calls) in [("usual", 5), ("three", 3), ("once", 1)] {
        let before = world.called().len();
        let error = failure(&plane, workflow, &json!({})).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(world.called().len() - before, n_calls, "{workflow}");
        assert_eq!(failed_summary(&error)["steps"][0]["attempts"], n_calls);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_ends_the_workflow_whatever_it_allows() {
    let world = World::default();
    world.script("hang", [ScriptStep::Hang(true)]);
    let plane = world.plane(
        &["hang", "spare", "after"],
        "
workflows:
  careful:
    description: A.
    on_error: continue
    steps: [{tool: hang, optional: true, fallback: spare, timeout: 1s}, {tool: after, depends_on: [hang]}]
  repeatable:
    description: A.
    steps: [{tool: hang, repeatable: true, fallback: spare, timeout: 1s}]
",
    );
    let error = failure(&plane, "careful", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(world.called(), ["hang"]);
    assert_eq!(
        value(&plane, "repeatable", &json!({"n": 1})).await,
        json!({"n": 1})
    );
    assert_eq!(world.called(), ["hang", "hang", "spare"]);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_may_have_had_an_effect_is_not_repeated() {
    let world = World::default();
    world.script("broken", [failed(ErrorKind::Unavailable)]);
    let plane = world.plane(
        &["write", "broken"],
        "
workflows:
  writes:
    description: A.
    retry: {max_attempts: 3, initial_delay: 1ms}
    steps: [{tool: write}, {tool: broken, depends_on: [write], retry: {max_attempts: 1}}]
  reads:
    description: A.
    retry: {max_attempts: 3, initial_delay: 1ms}
    steps: [{tool: broken, retry: {max_attempts: 1}}]
",
    );
    let error = failure(&plane, "writes", &json!({})).await;
    assert!(error.may_have_run());
    assert_eq!(world.called(), ["write", "broken"]);
    // Nothing was sent, so that the workflow as a whole is tried again, as it says.
    let error = failure(&plane, "reads", &json!({})).await;
    assert!(!error.may_have_run());
    assert_eq!(world.called().len(), 2 + 3);
}

#[tokio::test(start_paused = true)]
async fn steps_are_admitted_as_themselves() {
    let world = World::default();
    let plane = world.plane(
        &["open"],
        "
workflows:
  all: {description: A., steps: [{tool: open}, {tool: closed, depends_on: [open]}]}
",
    );
    let error = failure(&plane, "all", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let plane = world.plane(
        &["open", "closed"],
        "
policy: {blocklist: [closed]}
workflows:
  all: {description: A., steps: [{tool: open}, {tool: closed, depends_on: [open]}]}
",
    );
    let error = failure(&plane, "all", &json!({})).await;
    assert!(
        matches!(error.kind(), ErrorKind::Denied | ErrorKind::NotFound),
        "{error}"
    );
    assert!(error.message().starts_with("step `closed`: "), "{error}");
    assert!(!world.called().contains(&"closed".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leaves_no_step_running() {
    let world = World::default();
    world.script("hang", [ScriptStep::Hang(true)]);
    let plane = world.plane(
        &["hang"],
        "workflows: {waits: {description: A., steps: [{tool: hang}]}}",
    );
    let call = plane.call(CallRequest::new("waits"));
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    assert_eq!(world.called(), ["hang"]);
}

#[tokio::test(start_paused = true)]
async fn default_retries_are_those_of_the_steps() {
    for (own, n_calls) in [("", 2), (", retry: {max_attempts: 2}", 4)] {
        let world = World::default();
        world.script("a", [failed(ErrorKind::Unavailable)]);
        let plane = world.plane(
            &["a"],
            &format!(
                "
workflows: {{once: {{description: Once., steps: [{{tool: a}}]{own}}}}}
defaults: {{retry: {{max_attempts: 2}}, breaker: {{disabled: true}}}}
"
            ),
        );
        failure(&plane, "once", &json!({})).await;
        assert_eq!(world.called().len(), n_calls, "{own}");
    }
}
