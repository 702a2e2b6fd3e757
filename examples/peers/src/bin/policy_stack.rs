//! `policy_stack` with tower and tower-resilience.

use std::{future::pending, time::Duration};

use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn, timeout::error::Elapsed};
use tower_resilience_circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer};
use tower_resilience_retry::RetryLayer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut attempts = 0;
    let weather = move |city: String| {
        attempts += 1;
        let attempt = attempts;
        async move {
            match &*city {
                "Oslo" if attempt < 3 => Err("the station is down".into()),
                "Oslo" => Ok(format!("sunny in Oslo, at attempt {attempt}")),
                "Bergen" => Err("the station is down".into()),
                _ => pending::<Result<String, BoxError>>().await,
            }
        }
    };
    let breaker = CircuitBreakerLayer::builder().consecutive_failures(6).build()?;
    let retry = RetryLayer::builder()
        .max_attempts(3)
        .exponential_backoff(Duration::from_millis(5))
        .retry_on(|error: &CircuitBreakerError<BoxError>| !error.is_circuit_open());
    let mut service = ServiceBuilder::new()
        .timeout(Duration::from_secs(2))
        .layer(retry.build())
        .layer(breaker)
        .buffer(16)
        .rate_limit(100, Duration::from_secs(1))
        .timeout(Duration::from_millis(50))
        .service(service_fn(weather));
    for city in ["Oslo", "Atlantis", "Bergen", "Oslo"] {
        match service.ready().await?.call(city.to_owned()).await {
            Ok(answer) => println!("{city}: {answer}"),
            Err(error) => println!("{city}: {}", describe(&error)),
        }
    }
    Ok(())
}

fn describe(error: &BoxError) -> String {
    match error.downcast_ref::<CircuitBreakerError<BoxError>>() {
        Some(CircuitBreakerError::OpenCircuit) => "circuit_open".to_owned(),
        Some(CircuitBreakerError::Inner(inner)) if inner.is::<Elapsed>() => "timeout".to_owned(),
        _ => "unavailable".to_owned(),
    }
}
