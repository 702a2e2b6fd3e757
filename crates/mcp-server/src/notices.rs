use std::sync::{Arc, Mutex, PoisonError, Weak};

use raw_json::RawJson;
use tokio::sync::mpsc;

use crate::wants::Wants;

/// Tells every client that listens about a change, such as `notifications/tools/list_changed`.
///
/// A clone reaches the same clients. Those of the legacy era listen on stdio once they have opened the connection,
/// and over HTTP on the stream of their session; those of the modern era open a subscription. A client is told what it
/// asked for: `notifications/resources/updated` comes to those that watch the resource. A client that does not keep up
/// misses notices: they carry no news that a new list would not show.
#[derive(Debug, Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<Listener>>>);

/// A way to a client, and what it wants to hear: gone when either end is.
#[derive(Debug)]
struct Listener {
    out: mpsc::WeakSender<Vec<u8>>,
    wants: Weak<Wants>,
}

impl Notices {
    /// Sends a notification to all who listen to such.
    pub fn send(&self, method: &str, params: Option<&RawJson>) {
        let uri = params.and_then(|params| params.get("uri")?.string());
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            let (Some(out), Some(wants)) = (listener.out.upgrade(), listener.wants.upgrade()) else {
                return false;
            };
            if wants.includes(method, uri.as_deref()) {
                // A full queue means that as many notices wait for the client already.
                let _ = out.try_send(wants.frame(method, params));
            }
            true
        });
    }

    /// The resources that clients watch, each once, in alphabetical order: what a service that relays changes needs to
    /// hear of itself.
    #[must_use]
    pub fn watched(&self) -> Vec<String> {
        let listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wants = listeners.iter().filter_map(|listener| listener.wants.upgrade());
        let mut watched: Vec<String> = wants.flat_map(|wants| wants.watched()).collect();
        watched.sort_unstable();
        watched.dedup();
        watched
    }

    pub(crate) fn subscribe(&self, out: &mpsc::Sender<Vec<u8>>, wants: &Arc<Wants>) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.out.strong_count() > 0 && listener.wants.strong_count() > 0);
        listeners.push(Listener {
            out: out.downgrade(),
            wants: Arc::downgrade(wants),
        });
    }
}
