//! Calls of routes.

use std::time::Duration;

use serde_json::{Value, json};
use tool_core::{ErrorKind, InputRequest, Metadata, Outcome, PendingCall, RawJson, Reply, Resume, ToolError};
use tool_route::RouteExecutor;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::plane::{Plane, chosen};

fn failure(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, "as scripted")
}

fn script(step: ScriptStep) -> ScriptedExecutor {
    ScriptedExecutor::new([step])
}

fn answers(text: &str) -> ScriptedExecutor {
    script(ScriptStep::Value(json!(text)))
}

/// Makes a tool the first choice.
fn first(metadata: &mut Metadata) {
    metadata.tags = vec!["first".to_owned()];
}

/// Settings of a route that prefers tools with the label `first`.
fn settings() -> Value {
    json!({"capability": "search", "requirements": ["first"]})
}

/// Makes a tool the first choice that must not run twice.
fn once(metadata: &mut Metadata) {
    first(metadata);
    metadata.read_only = None;
}

#[tokio::test(start_paused = true)]
async fn a_failed_candidate_gives_way_to_the_next() {
    for step in [
        ScriptStep::FailSent(failure(ErrorKind::Unavailable)),
        ScriptStep::Fail(failure(ErrorKind::Overloaded)),
        ScriptStep::Fail(failure(ErrorKind::Denied)),
        ScriptStep::Fail(failure(ErrorKind::InvalidArguments)),
        ScriptStep::FailAnswered(failure(ErrorKind::UpstreamError)),
    ] {
        let plane = Plane::new();
        let (broken, other) = (script(step.clone()), answers("b"));
        plane.add("a", first, broken.clone());
        plane.add("b", |_| {}, other.clone());
        let route = plane.route(settings());
        assert_eq!(plane.call(&route).await.expect("it answers"), "b", "{step:?}");
        assert_eq!((broken.n_calls(), other.n_calls()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_unknown_outcome_no_other_tool_is_called() {
    for step in [
        ScriptStep::FailSent(failure(ErrorKind::OutcomeUnknown)),
        ScriptStep::FailSent(failure(ErrorKind::Timeout)),
        ScriptStep::FailAnswered(failure(ErrorKind::UpstreamError)),
    ] {
        let plane = Plane::new();
        let other = answers("b");
        plane.add("a", once, script(step.clone()));
        plane.add("b", |_| {}, other.clone());
        let route = plane.route(settings());
        let mut cx = plane.cx(&route);
        let error = plane.call_with(&mut cx).await.expect_err("it fails");
        assert!(error.may_have_run() && cx.may_have_run(), "{step:?}: {error:?}");
        assert_eq!(other.n_calls(), 0, "{step:?}");
        let told = error
            .detail()
            .and_then(|detail| detail.get("route"))
            .expect("it tells its choice");
        assert_eq!(told.get("failed").expect("it failed").items().count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_or_not_taken_may_go_to_another_tool() {
    for step in [
        ScriptStep::Fail(failure(ErrorKind::Unavailable)),
        ScriptStep::FailNotTaken(failure(ErrorKind::RateLimited)),
    ] {
        let plane = Plane::new();
        plane.add("a", once, script(step.clone()));
        plane.add("b", |_| {}, answers("b"));
        let route = plane.route(settings());
        assert_eq!(plane.call(&route).await.expect("it answers"), "b", "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_tells_what_may_have_run() {
    let plane = Plane::new();
    plane.add("a", once, script(ScriptStep::Hang(true)));
    let route = plane.route(settings());
    let mut cx = plane.cx(&route);
    let ended = tokio::time::timeout(Duration::from_secs(5), plane.call_with(&mut cx)).await;
    assert!(ended.is_err());
    assert!(cx.may_have_run());
}

#[tokio::test(start_paused = true)]
async fn the_time_is_shared_between_candidates_that_may_be_given_up() {
    let plane = Plane::new();
    let slow = script(ScriptStep::After(Duration::from_secs(60), json!("late")));
    plane.add("a", first, slow);
    plane.add("b", |_| {}, answers("b"));
    let route = plane.route(settings());
    let mut cx = plane.cx(&route);
    cx.tighten_deadline(Duration::from_secs(10));
    let start = tokio::time::Instant::now();
    let reply = plane.reply(&mut cx).await;
    assert_eq!(chosen(reply.meta()), "b");
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn all_failures_are_told() {
    let plane = Plane::new();
    plane.add(
        "a",
        first,
        script(ScriptStep::Fail(failure(ErrorKind::Unavailable))),
    );
    plane.add("b", |_| {}, script(ScriptStep::Fail(failure(ErrorKind::Denied))));
    let route = plane.route(settings());
    let error = plane.call(&route).await.expect_err("all fail");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // Who may not call a tool does not learn its name.
    assert_eq!(
        error.message(),
        "as scripted (`a` failed as `unavailable`, another failed as `denied`)"
    );
    let route = plane.route(json!({"capability": "search", "requirements": ["first"], "max_attempts": 1}));
    let error = plane.call(&route).await.expect_err("it fails");
    assert_eq!(error.message(), "`a` failed as `unavailable`: as scripted");
}

#[tokio::test(start_paused = true)]
async fn without_a_candidate_the_error_says_why() {
    let plane = Plane::new();
    let route = plane.route(settings());
    let error = plane.call(&route).await.expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        error.message(),
        "no tool that you may call has the capability `search`"
    );
    plane.add(
        "a",
        |_| {},
        script(ScriptStep::FailSent(failure(ErrorKind::Unavailable))),
    );
    for _ in 0..2 {
        plane.call(&route).await.expect_err("it fails");
    }
    let error = plane.call(&route).await.expect_err("it rests");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        error.message(),
        "every tool with the capability `search` is out: `a`: out, it failed again and again, and is tried again in 1 s"
    );
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(
        plane.call(&route).await.expect_err("it is tried").kind(),
        ErrorKind::Unavailable
    );
}

#[tokio::test(start_paused = true)]
async fn arguments_are_made_for_each_candidate() {
    let plane = Plane::new();
    plane.add("a", first, script(ScriptStep::Echo));
    plane.add("b", |_| {}, script(ScriptStep::Echo));
    let mut settings = settings();
    settings["arguments"] = json!({"a": {"limit": {"$cel": "size(input.query) + 1"}, "q": "$input.query"}});
    let route = plane.route(settings);
    let mut cx = plane.cx(&route);
    let reply = plane.reply(&mut cx).await;
    assert_eq!(reply.text(), r#"{"limit":5,"q":"rust"}"#);
    // A candidate whose arguments cannot be made is passed over.
    let mut broken = json!({"capability": "search", "requirements": ["first"]});
    broken["arguments"] = json!({"a": {"q": "$input.topic"}});
    assert_eq!(plane.call(&plane.route(broken)).await.expect("b answers"), "b");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_does_not_fit_the_route_gives_way() {
    let plane = Plane::new();
    plane.add("a", first, answers("a text"));
    plane.add("b", |_| {}, script(ScriptStep::Value(json!({"hits": []}))));
    let mut tool = TestTool::new("find").output(json!({"type": "object", "required": ["hits"]}));
    tool.descriptor.executor.kind = RouteExecutor::KIND.into();
    tool.descriptor.executor.config = settings();
    let route = plane.route_of(tool);
    assert_eq!(plane.call(&route).await.expect("b answers"), "b");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_the_tool_itself_reports_is_its_answer() {
    let plane = Plane::new();
    let mut reply = Reply::value(RawJson::from("there is no such place"));
    reply.is_error = true;
    plane.add("a", first, script(ScriptStep::Reply(reply)));
    let other = answers("b");
    plane.add("b", |_| {}, other.clone());
    let route = plane.route(settings());
    assert_eq!(plane.call(&route).await.expect("an answer"), "a");
    assert_eq!(other.n_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_by_the_tool_that_asked() {
    let plane = Plane::new();
    let input =
        InputRequest::new(RawJson::from(json!({"city": {}}))).with_state(Some(RawJson::from("inner")));
    let asks = ScriptedExecutor::new([
        ScriptStep::Outcome(Outcome::NeedsInput(Box::new(input))),
        ScriptStep::Value(json!("answered")),
    ]);
    plane.add("a", first, asks.clone());
    let other = answers("b");
    plane.add("b", |_| {}, other.clone());
    let route = plane.route(settings());
    let asked = plane.call_with(&mut plane.cx(&route)).await.expect("it asks");
    let Outcome::NeedsInput(input) = asked else {
        panic!("it asks: {asked:?}")
    };
    // Meanwhile another one would be chosen.
    plane.add(
        "c",
        |metadata| metadata.tags = vec!["first".to_owned()],
        other.clone(),
    );
    let mut cx = plane.cx(&route);
    let resume = Resume::new(RawJson::from(json!({"city": "Oslo"}))).with_state(input.state.clone());
    cx.extras.resume = Some(resume.into());
    let reply = plane.reply(&mut cx).await;
    assert_eq!(chosen(reply.meta()), "a");
    assert_eq!((asks.n_calls(), other.n_calls()), (2, 0));
    let mut cx = plane.cx(&route);
    cx.extras.resume = Some(
        Resume::new(RawJson::object())
            .with_state(Some(RawJson::from("forged")))
            .into(),
    );
    let error = plane.call_with(&mut cx).await.expect_err("no state of a route");
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_awaited_for_one_tool() {
    let plane = Plane::new();
    let pending = PendingCall::new("7f", "a person decides");
    let waits = ScriptedExecutor::new([
        ScriptStep::Outcome(Outcome::Pending(Box::new(pending))),
        ScriptStep::Value(json!("approved")),
    ]);
    plane.add("a", |_| {}, waits.clone());
    let route = plane.route(settings());
    let Outcome::Pending(pending) = plane.call_with(&mut plane.cx(&route)).await.expect("it waits") else {
        panic!("it waits")
    };
    assert_eq!(pending.reason, "`a`: a person decides");
    let other = answers("b");
    plane.add("b", first, other.clone());
    assert_eq!(plane.call(&route).await.expect("it answers"), "a");
    assert_eq!((waits.n_calls(), other.n_calls()), (2, 0));
    // The next call is free again.
    assert_eq!(plane.call(&route).await.expect("it answers"), "b");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_explains_its_choice_and_leads_no_later_one() {
    let plane = Plane::new();
    plane.add("a", |_| {}, answers("a"));
    let mut settings = settings();
    // Less than the hysteresis: a tool that leads stays.
    settings["weights"] = json!({"requirement": 5});
    let route = plane.route(settings);
    let mut cx = plane.cx(&route);
    cx.mode = tool_core::Mode::DryRun;
    cx.record_decisions();
    // The stack of the test has no end of dry runs: the script runs as it is.
    plane.reply(&mut cx).await;
    let said: Vec<_> = cx
        .decisions()
        .iter()
        .map(|decision| decision.decision.clone())
        .collect();
    let own: Vec<_> = said.iter().filter(|said| said.contains("`a`")).collect();
    assert_eq!(own, ["calls `a`", "`a`: 100.0"]);
    plane.add("b", first, answers("b"));
    assert_eq!(plane.call(&route).await.expect("it answers"), "b");
    // A call does lead.
    plane.add("c", |_| {}, answers("c"));
    assert_eq!(plane.call(&route).await.expect("it answers"), "b");
}
