//! `policy_stack` with tower and tower-resilience.

use std::{future::ready, sync::atomic::AtomicU32, sync::atomic::Ordering::Relaxed, time::Duration};

use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_resilience_circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer};
use tower_resilience_retry::RetryLayer;

static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let weather = service_fn(|_: ()| match ATTEMPTS.fetch_add(1, Relaxed) {
        2 => ready(Ok("sunny")),
        _ => ready(Err(BoxError::from("the station is down"))),
    });
    let retry = RetryLayer::builder()
        .max_attempts(3)
        .exponential_backoff(Duration::from_millis(5))
        .retry_on(|error: &CircuitBreakerError<BoxError>| !error.is_circuit_open())
        .build();
    let breaker = CircuitBreakerLayer::builder().consecutive_failures(3).build()?;
    let mut stack = ServiceBuilder::new()
        .timeout(Duration::from_secs(2))
        .layer(retry)
        .layer(breaker)
        .buffer(16)
        .rate_limit(100, Duration::from_secs(1))
        .timeout(Duration::from_millis(50))
        .service(weather);
    for _ in 0..3 {
        match stack.ready().await?.call(()).await {
            Ok(answer) => println!("{answer} ({ATTEMPTS:?} attempts)"),
            Err(error) => println!("{error} ({ATTEMPTS:?} attempts)"),
        }
    }
    Ok(())
}
