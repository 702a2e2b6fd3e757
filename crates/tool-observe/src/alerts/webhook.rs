use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{Receiver, Sender, channel, error::TrySendError},
    time::sleep,
};
use tool_core::{BoxFuture, Clock, Event, Jitter, Observe, Secret};
use uuid::Uuid;

use super::signature::{InvalidWebhookSecret, signature};
use crate::record::alert_record;

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::webhook";

/// Maximum number of messages that wait to be sent.
const QUEUE: usize = 64;
/// Longest backoff before the second, third and fourth attempt.
const BACKOFF: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(50),
];

/// Sends alerts and other messages to a URL of the operator, in the background. Created by [`webhook`].
///
/// Callers never wait for it. A message that comes while 64 others wait is dropped, and the drop is logged.
#[derive(Debug)]
pub struct Webhook(Sender<QueuedMessage>);

/// Message that waits to be sent.
#[derive(Debug)]
struct QueuedMessage {
    body: String,
    /// Description of the message in log lines.
    label: String,
}

/// Delivers a [`WebhookMessage`] to its receiver, for example over HTTP.
pub trait WebhookTransport: Send + Sync {
    /// Sends the message once.
    ///
    /// # Errors
    /// Returns an error if the receiver does not accept the message.
    fn post<'a>(&'a self, message: &'a WebhookMessage) -> BoxFuture<'a, Result<(), WebhookError>>;
}

/// Error of one attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct WebhookError {
    /// Reason, as a lower-case fragment without the URL, which may be a secret.
    pub message: String,
    /// `true` if another attempt may succeed.
    pub is_transient: bool,
}

impl WebhookError {
    /// Creates an error after which no other attempt succeeds.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_transient: false,
        }
    }

    /// Sets if another attempt may succeed.
    #[must_use]
    pub fn with_transient(mut self, is_transient: bool) -> Self {
        self.is_transient = is_transient;
        self
    }
}

/// Message for a webhook. All attempts to send it carry the same id and timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookMessage {
    id: String,
    timestamp: u64,
    body: String,
}

impl WebhookMessage {
    fn new(body: String, clock: &dyn Clock) -> Self {
        let now = clock.wall().duration_since(std::time::UNIX_EPOCH);
        Self {
            id: format!("msg_{}", Uuid::new_v4().simple()),
            timestamp: now.unwrap_or_default().as_secs(),
            body,
        }
    }

    /// Returns the body, which is JSON.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Returns the headers that Standard Webhooks requires. The signature is included only with a secret.
    ///
    /// # Errors
    /// Returns an error if the secret begins with `whsec_` and is not base64.
    pub fn headers(
        &self,
        secret: Option<&Secret>,
    ) -> Result<Vec<(&'static str, String)>, InvalidWebhookSecret> {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("webhook-id", self.id.clone()),
            ("webhook-timestamp", self.timestamp.to_string()),
        ];
        if let Some(secret) = secret {
            let signature = signature(secret.expose(), &self.id, self.timestamp, &self.body)?;
            headers.push(("webhook-signature", signature));
        }
        Ok(headers)
    }
}

/// Creates a webhook and the future that sends its messages.
///
/// Run the future as long as messages are sent. It ends when the webhook is dropped and all waiting messages are delivered
/// or given up. A message that fails with a transient error is sent again, up to three times, with increasing backoff.
///
/// # Cancellation
/// Dropping the future drops the waiting messages, and the webhook then drops all further ones.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use tool_core::Clock;
/// use tool_observe::{Webhook, WebhookTransport, webhook};
///
/// fn start(transport: Arc<dyn WebhookTransport>, clock: Arc<dyn Clock>) -> Webhook {
///     let (webhook, sending) = webhook(transport, clock);
///     tokio::spawn(sending);
///     webhook
/// }
/// ```
pub fn webhook(
    transport: Arc<dyn WebhookTransport>,
    clock: Arc<dyn Clock>,
) -> (Webhook, impl Future<Output = ()> + Send) {
    let (sender, receiver) = channel(QUEUE);
    (Webhook(sender), send_all(receiver, transport, clock))
}

async fn send_all(
    mut messages: Receiver<QueuedMessage>,
    transport: Arc<dyn WebhookTransport>,
    clock: Arc<dyn Clock>,
) {
    let jitter = Jitter::default();
    while let Some(QueuedMessage { body, label }) = messages.recv().await {
        let message = WebhookMessage::new(body, &*clock);
        if let Err(error) = send(&message, &*transport, &jitter).await {
            tracing::error!(target: TARGET, "{label} did not reach its webhook: {error}");
        }
    }
}

async fn send(
    message: &WebhookMessage,
    transport: &dyn WebhookTransport,
    jitter: &Jitter,
) -> Result<(), WebhookError> {
    for pause in BACKOFF {
        match transport.post(message).await {
            Err(error) if error.is_transient => {
                tracing::debug!(target: TARGET, %error, "retrying a webhook");
                sleep(pause / 2 + jitter.up_to(pause / 2)).await;
            }
            done => return done,
        }
    }
    transport.post(message).await
}

impl Webhook {
    /// Queues a message with this body.
    ///
    /// The body is JSON in the shape that Standard Webhooks recommends: `type`, `timestamp` and `data`. `label` describes
    /// the message in log lines, such as "the alert `x`".
    pub fn send(&self, body: String, label: String) {
        match self.0.try_send(QueuedMessage { body, label }) {
            Ok(()) => {}
            Err(TrySendError::Full(QueuedMessage { label, .. })) => {
                tracing::error!(target: TARGET, "{label} is not sent to its webhook: {QUEUE} others wait");
            }
            // The receiver is dropped only when the process is about to end.
            Err(TrySendError::Closed(_)) => {}
        }
    }
}

impl Observe for Webhook {
    fn observe(&self, event: &Event<'_>) {
        let Event::Alert { alert, .. } = event else { return };
        let label = format!("the alert `{}` of {}", alert.kind.as_str(), alert.subject);
        self.send(alert_record(alert).to_string(), label);
    }
}
