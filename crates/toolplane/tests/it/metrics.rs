//! Metrics of calls through the standard stack.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::task::yield_now;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ConcurrencySettings, ErrorKind, Metadata, Overrides, RateLimitSettings, ToolError},
    observe::Metrics,
    policy::{BreakerSettings, Breakers},
    runtime::{CacheSettings, RetrySettings},
};

const SECOND: Duration = Duration::from_secs(1);

fn plane(script: &ScriptedExecutor, tools: impl IntoIterator<Item = TestTool>) -> (Toolplane, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::new());
    let builder = Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .observer(metrics.clone());
    let tools = tools.into_iter();
    let builder = tools.fold(builder, |builder, tool| builder.tool(tool.descriptor));
    (builder.build().expect("can be set up"), metrics)
}

fn with(name: &str, overrides: Overrides) -> TestTool {
    let mut tool = TestTool::new(name);
    tool.descriptor.overrides = overrides;
    tool
}

/// Returns the lines of these metrics without comments.
fn lines(metrics: &Metrics, names: &[&str]) -> Vec<String> {
    let page = metrics.render();
    let is_wanted = |line: &&str| names.iter().any(|name| line.starts_with(&format!("{name}{{")));
    page.lines().filter(is_wanted).map(str::to_owned).collect()
}

async fn call(plane: &Toolplane, tool: &str) {
    // Its end is what is counted.
    let _ = plane.call(CallRequest::new(tool)).await;
}

#[tokio::test(start_paused = true)]
async fn it_says_where_the_answers_of_a_cache_came_from() {
    let cache = CacheSettings::default().with_stale_while_revalidate(60 * SECOND);
    let overrides = Overrides::default().with(cache);
    let script = ScriptedExecutor::new([ScriptStep::After(SECOND, json!(1)), ScriptStep::Value(json!(2))]);
    let (plane, metrics) = plane(&script, [with("t", overrides), TestTool::new("plain")]);
    tokio::join!(call(&plane, "t"), call(&plane, "t"), async {
        yield_now().await;
        assert_eq!(plane.cache_use().n_fetches, 1);
    });
    call(&plane, "t").await;
    assert!(plane.cache_use().n_bytes > 0);
    tokio::time::advance(61 * SECOND).await;
    call(&plane, "t").await;
    let _ = plane.call(CallRequest::new("t").bypass_cache()).await;
    call(&plane, "plain").await;
    assert_eq!(
        lines(&metrics, &["toolplane_cache_total"]),
        [
            r#"toolplane_cache_total{tool="t",outcome="hit"} 1"#,
            r#"toolplane_cache_total{tool="t",outcome="stale"} 1"#,
            r#"toolplane_cache_total{tool="t",outcome="miss"} 1"#,
            r#"toolplane_cache_total{tool="t",outcome="shared"} 1"#,
            r#"toolplane_cache_total{tool="t",outcome="bypassed"} 1"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn it_says_how_many_wait_also_when_one_is_withdrawn() {
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.concurrency = Some({
            let mut new = ConcurrencySettings::new(1);
            new.queue = 2;
            new.wait = Some(9 * SECOND);
            new
        });
        metadata
    };
    let script = ScriptedExecutor::new([ScriptStep::After(SECOND, json!(1))]);
    let (plane, metrics) = plane(&script, [TestTool::new("t").metadata(metadata)]);
    let length = || lines(&metrics, &["toolplane_queue_length"]);
    assert!(length().is_empty(), "nobody has waited yet");
    let calls: [_; 4] = std::array::from_fn(|_| {
        let plane = plane.clone();
        tokio::spawn(async move { call(&plane, "t").await })
    });
    tokio::time::sleep(SECOND / 4).await;
    assert_eq!(length(), [r#"toolplane_queue_length{tool="t"} 2"#]);
    assert_eq!(
        lines(&metrics, &["toolplane_shed_total"]),
        [r#"toolplane_shed_total{tool="t",scope="tool"} 1"#]
    );
    calls[1].abort();
    tokio::time::sleep(SECOND / 4).await;
    assert_eq!(length(), [r#"toolplane_queue_length{tool="t"} 1"#]);
    for call in calls {
        let _ = call.await;
    }
    assert_eq!(length(), [r#"toolplane_queue_length{tool="t"} 0"#]);
    assert_eq!(
        lines(&metrics, &["toolplane_queue_wait_seconds_count"]),
        [r#"toolplane_queue_wait_seconds_count{tool="t"} 2"#]
    );
}

#[tokio::test(start_paused = true)]
async fn it_counts_what_layers_did_to_calls() {
    let down = || ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"));
    let overrides = Overrides::default()
        .with(RetrySettings::default().with_max_attempts(2))
        .with(Breakers::from(BreakerSettings::default().with_max_failures(2)));
    let mut limited = TestTool::new("limited");
    limited.descriptor.metadata.rate_limit = Some(RateLimitSettings::new(1, 60 * SECOND));
    let script = ScriptedExecutor::new([
        down(),
        down(),
        ScriptStep::Value(json!("paid")),
        ScriptStep::Value(json!(1)),
    ]);
    let tools = [with("t", overrides), limited, TestTool::new("pay")];
    let (plane, metrics) = plane(&script, tools);
    call(&plane, "t").await;
    call(&plane, "t").await;
    for _ in 0..3 {
        let _ = plane.call(CallRequest::new("pay").idempotency_key("k")).await;
    }
    call(&plane, "limited").await;
    call(&plane, "limited").await;
    call(&plane, "nothing").await;
    assert_eq!(
        lines(
            &metrics,
            &[
                "toolplane_calls_total",
                "toolplane_attempts_total",
                "toolplane_retries_total",
                "toolplane_replays_total",
                "toolplane_rate_limited_total",
                "toolplane_held_back_total",
                "toolplane_breaker_state",
                "toolplane_breaker_changes_total",
                "toolplane_argument_bytes_count",
                "toolplane_result_bytes_count",
                "toolplane_unresolved_calls_total",
            ]
        ),
        [
            r#"toolplane_calls_total{tool="limited",outcome="ok"} 1"#,
            r#"toolplane_calls_total{tool="limited",outcome="rate_limited"} 1"#,
            r#"toolplane_calls_total{tool="pay",outcome="ok"} 3"#,
            r#"toolplane_calls_total{tool="t",outcome="unavailable"} 2"#,
            r#"toolplane_attempts_total{tool="limited",outcome="ok"} 1"#,
            r#"toolplane_attempts_total{tool="pay",outcome="ok"} 1"#,
            r#"toolplane_attempts_total{tool="t",outcome="unavailable"} 2"#,
            r#"toolplane_retries_total{tool="t"} 1"#,
            r#"toolplane_replays_total{tool="pay"} 2"#,
            r#"toolplane_rate_limited_total{tool="limited",scope="tool"} 1"#,
            r#"toolplane_held_back_total{tool="t",scope="tool"} 1"#,
            r#"toolplane_breaker_state{tool="t"} 2"#,
            r#"toolplane_breaker_changes_total{tool="t",state="closed"} 0"#,
            r#"toolplane_breaker_changes_total{tool="t",state="half_open"} 0"#,
            r#"toolplane_breaker_changes_total{tool="t",state="open"} 1"#,
            r#"toolplane_argument_bytes_count{tool="limited"} 2"#,
            r#"toolplane_argument_bytes_count{tool="pay"} 3"#,
            r#"toolplane_argument_bytes_count{tool="t"} 2"#,
            r#"toolplane_result_bytes_count{tool="limited"} 1"#,
            r#"toolplane_result_bytes_count{tool="pay"} 3"#,
            r#"toolplane_unresolved_calls_total{kind="not_found"} 1"#,
        ]
    );
}
