use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use mcp_wire::{Response, RpcError, method};
use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::oneshot;

use super::event_sender::{EventSender, NotSent};

/// Failure of a request to a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientRequestError {
    /// The client did not declare the capability, so it was not asked. The source is the error to answer the client's own
    /// request with if it cannot be served without.
    #[error("the client did not declare the capability to be asked this")]
    NotDeclared(#[source] RpcError),
    /// There is no channel to the client: the request is of the modern era, where [`InputRequired`](crate::InputRequired)
    /// asks, or it belongs to no session, or its client accepts no events.
    #[error("there is no channel to the client")]
    NoChannel,
    /// The client does not read, or has too many open requests.
    #[error("the client has too many open requests")]
    Busy,
    /// The client answered with an error, such as a user's refusal.
    #[error("the client answered with an error")]
    Refused(#[source] RpcError),
    /// The connection was lost, or the session has ended.
    #[error("the client is gone")]
    Disconnected,
}

type Outcome = Result<RawJson, RpcError>;

/// Requests to one client that it has not answered. Their ids are valid for its connection or session only, so no other
/// client can answer.
#[derive(Debug, Default)]
pub(crate) struct ClientRequests {
    last_id: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
}

/// Maximum number of open requests to one client.
const MAX_OPEN: usize = 64;

impl ClientRequests {
    /// Sends a request to the client, and waits for its response. When the future is dropped, the request is cancelled.
    pub(crate) async fn ask(
        &self,
        sender: &EventSender,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<RawJson, ClientRequestError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        {
            let mut open = self.open.lock();
            if open.len() >= MAX_OPEN {
                return Err(ClientRequestError::Busy);
            }
            open.insert(id, answer);
        }
        let _pending = PendingRequest {
            requests: self,
            sender,
            id,
        };
        sender
            .send(mcp_wire::request(id, method, &params.cloned().into()))
            .map_err(|reason| match reason {
                NotSent::Full => ClientRequestError::Busy,
                NotSent::Closed => ClientRequestError::Disconnected,
            })?;
        tokio::select! {
            outcome = answered => outcome.map_err(|_| ClientRequestError::Disconnected)?.map_err(ClientRequestError::Refused),
            () = sender.disconnected() => Err(ClientRequestError::Disconnected),
        }
    }

    /// Delivers a response of the client. One without an open request may be late, and is ignored.
    pub(crate) fn deliver(&self, response: Response) {
        let id = response.id.as_ref().and_then(mcp_wire::integer_id);
        let pending = id.and_then(|id| self.open.lock().remove(&id));
        if let Some(pending) = pending {
            // The receiver is gone if the request was cancelled just now.
            let _ = pending.send(response.outcome);
        }
    }
}

/// Open request, which is cancelled if it is dropped without a response.
struct PendingRequest<'a> {
    requests: &'a ClientRequests,
    sender: &'a EventSender,
    id: u64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.requests.open.lock().remove(&self.id).is_some() {
            let params = mcp_wire::cancelled_params(&RawJson::from(self.id), None);
            let _ = self
                .sender
                .send(mcp_wire::notification(method::CANCELLED, Some(&params)));
        }
    }
}
