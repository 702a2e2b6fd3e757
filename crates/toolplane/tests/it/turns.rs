//! Turns and conversations in the standard stack, and the programs that run them.

use std::{num::NonZeroUsize, sync::Arc};

use serde_json::json;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{Caller, ErrorKind, Feature, Metadata, Outcome, ToolError},
    manifest::{Configuration, ToolChoiceSpec},
    policy::{ApprovalVerdict, QuotaLayer, ToolChoice},
};

fn plane(script: &ScriptedExecutor, change: impl FnOnce(&mut Configuration)) -> Toolplane {
    let mut configuration = Configuration::default();
    change(&mut configuration);
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.cost_per_call = Some(0.1);
        metadata
    };
    Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(script.clone()))
        .tool(TestTool::new("search").metadata(metadata).descriptor)
        .build()
        .expect("it can be set up")
}

fn kind(result: Result<Outcome, ToolError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn search() -> CallRequest {
    CallRequest::new("search")
}

#[tokio::test]
async fn a_turn_makes_as_many_calls_as_the_policy_allows() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, |configuration| {
        configuration.policy.limits.calls_per_turn = Some(10);
        configuration.policy.limits.calls_per_conversation = Some(15);
    });
    let turn = plane.turn("one");
    let requests = std::iter::repeat_with(search).take(1000);
    let window = NonZeroUsize::new(1000).expect("not 0");
    let results = turn.call_many(requests, window).await;
    let n_refused = results
        .into_iter()
        .filter_map(kind)
        .filter(|kind| *kind == ErrorKind::Denied);
    assert_eq!((n_refused.count(), script.n_calls()), (990, 10));
    // Another turn of the conversation has the rest of its quota, and another conversation a full one.
    let (next, other) = (plane.turn("one"), plane.turn("other"));
    for _ in 0..20 {
        let _ = next.call(search()).await;
        let _ = other.call(search()).await;
    }
    assert_eq!(script.n_calls(), 25);
    let error = next.call(search()).await.expect_err("it is refused");
    assert_eq!(
        error.message(),
        "the limit of 15 calls in one conversation is reached"
    );
}

#[tokio::test]
async fn what_a_conversation_costs_is_bounded_and_explained() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, |configuration| {
        configuration.policy.limits.cost_per_conversation = Some(0.3);
    });
    for _ in 0..3 {
        let explained = plane.dry_run(search()).await;
        assert!(explained.result.is_ok(), "a dry run costs nothing: {explained:?}");
        assert_eq!(kind(plane.call(search()).await), None);
    }
    let explained = plane.call_explained(search()).await;
    let note = explained.decisions.iter().find(|note| note.layer == "quota");
    assert_eq!(
        note.expect("a note").decision,
        "refused: the limit of 0.30 US dollars in one conversation would be exceeded: 0.30 are used and the call costs 0.10"
    );
    assert_eq!(script.n_calls(), 3);
}

#[tokio::test]
async fn no_tool_is_shown_or_called_where_the_choice_is_none() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, |configuration| {
        configuration.policy.tool_choice = ToolChoiceSpec::None;
    });
    assert_eq!(plane.tool_choice(), ToolChoice::None);
    assert!(plane.view(&Caller::local()).await.list(Feature::Tool).is_empty());
    assert_eq!(kind(plane.call(search()).await), Some(ErrorKind::Denied));
    assert_eq!(script.n_calls(), 0);
}

#[tokio::test]
async fn a_turn_must_call_a_tool_where_that_is_required() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    for (choice, is_required) in [(ToolChoiceSpec::Auto, false), (ToolChoiceSpec::Required, true)] {
        let plane = plane(&script, |configuration| configuration.policy.tool_choice = choice);
        let empty = plane.turn("one");
        assert_eq!(empty.finish().is_err(), is_required);
        let refused = plane.turn("one");
        assert_eq!(
            kind(refused.call(CallRequest::new("nothing")).await),
            Some(ErrorKind::NotFound)
        );
        assert_eq!(refused.finish().is_err(), is_required);
        let called = plane.turn("one");
        assert_eq!(kind(called.call(search()).await), None);
        assert!(called.finish().is_ok());
    }
}

#[tokio::test]
async fn a_call_that_waits_for_approval_counts_once_when_it_is_made() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, |configuration| {
        configuration.policy.limits.calls_per_turn = Some(1);
        configuration.policy.approval.required = vec!["*".into()];
    });
    let turn = plane.turn("one");
    for _ in 0..3 {
        assert!(matches!(turn.call(search()).await, Ok(Outcome::Pending(_))));
    }
    let waiting = plane.approvals().list().await.expect("it works");
    let decided = plane
        .approvals()
        .decide(&waiting[0].handle, ApprovalVerdict::Approve, "operator");
    decided.await.expect("can be decided");
    assert!(matches!(turn.call(search()).await, Ok(Outcome::Reply(_))));
    // A call beyond the quota asks for no approval.
    assert_eq!(kind(turn.call(search()).await), Some(ErrorKind::Denied));
    assert!(plane.approvals().list().await.expect("it works").is_empty());
}

#[tokio::test]
async fn a_callers_own_words_are_kept_beside_the_turn() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, |configuration| {
        configuration.policy.limits.identical_calls = Some(1);
    });
    let meta = toolplane::RawJson::from(json!({"mine": 1, QuotaLayer::CONVERSATION: "x"}));
    let request = plane.turn("one").request(search().meta(meta));
    assert_eq!(kind(plane.call(request.clone()).await), None);
    assert_eq!(kind(plane.call(request).await), Some(ErrorKind::Denied));
}

#[tokio::test]
async fn a_program_makes_the_calls_of_a_turn() -> Result<(), ToolError> {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, |configuration| {
        configuration.policy.tool_choice = ToolChoiceSpec::Required;
    });
    let requests = [search(), search()];
    // ANCHOR: turn
    let turn = plane.turn("conversation 7");
    let results = turn.call_many(requests, Toolplane::DEFAULT_CONCURRENCY).await;
    turn.finish()?; // an error if a call was required and there was none
    // ANCHOR_END: turn
    assert_eq!(results.into_iter().filter_map(kind).count(), 0);
    assert_eq!(script.n_calls(), 2);
    Ok(())
}
