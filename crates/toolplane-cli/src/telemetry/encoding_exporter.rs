use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use parking_lot::Mutex;

use super::span_encoder::encode;

/// Body of the current request, which replaces the one of the library's exporter.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestBody(Arc<Mutex<Option<Bytes>>>);

impl RequestBody {
    pub(super) fn get(&self) -> Option<Bytes> {
        self.0.lock().clone()
    }

    fn set(&self, body: Option<Bytes>) {
        *self.0.lock() = body;
    }
}

/// The library's exporter over HTTP, with our encoder.
///
/// The library's exporter receives no spans and makes an empty request with its URL, headers and retries; the client
/// inserts the encoded spans.
pub(super) struct EncodingExporter<E> {
    exporter: E,
    resource: Resource,
    body: RequestBody,
}

impl<E> EncodingExporter<E> {
    /// Creates an exporter. The client of `exporter` must send `body`.
    pub(super) fn new(exporter: E, body: RequestBody) -> Self {
        Self {
            exporter,
            resource: Resource::builder_empty().build(),
            body,
        }
    }
}

impl<E: SpanExporter> SpanExporter for EncodingExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.body.set(Some(encode(&batch, &self.resource).into()));
        drop(batch);
        let result = self.exporter.export(Vec::new()).await;
        self.body.set(None);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.clone();
        self.exporter.set_resource(resource);
    }
}

impl<E> fmt::Debug for EncodingExporter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodingExporter").finish_non_exhaustive()
    }
}
