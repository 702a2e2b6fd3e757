//! Single flight: concurrent calls, their leader and waiters, and cancellation.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::json;
use tokio::{
    task::{JoinHandle, yield_now},
    time::{Instant, advance, sleep, timeout},
};
use tool_core::{CallContext, ErrorKind, Invoke, Jitter, Layer, Layers, Outcome, Tool, ToolError};
use tool_runtime::CacheSettings;
use tool_runtime::{CacheLayer, DeadlineLayer, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, call};

use crate::cache::{MINUTE, SECOND, tool};

const ROOM: u64 = 1 << 20;

struct Calls {
    share: CacheLayer,
    script: ScriptedExecutor,
    tool: Arc<Tool>,
    clock: Arc<TokioClock>,
}

impl Calls {
    fn new(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self {
            share: CacheLayer::new(ROOM),
            script: ScriptedExecutor::new(steps),
            tool: tool(CacheSettings::default()).build(ScriptedExecutor::new([])),
            clock: Arc::new(TokioClock::new()),
        }
    }

    fn next(&self) -> CallContext {
        call(self.tool.clone(), json!({"q": 1}), self.clock.clone())
    }

    /// Starts a call, and lets it run until it waits.
    async fn begin(&self, mut cx: CallContext) -> JoinHandle<Result<Outcome, ToolError>> {
        let stack = Layers::outermost(DeadlineLayer)
            .then(self.share.clone())
            .around(self.script.clone());
        let called = tokio::spawn(async move { stack.invoke(&mut cx).await });
        settle().await;
        called
    }
}

async fn settle() {
    for _ in 0..8 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_at_once_are_one() {
    let calls = Calls::new([ScriptStep::After(SECOND, json!("answer"))]);
    let stack = calls.share.clone().layer(calls.script.clone());
    let mut contexts: Vec<_> = (0..1000).map(|_| calls.next()).collect();
    let results = join_all(contexts.iter_mut().map(|cx| stack.invoke(cx))).await;
    let mut n_shared = 0;
    for result in results {
        let Ok(Outcome::Reply(reply)) = result else {
            panic!("{result:?}");
        };
        assert_eq!(reply.raw().as_str(), r#""answer""#);
        n_shared += usize::from(!reply.meta().is_empty());
    }
    assert_eq!((calls.script.n_calls(), n_shared), (1, 999));
    assert_eq!(calls.share.n_running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stampede_when_an_answer_gets_old_is_one_call() {
    let calls = Calls::new([ScriptStep::After(SECOND, json!("answer"))]);
    let stack = calls.share.clone().layer(calls.script.clone());
    for n_calls in 1..=3 {
        let mut contexts: Vec<_> = (0..100).map(|_| calls.next()).collect();
        let results = join_all(contexts.iter_mut().map(|cx| stack.invoke(cx))).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(calls.script.n_calls(), n_calls);
        advance(MINUTE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_get_the_error_and_the_next_call_is_made() {
    let calls = Calls::new([
        ScriptStep::After(SECOND, json!(1)),
        ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers")),
        ScriptStep::Value(json!(2)),
    ]);
    let first = calls.begin(calls.next()).await;
    first.await.unwrap().unwrap();
    advance(MINUTE).await;
    let mut contexts: Vec<_> = (0..10).map(|_| calls.next()).collect();
    let stack = calls.share.clone().layer(calls.script.clone());
    let results = join_all(contexts.iter_mut().map(|cx| stack.invoke(cx))).await;
    let is_down = |result: &Result<_, ToolError>| {
        result
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::Unavailable)
    };
    assert!(results.iter().all(is_down), "{results:?}");
    stack.invoke(&mut calls.next()).await.unwrap();
    assert_eq!(calls.script.n_calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_first_who_goes_takes_nothing_from_the_others() {
    let calls = Calls::new([ScriptStep::After(2 * SECOND, json!("answer"))]);
    let first = calls.begin(calls.next()).await;
    let second = calls.begin(calls.next()).await;
    sleep(SECOND).await;
    first.abort();
    settle().await;
    assert_eq!(calls.script.n_running(), 1);
    let start = Instant::now();
    second.await.unwrap().unwrap();
    assert_eq!((start.elapsed(), calls.script.n_calls()), (SECOND, 1));
    calls.begin(calls.next()).await.await.unwrap().unwrap();
    assert_eq!(calls.script.n_calls(), 1, "and the answer is kept");
}

#[tokio::test(start_paused = true)]
async fn the_first_ones_deadline_is_not_that_of_the_others() {
    let calls = Calls::new([ScriptStep::After(10 * SECOND, json!("answer"))]);
    let mut hasty = calls.next();
    hasty.tighten_deadline(SECOND);
    let hasty = calls.begin(hasty).await;
    let patient = calls.begin(calls.next()).await;
    let error = hasty.await.unwrap().expect_err("it has a second");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    patient.await.unwrap().expect("it has a minute");
    assert_eq!(calls.script.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_who_goes_ends_the_work() {
    let calls = Calls::new([ScriptStep::Hang(true)]);
    let all = [
        calls.begin(calls.next()).await,
        calls.begin(calls.next()).await,
        calls.begin(calls.next()).await,
    ];
    assert_eq!((calls.script.n_calls(), calls.share.n_running()), (1, 1));
    for (n_gone, one) in all.iter().enumerate() {
        assert_eq!(calls.script.n_running(), 1, "after {n_gone}");
        one.abort();
        settle().await;
    }
    assert_eq!((calls.script.n_running(), calls.share.n_running()), (0, 0));
    let next = calls.begin(calls.next()).await;
    assert_eq!(calls.script.n_calls(), 2, "who comes then begins anew");
    next.abort();
}

#[tokio::test(start_paused = true)]
async fn the_work_ends_with_the_tools_own_time() {
    let calls = Calls::new([ScriptStep::Hang(false)]);
    let stack = calls.share.clone().layer(calls.script.clone());
    let start = Instant::now();
    let error = stack.invoke(&mut calls.next()).await.expect_err("it hangs");
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Timeout, MINUTE));
    assert_eq!((calls.script.n_running(), calls.share.n_running()), (0, 0));
}

/// A tool that panics.
struct Panicking;

impl Invoke for Panicking {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        sleep(SECOND).await;
        panic!("a fault of the tool");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_in_the_work_leaves_nobody_waiting() {
    let calls = Calls::new([]);
    let stack = calls.share.clone().layer(Panicking);
    let (mut first, mut second) = (calls.next(), calls.next());
    let both = async { tokio::join!(stack.invoke(&mut first), stack.invoke(&mut second)) };
    let (first, second) = timeout(MINUTE, both).await.expect("nobody waits for ever");
    for result in [first, second] {
        assert_eq!(result.expect_err("no result").kind(), ErrorKind::Internal);
    }
    assert_eq!(calls.share.n_running(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_random_ends_leave_nothing_behind() {
    let random = Jitter::seeded(7);
    let upto = |n: u64| u64::try_from(random.up_to(Duration::from_nanos(n)).as_nanos()).unwrap_or(0);
    let share = CacheLayer::new(ROOM);
    let script = ScriptedExecutor::new([ScriptStep::After(Duration::from_micros(200), json!(1))]);
    let tool = tool(CacheSettings::default().with_ttl(Duration::from_micros(300)));
    let (tool, clock) = (tool.build(ScriptedExecutor::new([])), Arc::new(TokioClock::new()));
    for _ in 0..100 {
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let mut cx = call(tool.clone(), json!({"q": upto(5)}), clock.clone());
                let stack = share.clone().layer(script.clone());
                tokio::spawn(async move { stack.invoke(&mut cx).await })
            })
            .collect();
        for call in calls {
            match upto(3) {
                0 => call.abort(),
                1 => yield_now().await,
                _ => drop(call.await),
            }
        }
    }
    let nothing_left = async {
        while script.n_running() > 0 || share.n_running() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(MINUTE, nothing_left).await.expect("all of it ends");
}
