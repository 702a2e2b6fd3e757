use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::mpsc;

use crate::{Peer, http::News, wants::Wants};

/// Tells every client that listens about a change, such as `notifications/tools/list_changed`.
///
/// A clone reaches the same clients. Those of the legacy era listen on stdio once they have opened the connection,
/// and over HTTP on the stream of their session, which keeps what comes while the client is away; those of the modern era
/// open a subscription. A client is told what it
/// asked for: `notifications/resources/updated` comes to those that watch the resource, `notifications/tasks` to those
/// that watch the task. A client that does not keep up is told the latest alone of each list, resource and task; of more
/// than 1,024 it is told that each resource that it watches has changed. Notices of other kinds it misses.
#[derive(Debug, Clone, Default)]
pub struct Notifier(Arc<Mutex<Vec<Listener>>>);

/// A way to a client, and what it wants to hear: gone when either end is.
#[derive(Debug)]
struct Listener {
    out: Out,
    wants: Weak<Wants>,
    peer: Peer,
    /// Whether it is of the legacy era.
    is_legacy: bool,
}

#[derive(Debug)]
enum Out {
    /// What stands open as long as the client listens.
    Queue(mpsc::WeakSender<Vec<u8>>),
    /// What a session keeps for its client.
    News(Weak<News>),
}

impl Notifier {
    /// Sends a notification to all who listen to such.
    pub fn send(&self, method: &str, params: Option<&RawJson>) {
        let about = Wants::key(method).and_then(|key| params?.get(key)?.string());
        self.send_where(method, params, |_, wants| {
            wants.includes(method, about.as_deref())
        });
    }

    /// Sends a notification to one legacy client, by its
    /// [`RequestContext::connection`](crate::RequestContext::connection), if it listens: what is nobody else's business,
    /// such as `notifications/elicitation/complete`.
    pub fn send_to(&self, connection: u64, method: &str, params: Option<&RawJson>) {
        self.send_where(method, params, |of, _| {
            of.is_legacy && of.peer.connection == Some(connection)
        });
    }

    /// Sends a notification to those clients of either era whose business it is, if they listen to such: that the list has
    /// changed which one client sees, for example.
    pub fn send_where(&self, is_for: impl Fn(&Peer) -> bool, method: &str, params: Option<&RawJson>) {
        let about = Wants::key(method).and_then(|key| params?.get(key)?.string());
        self.send_where(method, params, |of, wants| {
            wants.includes(method, about.as_deref()) && is_for(&of.peer)
        });
    }

    fn send_where(&self, method: &str, params: Option<&RawJson>, is_for: impl Fn(&Listener, &Wants) -> bool) {
        let mut listeners = self.0.lock();
        listeners.retain(|listener| {
            let Some(wants) = listener.wants.upgrade() else {
                return false;
            };
            let is_for = is_for(listener, &wants);
            match &listener.out {
                Out::Queue(out) => out.upgrade().is_some_and(|out| {
                    if is_for {
                        wants.tell(&out, method, params);
                    }
                    true
                }),
                Out::News(news) => news.upgrade().is_some_and(|news| {
                    if is_for {
                        news.push(method, params);
                    }
                    true
                }),
            }
        });
    }

    /// The resources that clients watch, each once, in alphabetical order: what a service that relays changes needs to
    /// hear of itself.
    #[must_use]
    pub fn watched(&self) -> Vec<String> {
        let listeners = self.0.lock();
        let wants = listeners.iter().filter_map(|listener| listener.wants.upgrade());
        let mut watched: Vec<String> = wants.flat_map(|wants| wants.resources.all()).collect();
        watched.sort_unstable();
        watched.dedup();
        watched
    }

    /// Returns the URIs of the resources that are watched, each with a client that watches it.
    #[must_use]
    pub fn watchers(&self) -> Vec<(String, Peer)> {
        let listeners = self.0.lock();
        let there = listeners
            .iter()
            .filter_map(|listener| Some((listener.wants.upgrade()?, listener)));
        let watched = there.flat_map(|(wants, listener)| {
            let uris = wants.resources.all().into_iter();
            uris.map(|uri| (uri, listener.peer.clone()))
        });
        watched.collect()
    }

    /// Whether a client watches this task: what a service that follows tasks for its clients needs to know.
    #[must_use]
    pub fn is_task_watched(&self, id: &str) -> bool {
        let listeners = self.0.lock();
        let mut wants = listeners.iter().filter_map(|listener| listener.wants.upgrade());
        wants.any(|wants| wants.tasks.has(id))
    }

    /// Tells a client from now on.
    pub(crate) fn subscribe(
        &self,
        out: &mpsc::Sender<Vec<u8>>,
        wants: &Arc<Wants>,
        peer: Peer,
        is_legacy: bool,
    ) {
        self.add(Listener {
            out: Out::Queue(out.downgrade()),
            wants: Arc::downgrade(wants),
            peer,
            is_legacy,
        });
    }

    /// Keeps what is for a session from now on.
    pub(crate) fn keep(&self, news: &Arc<News>, wants: &Arc<Wants>, peer: Peer) {
        self.add(Listener {
            out: Out::News(Arc::downgrade(news)),
            wants: Arc::downgrade(wants),
            peer,
            is_legacy: true,
        });
    }

    fn add(&self, listener: Listener) {
        let mut listeners = self.0.lock();
        listeners.retain(|listener| listener.out.is_there() && listener.wants.strong_count() > 0);
        listeners.push(listener);
    }
}

impl Out {
    fn is_there(&self) -> bool {
        match self {
            Self::Queue(out) => out.strong_count() > 0,
            Self::News(news) => news.strong_count() > 0,
        }
    }
}
