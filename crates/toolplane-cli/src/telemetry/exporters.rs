//! The library's exporters, configured by the environment, and their providers.

use opentelemetry::{KeyValue, Value, trace::TraceId};
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, Protocol, SpanExporter, WithExportConfig,
    WithHttpConfig, WithTonicConfig, tonic_types::transport::ClientTlsConfig,
};
use opentelemetry_sdk::{
    Resource,
    logs::{self, BatchLogProcessor, SdkLoggerProvider},
    metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream},
    resource::{EnvResourceDetector, ResourceDetector},
    trace::{self, BatchSpanProcessor, IdGenerator, RandomIdGenerator, Sampler, SdkTracerProvider},
};
use percent_encoding::percent_decode_str;
use toolplane::observe::trace_id_of_call;

use super::{
    client::{CollectorClient, LastError},
    driver::{DrivenExporter, Driver},
    encoding_exporter::{EncodingExporter, RequestBody},
    environment::{Corrections, FollowsCallers},
    logs::RedactingExporter,
    signal::{Export, Transport},
};
use crate::config::variable;

/// Maximum number of attribute sets of an instrument: a thousand tools with all outcomes. The SDK has 2,000 by default.
const MAX_ATTRIBUTE_SETS: usize = 32_000;

/// Creates the providers of the exports that the environment asks for.
pub(super) struct Exporters<'a> {
    pub(super) corrections: &'a Corrections,
    pub(super) resource: Resource,
    pub(super) driver: &'a dyn Fn(&Export, LastError) -> Driver,
}

impl Exporters<'_> {
    pub(super) fn tracer_provider(&self, export: &Export) -> Result<SdkTracerProvider, ExporterBuildError> {
        let reason = LastError::default();
        let builder = SpanExporter::builder();
        Ok(match export.transport {
            Transport::Grpc => {
                let exporter = grpc(builder.with_tonic(), export).build()?;
                self.traces_by(self.driven(exporter, export, reason))
            }
            Transport::Http if export.is_compressed => {
                let exporter = http(builder.with_http(), client(export, &reason)).build()?;
                self.traces_by(self.driven(exporter, export, reason))
            }
            Transport::Http => {
                let body = RequestBody::default();
                let client = client(export, &reason).with_body(body.clone());
                let exporter = http(builder.with_http(), client).build()?;
                self.traces_by(self.driven(EncodingExporter::new(exporter, body), export, reason))
            }
        })
    }

    fn traces_by<E: trace::SpanExporter + 'static>(&self, mut exporter: E) -> SdkTracerProvider {
        let mut config = trace::BatchConfigBuilder::default();
        let corrections = self.corrections;
        if let Some(size) = corrections.span_queue {
            config = config.with_max_queue_size(size);
        }
        if let Some(size) = corrections.span_batch {
            config = config.with_max_export_batch_size(size);
        }
        if let Some(delay) = corrections.span_delay {
            config = config.with_scheduled_delay(delay);
        }
        exporter.set_resource(&self.resource);
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(config.build());
        let mut provider = SdkTracerProvider::builder()
            .with_id_generator(CallIdGenerator::default())
            .with_resource(self.resource.clone())
            .with_span_processor(processor.build());
        provider = match corrections.sample_all {
            Some(FollowsCallers(true)) => {
                provider.with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            }
            Some(FollowsCallers(false)) => provider.with_sampler(Sampler::AlwaysOn),
            None => provider,
        };
        provider.build()
    }

    pub(super) fn meter_provider(&self, export: &Export) -> Result<SdkMeterProvider, ExporterBuildError> {
        let reason = LastError::default();
        let builder = MetricExporter::builder();
        let exporter = match export.transport {
            Transport::Http => http(builder.with_http(), client(export, &reason)).build(),
            Transport::Grpc => grpc(builder.with_tonic(), export).build(),
        }?;
        let mut reader = PeriodicReader::builder(self.driven(exporter, export, reason));
        if let Some(interval) = self.corrections.metric_interval {
            reader = reader.with_interval(interval);
        }
        let many = |_: &Instrument| {
            let stream = Stream::builder().with_cardinality_limit(MAX_ATTRIBUTE_SETS);
            stream.build().ok()
        };
        let provider = SdkMeterProvider::builder()
            .with_resource(self.resource.clone())
            .with_view(many)
            .with_reader(reader.build());
        Ok(provider.build())
    }

    pub(super) fn logger_provider(&self, export: &Export) -> Result<SdkLoggerProvider, ExporterBuildError> {
        let reason = LastError::default();
        let builder = LogExporter::builder();
        let exporter = match export.transport {
            Transport::Http => http(builder.with_http(), client(export, &reason)).build(),
            Transport::Grpc => grpc(builder.with_tonic(), export).build(),
        }?;
        let mut config = logs::BatchConfigBuilder::default();
        let corrections = self.corrections;
        if let Some(size) = corrections.log_queue {
            config = config.with_max_queue_size(size);
        }
        if let Some(size) = corrections.log_batch {
            config = config.with_max_export_batch_size(size);
        }
        if let Some(delay) = corrections.log_delay {
            config = config.with_scheduled_delay(delay);
        }
        let exporter = RedactingExporter::new(self.driven(exporter, export, reason));
        let processor = BatchLogProcessor::builder(exporter).with_batch_config(config.build());
        let provider = SdkLoggerProvider::builder()
            .with_resource(self.resource.clone())
            .with_log_processor(processor.build());
        Ok(provider.build())
    }

    fn driven<E>(&self, exporter: E, export: &Export, reason: LastError) -> DrivenExporter<E> {
        DrivenExporter {
            exporter,
            driver: (self.driver)(export, reason),
        }
    }
}

fn client(export: &Export, reason: &LastError) -> CollectorClient {
    CollectorClient::new(export.has_tls, reason.clone())
}

fn http<B: WithHttpConfig + WithExportConfig>(builder: B, client: CollectorClient) -> B {
    builder
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(client)
}

fn grpc<B: WithTonicConfig>(builder: B, export: &Export) -> B {
    if export.has_tls {
        return builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
    }
    builder
}

/// Describes this process by the environment, with `toolplane` as the default service name.
pub(super) fn resource() -> Resource {
    let given = EnvResourceDetector::new().detect();
    // The specification percent-encodes values; the SDK takes them literally.
    let decoded = given.iter().filter_map(|(key, value)| {
        let Value::String(text) = value else { return None };
        let text = percent_decode_str(text.as_str()).decode_utf8().ok()?;
        Some(KeyValue::new(key.clone(), text.into_owned()))
    });
    let decoded: Vec<_> = decoded.collect();
    let has = |key: &str| decoded.iter().any(|known| known.key.as_str() == key);
    let is_named = variable("OTEL_SERVICE_NAME").is_some();
    let mut resource = Resource::builder();
    if !has("service.version") {
        resource = resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    }
    if !is_named && !has("service.name") {
        resource = resource.with_service_name("toolplane");
    }
    // `OTEL_SERVICE_NAME` takes precedence.
    let is_taken = |attribute: &KeyValue| !is_named || attribute.key.as_str() != "service.name";
    resource
        .with_attributes(decoded.into_iter().filter(is_taken))
        .build()
}

/// Generator of trace and span ids. A trace that begins with a call has the call's correlation id, by which logs can be
/// found.
#[derive(Debug, Default)]
struct CallIdGenerator(RandomIdGenerator);

impl IdGenerator for CallIdGenerator {
    fn new_trace_id(&self) -> TraceId {
        trace_id_of_call().map_or_else(|| self.0.new_trace_id(), TraceId::from)
    }

    fn new_span_id(&self) -> opentelemetry::trace::SpanId {
        self.0.new_span_id()
    }
}
