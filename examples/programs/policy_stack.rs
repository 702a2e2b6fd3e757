//! Layers around a closure, without the facade: a deadline, retries, a circuit breaker, a rate limit and a timeout.
//!
//! Run it with `cargo run -p toolplane-examples --example policy-stack`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, future::pending, sync::atomic::AtomicU32, sync::atomic::Ordering, time::Duration};

use tool_core::{Arguments, CallContext, Invoke, Layers, TargetBackend, Tool, invoke_fn, serde_json::json};
use tool_core::{ErrorKind, RateLimitSettings, Scopes, ToolError};
use tool_policy::{BreakerLayer, BreakerSettings, Breakers, RateLimitLayer, RateLimits};
use tool_runtime::{DeadlineLayer, RetryLayer, RetrySettings, TimeoutLayer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let attempts = AtomicU32::new(0);
    let weather = invoke_fn(move |arguments| {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            match arguments.value()["city"].as_str() {
                Some("Atlantis") => pending().await,
                Some("Oslo") if attempt > 2 => Ok(json!(format!("sunny in Oslo, at attempt {attempt}"))),
                _ => Err(ToolError::new(ErrorKind::Unavailable, "the station is down")),
            }
        }
    });
    let tool = Tool::builder("weather")
        .idempotent(true)
        .timeouts(Duration::from_secs(2), Duration::from_millis(50))
        .setting(RetrySettings {
            initial_delay: Duration::from_millis(5),
            ..RetrySettings::default()
        })
        .setting(Breakers::from(BreakerSettings {
            max_failures: 6,
            ..BreakerSettings::default()
        }))
        .run(weather);
    // A call passes the layers from left to right.
    let stack = Layers::outermost(DeadlineLayer)
        .then(RetryLayer::default())
        .then(BreakerLayer::default())
        .then(RateLimitLayer::new())
        .then(TimeoutLayer)
        .around(TargetBackend);
    for city in ["Oslo", "Atlantis", "Bergen", "Oslo"] {
        let arguments = Arguments::from_serialize(&json!({"city": city}))?;
        match stack.invoke(&mut CallContext::local(&tool, arguments)).await {
            Ok(outcome) => println!("{city}: {}", outcome.into_reply()?.text()),
            Err(error) => println!("{city}: {}", error.kind()),
        }
    }
    Ok(())
}
