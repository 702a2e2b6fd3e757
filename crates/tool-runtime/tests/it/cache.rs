//! Cache: replies that are cached, their ages, and the context of shared work.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::{Instant, advance};
use tool_core::{
    Ask, AskError, Asker, BoxFuture, CacheOutcome, CallContext, ClientKey, Degraded, ErrorKind, Event,
    Invoke, LatencyClass, Layer, Layers, Metadata, Observe, Observers, Outcome, PendingCall, Progress,
    Question, Reply, Resume, TaskMode, ToolError,
};
use tool_runtime::CacheSettings;
use tool_runtime::{Cache, CacheLayer, DeadlineLayer, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
const ROOM: u64 = 1 << 20;

/// Makes a tool with these cache settings.
pub(crate) fn tool(settings: CacheSettings) -> TestTool {
    let mut tool = TestTool::new("search");
    tool.settings.set(settings);
    tool
}

fn plain() -> TestTool {
    tool(CacheSettings::default())
}

/// Calls that share one clock, by which ages are measured.
struct Calls {
    tool: TestTool,
    clock: Arc<TokioClock>,
    observers: Observers,
}

impl Calls {
    fn new(tool: TestTool) -> Self {
        Self {
            tool,
            clock: Arc::new(TokioClock::new()),
            observers: Observers::default(),
        }
    }

    fn told_to(mut self, observer: Arc<dyn Observe>) -> Self {
        self.observers = [observer].into_iter().collect();
        self
    }

    fn next(&self) -> CallContext {
        let tool = self.tool.clone().build(ScriptedExecutor::new([]));
        let mut cx = call(tool, json!({"q": 1}), self.clock.clone());
        cx.observers = self.observers.clone();
        cx
    }
}

/// Returns the value of a reply, and its record of the cache.
fn told(result: Result<Outcome, ToolError>) -> (Value, Value) {
    let Ok(Outcome::Reply(reply)) = result else {
        panic!("no reply: {result:?}");
    };
    let told = reply.meta().iter().find(|(key, _)| *key == CacheLayer::META_KEY);
    let told = told.map(|(_, value)| value.to().unwrap());
    (reply.raw().to().unwrap(), told.unwrap_or_default())
}

fn kind(result: &Result<Outcome, ToolError>) -> Option<ErrorKind> {
    result.as_ref().err().map(ToolError::kind)
}

fn down() -> ScriptStep {
    ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
}

fn layer(share: &CacheLayer, script: &ScriptedExecutor) -> Cache<ScriptedExecutor> {
    share.clone().layer(script.clone())
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_again_until_it_is_too_old_and_says_so() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("old")), ScriptStep::Value(json!("new"))]);
    let (stack, calls) = (layer(&CacheLayer::new(ROOM), &script), Calls::new(plain()));
    assert_eq!(
        told(stack.invoke(&mut calls.next()).await),
        (json!("old"), Value::Null)
    );
    advance(59 * SECOND).await;
    let hit = json!({"status": "hit", "age_ms": 59_000});
    assert_eq!(told(stack.invoke(&mut calls.next()).await), (json!("old"), hit));
    advance(SECOND).await;
    assert_eq!(
        told(stack.invoke(&mut calls.next()).await),
        (json!("new"), Value::Null)
    );
    assert_eq!(script.n_calls(), 2);
}

#[test]
fn how_long_depends_on_what_is_known_of_the_tool() {
    let realtime = || vec!["search".to_owned(), "realtime-data".to_owned()];
    for (latency, capabilities, ttl, expected) in [
        (None, vec![], None, 60),
        (Some(LatencyClass::Fast), vec!["search".to_owned()], None, 60),
        (Some(LatencyClass::Medium), realtime(), None, 30),
        (Some(LatencyClass::Slow), vec![], None, 300),
        (Some(LatencyClass::Slow), realtime(), None, 300),
        (Some(LatencyClass::Slow), realtime(), Some(7 * SECOND), 7),
    ] {
        let metadata = {
            let mut metadata = Metadata::default();
            metadata.latency = latency;
            metadata.capabilities = capabilities;
            metadata
        };
        let mut settings = CacheSettings::default();
        settings.ttl = ttl;
        assert_eq!(
            settings.ttl_of(&metadata),
            Duration::from_secs(expected),
            "{metadata:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_answers_are_kept() {
    let pending = PendingCall::new("p1", "somebody decides");
    let failed = RawJson::from(json!({"content": [], "isError": true}));
    for step in [
        down(),
        ScriptStep::Reply(Reply::result(failed, true)),
        ScriptStep::Outcome(Outcome::Pending(Box::new(pending))),
    ] {
        let script = ScriptedExecutor::new([step.clone()]);
        let (stack, calls) = (layer(&CacheLayer::new(ROOM), &script), Calls::new(plain()));
        for n_calls in 1..=3 {
            let _ = stack.invoke(&mut calls.next()).await;
            assert_eq!(script.n_calls(), n_calls, "{step:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_settings_every_call_is_made() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let (stack, calls) = (
        layer(&CacheLayer::new(ROOM), &script),
        Calls::new(TestTool::new("search")),
    );
    for n_calls in 1..=3 {
        assert_eq!(told(stack.invoke(&mut calls.next()).await).1, Value::Null);
        assert_eq!(script.n_calls(), n_calls);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_need_more_are_made_for_themselves() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let (stack, calls) = (layer(&CacheLayer::new(ROOM), &script), Calls::new(plain()));
    told(stack.invoke(&mut calls.next()).await);
    let bypassing = RawJson::from(json!({CacheLayer::META_KEY: CacheLayer::BYPASS}));
    let asks: [&dyn Fn(&mut CallContext); 4] = [
        &|cx| cx.extras.idempotency_key = Some("k".into()),
        &|cx| cx.extras.meta = Some(bypassing.clone()),
        &|cx| cx.extras.task = Some(TaskMode::Requested(RawJson::object())),
        &|cx| {
            cx.extras.resume = Some(Arc::new(Resume::new(RawJson::object())));
        },
    ];
    for (n_before, ask) in asks.into_iter().enumerate() {
        let mut cx = calls.next();
        ask(&mut cx);
        assert_eq!(told(stack.invoke(&mut cx).await).1, Value::Null);
        assert_eq!(script.n_calls(), n_before + 2);
    }
    let other = RawJson::from(json!({CacheLayer::META_KEY: "whatever"}));
    let mut cx = calls.next();
    cx.extras.meta = Some(other);
    assert_eq!(told(stack.invoke(&mut cx).await).1["status"], "hit");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_fresh_is_given_while_one_call_fetches_another() {
    let script = ScriptedExecutor::new([
        ScriptStep::Value(json!("old")),
        ScriptStep::After(SECOND, json!("new")),
        ScriptStep::Value(json!("newer")),
    ]);
    let share = CacheLayer::new(ROOM);
    let calls = Calls::new(tool(CacheSettings::default().with_stale_while_revalidate(MINUTE)));
    let stack = layer(&share, &script);
    told(stack.invoke(&mut calls.next()).await);
    advance(MINUTE).await;
    let start = Instant::now();
    for _ in 0..100 {
        let stale = json!({"status": "stale", "age_ms": 60_000});
        assert_eq!(told(stack.invoke(&mut calls.next()).await), (json!("old"), stale));
    }
    assert!(start.elapsed().is_zero(), "nobody waits");
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((script.n_calls(), share.n_running()), (2, 0));
    let (value, told_of) = told(stack.invoke(&mut calls.next()).await);
    assert_eq!((value, &told_of["status"]), (json!("new"), &json!("hit")));
    advance(2 * MINUTE).await;
    assert_eq!(
        told(stack.invoke(&mut calls.next()).await),
        (json!("newer"), Value::Null)
    );
}

fn kept_for_bad_times() -> TestTool {
    tool(CacheSettings::default().with_stale_if_error(10 * MINUTE))
}

#[tokio::test(start_paused = true)]
async fn what_is_old_is_given_if_nothing_new_can_be_had() {
    for (failure, is_spared) in [
        (ErrorKind::Unavailable, true),
        (ErrorKind::Timeout, true),
        (ErrorKind::Overloaded, true),
        (ErrorKind::RateLimited, true),
        (ErrorKind::UpstreamError, true),
        (ErrorKind::OutcomeUnknown, false),
        (ErrorKind::Auth, false),
        (ErrorKind::NotFound, false),
        (ErrorKind::InvalidArguments, false),
        (ErrorKind::Cancelled, false),
        (ErrorKind::Internal, false),
    ] {
        let script = ScriptedExecutor::new([
            ScriptStep::Value(json!("old")),
            ScriptStep::Fail(ToolError::new(failure, "no")),
        ]);
        let (stack, calls) = (
            layer(&CacheLayer::new(ROOM), &script),
            Calls::new(kept_for_bad_times()),
        );
        told(stack.invoke(&mut calls.next()).await);
        advance(5 * MINUTE).await;
        let result = stack.invoke(&mut calls.next()).await;
        assert_eq!(script.n_calls(), 2);
        if is_spared {
            let stale = json!({"status": "stale", "age_ms": 300_000, "error": failure.as_str()});
            if let Ok(Outcome::Reply(reply)) = &result {
                let said = reply.meta().iter().find(|(key, _)| *key == Degraded::META_KEY);
                let said: Value = said.expect("it says so").1.to().unwrap();
                let errors = json!([{"tool": "search", "error": failure.as_str()}]);
                assert_eq!(
                    (&said["step"], &said["source"]),
                    (&json!("stale"), &json!("cache"))
                );
                assert_eq!((&said["age_ms"], &said["errors"]), (&json!(300_000), &errors));
            }
            assert_eq!(told(result), (json!("old"), stale));
            advance(6 * MINUTE).await;
            let result = stack.invoke(&mut calls.next()).await;
            assert_eq!(kind(&result), Some(failure), "too old for that as well");
        } else {
            assert_eq!(kind(&result), Some(failure));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_old_is_given_before_the_deadline_if_the_tool_hangs() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("old")), ScriptStep::Hang(true)]);
    let share = CacheLayer::new(ROOM);
    let stack = Layers::outermost(DeadlineLayer)
        .then(share.clone())
        .around(script.clone());
    let mut tool = kept_for_bad_times();
    tool.descriptor.metadata.read_only = Some(true);
    let calls = Calls::new(tool);
    told(stack.invoke(&mut calls.next()).await);
    advance(2 * MINUTE).await;
    let mut cx = calls.next();
    cx.tighten_deadline(10 * SECOND);
    let start = Instant::now();
    let (value, told_of) = told(stack.invoke(&mut cx).await);
    assert_eq!((value, &told_of["error"]), (json!("old"), &json!("timeout")));
    assert_eq!(start.elapsed(), 9 * SECOND);
    tokio::task::yield_now().await;
    assert_eq!(
        (script.n_running(), share.n_running()),
        (0, 0),
        "nobody waits for it"
    );
}

#[tokio::test(start_paused = true)]
async fn other_credentials_make_other_answers() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let stack = layer(&CacheLayer::new(ROOM), &script);
    let tool = plain().build(ScriptedExecutor::new([]));
    let clock = Arc::new(TokioClock::new());
    let next = || call(tool.clone(), json!({}), clock.clone());
    told(stack.invoke(&mut next()).await);
    assert_eq!(told(stack.invoke(&mut next()).await).1["status"], "hit");
    tool.state().credentials_renewed();
    assert_eq!(told(stack.invoke(&mut next()).await).1, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_not_kept_and_all_together_stay_within_their_room() {
    let text = "x".repeat(1000);
    let script = ScriptedExecutor::new([ScriptStep::Value(json!(text))]);
    let share = CacheLayer::new(20_000);
    let stack = layer(&share, &script);
    let clock = Arc::new(TokioClock::new());
    let small = tool(CacheSettings::default().with_max_bytes(1000));
    let small = small.build(ScriptedExecutor::new([]));
    for _ in 0..2 {
        told(
            stack
                .invoke(&mut call(small.clone(), json!({}), clock.clone()))
                .await,
        );
    }
    assert_eq!((script.n_calls(), share.n_bytes()), (2, 0));
    let tool = plain().build(ScriptedExecutor::new([]));
    for n in 0..200 {
        told(
            stack
                .invoke(&mut call(tool.clone(), json!({"n": n}), clock.clone()))
                .await,
        );
    }
    let n_bytes = share.n_bytes();
    assert!((1500..=20_000).contains(&n_bytes), "{n_bytes}");
}

/// Records the context of the last call, and answers.
#[derive(Clone, Default)]
struct Looked(Arc<Mutex<Option<CallContext>>>);

impl Invoke for Looked {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let mut seen = cx.fork();
        seen.deadline = cx.deadline;
        *self.0.lock().unwrap() = Some(seen);
        cx.explain("looked", || "at everything".to_owned());
        Ok(Reply::value(RawJson::null()).into())
    }
}

struct Nobody;

impl Ask for Nobody {
    fn client(&self) -> ClientKey {
        ClientKey::Session("s".into())
    }

    fn capabilities(&self) -> RawJson {
        RawJson::object()
    }

    fn ask(&self, _: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        Box::pin(async { Err(AskError::Unanswered) })
    }

    fn log_level(&self) -> Option<Arc<str>> {
        None
    }

    fn log(&self, _: &RawJson) {}
}

#[tokio::test(start_paused = true)]
async fn what_is_made_for_all_has_nothing_of_the_first_alone() {
    let looked = Looked::default();
    let stack = CacheLayer::new(ROOM).layer(looked.clone());
    let calls = Calls::new(plain().limits(7 * SECOND, SECOND));
    let mut cx = calls.next();
    cx.record_decisions();
    cx.tighten_deadline(SECOND);
    cx.origin.client = Some(ClientKey::Session("s".into()));
    cx.origin.ask = Some(Asker::new(Arc::new(Nobody), calls.clock.clone()));
    cx.extras.task = Some(TaskMode::Allowed);
    let meta = r#"{"traceparent":"00-1-2-01","example.com/secret":"mine","dev.toolplane/retry-attempt":1}"#;
    cx.extras.meta = Some(RawJson::parse(meta).unwrap());
    stack.invoke(&mut cx).await.unwrap();
    let work = looked.0.lock().unwrap().take().unwrap();
    assert!(work.origin.client.is_none() && work.origin.ask.is_none() && work.extras.task.is_none());
    assert!(work.origin.progress.is_none());
    assert_eq!(
        work.extras.meta.as_ref().map(RawJson::as_str),
        Some(r#"{"traceparent":"00-1-2-01","dev.toolplane/retry-attempt":1}"#)
    );
    assert_eq!(
        work.remaining(),
        Some(7 * SECOND),
        "the tool's time, not the caller's"
    );
    assert_eq!(work.origin.caller.principal, cx.origin.caller.principal);
    let notes: Vec<_> = cx.decisions().iter().map(|note| note.layer).collect();
    assert_eq!(notes, ["cache", "looked", "cache"], "the work's are the caller's");
}

/// Reports progress, and answers after a second.
struct Reporting;

impl Invoke for Reporting {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let progress = cx.origin.progress.clone();
        for step in 1..=2 {
            tokio::time::sleep(SECOND).await;
            if let Some(progress) = &progress {
                progress.report(RawJson::from(json!({"progress": step})));
            }
        }
        Ok(Reply::value(RawJson::null()).into())
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Progress for Heard {
    fn report(&self, report: RawJson) {
        self.0.lock().unwrap().push(report.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn progress_goes_to_all_who_wait() {
    let stack = CacheLayer::new(ROOM).layer(Reporting);
    let calls = Calls::new(plain());
    let heard: Vec<Arc<Heard>> = (0..2).map(|_| Arc::default()).collect();
    let (mut first, mut second) = (calls.next(), calls.next());
    first.origin.progress = Some(heard[0].clone());
    second.origin.progress = Some(heard[1].clone());
    let late = async {
        tokio::time::sleep(SECOND + SECOND / 2).await;
        stack.invoke(&mut second).await
    };
    let (first, second) = tokio::join!(stack.invoke(&mut first), late);
    told(first);
    assert_eq!(told(second).1["status"], "shared");
    assert_eq!(
        *heard[0].0.lock().unwrap(),
        [r#"{"progress":1}"#, r#"{"progress":2}"#]
    );
    assert_eq!(
        *heard[1].0.lock().unwrap(),
        [r#"{"progress":2}"#],
        "from when it came"
    );
}

/// Observer of the outcomes of caches.
#[derive(Default)]
pub(crate) struct Counted(pub(crate) Mutex<Vec<CacheOutcome>>);

impl Observe for Counted {
    fn observe(&self, event: &Event<'_>) {
        if let Event::CacheUsed { outcome, .. } = event {
            self.0.lock().unwrap().push(*outcome);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_told_of_once() {
    let counted = Arc::new(Counted::default());
    let script = ScriptedExecutor::new([ScriptStep::Value(json!(1)), down()]);
    let stack = layer(&CacheLayer::new(ROOM), &script);
    let calls = Calls::new(kept_for_bad_times()).told_to(counted.clone());
    let (mut first, mut second) = (calls.next(), calls.next());
    let (first, second) = tokio::join!(stack.invoke(&mut first), stack.invoke(&mut second));
    assert!(first.is_ok() && second.is_ok());
    told(stack.invoke(&mut calls.next()).await);
    advance(2 * MINUTE).await;
    told(stack.invoke(&mut calls.next()).await);
    let mut bypassing = calls.next();
    bypassing.extras.meta = Some(RawJson::from(json!({CacheLayer::META_KEY: CacheLayer::BYPASS})));
    let _ = stack.invoke(&mut bypassing).await;
    let told = counted.0.lock().unwrap();
    assert_eq!(told.len(), 5);
    assert!(told[..2].contains(&CacheOutcome::Miss) && told[..2].contains(&CacheOutcome::Shared));
    assert_eq!(
        told[2..],
        [CacheOutcome::Hit, CacheOutcome::Stale, CacheOutcome::Bypassed]
    );
}
