use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SpanData, SpanExporter},
};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tracing::{info, warn};

use super::{client::LastError, signal::Export};

/// Runs the exports of one signal on the program's runtime, each with a time limit.
///
/// The SDK drives exports on its own threads by a plain `block_on`, where hyper and tonic find no reactor
/// (open-telemetry/opentelemetry-rust#3125). Here the thread blocks in the same way, and each poll runs in the context
/// of the runtime with its reactor and timers.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    runtime: Handle,
    signal: &'static str,
    collector: Arc<str>,
    timeout: Duration,
    ending: watch::Receiver<Option<Instant>>,
    reason: LastError,
    is_failing: Arc<AtomicBool>,
}

/// An exporter whose exports a [`Driver`] runs.
#[derive(Debug)]
pub(super) struct DrivenExporter<E> {
    pub(super) exporter: E,
    pub(super) driver: Driver,
}

impl Driver {
    /// Creates the driver of an export. `ending` holds the end of the time for exports once the program ends.
    pub(super) fn new(
        runtime: Handle,
        export: &Export,
        ending: watch::Receiver<Option<Instant>>,
        reason: LastError,
    ) -> Self {
        Self {
            runtime,
            signal: export.signal.as_str(),
            collector: export.collector.as_str().into(),
            timeout: export.timeout,
            ending,
            reason,
            is_failing: Arc::default(),
        }
    }

    /// Runs one export.
    pub(super) async fn run(&self, export: impl Future<Output = OTelSdkResult>) -> OTelSdkResult {
        let bounded = async {
            tokio::select! {
                // First, because the timers of an ended runtime must not be polled.
                biased;
                () = self.over() => Err(OTelSdkError::InternalFailure("the program ends".to_owned())),
                result = timeout(self.timeout, export) => {
                    result.unwrap_or(Err(OTelSdkError::Timeout(self.timeout)))
                }
            }
        };
        let mut bounded = pin!(bounded);
        let result = poll_fn(|cx| {
            let _context = self.runtime.enter();
            bounded.as_mut().poll(cx)
        })
        .await;
        self.report(&result);
        result
    }

    /// Waits until the time for exports is over.
    async fn over(&self) {
        let mut ending = self.ending.clone();
        // A dropped sender is an end as well.
        let end = ending.wait_for(Option::is_some).await;
        let end = end.ok().and_then(|end| *end);
        if let Some(end) = end
            && end > Instant::now()
        {
            sleep_until(end).await;
        }
    }

    /// Logs the first failure and the recovery after it, and nothing in between, so that the logs of calls remain
    /// readable.
    fn report(&self, result: &OTelSdkResult) {
        let reason = self.reason.take();
        let Self {
            signal, collector, ..
        } = self;
        match result {
            Ok(()) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    info!(%collector, "{signal} are exported again");
                }
            }
            Err(error) => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    let reason = match (reason, error) {
                        (Some(reason), _) => reason,
                        (None, OTelSdkError::InternalFailure(reason)) => reason.clone(),
                        (None, OTelSdkError::Timeout(limit)) => format!("no answer within {limit:?}"),
                        (None, error) => error.to_string(),
                    };
                    warn!(%collector, "{signal} cannot be exported: {reason}");
                }
            }
        }
    }
}

impl<E: SpanExporter> SpanExporter for DrivenExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.driver.run(self.exporter.export(batch)).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for DrivenExporter<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.driver.run(self.exporter.export(metrics)).await
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
