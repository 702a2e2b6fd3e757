//! Export of traces, metrics and logs to the OpenTelemetry collector that the environment names.

mod client;
mod driver;
mod encoding_exporter;
mod environment;
mod exporters;
mod logs;
mod protobuf;
mod signal;
mod span_encoder;
#[cfg(test)]
mod span_encoder_tests;

use std::{sync::Arc, time::Duration};

use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::{logs::SdkLoggerProvider, metrics::SdkMeterProvider, trace::SdkTracerProvider};
use tokio::{
    runtime::Handle,
    sync::watch,
    task::spawn_blocking,
    time::{Instant, timeout_at},
};
use toolplane::{
    Builder,
    core::format_duration,
    observe::{Metrics, OtelMetrics, Tracer},
};

pub(crate) use self::logs::ExportLayer;
use self::{
    client::LastError,
    driver::Driver,
    environment::ExportSettings,
    exporters::{Exporters, resource},
    signal::{Export, Signal},
};
use crate::{config::variable, output::Console};

/// The running exports.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    logs: Option<SdkLoggerProvider>,
    /// End of the time for exports, once the program ends.
    ending: watch::Sender<Option<Instant>>,
}

impl Telemetry {
    /// Starts the exports that the OpenTelemetry variables ask for. The first connection is made by the first export.
    /// Needs a runtime.
    pub(crate) fn start(console: Console) -> Self {
        let settings = ExportSettings::read(variable);
        settings.problems.iter().for_each(|problem| console.warn(problem));
        let (ending, is_over) = watch::channel(None);
        let mut telemetry = Self {
            traces: None,
            metrics: None,
            logs: None,
            ending,
        };
        if settings.exports.is_empty() {
            return telemetry;
        }
        let driver = |export: &Export, reason: LastError| {
            Driver::new(Handle::current(), export, is_over.clone(), reason)
        };
        let exporters = Exporters {
            corrections: &settings.corrections,
            resource: resource(),
            driver: &driver,
        };
        for export in &settings.exports {
            if let Err(error) = telemetry.add(export, &exporters) {
                console.warn(&problem(export, &error));
            }
        }
        telemetry
    }

    fn add(&mut self, export: &Export, exporters: &Exporters<'_>) -> Result<(), ExporterBuildError> {
        match export.signal {
            Signal::Traces => self.traces = Some(exporters.tracer_provider(export)?),
            Signal::Metrics => self.metrics = Some(exporters.meter_provider(export)?),
            Signal::Logs => {
                let provider = exporters.logger_provider(export)?;
                logs::start(&provider);
                self.logs = Some(provider);
            }
        }
        Ok(())
    }

    /// Returns `true` if metrics are exported, so that calls must be counted.
    pub(crate) fn exports_metrics(&self) -> bool {
        self.metrics.is_some()
    }

    /// Adds the exported tracer and meter to the builder, and the given metrics if there are any.
    pub(crate) fn instrument(&self, builder: Builder, metrics: Option<Arc<Metrics>>) -> Builder {
        let builder = builder.tracer(self.traces.as_ref().map(Tracer::from_provider));
        match (&self.metrics, metrics) {
            (Some(provider), metrics) => {
                let metrics = metrics.unwrap_or_default();
                builder.metrics(OtelMetrics::from_provider(metrics, provider))
            }
            (None, Some(metrics)) => builder.metrics(None).observer(metrics),
            (None, None) => builder.metrics(None),
        }
    }

    /// Exports the remaining telemetry within this time. Later calls are not exported.
    pub(crate) async fn shutdown(mut self, limit: Duration) {
        let end = Instant::now() + limit;
        self.ending.send_replace(Some(end));
        // The SDK waits for its threads, which need the runtime.
        let traces = self.traces.take();
        let traces = traces.map(|provider| spawn_blocking(move || provider.shutdown_with_timeout(limit)));
        let metrics = self.metrics.take();
        let metrics = metrics.map(|provider| spawn_blocking(move || provider.shutdown_with_timeout(limit)));
        let logs = self.logs.take();
        let logs = logs.map(|provider| spawn_blocking(move || provider.shutdown_with_timeout(limit)));
        let ended = async {
            for ended in [traces, metrics, logs].into_iter().flatten() {
                let _ = ended.await;
            }
        };
        if timeout_at(end, ended).await.is_err() {
            tracing::warn!(
                "not all telemetry could be exported within {}",
                format_duration(limit)
            );
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        // Exports end before their runtime does.
        self.ending.send_replace(Some(Instant::now()));
    }
}

/// Describes an export that could not be created. The library's reason may contain the URL and thus a password.
fn problem(export: &Export, error: &ExporterBuildError) -> String {
    let Export {
        signal, collector, ..
    } = export;
    let signal = signal.as_str();
    match error {
        ExporterBuildError::InternalFailure(reason) => {
            format!("no {signal} are exported to `{collector}`: {reason}")
        }
        _ => format!("no {signal} are exported: the endpoint at `{collector}` or its TLS is not usable"),
    }
}
