//! The subscription by which a modern server tells what no request is about.

use std::time::Duration;

use raw_json::RawJson;
use tokio::time::Instant;

use crate::notifications::stream_backoff;

/// What is listened to.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    pub(super) wanted: Option<RawJson>,
    pub(super) active: Option<ActiveSubscription>,
    /// The pause after the last subscription, if that did not last.
    pause: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct ActiveSubscription {
    id: u64,
    since: Instant,
}

impl Subscription {
    /// Notes what is wanted from now on, under which id, and returns the id of the subscription before.
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

    /// Takes note that a request was answered: if it was the one that opened the subscription, this is over. Gives how long to
    /// wait before another one, if there is to be one: a server that refuses is asked again when something else is wanted.
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

/// What follows the end of a subscription.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterEnd {
    Stop,
    /// Another one, after a pause.
    Resubscribe(Duration),
}
