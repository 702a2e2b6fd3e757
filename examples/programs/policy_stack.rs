//! Layers around a closure, without the facade: a deadline, retries, a circuit breaker, a rate limit and a timeout.
//!
//! Run it with `cargo run -p toolplane-examples --example policy-stack`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{future::ready, sync::atomic::AtomicU32, sync::atomic::Ordering::Relaxed, time::Duration};

use tool_core::{ErrorKind, Layers, TargetBackend, Tool, ToolError, invoke_fn, serde_json::json};
use tool_policy::{BreakerLayer, BreakerSettings, Breakers, RateLimitLayer, RateLimits};
use tool_runtime::{DeadlineLayer, RetryLayer, RetrySettings, TimeoutLayer};

static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // ANCHOR: stack
    let tool = Tool::builder("weather")
        .idempotent(true)
        .timeouts(Duration::from_secs(2), Duration::from_millis(50))
        .setting(RetrySettings::default().with_initial_delay(Duration::from_millis(5)))
        .setting(Breakers::from(BreakerSettings::default().with_max_failures(3)))
        .setting(RateLimits::per_second(100))
        .run(invoke_fn(|_| match ATTEMPTS.fetch_add(1, Relaxed) {
            2 => ready(Ok(json!("sunny"))),
            _ => ready(Err(ToolError::new(ErrorKind::Unavailable, "the station is down"))),
        }));
    let stack = Layers::outermost(DeadlineLayer)
        .then(RetryLayer::default())
        .then(BreakerLayer::default())
        .then(RateLimitLayer::new())
        .then(TimeoutLayer)
        .around(TargetBackend);
    // ANCHOR_END: stack
    for _ in 0..3 {
        match tool.call_through(&stack, &json!({})).await {
            Ok(reply) => println!("{} ({ATTEMPTS:?} attempts)", reply.text()),
            Err(error) => println!("{} ({ATTEMPTS:?} attempts)", error.kind()),
        }
    }
}
