use std::{
    io::Write,
    sync::Arc,
    time::{Duration, SystemTime},
};

use flate2::{Compression, write::GzEncoder};
use reqwest::{
    Certificate, Client, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect, retry,
};
use tokio::{
    sync::watch,
    task::{spawn_blocking, yield_now},
    time::{Instant, sleep, timeout_at},
};
use tool_core::{RetryAfter, format_duration, retry_after};
use tracing::{info, warn};

use super::{
    OtlpSettings,
    encode::{Resource, SpanList},
    queue::Queue,
};
use crate::EndedSpan;

/// Sends batches to the collector, one at a time.
pub(super) struct Sender {
    settings: OtlpSettings,
    headers: HeaderMap,
    resource: Resource,
    queue: Arc<Queue>,
    client: Option<Client>,
    is_failing: bool,
}

/// The pause before a batch is sent again for the first time; it doubles.
const PAUSE: Duration = Duration::from_millis(500);

/// How many spans are written at a time: that takes some tens of microseconds.
const AT_A_TIME: usize = 64;

/// Why a batch was not taken.
enum Refused {
    /// It may be taken later; at the earliest after this time, if the collector says so.
    Later(String, Option<Duration>),
    /// It never is.
    Never(String),
}

impl Sender {
    pub(super) fn new(settings: OtlpSettings, queue: Arc<Queue>) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            if let (Ok(name), Ok(mut value)) = (
                name.parse::<reqwest::header::HeaderName>(),
                HeaderValue::from_str(value.expose()),
            ) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if settings.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Self {
            resource: Resource::new(&settings.resource),
            headers,
            settings,
            queue,
            client: None,
            is_failing: false,
        }
    }

    /// Sends what there is whenever it is time, until it is to end; then it sends the rest.
    pub(super) async fn run(mut self, mut ending: watch::Receiver<bool>) {
        loop {
            // Looked at before the rest is taken: it may end while a batch is under way.
            let is_over = *ending.borrow();
            let is_time = is_over
                || tokio::select! {
                    () = self.queue.filled() => false,
                    () = sleep(self.settings.delay) => true,
                    _ = ending.wait_for(|is_over| *is_over) => true,
                };
            while let Some(batch) = self.queue.take(is_time) {
                self.deliver(batch, &mut ending).await;
            }
            if is_over {
                return;
            }
        }
    }

    /// Sends a batch, again if the collector may take it later, within the time limit.
    async fn deliver(&mut self, batch: Vec<EndedSpan>, ending: &mut watch::Receiver<bool>) {
        let end = Instant::now() + self.settings.timeout;
        let n_spans = batch.len();
        let body = self.body(batch).await;
        let mut pause = PAUSE;
        let reason = loop {
            let sent = timeout_at(end, self.send(body.clone())).await;
            let sent = sent.unwrap_or_else(|_| {
                let reason = format!("no answer within {}", format_duration(self.settings.timeout));
                Err(Refused::Never(reason))
            });
            match sent {
                Ok(()) => return self.recovered(),
                Err(Refused::Never(reason)) => break reason,
                Err(Refused::Later(reason, told)) => {
                    // A collector that says "at once" is not asked more often for it.
                    let wait = told.unwrap_or_default().max(pause);
                    pause *= 2;
                    // There is no time for another try either when the process ends.
                    if wait >= end.saturating_duration_since(Instant::now()) || *ending.borrow() {
                        break reason;
                    }
                    tokio::select! {
                        () = sleep(wait) => {}
                        _ = ending.wait_for(|is_over| *is_over) => {}
                    }
                }
            }
        };
        self.queue.lose(n_spans);
        if !self.is_failing {
            // Once, however long it lasts: calls go on, and their logs matter more.
            warn!(collector = %self.settings.shown(), "traces cannot be exported: {reason}");
            self.is_failing = true;
        }
    }

    fn recovered(&mut self) {
        let n_lost = self.queue.lost();
        if self.is_failing {
            info!(collector = %self.settings.shown(), n_lost, "traces are exported again");
            self.is_failing = false;
        } else if n_lost > 0 {
            warn!(
                n_lost,
                "more spans have ended than could be exported; `OTEL_BSP_MAX_QUEUE_SIZE` makes room"
            );
        }
    }

    /// The request as it goes over the wire. Spans are written here, many at once, and not where a call waits for it.
    async fn body(&self, batch: Vec<EndedSpan>) -> bytes::Bytes {
        let mut list = SpanList::default();
        for (at, span) in batch.into_iter().enumerate() {
            // Calls on this thread go on in between.
            if at % AT_A_TIME == AT_A_TIME - 1 {
                yield_now().await;
            }
            list.push(&span);
        }
        let request = self.resource.request(&list);
        if !self.settings.gzip {
            return request.into();
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let zipped = encoder.write_all(&request).and_then(|()| encoder.finish());
        zipped.unwrap_or_default().into()
    }

    async fn send(&mut self, body: bytes::Bytes) -> Result<(), Refused> {
        let client = self.client().await?;
        let request = client
            .post(self.settings.endpoint.clone())
            .headers(self.headers.clone())
            .body(body);
        let answer = request
            .send()
            .await
            .map_err(|error| Refused::Later(chain(&error.without_url()), None))?;
        let status = answer.status();
        match status {
            _ if status.is_success() => Ok(()),
            // Those that OTLP says to try again.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let told = answer.headers().get(RETRY_AFTER);
                let told = told.and_then(|told| retry_after(told.to_str().ok()?, SystemTime::now()));
                let what = format!("it answers with {status}");
                Err(match told {
                    Some(RetryAfter::In(wait)) => Refused::Later(what, Some(wait)),
                    Some(RetryAfter::Never) => Refused::Never(what),
                    None => Refused::Later(what, None),
                })
            }
            _ => Err(Refused::Never(format!("it answers with {status}"))),
        }
    }

    async fn client(&mut self) -> Result<Client, Refused> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let is_plain = self.settings.endpoint.starts_with("http:");
        // Reading the certificates of the system blocks.
        let made = spawn_blocking(move || make(is_plain)).await;
        let client = made
            .map_err(|error| Refused::Never(error.to_string()))?
            .map_err(|error| Refused::Never(chain(&error)))?;
        Ok(self.client.insert(client).clone())
    }
}

/// A client that goes nowhere else, also through no proxy that the environment names, and tries nothing by itself.
fn make(is_plain: bool) -> Result<Client, reqwest::Error> {
    let builder = || {
        Client::builder()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
    };
    let own_roots = || {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        roots.filter_map(|root| Certificate::from_der(root.as_ref()).ok())
    };
    if is_plain {
        // No certificates are needed, so that none are read.
        return builder().tls_certs_only(own_roots()).build();
    }
    // A system without certificates has none to give.
    builder()
        .build()
        .or_else(|_| builder().tls_certs_only(own_roots()).build())
}

/// An error with all its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
