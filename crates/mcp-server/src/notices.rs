use std::sync::{Arc, Mutex, PoisonError};

use raw_json::RawJson;
use tokio::sync::mpsc;

/// Tells every client that listens about a change, such as `notifications/tools/list_changed`.
///
/// A clone reaches the same clients. Those of the legacy era listen on stdio once they have opened the connection,
/// and over HTTP on the stream of their session. A client that does not keep up misses notices: they carry no news
/// that a new list would not show.
#[derive(Debug, Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<mpsc::WeakSender<Vec<u8>>>>>);

impl Notices {
    /// Sends a notification to all who listen.
    pub fn send(&self, method: &str, params: Option<&RawJson>) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            let Some(listener) = listener.upgrade() else {
                return false;
            };
            // A full queue means that as many notices wait for the client already.
            let _ = listener.try_send(mcp_wire::notification(method, params));
            true
        });
    }

    pub(crate) fn subscribe(&self, listener: &mpsc::Sender<Vec<u8>>) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener.downgrade());
    }
}
