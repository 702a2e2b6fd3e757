//! Alerts: when they fire, and how they reach a webhook.

mod monitor;
mod signature;
mod webhook;

pub(crate) use self::monitor::KINDS;
pub use self::{
    monitor::{AlertMonitor, AlertSettings},
    signature::InvalidWebhookSecret,
    webhook::{Webhook, WebhookError, WebhookMessage, WebhookTransport, webhook},
};
