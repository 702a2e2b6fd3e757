//! Retries alone, around a scripted executor, on a paused clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, advance},
};
use tool_core::{
    Ask, AskError, Asker, BoxFuture, CallContext, ClientKey, Clock, ErrorKind, InputRequest, Invoke, Jitter,
    Layer, Metadata, Mode, Outcome, Question, Reply, Tool, ToolError, Trust, UpstreamState,
};
use tool_runtime::RetrySettings;
use tool_runtime::{Backoff, RetryBudget, RetryLayer, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const SECOND: Duration = Duration::from_secs(1);

fn retry() -> RetryLayer {
    RetryLayer::with_jitter(Jitter::seeded(7))
}

fn retrying(name: &str) -> TestTool {
    let mut tool = TestTool::new(name);
    tool.settings.set(RetrySettings::default());
    tool
}

fn idempotent() -> Metadata {
    {
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata
    }
}

fn context(tool: &Arc<Tool>) -> CallContext {
    call(tool.clone(), json!({}), Arc::new(TokioClock::new()))
}

fn error(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, "as scripted")
}

/// Runs a tool by a script. Returns its result, the number of attempts and the duration.
async fn run(tool: TestTool, steps: &[ScriptStep]) -> (Result<Outcome, ToolError>, usize, Duration) {
    let script = ScriptedExecutor::new(steps.to_vec());
    let mut cx = context(&tool.build(script.clone()));
    let start = Instant::now();
    let result = retry().layer(script.clone()).invoke(&mut cx).await;
    (result, script.n_calls(), start.elapsed())
}

/// Calls earn retries for others; calls that are not made earn none.
#[tokio::test(start_paused = true)]
async fn a_dry_run_earns_no_retries() {
    for (mode, earns) in [(Mode::Live, true), (Mode::DryRun, false)] {
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let tool = retrying("t").build(script.clone());
        let budget: Arc<RetryBudget> = tool.state().get_or_init(RetryBudget::default);
        let now = TokioClock::new().now();
        // The retries that are available from the start.
        while budget.withdraw(now, Duration::ZERO) {}
        let stack = retry().layer(script);
        for _ in 0..1000 {
            let mut cx = context(&tool);
            cx.mode = mode;
            stack.invoke(&mut cx).await.unwrap();
        }
        assert_eq!(budget.withdraw(now, Duration::ZERO), earns);
    }
}

#[test]
fn the_table_of_what_is_tried_again() {
    for &kind in ErrorKind::ALL {
        let expected = match kind {
            ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::UpstreamError => Backoff::Exponential,
            ErrorKind::RateLimited | ErrorKind::Overloaded => Backoff::Linear,
            _ => Backoff::Never,
        };
        assert_eq!(Backoff::for_kind(kind), expected, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_as_often_as_configured() {
    let fails = ScriptStep::Fail(error(ErrorKind::Unavailable));
    let (result, n_calls, _) = run(retrying("t"), &[fails.clone(), fails.clone(), ScriptStep::Echo]).await;
    assert!(matches!(result, Ok(Outcome::Reply(_))), "{result:?}");
    assert_eq!(n_calls, 3);
    let (result, n_calls, took) = run(retrying("t"), std::slice::from_ref(&fails)).await;
    assert_eq!(result.expect_err("it fails").kind(), ErrorKind::Unavailable);
    assert_eq!(n_calls, 3);
    assert!(took <= Duration::from_millis(200 + 400), "{took:?}");
    let (_, n_calls, _) = run(TestTool::new("t"), &[fails]).await;
    assert_eq!(n_calls, 1, "there is no retry that was not configured");
}

#[tokio::test(start_paused = true)]
async fn only_what_cannot_have_run_or_may_run_twice_is_sent_again() {
    let sent = ScriptStep::FailSent(error(ErrorKind::Timeout));
    let not_sent = ScriptStep::Fail(error(ErrorKind::Timeout));
    let mut foreign = retrying("t").metadata(idempotent());
    foreign.descriptor.origin.trust = Trust::Upstream;
    let never = {
        let mut metadata = idempotent();
        metadata.retryable = Some(false);
        metadata
    };
    let unknown = ScriptStep::FailSent(error(ErrorKind::OutcomeUnknown));
    let hopeless = ScriptStep::Fail(error(ErrorKind::Timeout).with_no_retry());
    for (what, tool, step, expected) in [
        ("not sent", retrying("t"), &not_sent, 3),
        ("sent", retrying("t"), &sent, 1),
        (
            "sent, declared idempotent",
            retrying("t").metadata(idempotent()),
            &sent,
            3,
        ),
        ("sent, a server's own hint", foreign, &sent, 1),
        (
            "declared not retryable",
            retrying("t").metadata(never),
            &not_sent,
            1,
        ),
        ("unknown", retrying("t").metadata(idempotent()), &unknown, 1),
        ("said not to help", retrying("t"), &hopeless, 1),
    ] {
        let (result, n_calls, _) = run(tool, std::slice::from_ref(step)).await;
        assert!(result.is_err(), "{what}");
        assert_eq!(n_calls, expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_never_tried_again() {
    struct Fixed(Outcome, Arc<Mutex<u32>>);
    impl Invoke for Fixed {
        async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
            *self.1.lock().unwrap() += 1;
            Ok(self.0.clone())
        }
    }
    let asks = InputRequest::new(RawJson::object());
    for outcome in [
        Reply::result(RawJson::object(), true).into(),
        Outcome::NeedsInput(Box::new(asks)),
    ] {
        let n_calls = Arc::new(Mutex::new(0));
        let stack = retry().layer(Fixed(outcome, n_calls.clone()));
        let tool = retrying("t")
            .metadata(idempotent())
            .build(ScriptedExecutor::new([]));
        stack.invoke(&mut context(&tool)).await.unwrap();
        assert_eq!(*n_calls.lock().unwrap(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_upstream_is_waited_for_as_it_asks() {
    let told = |after| ScriptStep::Fail(error(ErrorKind::RateLimited).with_retry_after(after));
    let (result, n_calls, took) = run(retrying("t"), &[told(7 * SECOND), ScriptStep::Echo]).await;
    assert!(result.is_ok());
    assert_eq!(n_calls, 2);
    assert!(
        (7 * SECOND..=Duration::from_millis(7700)).contains(&took),
        "{took:?}"
    );
    for never in [60 * SECOND, Duration::from_secs(99_999_999), Duration::MAX] {
        let script = ScriptedExecutor::new([told(never)]);
        let mut cx = context(&retrying("t").build(script.clone()));
        cx.deadline = Some(cx.clock.now() + 60 * SECOND);
        let start = Instant::now();
        let result = retry().layer(script.clone()).invoke(&mut cx).await;
        assert_eq!(result.expect_err("it fails").retry_after(), Some(never));
        assert_eq!((script.n_calls(), start.elapsed()), (1, Duration::ZERO));
    }
    let (_, _, took) = run(retrying("t"), &[ScriptStep::Fail(error(ErrorKind::RateLimited))]).await;
    let linear = Duration::from_millis(500 + 1000)..=Duration::from_millis(1000 + 2000);
    assert!(linear.contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn no_pause_reaches_beyond_the_deadline() {
    let script = ScriptedExecutor::new([ScriptStep::Fail(error(ErrorKind::Unavailable))]);
    let mut tool = retrying("t");
    tool.settings
        .set(RetrySettings::default().with_max_attempts(1000));
    let mut cx = context(&tool.build(script.clone()));
    cx.deadline = Some(cx.clock.now() + 3 * SECOND);
    let start = Instant::now();
    assert!(retry().layer(script).invoke(&mut cx).await.is_err());
    assert!(start.elapsed() < 3 * SECOND);
}

#[test]
fn pauses_are_spread_and_bounded() {
    let (jitter, settings) = (Jitter::seeded(1), RetrySettings::default());
    let unavailable = error(ErrorKind::Unavailable);
    for (n_attempts, limit) in [
        (1, 200),
        (2, 400),
        (4, 1600),
        (7, 12_800),
        (8, 20_000),
        (100, 20_000),
    ] {
        let mut buckets = vec![0_u32; (limit / 100) as usize];
        // Enough for every bucket to have several, so that no bucket is empty by chance.
        for _ in 0..20_000 {
            let pause = Backoff::Exponential
                .pause(n_attempts, &unavailable, &settings, &jitter)
                .unwrap();
            buckets[(pause.as_millis() / 100) as usize] += 1;
        }
        let mean = 20_000.0 / buckets.len() as f64;
        assert!(
            buckets.iter().all(|&n| f64::from(n) <= 3.0 * mean),
            "{n_attempts}: {buckets:?}"
        );
    }
}

#[test]
fn who_may_come_again_at_once_comes_as_if_nothing_was_said() {
    let settings = RetrySettings::default();
    let (jitter, same) = (Jitter::seeded(1), Jitter::seeded(1));
    for kind in [ErrorKind::RateLimited, ErrorKind::Unavailable] {
        let (silent, zero) = (error(kind), error(kind).with_retry_after(Duration::ZERO));
        for n_attempts in 1..=10 {
            let backoff = Backoff::for_kind(kind);
            assert_eq!(
                backoff.pause(n_attempts, &zero, &settings, &jitter),
                backoff.pause(n_attempts, &silent, &settings, &same),
                "{kind} {n_attempts}"
            );
        }
    }
}

/// Records the arrival of each call, and fails.
struct Down(Arc<Mutex<Vec<Duration>>>, Instant);

impl Invoke for Down {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.lock().unwrap().push(self.1.elapsed());
        Err(error(ErrorKind::Unavailable))
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_does_not_see_more_than_a_tenth_more_attempts() {
    let upstream = Arc::new(UpstreamState::new("down"));
    let tools = ["a", "b"].map(|name| {
        retrying(name)
            .upstream(&upstream)
            .build(ScriptedExecutor::new([]))
    });
    let start = Instant::now();
    let arrivals = Arc::default();
    let stack = Arc::new(retry().layer(Down(Arc::clone(&arrivals), start)));
    let (mut tasks, mut calls) = (JoinSet::new(), Vec::new());
    for i in 0..10_000 {
        let (stack, mut cx) = (stack.clone(), context(&tools[i % 2]));
        cx.clock = Arc::new(Shared(start));
        calls.push(start.elapsed());
        tasks.spawn(async move { stack.invoke(&mut cx).await.is_err() });
        advance(Duration::from_millis(2)).await;
    }
    assert!(tasks.join_all().await.into_iter().all(|failed| failed));
    let arrivals = arrivals.lock().unwrap();
    assert!(arrivals.len() > calls.len() * 105 / 100, "there are retries");
    let within = |times: &[Duration], from: Duration| {
        let to = from + 10 * SECOND;
        times.iter().filter(|&&time| from <= time && time < to).count()
    };
    for second in 0..=10 {
        let (n_calls, n_arrivals) = (
            within(&calls, second * SECOND),
            within(&arrivals, second * SECOND),
        );
        assert!(
            n_calls >= 100 && n_arrivals * 100 <= n_calls * 110,
            "{second}: {n_arrivals} of {n_calls}"
        );
    }
}

/// One clock for all calls of a test.
struct Shared(Instant);

impl Clock for Shared {
    fn now(&self) -> tool_core::Instant {
        tool_core::Instant::since_start(self.0.elapsed())
    }

    fn wall(&self) -> std::time::SystemTime {
        std::time::SystemTime::UNIX_EPOCH
    }
}

#[test]
fn a_budget_has_a_floor_and_forgets() {
    let budget = RetryBudget::default();
    let at = |seconds| tool_core::Instant::since_start(Duration::from_secs(seconds));
    let spend = |second| {
        (0..1000)
            .take_while(|_| budget.withdraw(at(second), Duration::ZERO))
            .count()
    };
    assert_eq!((spend(0), spend(9), spend(10)), (10, 0, 0));
    assert_eq!(spend(11), 10, "one a second without any calls");
    (0..500).for_each(|_| budget.deposit(at(30)));
    assert_eq!((spend(30), spend(31)), (50, 0));
    assert_eq!(spend(1_000_000), 10);
    assert_eq!(spend(3), 0, "a clock that goes back gives nothing");
}

/// Retries that a server moves to one moment are charged to that moment.
#[test]
fn a_budget_counts_what_waits_for_the_same_moment() {
    let budget = RetryBudget::default();
    let at = |seconds| tool_core::Instant::since_start(Duration::from_secs(seconds));
    let spend = |second, until: u64| {
        (0..1000)
            .take_while(|_| budget.withdraw(at(second), Duration::from_secs(until - second)))
            .count()
    };
    let mut n_waiting = 0;
    for second in 0..60 {
        (0..100).for_each(|_| budget.deposit(at(second)));
        n_waiting += spend(second, 60);
    }
    assert_eq!(n_waiting, 100, "a tenth of what ten seconds bring");
    (0..1000).for_each(|_| budget.deposit(at(60)));
    assert_eq!(spend(60, 70), 90, "beside them, a tenth of 1,900");
    assert_eq!(spend(60, 71), 100, "beside those");
    assert_eq!(spend(60, 90), 190);
}

#[tokio::test(start_paused = true)]
async fn rare_faults_are_not_seen_by_callers() {
    struct Flaky(Jitter, Arc<Mutex<u32>>);
    impl Invoke for Flaky {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            *self.1.lock().unwrap() += 1;
            if self.0.up_to(SECOND) < SECOND / 100 {
                return Err(error(ErrorKind::Unavailable));
            }
            Ok(Reply::value(cx.arguments.raw().clone()).into())
        }
    }
    let tool = retrying("t")
        .metadata(idempotent())
        .build(ScriptedExecutor::new([]));
    let n_attempts = Arc::new(Mutex::new(0));
    let stack = retry().layer(Flaky(Jitter::seeded(3), n_attempts.clone()));
    let mut n_ok = 0;
    for _ in 0..20_000 {
        n_ok += usize::from(stack.invoke(&mut context(&tool)).await.is_ok());
    }
    let n_attempts = *n_attempts.lock().unwrap();
    assert!(
        n_ok >= 19_980 && n_attempts <= 20_600,
        "{n_ok} answers, {n_attempts} attempts"
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_says_so_and_is_not_retried_again() {
    struct Metas(Arc<Mutex<Vec<Option<String>>>>);
    impl Invoke for Metas {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            let meta = cx.extras.meta.as_ref().map(|meta| meta.as_str().to_owned());
            self.0.lock().unwrap().push(meta);
            Err(error(ErrorKind::Unavailable))
        }
    }
    let tool = retrying("t").build(ScriptedExecutor::new([]));
    let seen = Arc::default();
    let stack = retry().layer(Metas(Arc::clone(&seen)));
    let mut cx = context(&tool);
    cx.extras.meta = Some(RawJson::parse(r#"{"a": 1.0}"#).unwrap());
    stack.invoke(&mut cx).await.expect_err("it fails");
    let metas: Vec<_> = seen.lock().unwrap().drain(..).map(Option::unwrap).collect();
    assert_eq!(metas[0], r#"{"a": 1.0}"#);
    assert!(
        metas[1].contains(r#""a": 1.0"#) && metas[1].contains(r#""dev.toolplane/retry-attempt":1"#),
        "{metas:?}"
    );
    assert!(
        metas[2].contains(r#""dev.toolplane/retry-attempt":2"#),
        "{metas:?}"
    );
    let mut inner = context(&tool);
    inner.extras.meta = cx.extras.meta.clone();
    stack.invoke(&mut inner).await.expect_err("it fails");
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// A client that answers every question.
struct Answers;

impl Ask for Answers {
    fn client(&self) -> ClientKey {
        ClientKey::Session("s".into())
    }

    fn capabilities(&self) -> RawJson {
        RawJson::object()
    }

    fn ask(&self, _: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        Box::pin(async { Ok(RawJson::object()) })
    }

    fn log_level(&self) -> Option<Arc<str>> {
        None
    }

    fn log(&self, _: &RawJson) {}
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_twice() {
    struct Asks(Arc<Mutex<u32>>);
    impl Invoke for Asks {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            *self.0.lock().unwrap() += 1;
            let question = Question::new("elicitation/create".to_owned(), None);
            cx.origin.ask.as_ref().unwrap().ask(question).await.unwrap();
            Err(error(ErrorKind::Unavailable))
        }
    }
    let n_calls = Arc::new(Mutex::new(0));
    let stack = retry().layer(Asks(n_calls.clone()));
    let mut cx = context(
        &retrying("t")
            .metadata(idempotent())
            .build(ScriptedExecutor::new([])),
    );
    cx.origin.ask = Some(Asker::new(Arc::new(Answers), cx.clock.clone()));
    cx.record_decisions();
    stack.invoke(&mut cx).await.expect_err("it fails");
    assert_eq!(*n_calls.lock().unwrap(), 1);
    let note = cx.decisions().last().unwrap();
    assert_eq!(
        (note.layer, note.decision.as_str()),
        ("retry", "not again: the caller would be asked twice")
    );
}
