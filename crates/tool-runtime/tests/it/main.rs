//! Each execution layer alone, around a scripted executor, on a paused clock.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod cache;
mod cache_cancellation;
mod cache_keys;
mod concurrency_limit;
pub(crate) mod fallback;
mod fallback_tools;
mod hedge;
mod idempotency;
mod intent;
mod ledger_suite;
mod may_have_run;
mod retry;
mod semantic_cache;
mod task;

use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::json;
use tokio::time::{Instant, advance};
use tool_core::{
    Ask, AskError, Asker, BoxFuture, CallContext, ClientKey, Clock, ErrorKind, Invoke, Layer, Layers,
    Metadata, Outcome, Progress, Question, Reply, ToolError,
};
use tool_runtime::{DeadlineLayer, TimeoutLayer, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const SECOND: Duration = Duration::from_secs(1);

fn context(script: &ScriptedExecutor, tool: TestTool) -> CallContext {
    call(tool.build(script.clone()), json!({}), Arc::new(TokioClock::new()))
}

fn is_reply(result: &Result<Outcome, ToolError>) -> bool {
    matches!(result, Ok(Outcome::Reply(_)))
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_call_that_never_answers() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(false)]);
    let mut cx = context(&script, TestTool::new("slow").limits(7 * SECOND, 30 * SECOND));
    let start = Instant::now();
    let error = DeadlineLayer
        .layer(script.clone())
        .invoke(&mut cx)
        .await
        .expect_err("it hangs");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed(), 7 * SECOND);
    assert_eq!(script.n_running(), 0, "the call's future is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_sent_ends_unknown_unless_declared_repeatable() {
    let repeatable = {
        let mut metadata = Metadata::default();
        metadata.read_only = Some(true);
        metadata
    };
    for (metadata, expected) in [
        (Metadata::default(), ErrorKind::OutcomeUnknown),
        (repeatable, ErrorKind::Timeout),
    ] {
        let script = ScriptedExecutor::new([ScriptStep::Hang(true)]);
        let mut cx = context(&script, TestTool::new("slow").metadata(metadata));
        let error = TimeoutLayer
            .layer(script)
            .invoke(&mut cx)
            .await
            .expect_err("it hangs");
        assert_eq!(error.kind(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_counts_if_it_is_earlier() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(false)]);
    let mut cx = context(&script, TestTool::new("slow"));
    cx.deadline = Some(cx.clock.now() + 2 * SECOND);
    let start = Instant::now();
    let stack = Layers::outermost(DeadlineLayer).then(TimeoutLayer).around(script);
    let error = stack.invoke(&mut cx).await.expect_err("it hangs");
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Timeout, 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_past_sends_nothing() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let mut cx = context(&script, TestTool::new("late"));
    cx.deadline = Some(cx.clock.now() + SECOND);
    advance(2 * SECOND).await;
    let error = DeadlineLayer
        .layer(script.clone())
        .invoke(&mut cx)
        .await
        .expect_err("too late");
    assert_eq!((error.kind(), script.n_calls()), (ErrorKind::Timeout, 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_passes_both_limits() {
    let script = ScriptedExecutor::new([ScriptStep::After(4 * SECOND, json!({"ok": true}))]);
    let mut cx = context(&script, TestTool::new("slow").limits(6 * SECOND, 5 * SECOND));
    let stack = Layers::outermost(DeadlineLayer).then(TimeoutLayer).around(script);
    assert!(is_reply(&stack.invoke(&mut cx).await));
}

#[tokio::test(start_paused = true)]
async fn the_attempt_ends_before_the_call_does() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(false)]);
    let mut cx = context(&script, TestTool::new("slow").limits(60 * SECOND, 5 * SECOND));
    let start = Instant::now();
    let stack = Layers::outermost(DeadlineLayer).then(TimeoutLayer).around(script);
    let error = stack.invoke(&mut cx).await.expect_err("it hangs");
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Timeout, 5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_the_runtimes() {
    let clock = TokioClock::new();
    let start = clock.now();
    advance(3 * SECOND).await;
    assert_eq!(clock.now().since(start), 3 * SECOND);
    assert_eq!(start.since(clock.now()), Duration::ZERO);
}

/// A client that takes this long for every answer.
struct Slow(Duration);

impl Ask for Slow {
    fn client(&self) -> ClientKey {
        ClientKey::Session("slow".into())
    }

    fn capabilities(&self) -> RawJson {
        RawJson::object()
    }

    fn ask(&self, _: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        Box::pin(async {
            tokio::time::sleep(self.0).await;
            Ok(RawJson::object())
        })
    }

    fn log_level(&self) -> Option<Arc<str>> {
        None
    }

    fn log(&self, _: &RawJson) {}
}

/// A tool that works, asks this many questions at once, and works on.
struct Asking {
    works: Duration,
    n_questions: usize,
}

impl Invoke for Asking {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        tokio::time::sleep(self.works).await;
        let asker = cx.origin.ask.clone().expect("the test gives a way back");
        let question = || Question::new("elicitation/create".to_owned(), None);
        let questions = (0..self.n_questions).map(|_| asker.ask(question()));
        for answer in futures_util::future::join_all(questions).await {
            answer.expect("the client answers");
        }
        tokio::time::sleep(self.works).await;
        Ok(Reply::value(RawJson::object()).into())
    }
}

/// Calls a tool that may run for 5 s in all, with a client that takes a minute for an answer.
async fn ask(works: Duration, n_questions: usize) -> (Result<Outcome, ToolError>, Duration) {
    let script = ScriptedExecutor::new([]);
    let mut cx = context(&script, TestTool::new("asks").limits(6 * SECOND, 5 * SECOND));
    cx.origin.ask = Some(Asker::new(Arc::new(Slow(60 * SECOND)), cx.clock.clone()));
    let start = Instant::now();
    let stack = Layers::outermost(DeadlineLayer)
        .then(TimeoutLayer)
        .around(Asking { works, n_questions });
    (stack.invoke(&mut cx).await, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_time_that_the_caller_takes_is_not_the_tools() {
    let (result, took) = ask(2 * SECOND, 1).await;
    assert!(is_reply(&result), "{result:?}");
    assert_eq!(took, 64 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn questions_that_are_open_together_count_once() {
    let (result, took) = ask(3 * SECOND, 3).await;
    assert_eq!(result.expect_err("it works too long").kind(), ErrorKind::Timeout);
    assert_eq!(took, 65 * SECOND);
}

/// Counts reports.
#[derive(Default)]
struct Reports(std::sync::Mutex<usize>);

impl Progress for Reports {
    fn report(&self, _: RawJson) {
        *self.0.lock().unwrap() += 1;
    }
}

/// A tool that reports progress after each of these times, and asks a question of a minute before the last one.
struct Working {
    every: Duration,
    n_reports: usize,
    asks: bool,
}

impl Invoke for Working {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        for n in 1..=self.n_reports {
            tokio::time::sleep(self.every).await;
            if self.asks && n == self.n_reports {
                let question = Question::new("elicitation/create".to_owned(), None);
                let asker = cx.origin.ask.clone().unwrap();
                asker.ask(question).await.unwrap();
            }
            if let Some(progress) = &cx.origin.progress {
                progress.report(RawJson::object());
            }
        }
        tokio::time::sleep(self.every).await;
        Ok(Reply::value(RawJson::object()).into())
    }
}

/// Makes a call of 10 s with attempts of 3 s, for a caller that wants progress or not. Returns its result, its
/// duration and the number of reports.
async fn work(tool: Working, wants_progress: bool) -> (Result<Outcome, ToolError>, Duration, usize) {
    let script = ScriptedExecutor::new([]);
    let mut cx = context(&script, TestTool::new("works").limits(10 * SECOND, 3 * SECOND));
    let reports: Arc<Reports> = Arc::default();
    cx.origin.progress = wants_progress.then(|| reports.clone() as Arc<dyn Progress>);
    cx.origin.ask = tool
        .asks
        .then(|| Asker::new(Arc::new(Slow(60 * SECOND)), cx.clock.clone()));
    let start = Instant::now();
    let stack = Layers::outermost(DeadlineLayer).then(TimeoutLayer).around(tool);
    let result = stack.invoke(&mut cx).await;
    let n_reports = *reports.0.lock().unwrap();
    assert_eq!(cx.origin.progress.is_some(), wants_progress);
    (result, start.elapsed(), n_reports)
}

#[tokio::test(start_paused = true)]
async fn progress_puts_the_end_of_an_attempt_off_and_not_that_of_the_call() {
    let working = |n_reports| Working {
        every: 2 * SECOND,
        n_reports,
        asks: false,
    };
    // Reports progress after 2, 4 and 6 seconds.
    let (result, took, n_reports) = work(working(3), true).await;
    assert!(is_reply(&result), "{result:?}");
    assert_eq!((took, n_reports), (8 * SECOND, 3));
    // Without a receiver of progress, there are no reports.
    let (result, took, _) = work(working(3), false).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(took, 3 * SECOND);
    // Reports progress without end.
    let (result, took, _) = work(working(1000), true).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(took, 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_stops_telling_ends_its_limit_after_its_last_report() {
    let script = ScriptedExecutor::new([]);
    let mut cx = context(&script, TestTool::new("stops").limits(10 * SECOND, 3 * SECOND));
    cx.origin.progress = Some(Arc::new(Reports::default()));
    let once = |cx: &CallContext| cx.origin.progress.clone().unwrap().report(RawJson::object());
    struct Stops<F>(F);
    impl<F: Fn(&CallContext) + Send + Sync> Invoke for Stops<F> {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            tokio::time::sleep(SECOND).await;
            (self.0)(cx);
            std::future::pending().await
        }
    }
    let start = Instant::now();
    let error = TimeoutLayer.layer(Stops(once)).invoke(&mut cx).await.unwrap_err();
    assert_eq!(start.elapsed(), 4 * SECOND);
    assert!(
        error.to_string().contains("no answer and no progress within 3 s"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn progress_counts_beside_the_time_of_the_caller() {
    let tool = Working {
        every: 2 * SECOND,
        n_reports: 2,
        asks: true,
    };
    let (result, took, _) = work(tool, true).await;
    assert!(is_reply(&result), "{result:?}");
    assert_eq!(took, 66 * SECOND);
}
