use std::collections::VecDeque;

use http::HeaderMap;
use mcp_wire::method;
use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::watch;

/// A request or notification that the mock server has received.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// What was asked for.
    pub method: String,
    /// The id of a request; nothing for a notification.
    pub id: Option<RawJson>,
    /// The parameters as the client wrote them.
    pub params: Option<RawJson>,
    /// The head of the HTTP request; empty over stdio.
    pub headers: HeaderMap,
}

impl ReceivedMessage {
    /// The name of the tool or prompt, or the URI of the resource, that this is about.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let params = self.params.as_ref()?;
        params.get("name").or_else(|| params.get("uri"))?.string()
    }

    /// The arguments of a call; an empty object when there are none.
    #[must_use]
    pub fn arguments(&self) -> RawJson {
        let arguments = self.params.as_ref().and_then(|params| params.get("arguments"));
        arguments.unwrap_or(RawJson::object())
    }
}

/// Everything that was received, newest last.
#[derive(Debug)]
pub(crate) struct Log {
    received: Mutex<VecDeque<ReceivedMessage>>,
    /// How much was received so far.
    count: watch::Sender<u64>,
}

/// How much is kept: a server that runs for days must not grow.
const KEPT: usize = 16 * 1024;

impl Default for Log {
    fn default() -> Self {
        Self {
            received: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl Log {
    pub(crate) fn add(&self, received: ReceivedMessage) {
        tracing::info!(method = received.method, name = received.name(), "received");
        {
            let mut all = self.received.lock();
            if all.len() >= KEPT {
                all.pop_front();
            }
            all.push_back(received);
        }
        self.count.send_modify(|count| *count += 1);
    }

    pub(crate) fn clear(&self) {
        self.received.lock().clear();
    }

    pub(crate) fn matching(&self, is_wanted: impl Fn(&ReceivedMessage) -> bool) -> Vec<ReceivedMessage> {
        let all = self.received.lock();
        all.iter()
            .filter(|received| is_wanted(received))
            .cloned()
            .collect()
    }

    /// Waits until so many have come that match.
    pub(crate) async fn wait(&self, count: usize, is_wanted: impl Fn(&ReceivedMessage) -> bool) -> Vec<ReceivedMessage> {
        let mut changes = self.count.subscribe();
        loop {
            // Marked as seen before the look, so that nothing that comes meanwhile is missed.
            changes.borrow_and_update();
            let found = self.matching(&is_wanted);
            if found.len() >= count {
                return found;
            }
            // The sender lives as long as this borrow of it.
            let _ = changes.changed().await;
        }
    }
}

/// Whether this is a call of a tool.
pub(crate) fn is_call(received: &ReceivedMessage, tool: &str) -> bool {
    received.method == method::TOOLS_CALL && received.name().as_deref() == Some(tool)
}
