//! Idempotency alone, around a scripted executor, on a paused clock.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{advance, timeout},
};
use tool_core::{
    CallContext, Caller, CorrelationId, ErrorKind, InProcess, InputRequest, Invoke, Jitter, Layer, Layers,
    Ledger, LedgerState, Metadata, Mode, Outcome, PendingCall, Reply, Resume, Task, TaskHandle, Tool,
    ToolError,
};
use tool_runtime::RetrySettings;
use tool_runtime::{
    DeadlineLayer, Idempotency, IdempotencyLayer, IdempotencySettings, LedgerLimits, MemoryLedger,
    RetryLayer, TimeoutLayer, TokioClock,
};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A layer around a script, with its ledger.
struct Bench {
    ledger: Arc<MemoryLedger>,
    script: ScriptedExecutor,
    clock: Arc<TokioClock>,
    n_calls: AtomicU64,
}

impl Bench {
    fn new(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self::within(LedgerLimits::default(), steps)
    }

    fn within(limits: LedgerLimits, steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        let clock = Arc::new(TokioClock::new());
        Self {
            ledger: Arc::new(MemoryLedger::new(limits, clock.clone())),
            script: ScriptedExecutor::new(steps),
            clock,
            n_calls: AtomicU64::new(0),
        }
    }

    fn layer(&self) -> Idempotency<ScriptedExecutor> {
        IdempotencyLayer::new(self.ledger.clone()).layer(self.script.clone())
    }

    fn call(&self, tool: &Arc<Tool>, arguments: Value, key: Option<&str>) -> CallContext {
        let mut cx = call(tool.clone(), arguments, self.clock.clone());
        cx.correlation_id = CorrelationId(1 + u128::from(self.n_calls.fetch_add(1, Ordering::SeqCst)));
        cx.extras.idempotency_key = key.map(Into::into);
        cx
    }

    async fn run(&self, tool: &Arc<Tool>, key: &str) -> Result<Outcome, ToolError> {
        let mut cx = self.call(tool, json!({}), Some(key));
        self.layer().invoke(&mut cx).await
    }

    fn tool(&self, name: &str) -> Arc<Tool> {
        TestTool::new(name).build(self.script.clone())
    }
}

fn keyed(name: &str) -> TestTool {
    let mut tool = TestTool::new(name);
    tool.settings.passes_key = true;
    tool
}

fn reply(outcome: Result<Outcome, ToolError>) -> Reply {
    match outcome {
        Ok(Outcome::Reply(reply)) => reply,
        other => panic!("no reply: {other:?}"),
    }
}

fn kind(outcome: Result<Outcome, ToolError>) -> ErrorKind {
    outcome.expect_err("it fails").kind()
}

fn replayed(reply: &Reply) -> Option<String> {
    let meta = reply
        .meta()
        .iter()
        .find(|(key, _)| *key == IdempotencyLayer::META_KEY);
    meta.and_then(|(_, id)| id.string())
}

#[tokio::test(start_paused = true)]
async fn the_same_key_gives_the_stored_answer_until_its_time_is_over() {
    let bench = Bench::new([ScriptStep::Value(json!(1)), ScriptStep::Value(json!(2))]);
    let tool = bench.tool("pay");
    let first = reply(bench.run(&tool, "k").await);
    assert_eq!((first.raw().as_str(), replayed(&first)), ("1", None));
    advance(DAY - SECOND).await;
    let again = reply(bench.run(&tool, "k").await);
    assert_eq!(again.raw().as_str(), "1");
    assert_eq!(replayed(&again), Some(CorrelationId(1).to_string()), "it says so");
    assert_eq!(bench.script.n_calls(), 1);
    assert_eq!(reply(bench.run(&tool, "other").await).raw().as_str(), "2");
    advance(SECOND).await;
    assert_eq!(reply(bench.run(&tool, "k").await).raw().as_str(), "2");
    assert_eq!(bench.script.n_calls(), 3);
    let mut short = TestTool::new("pay");
    short.settings.set(IdempotencySettings::new(SECOND));
    let short = short.build(bench.script.clone());
    bench.run(&short, "s").await.expect("answered");
    advance(SECOND).await;
    bench.run(&short, "s").await.expect("answered");
    assert_eq!(bench.script.n_calls(), 5, "a tool's own time counts");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_the_tool_itself_reports_is_an_answer() {
    let failure = Reply::result(RawJson::object(), true);
    let bench = Bench::new([ScriptStep::Reply(failure), ScriptStep::Value(json!(2))]);
    let tool = bench.tool("pay");
    for _ in 0..2 {
        assert!(reply(bench.run(&tool, "k").await).is_error);
    }
    assert_eq!(bench.script.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_for_one_call_of_one_principal() {
    let bench = Bench::new([]);
    let (pay, refund) = (bench.tool("pay"), bench.tool("refund"));
    let layer = bench.layer();
    let make = |tool, arguments, principal: &str, tenant: &str| {
        let mut cx = bench.call(tool, arguments, Some("k"));
        let mut caller = Caller::new(principal);
        caller.tenant = tenant.into();
        cx.origin.caller = Arc::new(caller);
        cx
    };
    let table = [
        (&pay, json!({"a": 1, "b": 2}), "ada", "default", None),
        (&pay, json!({"b": 2, "a": 1}), "ada", "default", None),
        (
            &pay,
            json!({"a": 1}),
            "ada",
            "default",
            Some(ErrorKind::InvalidArguments),
        ),
        (
            &refund,
            json!({"a": 1, "b": 2}),
            "ada",
            "default",
            Some(ErrorKind::InvalidArguments),
        ),
        (&pay, json!({"a": 3}), "bob", "default", None),
        (&pay, json!({"a": 4}), "ada", "other", None),
    ];
    for (tool, arguments, principal, tenant, expected) in table {
        let result = layer
            .invoke(&mut make(tool, arguments.clone(), principal, tenant))
            .await;
        let failed = result.as_ref().err().map(ToolError::kind);
        assert_eq!(
            failed,
            expected,
            "{} {arguments} {principal} {tenant}",
            tool.name()
        );
        if principal == "bob" {
            assert_eq!(
                reply(result).raw().as_str(),
                r#"{"a":3}"#,
                "not what another was answered"
            );
        }
    }
    assert_eq!(bench.script.n_calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_with_one_key_are_one() {
    let bench = Arc::new(Bench::new([
        ScriptStep::After(5 * SECOND, json!("paid")),
        ScriptStep::Value(json!("paid twice")),
    ]));
    let tool = bench.tool("pay");
    let mut calls = JoinSet::new();
    for _ in 0..1000 {
        let (bench, tool) = (bench.clone(), tool.clone());
        calls.spawn(async move { reply(bench.run(&tool, "k").await) });
    }
    let replies = calls.join_all().await;
    assert!(replies.iter().all(|reply| reply.raw().as_str() == r#""paid""#));
    assert_eq!(
        replies.iter().filter(|reply| replayed(reply).is_none()).count(),
        1
    );
    assert_eq!((bench.script.n_calls(), bench.ledger.n_entries()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_waits_does_so_within_its_own_deadline() {
    let bench = Bench::new([ScriptStep::After(50 * SECOND, json!(1))]);
    let tool = bench.tool("pay");
    let stack = Layers::outermost(DeadlineLayer)
        .then(IdempotencyLayer::new(bench.ledger.clone()))
        .around(bench.script.clone());
    let mut first = bench.call(&tool, json!({}), Some("k"));
    let mut second = bench.call(&tool, json!({}), Some("k"));
    second.deadline = Some(tool_core::Instant::since_start(SECOND));
    let (first, second) = tokio::join!(stack.invoke(&mut first), stack.invoke(&mut second));
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(kind(second), ErrorKind::Timeout, "it sent nothing");
    assert_eq!(bench.script.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_failure_does_to_the_key() {
    let fail = |kind| ToolError::new(kind, "as scripted");
    let idempotent = {
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata
    };
    let once = || TestTool::new("t");
    let table = [
        (
            "nothing was sent",
            once(),
            ScriptStep::Fail(fail(ErrorKind::Unavailable)),
            true,
        ),
        (
            "it may have run",
            once(),
            ScriptStep::FailSent(fail(ErrorKind::UpstreamError)),
            false,
        ),
        (
            "not let in",
            once(),
            ScriptStep::FailNotTaken(fail(ErrorKind::Auth)),
            true,
        ),
        (
            "not now",
            once(),
            ScriptStep::FailNotTaken(fail(ErrorKind::Unavailable)),
            true,
        ),
        (
            "refused",
            once(),
            ScriptStep::FailAnswered(fail(ErrorKind::Auth)),
            false,
        ),
        (
            "declared",
            once().metadata(idempotent),
            ScriptStep::FailSent(fail(ErrorKind::Timeout)),
            true,
        ),
        (
            "keyed",
            keyed("t"),
            ScriptStep::FailSent(fail(ErrorKind::UpstreamError)),
            true,
        ),
    ];
    for (name, tool, step, is_free) in table {
        let bench = Bench::new([step, ScriptStep::Echo]);
        let tool = tool.build(bench.script.clone());
        let first = kind(bench.run(&tool, "k").await);
        let again = bench.run(&tool, "k").await;
        assert_eq!(again.is_ok(), is_free, "{name}: {again:?}");
        assert_eq!(bench.script.n_calls(), if is_free { 2 } else { 1 }, "{name}");
        if let Err(error) = again {
            assert_eq!(error.kind(), first, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_stays_unknown_under_the_same_id() {
    let bench = Bench::new([ScriptStep::Hang(true), ScriptStep::Echo]);
    let tool = bench.tool("pay");
    let stack = Layers::outermost(DeadlineLayer)
        .then(IdempotencyLayer::new(bench.ledger.clone()))
        .then(TimeoutLayer)
        .around(bench.script.clone());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut cx = bench.call(&tool, json!({}), Some("k"));
        let error = stack.invoke(&mut cx).await.expect_err("it hangs");
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        ids.push(error.ledger_id().expect("the error says it"));
    }
    assert_eq!(ids, [CorrelationId(1); 3]);
    assert_eq!(bench.script.n_calls(), 1, "it is not made again");
    let entry = bench.ledger.find(ids[0]).await.expect("it is remembered");
    assert!(matches!(entry.state, LedgerState::Unknown(_)));
    assert_eq!(
        (&*entry.tool, &*entry.principal, entry.key.as_deref()),
        ("pay", "local", Some("k"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_key_is_remembered_if_nobody_knows_what_became_of_it() {
    let bench = Bench::new([ScriptStep::Echo, ScriptStep::Hang(true)]);
    let tool = bench.tool("pay");
    let stack = IdempotencyLayer::new(bench.ledger.clone()).layer(TimeoutLayer.layer(bench.script.clone()));
    let mut cx = bench.call(&tool, json!({}), None);
    stack.invoke(&mut cx).await.expect("answered");
    assert_eq!(bench.ledger.n_entries(), 0, "an answer is none of its business");
    let mut cx = bench.call(&tool, json!({}), None);
    let error = stack.invoke(&mut cx).await.expect_err("it hangs");
    assert_eq!(
        (error.kind(), error.ledger_id()),
        (ErrorKind::OutcomeUnknown, Some(CorrelationId(2)))
    );
    let entry = bench.ledger.find(CorrelationId(2)).await.expect("remembered");
    assert_eq!(entry.state.as_str(), "unknown");
    advance(DAY).await;
    assert!(
        bench.ledger.find(CorrelationId(2)).await.is_none(),
        "its time is over"
    );
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_call_frees_its_key_unless_it_was_sent() {
    for (sent, read_only, expected) in [
        (false, false, None),
        (true, true, None),
        (true, false, Some(ErrorKind::OutcomeUnknown)),
    ] {
        let bench = Bench::new([ScriptStep::Hang(sent), ScriptStep::Echo]);
        let metadata = {
            let mut metadata = Metadata::default();
            metadata.read_only = Some(read_only);
            metadata
        };
        let tool = TestTool::new("t").metadata(metadata).build(bench.script.clone());
        let dropped = timeout(SECOND, bench.run(&tool, "k")).await;
        assert!(dropped.is_err(), "nobody waits for longer");
        let again = bench.run(&tool, "k").await;
        assert_eq!(
            again.err().map(|error| error.kind()),
            expected,
            "{sent} {read_only}"
        );
        let unkeyed = Bench::new([ScriptStep::Hang(sent)]);
        let mut cx = unkeyed.call(&tool, json!({}), None);
        let layer = unkeyed.layer();
        assert!(timeout(SECOND, layer.invoke(&mut cx)).await.is_err());
        assert_eq!(unkeyed.ledger.n_entries(), usize::from(expected.is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_a_call_that_comes_to_nothing_take_its_place() {
    let bench = Arc::new(Bench::new([
        ScriptStep::Hang(false),
        ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "down")),
        ScriptStep::After(SECOND, json!(3)),
    ]));
    let tool = bench.tool("pay");
    let run = || {
        let (bench, tool) = (bench.clone(), tool.clone());
        async move { bench.run(&tool, "k").await }
    };
    let leader = tokio::spawn(run());
    tokio::task::yield_now().await;
    let mut followers = JoinSet::new();
    for _ in 0..5 {
        followers.spawn(run());
    }
    advance(SECOND).await;
    leader.abort();
    let results = followers.join_all().await;
    let n_failed = results.iter().filter(|result| result.is_err()).count();
    assert_eq!((n_failed, bench.script.n_calls()), (1, 3));
}

/// A tool that asks first, and then has an effect.
struct AsksFirst(ScriptedExecutor);

impl Invoke for AsksFirst {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.extras.resume.is_some() {
            return self.0.invoke(cx).await;
        }
        Ok(Outcome::NeedsInput(Box::new(
            InputRequest::new(RawJson::object()),
        )))
    }
}

#[tokio::test(start_paused = true)]
async fn another_round_goes_on_with_the_key() {
    let bench = Bench::new([
        ScriptStep::Value(json!("paid")),
        ScriptStep::Value(json!("paid twice")),
    ]);
    let tool = bench.tool("pay");
    let layer = IdempotencyLayer::new(bench.ledger.clone()).layer(AsksFirst(bench.script.clone()));
    let mut rounds = Vec::new();
    for resume in [false, true, true, false] {
        let mut cx = bench.call(&tool, json!({}), Some("k"));
        cx.extras.resume = resume.then(|| Arc::new(Resume::new(RawJson::object())));
        rounds.push(layer.invoke(&mut cx).await);
    }
    assert!(matches!(rounds.remove(0), Ok(Outcome::NeedsInput(_))));
    for round in rounds {
        assert_eq!(reply(round).raw().as_str(), r#""paid""#);
    }
    assert_eq!(bench.script.n_calls(), 1);
    let mut cx = bench.call(&tool, json!({"other": 1}), Some("k"));
    assert_eq!(kind(layer.invoke(&mut cx).await), ErrorKind::InvalidArguments);
}

/// A tool that returns this outcome.
struct Gives(fn() -> Outcome);

impl Invoke for Gives {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        Ok((self.0)())
    }
}

fn pending() -> Outcome {
    Outcome::Pending(Box::new(PendingCall::new("a1", "someone decides")))
}

fn task() -> Outcome {
    Outcome::Task(Box::new(TaskHandle::new(
        Task::new("t1", Arc::new(InProcess(Gives(pending)))),
        RawJson::object(),
    )))
}

#[tokio::test(start_paused = true)]
async fn what_is_not_finished_is_not_stored() {
    let bench = Bench::new([]);
    let tool = bench.tool("t");
    let ask = async |gives: fn() -> Outcome, key: &str| {
        let layer = IdempotencyLayer::new(bench.ledger.clone()).layer(Gives(gives));
        layer.invoke(&mut bench.call(&tool, json!({}), Some(key))).await
    };
    for _ in 0..2 {
        assert!(matches!(ask(pending, "k").await, Ok(Outcome::Pending(_))));
    }
    assert!(matches!(ask(task, "k").await, Ok(Outcome::Task(_))));
    assert_eq!(
        kind(ask(task, "k").await),
        ErrorKind::OutcomeUnknown,
        "a task is followed under its own id, and none is made a second time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_passed_on_makes_a_retry_safe() {
    for (passes_key, has_key, n_calls) in [(true, true, 2), (true, false, 1), (false, true, 1)] {
        let bench = Bench::new([ScriptStep::Hang(true), ScriptStep::Echo]);
        let mut tool = TestTool::new("pay");
        tool.settings.set(RetrySettings::default());
        tool.settings.passes_key = passes_key;
        let tool = tool.build(bench.script.clone());
        let stack = Layers::outermost(IdempotencyLayer::new(bench.ledger.clone()))
            .then(RetryLayer::with_jitter(Jitter::seeded(7)))
            .then(TimeoutLayer)
            .around(bench.script.clone());
        let mut cx = bench.call(&tool, json!({}), has_key.then_some("k"));
        let result = stack.invoke(&mut cx).await;
        assert_eq!(result.is_ok(), n_calls == 2, "{passes_key} {has_key}: {result:?}");
        assert_eq!(bench.script.n_calls(), n_calls, "{passes_key} {has_key}");
    }
}

/// Starts attempts, as the layer that observes them does.
struct Attempts(ScriptedExecutor);

impl Invoke for Attempts {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        cx.next_attempt();
        self.0.invoke(cx).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_stays_so_until_an_attempt_is_answered() {
    let fail = |kind| ScriptStep::Fail(ToolError::new(kind, "as scripted"));
    let busy = ScriptStep::FailSent(ToolError::new(ErrorKind::InvalidArguments, "as scripted"));
    for (name, last, n_calls) in [
        ("not reached", fail(ErrorKind::Unavailable), 3),
        ("held back", fail(ErrorKind::RateLimited), 3),
        ("not let in", fail(ErrorKind::Auth), 2),
        // Such as status 409: the upstream still runs the first attempt.
        ("refused", busy, 2),
        ("not in time", ScriptStep::Hang(false), 2),
    ] {
        let bench = Bench::new([ScriptStep::Hang(true), last]);
        let mut tool = keyed("pay").limits(9 * SECOND, 5 * SECOND);
        tool.settings.set(RetrySettings::default());
        let tool = tool.build(bench.script.clone());
        let stack = Layers::outermost(DeadlineLayer)
            .then(IdempotencyLayer::new(bench.ledger.clone()))
            .then(RetryLayer::with_jitter(Jitter::seeded(7)))
            .then(TimeoutLayer)
            .around(Attempts(bench.script.clone()));
        let mut cx = bench.call(&tool, json!({}), Some("k"));
        let error = stack.invoke(&mut cx).await.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{name}");
        assert_eq!(error.ledger_id(), Some(CorrelationId(1)), "{name}");
        assert_eq!(bench.script.n_calls(), n_calls, "{name}");
        let entry = bench.ledger.find(CorrelationId(1)).await.expect(name);
        assert_eq!(entry.state.as_str(), "unknown", "{name}");
        if name == "refused" {
            assert_eq!(
                error.message(),
                "no answer within 5 s; whether the tool ran is not known (and when tried again, as scripted)"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_the_tool_knows_the_key_and_may_be_asked_again() {
    let bench = Bench::new([
        ScriptStep::Hang(true),
        ScriptStep::Echo,
        ScriptStep::Value(json!("again")),
    ]);
    let tool = keyed("pay").build(bench.script.clone());
    let stack = IdempotencyLayer::new(bench.ledger.clone()).layer(TimeoutLayer.layer(bench.script.clone()));
    let mut results = Vec::new();
    for _ in 0..3 {
        let mut cx = bench.call(&tool, json!({}), Some("k"));
        results.push(stack.invoke(&mut cx).await);
    }
    assert_eq!(
        kind(results.remove(0)),
        ErrorKind::OutcomeUnknown,
        "the caller may not repeat it"
    );
    for result in results {
        assert_eq!(reply(result).raw().as_str(), "{}");
    }
    assert_eq!(bench.script.n_calls(), 2);
    let entry = bench.ledger.find(CorrelationId(1)).await.expect("the same entry");
    assert_eq!(entry.state.as_str(), "answered");
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_none_are_refused() {
    let bench = Bench::new([]);
    let tool = bench.tool("t");
    let long = "x".repeat(256);
    for (key, fits) in [
        ("a", true),
        (&long[..255], true),
        (&long, false),
        ("", false),
        ("two words", false),
        ("line\n", false),
        ("schlüssel", false),
    ] {
        let result = bench.run(&tool, key).await;
        assert_eq!(result.is_ok(), fits, "{key}: {result:?}");
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert!(error.message().starts_with("the idempotency key "), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_ledger_holds_no_more_than_it_may_and_keeps_what_runs() {
    let limits = LedgerLimits::default().with_max_entries(3);
    let bench = Arc::new(Bench::within(
        limits,
        [ScriptStep::After(SECOND, json!(0)), ScriptStep::Echo],
    ));
    let tool = bench.tool("t");
    let running = tokio::spawn({
        let (bench, tool) = (bench.clone(), tool.clone());
        async move { reply(bench.run(&tool, "running").await) }
    });
    tokio::task::yield_now().await;
    for number in 0..10 {
        bench
            .run(&tool, &number.to_string())
            .await
            .expect("there is room");
        assert!(bench.ledger.n_entries() <= 3);
    }
    assert_eq!(bench.script.n_calls(), 11);
    let follower = reply(bench.run(&tool, "running").await);
    assert_eq!(follower.raw().as_str(), "0", "it waited for the one that runs");
    assert_eq!(running.await.expect("it ends").raw().as_str(), "0");
    assert_eq!(bench.script.n_calls(), 11);
    let full = Bench::within(limits, [ScriptStep::Hang(false)]);
    let layer = full.layer();
    let mut calls: Vec<_> = (0..4)
        .map(|n| full.call(&tool, json!({}), Some(&n.to_string())))
        .collect();
    let mut last = calls.pop().expect("there are four");
    let others = calls.iter_mut().map(|cx| layer.invoke(cx));
    let others = futures_util::future::join_all(others);
    tokio::select! {
        biased;
        _ = others => panic!("they hang"),
        result = layer.invoke(&mut last) => assert_eq!(kind(result), ErrorKind::Overloaded),
    }
    assert_eq!(full.ledger.n_entries(), 0, "all were withdrawn");
}

/// Makes these calls with keys of this principal, and returns how many of them ran.
async fn make(bench: &Bench, principal: &str, numbers: Range<usize>) -> usize {
    let (tool, before) = (bench.tool("pay"), bench.script.n_calls());
    for number in numbers {
        let mut cx = bench.call(&tool, json!({}), Some(&number.to_string()));
        cx.origin.caller = Arc::new(Caller::new(principal));
        let _ = bench.layer().invoke(&mut cx).await;
    }
    bench.script.n_calls() - before
}

#[tokio::test(start_paused = true)]
async fn whose_calls_are_the_most_makes_room_for_others() {
    let limits = LedgerLimits::default().with_max_entries(64);
    let bench = Bench::within(limits, []);
    assert_eq!(make(&bench, "ann", 0..10).await, 10);
    advance(SECOND).await;
    assert_eq!(make(&bench, "bob", 0..1000).await, 1000);
    assert_eq!(make(&bench, "cid", 0..20).await, 20);
    for (principal, numbers) in [("ann", 0..10), ("cid", 0..20), ("bob", 980..1000)] {
        assert_eq!(make(&bench, principal, numbers).await, 0, "{principal}");
    }
    assert!(bench.ledger.n_entries() <= 64);
    // Among principals with equally many entries, those that expire first are evicted.
    let bench = Bench::within(limits, []);
    for number in 0..65 {
        assert_eq!(make(&bench, &number.to_string(), 0..1).await, 1);
        advance(SECOND).await;
    }
    assert_eq!(make(&bench, "64", 0..1).await, 0);
    assert_eq!(make(&bench, "10", 0..1).await, 0);
    assert_eq!(make(&bench, "0", 0..1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_failures_say_is_given_up_before_calls_are() {
    let limits = LedgerLimits::default().with_max_bytes(40_000);
    let wordy = ToolError::new(ErrorKind::UpstreamError, "no");
    let wordy = wordy.with_detail(RawJson::from(json!("x".repeat(10_000))));
    let bench = Bench::within(limits, [ScriptStep::Value(json!(1)), ScriptStep::FailSent(wordy)]);
    assert_eq!(make(&bench, "ann", 0..1).await, 1);
    assert_eq!(make(&bench, "bob", 0..20).await, 20);
    assert!(bench.ledger.n_bytes() <= 40_000);
    assert_eq!(
        make(&bench, "ann", 0..1).await + make(&bench, "bob", 0..20).await,
        0
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_given_up_for_others_is_not_made_again() {
    let limits = LedgerLimits::default().with_max_bytes(20_000);
    let bench = Bench::within(limits, [ScriptStep::Value(json!("x".repeat(10_000)))]);
    let tool = bench.tool("t");
    for key in ["a", "b", "c"] {
        reply(bench.run(&tool, key).await);
        assert!(bench.ledger.n_bytes() <= 20_000);
    }
    let error = bench.run(&tool, "a").await.expect_err("the answer is gone");
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(error.message().contains("has run already"), "{error}");
    assert!(replayed(&reply(bench.run(&tool, "c").await)).is_some());
    assert_eq!(bench.script.n_calls(), 3);
    let huge = Bench::within(limits, [ScriptStep::Value(json!("x".repeat(30_000)))]);
    reply(huge.run(&tool, "a").await);
    assert_eq!(kind(huge.run(&tool, "a").await), ErrorKind::OutcomeUnknown);
    assert!(huge.ledger.n_bytes() < 2_000 && huge.script.n_calls() == 1);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_takes_no_key() {
    let bench = Bench::new([]);
    let tool = bench.tool("t");
    let layer = IdempotencyLayer::new(bench.ledger.clone()).layer(bench.script.clone());
    for _ in 0..2 {
        let mut cx = bench.call(&tool, json!({}), Some("k"));
        cx.mode = Mode::DryRun;
        layer.invoke(&mut cx).await.expect("it passes");
    }
    assert_eq!((bench.script.n_calls(), bench.ledger.n_entries()), (2, 0));
    assert_eq!(IdempotencySettings::default().ttl, DAY);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_is_listed_and_the_latest_comes_first() {
    let bench = Bench::new([
        ScriptStep::Hang(true),
        ScriptStep::Value(json!(1)),
        ScriptStep::Hang(true),
        ScriptStep::Hang(true),
    ]);
    let tool = bench.tool("pay");
    for key in ["a", "b", "c", "d"] {
        let _ = timeout(SECOND, bench.run(&tool, key)).await;
    }
    let listed = async |limit| {
        let entries = bench.ledger.unknown(limit).await;
        entries.iter().map(|entry| entry.id.0).collect::<Vec<_>>()
    };
    assert_eq!(listed(10).await, [4, 3, 1]);
    assert_eq!(listed(2).await, [4, 3]);
    advance(DAY).await;
    assert!(listed(10).await.is_empty(), "their time is over");
}
