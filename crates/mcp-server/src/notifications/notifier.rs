use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::mpsc;

use super::{filter::SubscriptionFilter, queue::CoalescingQueue, session_queue::SessionQueue};
use crate::Peer;

/// Sends notifications, such as `notifications/tools/list_changed`, to all clients that want them.
///
/// A clone reaches the same clients. Legacy clients listen on stdio once they have opened the connection, and over HTTP on
/// the stream of their session, which keeps notifications while the client is away. Modern clients open a subscription. A
/// client receives what it asked for: `notifications/resources/updated` for resources that it has subscribed to,
/// `notifications/tasks` for tasks that it has subscribed to.
///
/// # Limits
/// A client that does not keep up receives the latest notification of each list, resource and task only. If more than
/// 1,024 resources have changed, each resource that it has subscribed to is reported as changed. Other notifications are
/// dropped.
#[derive(Debug, Clone, Default)]
pub struct Notifier(Arc<Mutex<Vec<Listener>>>);

/// Client that listens for notifications; removed once either end of its channel is gone.
#[derive(Debug)]
struct Listener {
    channel: Channel,
    peer: Peer,
    is_legacy: bool,
}

#[derive(Debug)]
enum Channel {
    /// Stream that is open as long as the client listens.
    Stream(mpsc::WeakSender<Vec<u8>>, Weak<CoalescingQueue>),
    /// Queue that a session keeps for its client.
    Session(Weak<SessionQueue>),
}

/// [`Channel`] whose client still listens.
enum OpenChannel {
    Stream(mpsc::Sender<Vec<u8>>, Arc<CoalescingQueue>),
    Session(Arc<SessionQueue>),
}

impl Notifier {
    /// Sends a notification to all clients that want it.
    pub fn send(&self, method: &str, params: Option<&RawJson>) {
        self.send_where(|_| true, method, params);
    }

    /// Sends a notification to one legacy client, by its
    /// [`RequestContext::connection`](crate::RequestContext::connection), if it listens: for notifications that concern no
    /// other client, such as `notifications/elicitation/complete`.
    pub fn send_to(&self, connection: u64, method: &str, params: Option<&RawJson>) {
        self.send_matching(method, params, |listener, _| {
            listener.is_legacy && listener.peer.connection == Some(connection)
        });
    }

    /// Sends a notification to those clients of either era that want it and that `is_for` selects: for example if the list
    /// of only some clients has changed.
    pub fn send_where(&self, is_for: impl Fn(&Peer) -> bool, method: &str, params: Option<&RawJson>) {
        let subject = SubscriptionFilter::subject_key(method).and_then(|key| params?.get(key)?.string());
        self.send_matching(method, params, |listener, filter| {
            filter.matches(method, subject.as_deref()) && is_for(&listener.peer)
        });
    }

    fn send_matching(
        &self,
        method: &str,
        params: Option<&RawJson>,
        is_for: impl Fn(&Listener, &SubscriptionFilter) -> bool,
    ) {
        let mut listeners = self.0.lock();
        listeners.retain(|listener| {
            let Some(channel) = listener.channel.open() else {
                return false;
            };
            if is_for(listener, channel.filter()) {
                channel.send(method, params);
            }
            true
        });
    }

    /// Returns the URIs of all resources that clients have subscribed to, each once, in alphabetical order: those that a
    /// service that relays changes must itself subscribe to.
    #[must_use]
    pub fn subscribed_uris(&self) -> Vec<String> {
        let listeners = self.0.lock();
        let filters = listeners.iter().filter_map(|listener| listener.channel.filter());
        let mut uris: Vec<String> = filters.flat_map(|filter| filter.resources.to_vec()).collect();
        uris.sort_unstable();
        uris.dedup();
        uris
    }

    /// Returns the URIs of all resources that clients have subscribed to, each with a client that did so.
    #[must_use]
    pub fn subscribers(&self) -> Vec<(String, Peer)> {
        let listeners = self.0.lock();
        let open = listeners
            .iter()
            .filter_map(|listener| Some((listener.channel.filter()?, listener)));
        let subscribers = open.flat_map(|(filter, listener)| {
            let uris = filter.resources.to_vec().into_iter();
            uris.map(|uri| (uri, listener.peer.clone()))
        });
        subscribers.collect()
    }

    /// Returns `true` if a client has subscribed to this task. A service that follows tasks for its clients needs it.
    #[must_use]
    pub fn has_task_subscriber(&self, id: &str) -> bool {
        let listeners = self.0.lock();
        let mut filters = listeners.iter().filter_map(|listener| listener.channel.filter());
        filters.any(|filter| filter.tasks.contains(id))
    }

    /// Adds a client that listens on a stream.
    pub(crate) fn add_stream(
        &self,
        channel: &mpsc::Sender<Vec<u8>>,
        queue: &Arc<CoalescingQueue>,
        peer: Peer,
        is_legacy: bool,
    ) {
        self.add(Listener {
            channel: Channel::Stream(channel.downgrade(), Arc::downgrade(queue)),
            peer,
            is_legacy,
        });
    }

    /// Adds a client with a session.
    pub(crate) fn add_session(&self, queue: &Arc<SessionQueue>, peer: Peer) {
        self.add(Listener {
            channel: Channel::Session(Arc::downgrade(queue)),
            peer,
            is_legacy: true,
        });
    }

    fn add(&self, listener: Listener) {
        let mut listeners = self.0.lock();
        listeners.retain(|listener| listener.channel.is_open());
        listeners.push(listener);
    }
}

impl Channel {
    /// Returns `None` once the client no longer listens.
    fn open(&self) -> Option<OpenChannel> {
        match self {
            Self::Stream(channel, queue) => Some(OpenChannel::Stream(channel.upgrade()?, queue.upgrade()?)),
            Self::Session(queue) => queue.upgrade().map(OpenChannel::Session),
        }
    }

    fn filter(&self) -> Option<Arc<SubscriptionFilter>> {
        match self {
            Self::Stream(_, queue) => queue.upgrade().map(|queue| Arc::clone(queue.filter())),
            Self::Session(queue) => queue.upgrade().map(|queue| Arc::clone(queue.filter())),
        }
    }

    fn is_open(&self) -> bool {
        match self {
            Self::Stream(channel, queue) => channel.strong_count() > 0 && queue.strong_count() > 0,
            Self::Session(queue) => queue.strong_count() > 0,
        }
    }
}

impl OpenChannel {
    fn filter(&self) -> &SubscriptionFilter {
        match self {
            Self::Stream(_, queue) => queue.filter(),
            Self::Session(queue) => queue.filter(),
        }
    }

    fn send(&self, method: &str, params: Option<&RawJson>) {
        match self {
            Self::Stream(channel, queue) => queue.send(channel, method, params),
            Self::Session(queue) => queue.push(method, params),
        }
    }
}
