use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use serde_json::json;
use tool_core::{
    Arguments, CallContext, Caller, CheckError, CheckJson, Clock, Descriptor, ErrorKind, ExecutorSpec,
    InProcess, Instant, Invoke, Layer, Layers, Metadata, Outcome, Reply, Target, Tool, ToolError, ToolParts,
    ToolState, Trust,
};

/// Clock that a test moves.
#[derive(Default)]
pub(crate) struct Hand(Mutex<Duration>);

impl Clock for Hand {
    fn now(&self) -> Instant {
        Instant::since_start(*self.0.lock().expect("no test panics with it"))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

struct Anything;

impl CheckJson for Anything {
    fn check(&self, _value: &serde_json::Value) -> Result<(), CheckError> {
        Ok(())
    }
}

struct Echo;

impl Invoke for Echo {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        Ok(Reply::value(cx.arguments.raw().clone()).into())
    }
}

pub(crate) fn tool(trust: Trust, metadata: Metadata) -> Arc<Tool> {
    let mut descriptor = Descriptor::new("echo", ExecutorSpec::new("test"));
    descriptor.description = String::new();
    descriptor.input_schema = json!({}).into();
    descriptor.metadata = metadata.into();
    descriptor.origin.trust = trust;
    let mut parts = ToolParts::new(Arc::new(descriptor), Arc::new(InProcess(Echo)));
    parts.input = Arc::new(Anything);
    parts.state = Arc::new(ToolState::default());
    Arc::new(Tool::new(parts))
}

pub(crate) fn call(tool: Arc<Tool>) -> (CallContext, Arc<Hand>) {
    let clock = Arc::new(Hand::default());
    let cx = CallContext::new(
        Target::Tool(tool),
        Arc::new(Arguments::none()),
        Arc::new(Caller::local()),
        clock.clone(),
    );
    (cx, clock)
}

#[test]
fn an_unanswered_call_is_unknown_unless_it_may_run_twice() {
    let mut idempotent = Metadata::default();
    idempotent.idempotent = Some(true);
    let mut read_only = Metadata::default();
    read_only.read_only = Some(true);
    let cases = [
        (Trust::Operator, Metadata::default(), false, ErrorKind::Timeout),
        (
            Trust::Operator,
            Metadata::default(),
            true,
            ErrorKind::OutcomeUnknown,
        ),
        (Trust::Operator, idempotent.clone(), true, ErrorKind::Timeout),
        (Trust::Operator, read_only, true, ErrorKind::Timeout),
        (Trust::Upstream, idempotent, true, ErrorKind::OutcomeUnknown),
    ];
    for (trust, metadata, sent, expected) in cases {
        let (cx, _) = call(tool(trust, metadata.clone()));
        if sent {
            cx.dispatch().sent();
        }
        let error = cx.unanswered(ErrorKind::Timeout, "no answer");
        assert_eq!(error.kind(), expected, "{trust:?} {metadata:?} sent: {sent}");
    }
}

#[test]
fn an_answered_attempt_is_known_and_marks_only_go_forward() {
    let (mut cx, _) = call(tool(Trust::Upstream, Metadata::default()));
    cx.dispatch().answered();
    cx.dispatch().sent();
    assert_eq!(
        cx.unanswered(ErrorKind::Protocol, "garbage").kind(),
        ErrorKind::Protocol
    );
    cx.next_attempt();
    assert_eq!(cx.dispatch().state(), tool_core::DispatchState::NotSent);
    assert_eq!(cx.attempt, 1);
}

/// Tests all sequences of up to three attempts: one that may have run is enough, whatever follows it.
#[test]
fn a_tool_may_have_run_if_one_attempt_was_sent_and_taken() {
    type Mark = fn(&tool_core::Dispatch);
    let marks: [(Mark, bool); 4] = [
        (|_| {}, false),
        (|dispatch| dispatch.sent(), true),
        (|dispatch| dispatch.answered(), true),
        (
            |dispatch| {
                dispatch.sent();
                dispatch.not_taken();
                dispatch.answered();
            },
            false,
        ),
    ];
    let declared = |idempotent, read_only| {
        let mut metadata = Metadata::default();
        metadata.idempotent = idempotent;
        metadata.read_only = read_only;
        metadata
    };
    for (trust, metadata, is_repeatable) in [
        (Trust::Operator, Metadata::default(), false),
        (Trust::Operator, declared(Some(false), Some(false)), false),
        (Trust::Operator, declared(Some(true), None), true),
        (Trust::Operator, declared(None, Some(true)), true),
        (Trust::Upstream, declared(Some(true), Some(true)), false),
    ] {
        let tool = tool(trust, metadata);
        for sequence in 0..marks.len().pow(3) {
            let (mut cx, _) = call(tool.clone());
            let mut expected = false;
            for place in 0..3_u32 {
                cx.next_attempt();
                let (mark, is_taken) = marks[sequence / marks.len().pow(place) % marks.len()];
                mark(cx.dispatch());
                expected |= is_taken && !is_repeatable;
                assert_eq!(cx.may_have_run(), expected, "{trust:?} {sequence} {place}");
                let error = cx.mark(ToolError::new(ErrorKind::Unavailable, "down"));
                assert_eq!(error.may_have_run(), expected);
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                let (mut waiting, _) = call(tool.clone());
                waiting.follow(cx.history().clone());
                assert_eq!(waiting.may_have_run(), expected, "who waits for it");
            }
        }
    }
}

#[test]
fn the_earlier_deadline_counts() {
    let (mut cx, clock) = call(tool(Trust::Operator, Metadata::default()));
    cx.tighten_deadline(Duration::from_secs(10));
    cx.tighten_deadline(Duration::from_secs(60));
    assert_eq!(cx.remaining(), Some(Duration::from_secs(10)));
    *clock.0.lock().unwrap() = Duration::from_secs(4);
    cx.tighten_deadline(Duration::from_secs(60));
    assert_eq!(cx.remaining(), Some(Duration::from_secs(6)));
    *clock.0.lock().unwrap() = Duration::from_secs(11);
    assert_eq!(cx.remaining(), Some(Duration::ZERO));
}

#[test]
fn forked_work_reports_back() {
    let (mut cx, _) = call(tool(Trust::Operator, Metadata::default()));
    cx.record_decisions();
    cx.explain("outer", || "before".to_owned());
    let mut forked = cx.fork();
    forked.next_attempt();
    forked.dispatch().sent();
    forked.explain("inner", || "inside".to_owned());
    assert_eq!(cx.dispatch().state(), tool_core::DispatchState::NotSent);
    cx.merge_fork(forked);
    assert_eq!(cx.dispatch().state(), tool_core::DispatchState::Sent);
    assert_eq!(cx.attempt, 1);
    let layers: Vec<_> = cx.decisions().iter().map(|note| note.layer).collect();
    assert_eq!(layers, ["outer", "inner"]);
}

#[test]
fn a_note_costs_nothing_unless_asked_for() {
    let (mut cx, _) = call(tool(Trust::Operator, Metadata::default()));
    cx.explain("layer", || unreachable!("nobody asked"));
    assert!(cx.decisions().is_empty());
}

/// Adds its name to the description of the inner service.
struct Named(&'static str);

impl Layer<String> for Named {
    type Invoke = String;

    fn layer(self, inner: String) -> String {
        format!("{}({inner})", self.0)
    }
}

#[test]
fn layers_read_in_the_order_in_which_a_call_meets_them() {
    let stack = Layers::outermost(Named("a"))
        .then(Named("b"))
        .then(Named("c"))
        .around("tool".to_owned());
    assert_eq!(stack, "a(b(c(tool)))");
}

#[test]
fn every_kind_of_error_has_its_own_name_and_words() {
    let mut names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ErrorKind::ALL.len());
    assert!(ErrorKind::ALL.iter().all(|kind| !kind.advice().is_empty()));
    for kind in [
        ErrorKind::InvalidArguments,
        ErrorKind::Denied,
        ErrorKind::NotFound,
        ErrorKind::Cancelled,
    ] {
        assert!(!kind.counts_for_breaker() && !kind.is_retryable(), "{kind}");
    }
}
