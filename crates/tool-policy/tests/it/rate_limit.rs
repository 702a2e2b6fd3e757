//! Rate limit of tools.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::advance;
use tool_core::{
    CallContext, Caller, Clock, ErrorKind, Invoke, Layer, Mode, RateLimitSettings as Limit, Scopes, Tool,
    UpstreamState,
};
use tool_policy::{RateLimit, RateLimitLayer, RateLimits};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const MINUTE: Duration = Duration::from_secs(60);

fn per_minute(requests: u32) -> Limit {
    Limit::new(requests, MINUTE)
}

/// The layer around an executor that answers at once, and the clock of its calls.
struct Bench {
    stack: RateLimit<ScriptedExecutor>,
    script: ScriptedExecutor,
    clock: Arc<dyn Clock>,
}

impl Bench {
    fn new(layer: RateLimitLayer) -> Self {
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        Self {
            stack: layer.layer(script.clone()),
            script,
            clock: Arc::new(TokioClock::new()),
        }
    }

    fn tool(&self, limits: impl FnOnce(&mut Scopes<Limit>)) -> Arc<Tool> {
        let mut tool = TestTool::new("search");
        set(&mut tool, limits);
        tool.build(self.script.clone())
    }

    fn context(&self, tool: &Arc<Tool>, principal: &str) -> CallContext {
        let mut cx = call(tool.clone(), json!({}), self.clock.clone());
        cx.origin.caller = Arc::new(Caller::new(principal));
        cx
    }

    /// Makes a call. Returns the time to wait if it is refused.
    async fn call(&self, tool: &Arc<Tool>, principal: &str) -> Result<(), Duration> {
        match self.stack.invoke(&mut self.context(tool, principal)).await {
            Ok(_) => Ok(()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::RateLimited);
                Err(error.retry_after().expect("says how long to wait"))
            }
        }
    }

    /// Makes this many calls, and returns how many pass.
    async fn n_passed(&self, tool: &Arc<Tool>, principal: &str, n_calls: usize) -> usize {
        let mut n_passed = 0;
        for _ in 0..n_calls {
            n_passed += usize::from(self.call(tool, principal).await.is_ok());
        }
        n_passed
    }
}

/// Changes the limits of a tool.
fn set(tool: &mut TestTool, change: impl FnOnce(&mut Scopes<Limit>)) {
    let mut limits = tool.settings.get::<RateLimits>().copied().unwrap_or_default();
    change(&mut limits.0);
    tool.settings.set(limits);
}

#[tokio::test(start_paused = true)]
async fn who_waits_as_told_passes() {
    let bench = Bench::new(RateLimitLayer::new());
    let tool = bench.tool(|limits| limits.tool = Some(per_minute(100)));
    assert_eq!(bench.n_passed(&tool, "ann", 150).await, 100, "as many at once");
    let wait = bench.call(&tool, "ann").await.expect_err("the limit is reached");
    assert_eq!(wait, MINUTE / 100);
    advance(wait - Duration::from_millis(1)).await;
    assert!(bench.call(&tool, "ann").await.is_err(), "too early");
    advance(Duration::from_millis(1)).await;
    assert!(bench.call(&tool, "ann").await.is_ok());
    assert!(bench.call(&tool, "ann").await.is_err(), "one was to be had");
    assert_eq!(bench.script.n_calls(), 101, "what is refused reaches nothing");
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_as_large_as_is_said_and_the_rest_comes_evenly() {
    let bench = Bench::new(RateLimitLayer::new());
    let limit = {
        let mut new = per_minute(60);
        new.burst = Some(5);
        new
    };
    let tool = bench.tool(|limits| limits.tool = Some(limit));
    assert_eq!(bench.n_passed(&tool, "ann", 20).await, 5);
    for _ in 0..10 {
        advance(Duration::from_secs(1)).await;
        assert_eq!(bench.n_passed(&tool, "ann", 3).await, 1);
    }
    advance(60 * MINUTE).await;
    assert_eq!(bench.n_passed(&tool, "ann", 20).await, 5, "no more is saved up");
}

#[tokio::test(start_paused = true)]
async fn a_principals_share_leaves_the_rest_to_others() {
    let bench = Bench::new(RateLimitLayer::new());
    let limit = {
        let mut new = per_minute(10);
        new.per_principal = Some(4);
        new
    };
    let tool = bench.tool(|limits| limits.tool = Some(limit));
    // What ann is refused takes nothing away from the others.
    for (principal, expected) in [("ann", 4), ("bob", 4), ("eve", 2)] {
        assert_eq!(
            bench.n_passed(&tool, principal, 100).await,
            expected,
            "{principal}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_principal_has_one_limit_for_all_tools() {
    let bench = Bench::new(RateLimitLayer::new());
    let limits = |limits: &mut Scopes<Limit>| limits.principal = Some(per_minute(10));
    let tools = [bench.tool(limits), bench.tool(limits)];
    assert_eq!(bench.n_passed(&tools[0], "ann", 6).await, 6);
    assert_eq!(bench.n_passed(&tools[1], "ann", 6).await, 4);
    assert_eq!(bench.n_passed(&tools[1], "bob", 20).await, 10);
    let mut other_tenant = bench.context(&tools[0], "ann");
    other_tenant.origin.caller = Arc::new({
        let mut new = Caller::new("ann");
        new.tenant = "other".into();
        new
    });
    assert!(bench.stack.invoke(&mut other_tenant).await.is_ok(), "another ann");
}

#[tokio::test(start_paused = true)]
async fn tools_of_one_upstream_share_its_limit_and_all_tools_the_total() {
    let bench = Bench::new(RateLimitLayer::new());
    let upstream = Arc::new(UpstreamState::new("http://10.1.2.3"));
    let tools = [Some(upstream.clone()), Some(upstream), None].map(|upstream| {
        let mut tool = TestTool::new("search");
        set(&mut tool, |limits| limits.upstream = Some(per_minute(5)));
        set(&mut tool, |limits| limits.total = Some(per_minute(8)));
        tool.upstream = upstream;
        tool.build(bench.script.clone())
    });
    assert_eq!(bench.n_passed(&tools[0], "ann", 3).await, 3);
    assert_eq!(bench.n_passed(&tools[1], "ann", 3).await, 2);
    let refused = bench.stack.invoke(&mut bench.context(&tools[1], "ann")).await;
    let message = refused.expect_err("the limit is reached").message().to_owned();
    assert_eq!(
        message,
        "the rate limit of the backend of `search` is reached, which is 5 calls in 60 s: wait 12 s"
    );
    assert_eq!(bench.n_passed(&tools[2], "ann", 9).await, 3, "the total");
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_what_was_used_unless_the_limit_is_another() {
    let bench = Bench::new(RateLimitLayer::new());
    let mut tool = TestTool::new("search");
    tool.state = Some(Arc::default());
    let mut with = |requests| {
        set(&mut tool, |limits| limits.tool = Some(per_minute(requests)));
        tool.clone().build(bench.script.clone())
    };
    let (before, same, larger) = (with(3), with(3), with(5));
    assert_eq!(bench.n_passed(&before, "ann", 9).await, 3);
    assert_eq!(bench.n_passed(&same, "ann", 9).await, 0);
    assert_eq!(bench.n_passed(&larger, "ann", 9).await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_counts_nothing() {
    let bench = Bench::new(RateLimitLayer::new());
    let tool = bench.tool(|limits| limits.tool = Some(per_minute(1)));
    for _ in 0..50 {
        let mut cx = bench.context(&tool, "ann");
        cx.mode = Mode::DryRun;
        assert!(bench.stack.invoke(&mut cx).await.is_ok());
    }
    assert_eq!(bench.n_passed(&tool, "ann", 50).await, 1);
}

#[tokio::test(start_paused = true)]
async fn no_limit_refuses_nothing() {
    let bench = Bench::new(RateLimitLayer::new());
    let tool = bench.tool(|_| {});
    assert_eq!(bench.n_passed(&tool, "ann", 50).await, 50);
}
