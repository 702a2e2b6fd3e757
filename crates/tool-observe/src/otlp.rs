//! The export of spans to an OpenTelemetry collector: OTLP over HTTP, in protobuf.
//!
//! A span is kept as it is when it ends, and a task writes and sends what has come together. Nothing of this holds up a
//! call: when the collector is slow or away, spans are lost and one line is logged.

mod encode;
mod environment;
mod protobuf;
mod queue;
mod sender;

use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tool_core::{Secret, format_duration};

pub use self::environment::OtlpEnvironment;
use self::{queue::Queue, sender::Sender};
use crate::{Sampler, Tracer};

/// Where spans are sent, and how.
#[derive(Clone)]
#[non_exhaustive]
pub struct OtlpSettings {
    /// The URL of the collector for traces, which ends in `/v1/traces` as a rule.
    pub endpoint: String,
    /// Headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// How long sending a batch may take, all tries included: 10 s.
    pub timeout: Duration,
    /// How long spans wait for others to go with: 5 s.
    pub delay: Duration,
    /// How many spans wait at most: 2,048. More are lost.
    pub max_queue: usize,
    /// How many spans are sent at once: 512.
    pub max_batch: usize,
    /// What is said of this process, such as its `service.name`.
    pub resource: Vec<(String, String)>,
}

/// A running export.
#[derive(Debug)]
pub struct Otlp {
    queue: Arc<Queue>,
    ending: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl OtlpSettings {
    /// The usual settings for a collector.
    #[must_use]
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            gzip: false,
            timeout: Duration::from_secs(10),
            delay: Duration::from_secs(5),
            max_queue: 2048,
            max_batch: 512,
            resource: Vec::new(),
        }
    }

    /// The collector as it may be logged: its URL may hold a password or a token.
    fn shown(&self) -> String {
        let (scheme, rest) = self.endpoint.split_once("://").unwrap_or(("", &self.endpoint));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        format!("{scheme}://{host}")
    }
}

impl Otlp {
    /// Begins to export. No connection is made before there is a span.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(settings: OtlpSettings) -> Self {
        let queue = Arc::new(Queue::new(settings.max_queue, settings.max_batch));
        let (ending, is_over) = watch::channel(false);
        let task = tokio::spawn(Sender::new(settings, queue.clone()).run(is_over));
        Self { queue, ending, task }
    }

    /// A tracer whose spans are exported here.
    #[must_use]
    pub fn tracer(&self, sampler: Sampler) -> Tracer {
        Tracer::new(sampler, self.queue.clone())
    }

    /// Sends what is left and ends, within this time; what is not sent then is lost.
    pub async fn shutdown(mut self, limit: Duration) {
        self.ending.send_replace(true);
        if timeout(limit, &mut self.task).await.is_err() {
            tracing::warn!(
                "not all traces could be exported within {}",
                format_duration(limit)
            );
        }
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for OtlpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpSettings")
            .field("endpoint", &self.shown())
            .field("n_headers", &self.headers.len())
            .field("timeout", &self.timeout)
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
