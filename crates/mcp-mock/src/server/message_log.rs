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
    /// Method of the message.
    pub method: String,
    /// Id of a request; `None` for a notification.
    pub id: Option<RawJson>,
    /// Parameters, verbatim.
    pub params: Option<RawJson>,
    /// Headers of the HTTP request; empty over stdio.
    pub headers: HeaderMap,
}

impl ReceivedMessage {
    /// Returns the name of the tool or prompt, or the URI of the resource.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let params = self.params.as_ref()?;
        params.get("name").or_else(|| params.get("uri"))?.string()
    }

    /// Returns the arguments of a call; an empty object if there are none.
    #[must_use]
    pub fn arguments(&self) -> RawJson {
        let arguments = self.params.as_ref().and_then(|params| params.get("arguments"));
        arguments.unwrap_or(RawJson::object())
    }
}

/// Log of all received messages, newest last.
#[derive(Debug)]
pub(crate) struct MessageLog {
    received: Mutex<VecDeque<ReceivedMessage>>,
    /// Number of messages received so far.
    count: watch::Sender<u64>,
}

/// Maximum number of kept messages: a server that runs for days must not grow.
const KEPT: usize = 16 * 1024;

impl Default for MessageLog {
    fn default() -> Self {
        Self {
            received: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl MessageLog {
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

    /// Waits for `count` matching messages.
    pub(crate) async fn wait(
        &self,
        count: usize,
        is_wanted: impl Fn(&ReceivedMessage) -> bool,
    ) -> Vec<ReceivedMessage> {
        let mut changes = self.count.subscribe();
        loop {
            // Marked as seen before the search, so that no message is missed in between.
            changes.borrow_and_update();
            let found = self.matching(&is_wanted);
            if found.len() >= count {
                return found;
            }
            // The sender lives as long as this borrow.
            let _ = changes.changed().await;
        }
    }
}

/// Returns `true` if the message is a call of this tool.
pub(crate) fn is_call(received: &ReceivedMessage, tool: &str) -> bool {
    received.method == method::TOOLS_CALL && received.name().as_deref() == Some(tool)
}
