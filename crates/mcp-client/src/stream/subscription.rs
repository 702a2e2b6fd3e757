//! Subscription to the notifications of a modern server.

use std::time::Duration;

use raw_json::RawJson;
use tokio::time::Instant;

use crate::notifications::stream_backoff;

/// State of the subscription: the wanted filter, and the request that is open.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    pub(super) wanted: Option<RawJson>,
    pub(super) active: Option<ActiveSubscription>,
    /// Pause after the last subscription, if it was not stable.
    pause: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct ActiveSubscription {
    id: u64,
    since: Instant,
}

impl Subscription {
    /// Sets the wanted filter and the id of its request. Returns the id of the previous request.
    pub(super) fn replace(&mut self, id: u64, wanted: Option<&RawJson>) -> Option<u64> {
        let before = self.active.take().map(|active| active.id);
        self.wanted = wanted.cloned();
        self.pause = None;
        if wanted.is_some() {
            self.activate(id);
        }
        before
    }

    pub(super) fn activate(&mut self, id: u64) {
        let since = Instant::now();
        self.active = Some(ActiveSubscription { id, since });
    }

    /// Handles the response to request `id`. If that request was the subscription, it has ended, and the next step is
    /// returned. A server that refused is asked again only for another filter.
    pub(super) fn on_response(&mut self, id: u64, is_refused: bool) -> Option<AfterEnd> {
        let active = self.active.take_if(|active| active.id == id)?;
        if is_refused && !stream_backoff::was_stable(active.since) {
            return Some(AfterEnd::Stop);
        }
        let pause = match self.pause {
            Some(pause) => stream_backoff::next_pause(pause, active.since),
            None => stream_backoff::INITIAL,
        };
        self.pause = Some(pause);
        Some(AfterEnd::Resubscribe(pause))
    }
}

/// Next step after the end of a subscription.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterEnd {
    Stop,
    /// Resubscribe after a pause.
    Resubscribe(Duration),
}
