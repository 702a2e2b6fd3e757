use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{Receiver, Sender, channel, error::TrySendError},
    time::sleep,
};
use tool_core::{BoxFuture, Clock, Event, Jitter, Observe, Secret};
use uuid::Uuid;

use crate::{
    record::alert_record,
    signature::{InvalidWebhookSecret, signature},
};

/// How many messages may wait to be sent.
const QUEUE: usize = 64;
/// How long to wait before each further attempt, at most.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(50),
];

/// Sends alerts and other notices to a URL of the operator's, in the background: [`webhook`] makes one. Nothing waits for
/// it; what comes while 64 others wait is dropped, and that is logged.
#[derive(Debug)]
pub struct Webhook(Sender<Notice>);

/// Something that is to be told.
#[derive(Debug)]
struct Notice {
    body: String,
    /// What it is called in the log.
    what: String,
}

/// How a [`WebhookMessage`] gets to its receiver.
pub trait WebhookTransport: Send + Sync {
    /// Sends it, once.
    ///
    /// # Errors
    /// When the receiver did not take it.
    fn post<'a>(&'a self, message: &'a WebhookMessage) -> BoxFuture<'a, Result<(), WebhookError>>;
}

/// Why a receiver did not take a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WebhookError {
    /// What went wrong: a lower-case fragment without the URL, which may be a secret.
    pub message: String,
    /// Whether another attempt may help.
    pub is_transient: bool,
}

/// A message for a webhook. Attempts to send it are the same message.
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

    /// The body: JSON.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The headers that Standard Webhooks ask for; the signature only with a secret.
    ///
    /// # Errors
    /// When the secret cannot be what it says it is.
    pub fn headers(&self, secret: Option<&Secret>) -> Result<Vec<(&'static str, String)>, InvalidWebhookSecret> {
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

/// A webhook, and the work of sending: run it as long as anything is to be sent. It ends when the webhook is dropped and
/// everything that waited is sent or given up.
///
/// What fails in a way that may pass is sent again, three times at most, after longer and longer pauses.
pub fn webhook(post: Arc<dyn WebhookTransport>, clock: Arc<dyn Clock>) -> (Webhook, impl Future<Output = ()> + Send) {
    let (sender, receiver) = channel(QUEUE);
    (Webhook(sender), send_all(receiver, post, clock))
}

async fn send_all(mut notices: Receiver<Notice>, post: Arc<dyn WebhookTransport>, clock: Arc<dyn Clock>) {
    let jitter = Jitter::default();
    while let Some(Notice { body, what }) = notices.recv().await {
        let message = WebhookMessage::new(body, &*clock);
        if let Err(error) = send(&message, &*post, &jitter).await {
            tracing::error!("{what} did not reach its webhook: {error}");
        }
    }
}

async fn send(message: &WebhookMessage, post: &dyn WebhookTransport, jitter: &Jitter) -> Result<(), WebhookError> {
    for pause in PAUSES {
        match post.post(message).await {
            Err(error) if error.is_transient => {
                tracing::debug!(%error, "a webhook is tried again");
                sleep(pause / 2 + jitter.up_to(pause / 2)).await;
            }
            done => return done,
        }
    }
    post.post(message).await
}

impl Webhook {
    /// Sends this body, which is JSON in the shape that Standard Webhooks recommend: `type`, `timestamp` and `data`. `what`
    /// is what it is called in the log, such as "the alert `x`".
    pub fn send(&self, body: String, what: String) {
        match self.0.try_send(Notice { body, what }) {
            Ok(()) => {}
            Err(TrySendError::Full(Notice { what, .. })) => {
                tracing::error!("{what} is not sent to its webhook: {QUEUE} others wait");
            }
            // Nobody sends any more: the process is about to end.
            Err(TrySendError::Closed(_)) => {}
        }
    }
}

impl Observe for Webhook {
    fn observe(&self, event: &Event<'_>) {
        let Event::Alert { alert } = event else { return };
        let what = format!("the alert `{}` of {}", alert.kind.as_str(), alert.subject);
        self.send(alert_record(alert).to_string(), what);
    }
}
