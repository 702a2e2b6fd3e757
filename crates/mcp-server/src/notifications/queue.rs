use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use mcp_wire::method;
use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{
    filter::SubscriptionFilter,
    uri_set::{MAX_URI, MAX_URIS},
};

/// Queue of the notifications to one client that do not fit into its channel.
///
/// It coalesces: of each list, resource and task only the latest waits, at the position of the first. Its size is therefore
/// bounded, however slowly the client reads.
#[derive(Debug)]
pub(crate) struct CoalescingQueue {
    filter: Arc<SubscriptionFilter>,
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    changes: VecDeque<Change>,
    reader: Option<Waker>,
}

/// Change of one subject. A later change of the same subject replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// Changed list, by the name of the notification.
    List(String),
    /// Changed resource, by its URI.
    Resource(String),
    /// Changed task, by its id, with the whole message.
    Task(String, Vec<u8>),
}

impl CoalescingQueue {
    pub(crate) fn new(filter: Arc<SubscriptionFilter>) -> Self {
        Self {
            filter,
            pending: Mutex::default(),
        }
    }

    pub(crate) fn filter(&self) -> &Arc<SubscriptionFilter> {
        &self.filter
    }

    /// Sends a notification into the channel of the client. If the channel is full, a change waits in the queue, and any
    /// other notification is dropped.
    pub(super) fn send(&self, channel: &mpsc::Sender<Vec<u8>>, method: &str, params: Option<&RawJson>) {
        let frame = self.filter.frame(method, params);
        // Held until the end, so that no notification overtakes one that it replaces.
        let mut pending = self.pending.lock();
        let frame = match pending.is_empty() {
            true => match channel.try_send(frame) {
                Err(TrySendError::Full(frame)) => frame,
                _ => return,
            },
            false => frame,
        };
        match Change::from_notification(method, params, &frame) {
            Some(change) => pending.push(change, || self.filter.resources.to_vec()),
            None => drop(channel.try_send(frame)),
        }
    }

    /// Returns the next message of the queue, once the channel of the client is empty.
    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Vec<u8>> {
        let mut pending = self.pending.lock();
        ready!(pending.poll_ready(cx));
        let change = pending.pop().expect("the queue is ready");
        Poll::Ready(self.frame(change))
    }

    /// Moves messages from the queue into the channel as soon as there is room. Ends when the channel is closed.
    pub(crate) async fn drain_into(&self, channel: &mpsc::Sender<Vec<u8>>) {
        loop {
            poll_fn(|cx| self.pending.lock().poll_ready(cx)).await;
            let Ok(permit) = channel.reserve().await else {
                return;
            };
            let mut pending = self.pending.lock();
            if let Some(change) = pending.pop() {
                permit.send(self.frame(change));
            }
        }
    }

    fn frame(&self, change: Change) -> Vec<u8> {
        match change {
            Change::List(method) => self.filter.frame(&method, None),
            Change::Resource(uri) => self.filter.resource_updated(&uri),
            Change::Task(_, frame) => frame,
        }
    }
}

impl Change {
    /// Returns the change that a notification reports; `frame` is its message for this client. Returns `None` for other
    /// notifications.
    fn from_notification(method: &str, params: Option<&RawJson>, frame: &[u8]) -> Option<Self> {
        let subject = |key: &str| params?.get(key)?.string();
        match method {
            method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED => {
                Some(Self::List(method.to_owned()))
            }
            method::RESOURCES_UPDATED => subject("uri").map(Self::Resource),
            method::TASKS_CHANGED | method::TASKS_STATUS => {
                subject("taskId").map(|id| Self::Task(id, frame.to_vec()))
            }
            _ => None,
        }
    }

    fn has_subject_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Task(id, _), Self::Task(other, _)) => id == other,
            _ => self == other,
        }
    }

    /// Returns `true` if the change may wait: as many resources and tasks as a client may subscribe to. More resources can
    /// change, since those are parts of the ones subscribed to.
    fn fits_into(&self, pending: &Pending) -> bool {
        match self {
            // There are few lists.
            Self::List(_) => true,
            Self::Resource(name) | Self::Task(name, _) => {
                let is_alike = |other: &&Self| mem::discriminant(*other) == mem::discriminant(self);
                name.len() <= MAX_URI && pending.changes.iter().filter(is_alike).count() < MAX_URIS
            }
        }
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Adds a change. If a resource does not fit, each of the `subscribed` resources is reported as changed instead.
    fn push(&mut self, change: Change, subscribed: impl FnOnce() -> Vec<String>) {
        let same = self
            .changes
            .iter_mut()
            .find(|earlier| earlier.has_subject_of(&change));
        if let Some(earlier) = same {
            *earlier = change;
        } else if change.fits_into(self) {
            self.changes.push_back(change);
        } else if let Change::Resource(_) = change {
            for whole in subscribed().into_iter().map(Change::Resource) {
                if !self.changes.contains(&whole) {
                    self.changes.push_back(whole);
                }
            }
        }
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Removes the oldest change.
    fn pop(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Waits until the queue is not empty.
    fn poll_ready(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(uri: &str) -> Change {
        Change::Resource(uri.to_owned())
    }

    #[test]
    fn the_latest_change_of_each_subject_waits_in_place_of_the_first() {
        let mut pending = Pending::default();
        let task = |status: &str| Change::Task("t".to_owned(), status.into());
        let list = || Change::List("tools".to_owned());
        for change in [task("one"), resource("a"), list(), task("two"), resource("a")] {
            pending.push(change, Vec::new);
        }
        let mut left = Vec::new();
        while let Some(change) = pending.pop() {
            left.push(change);
        }
        assert_eq!(left, [task("two"), resource("a"), list()]);
    }

    #[test]
    fn a_full_queue_reports_every_subscribed_resource_as_changed() {
        let mut pending = Pending::default();
        let subscribed = || vec!["box:0".to_owned(), "box".to_owned()];
        for number in 0..5 * MAX_URIS {
            pending.push(resource(&format!("box:{number}")), subscribed);
        }
        assert_eq!(pending.changes.len(), MAX_URIS + 1);
        assert_eq!(pending.changes.back(), Some(&resource("box")));
        // Tasks have a limit of their own.
        pending.push(Change::Task("t".to_owned(), Vec::new()), subscribed);
        assert_eq!(pending.changes.len(), MAX_URIS + 2);
        // A URI beyond the limit does not fit either.
        let mut pending = Pending::default();
        pending.push(resource(&"x".repeat(MAX_URI + 1)), subscribed);
        assert_eq!(pending.changes, [resource("box:0"), resource("box")]);
    }
}
