use std::{error::Error, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use parking_lot::Mutex;
use reqwest::Client;
use tokio::{sync::OnceCell, task::spawn_blocking};

use super::encoding_exporter::RequestBody;
use crate::outgoing;

/// Maximum size of a collector's answer, in bytes. It holds at most the number of refused items.
const MAX_ANSWER: usize = 64 * 1024;

/// HTTP client of the exporters. It follows no redirect, uses no proxy of the environment and leaves retries to the
/// exporter.
#[derive(Debug)]
pub(super) struct CollectorClient {
    has_tls: bool,
    client: OnceCell<Client>,
    reason: LastError,
    /// Body that replaces the exporter's own, if set.
    body: RequestBody,
}

/// Cause of the last failure, which exporters do not return.
#[derive(Debug, Clone, Default)]
pub(super) struct LastError(Arc<Mutex<Option<String>>>);

impl LastError {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().take()
    }

    fn set(&self, reason: String) {
        *self.0.lock() = Some(reason);
    }
}

impl CollectorClient {
    pub(super) fn new(has_tls: bool, reason: LastError) -> Self {
        Self {
            has_tls,
            client: OnceCell::new(),
            reason,
            body: RequestBody::default(),
        }
    }

    /// Replaces the bodies of the exporter by this one.
    pub(super) fn with_body(self, body: RequestBody) -> Self {
        Self { body, ..self }
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let has_tls = self.has_tls;
        // Reading the certificates of the system blocks.
        let client = self
            .client
            .get_or_try_init(async || {
                spawn_blocking(move || outgoing::client(has_tls))
                    .await?
                    .map_err(HttpError::from)
            })
            .await?;
        let sent = client.execute(request.try_into()?).await;
        let mut answer = sent.map_err(reqwest::Error::without_url)?;
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            *headers = std::mem::take(answer.headers_mut());
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_ANSWER {
                return Err(format!("its answer has more than {MAX_ANSWER} bytes").into());
            }
        }
        Ok(response.body(body.into())?)
    }
}

#[async_trait::async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        if let Some(body) = self.body.get() {
            *request.body_mut() = body;
        }
        let sent = self.send(request).await;
        match &sent {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => self.reason.set(format!("it answers with {}", answer.status())),
            Err(error) => self.reason.set(chain(&**error)),
        }
        sent
    }
}

/// Formats an error with all its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
