//! The subscription by which a modern server tells what no request is about.

use std::time::Duration;

use raw_json::RawJson;
use tokio::time::Instant;

use crate::notifications::stream_backoff as pauses;

/// What is listened to.
#[derive(Debug, Default)]
pub(super) struct Listening {
    pub(super) wanted: Option<RawJson>,
    pub(super) open: Option<Open>,
    /// The pause after the last subscription, if that did not last.
    pause: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Open {
    id: u64,
    since: Instant,
}

impl Listening {
    /// Notes what is wanted from now on, under which id, and returns the id of the subscription before.
    pub(super) fn want(&mut self, id: u64, wanted: Option<&RawJson>) -> Option<u64> {
        let before = self.open.take().map(|open| open.id);
        self.wanted = wanted.cloned();
        self.pause = None;
        if wanted.is_some() {
            self.opened(id);
        }
        before
    }

    pub(super) fn opened(&mut self, id: u64) {
        let since = Instant::now();
        self.open = Some(Open { id, since });
    }

    /// Takes note that a request was answered: if it was the one that opened the subscription, this is over. Gives how long to
    /// wait before another one, if there is to be one: a server that refuses is asked again when something else is wanted.
    pub(super) fn ended(&mut self, id: u64, is_refused: bool) -> Option<Next> {
        let open = self.open.take_if(|open| open.id == id)?;
        if is_refused && !pauses::has_lasted(open.since) {
            return Some(Next::Nothing);
        }
        let pause = match self.pause {
            Some(pause) => pauses::next(pause, open.since),
            None => pauses::FIRST,
        };
        self.pause = Some(pause);
        Some(Next::Again(pause))
    }
}

/// What follows the end of a subscription.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// Another one, after a pause.
    Again(Duration),
}
