use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};

#[cfg(feature = "http")]
use mcp_wire::{Notification, method};
use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::time::Instant;

use crate::{ClientError, ClientErrorKind, RequestOptions};

/// State of one request in progress. Both transports update it; its deadline is computed from it.
pub(crate) struct Exchange {
    options: RequestOptions,
    started: Instant,
    sent: AtomicBool,
    last_progress: Mutex<Option<Instant>>,
}

impl Exchange {
    pub(crate) fn new(options: RequestOptions) -> Self {
        Self {
            options,
            started: Instant::now(),
            sent: AtomicBool::new(false),
            last_progress: Mutex::new(None),
        }
    }

    #[cfg(feature = "http")]
    pub(crate) fn options(&self) -> &RequestOptions {
        &self.options
    }

    /// Marks the request as handed to the transport.
    pub(crate) fn mark_sent(&self) {
        if !self.sent.swap(true, Ordering::SeqCst)
            && let Some(hook) = &self.options.on_sent
        {
            catch_panic(|| hook());
        }
    }

    /// Reverts [`mark_sent`](Self::mark_sent): the transport knows that not a byte was sent.
    #[cfg(feature = "http")]
    pub(crate) fn mark_unsent(&self) {
        self.sent.store(false, Ordering::SeqCst);
    }

    pub(crate) fn was_sent(&self) -> bool {
        self.sent.load(Ordering::SeqCst)
    }

    pub(crate) fn mark_answered(&self) {
        if let Some(hook) = &self.options.on_answered {
            catch_panic(|| hook());
        }
    }

    pub(crate) fn report_progress(&self, params: RawJson) {
        *self.last_progress.lock() = Some(Instant::now());
        if let Some(on_progress) = &self.options.on_progress {
            catch_panic(|| on_progress(params));
        }
    }

    /// Identifies the request for its caller.
    #[cfg(feature = "http")]
    pub(crate) fn tag(&self) -> Option<u64> {
        self.options.tag
    }

    /// Delivers a notification that arrived with the response. Returns it if it does not belong to this caller.
    #[cfg(feature = "http")]
    pub(crate) fn deliver_notification(&self, note: Notification) -> Option<Notification> {
        let of_connection = matches!(
            note.method.as_str(),
            method::TOOLS_LIST_CHANGED
                | method::RESOURCES_LIST_CHANGED
                | method::PROMPTS_LIST_CHANGED
                | method::RESOURCES_UPDATED
                // Progress of this request was handled before. This is progress of another one, such as a running task.
                | method::PROGRESS
                | method::CANCELLED
        );
        match &self.options.on_notification {
            Some(on_notification) if !of_connection => {
                catch_panic(|| on_notification(note.into()));
                None
            }
            _ => Some(note),
        }
    }

    /// Current deadline. Progress extends it, up to `max_total`.
    pub(crate) fn deadline(&self) -> Instant {
        let last = *self.last_progress.lock();
        (last.unwrap_or(self.started) + self.options.timeout).min(self.started + self.options.max_total)
    }

    /// Error of a request whose deadline has passed.
    pub(crate) fn timed_out(&self) -> ClientError {
        let is_total = self.deadline() >= self.started + self.options.max_total;
        let limit = if is_total {
            self.options.max_total
        } else {
            self.options.timeout
        };
        ClientError::new(ClientErrorKind::Timeout(limit)).with_sent(self.was_sent())
    }
}

/// Runs a callback and contains its panic: it must not affect other callers of the connection. The panic hook has
/// reported it already.
pub(crate) fn catch_panic(hook: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(hook)).is_err() {
        tracing::warn!("a callback panicked");
    }
}
