//! Export of logs as OpenTelemetry records, without secrets.

use std::{borrow::Cow, sync::OnceLock, time::Duration};

use opentelemetry::{
    InstrumentationScope,
    logs::{AnyValue, LogRecord, Logger, LoggerProvider, Severity},
};
use opentelemetry_appender_tracing::layer::{OpenTelemetryTracingBridge, TracingSpanAttributes};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogBatch, LogExporter, SdkLogRecord, SdkLogger, SdkLoggerProvider},
};
use tracing::{Event, Subscriber, span};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

use super::driver::DrivenExporter;
use crate::process::logging;

type Bridge = OpenTelemetryTracingBridge<SdkLoggerProvider, SdkLogger>;

/// Bridge to the exporter. Set later than logging starts, because the environment is read later.
static BRIDGE: OnceLock<Bridge> = OnceLock::new();

/// Targets of the exporting libraries: exporting their events would cause further events.
const EXPORTERS: [&str; 8] = [
    "opentelemetry",
    "hyper",
    "h2",
    "tonic",
    "tower",
    "reqwest",
    "rustls",
    "mio",
];

/// Layer that passes events to the log exporter, if there is one.
#[derive(Debug)]
pub(crate) struct ExportLayer;

/// Starts the export of logs through this provider.
pub(super) fn start(provider: &SdkLoggerProvider) {
    let bridge = Bridge::builder(provider).with_tracing_span_attributes(TracingSpanAttributes::all());
    // A process has one environment and thus one exporter.
    let _ = BRIDGE.set(bridge.build());
}

impl<S> Layer<S> for ExportLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        if let Some(bridge) = BRIDGE.get() {
            bridge.on_new_span(attributes, id, context);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(bridge) = BRIDGE.get() {
            bridge.on_record(id, values, context);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if let Some(bridge) = BRIDGE.get()
            && is_exported(event.metadata().target())
        {
            bridge.on_event(event, context);
        }
    }
}

/// Returns `true` if events of this target are exported.
fn is_exported(target: &str) -> bool {
    let krate = target.split("::").next().unwrap_or_default();
    let is_of = |exporter: &&str| {
        let rest = krate.strip_prefix(*exporter);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    !EXPORTERS.iter().any(is_of)
}

/// Exporter that hides secrets in log records first, as the lines on stderr do.
#[derive(Debug)]
pub(super) struct RedactingExporter<E> {
    exporter: DrivenExporter<E>,
    /// Factory of records: the SDK has no other way to create one.
    records: SdkLogger,
}

impl<E> RedactingExporter<E> {
    pub(super) fn new(exporter: DrivenExporter<E>) -> Self {
        let records = SdkLoggerProvider::builder().build().logger("");
        Self { exporter, records }
    }

    /// Returns a copy of the record without secrets.
    fn cleaned(&self, record: &SdkLogRecord) -> SdkLogRecord {
        let clean = |value: &AnyValue| cleaned(value, record);
        let mut copy = self.records.create_log_record();
        if let Some(name) = record.event_name() {
            copy.set_event_name(name);
        }
        if let Some(target) = record.target() {
            copy.set_target(target.clone());
        }
        if let Some(time) = record.timestamp() {
            copy.set_timestamp(time);
        }
        if let Some(time) = record.observed_timestamp() {
            copy.set_observed_timestamp(time);
        }
        if let Some(context) = record.trace_context() {
            copy.set_trace_context(context.trace_id, context.span_id, context.trace_flags);
        }
        if let Some(text) = record.severity_text() {
            copy.set_severity_text(text);
        }
        if let Some(number) = record.severity_number() {
            copy.set_severity_number(number);
        }
        if let Some(body) = record.body() {
            copy.set_body(clean(body));
        }
        for (key, value) in record.attributes_iter() {
            copy.add_attribute(key.clone(), clean(value));
        }
        copy
    }
}

fn cleaned(value: &AnyValue, record: &SdkLogRecord) -> AnyValue {
    let AnyValue::String(text) = value else {
        return value.clone();
    };
    let is_verbose = record
        .severity_number()
        .is_none_or(|severity| severity < Severity::Info);
    let target = record.target().map_or("", |target| target);
    match logging::line_without_secrets(text.as_str(), target, is_verbose) {
        Cow::Borrowed(_) => value.clone(),
        Cow::Owned(text) => AnyValue::from(text),
    }
}

impl<E: LogExporter> LogExporter for RedactingExporter<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let records = batch.iter().map(|(record, scope)| (self.cleaned(record), scope));
        let records: Vec<(SdkLogRecord, &InstrumentationScope)> = records.collect();
        let batch: Vec<_> = records.iter().map(|(record, scope)| (record, *scope)).collect();
        let DrivenExporter { exporter, driver } = &self.exporter;
        driver.run(exporter.export(LogBatch::new(&batch))).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.exporter.set_resource(resource);
    }
}
