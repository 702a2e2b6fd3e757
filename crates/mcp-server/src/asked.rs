use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use mcp_wire::{Response, RpcError, method};
use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::oneshot;

use crate::way::{Blocked, Way};

/// Why a client did not give what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientRequestError {
    /// The client did not declare that it can do this, so it was not asked. The error is the one to answer its request
    /// with if there is no doing without.
    #[error("the client did not declare that it can be asked this")]
    NotDeclared(#[source] RpcError),
    /// There is no way to ask: the request is of the modern era, where [`InputRequired`](crate::InputRequired) asks, or
    /// it belongs to no session, or its client takes no events.
    #[error("there is no way to ask the client")]
    NoWay,
    /// The client reads nothing, or has too many questions open already.
    #[error("the client has too many questions open")]
    Busy,
    /// The client answered with an error, such as a user's refusal.
    #[error("the client answered with an error")]
    Refused(#[source] RpcError),
    /// The connection was lost, or the session has ended.
    #[error("the client is gone")]
    Gone,
}

type Outcome = Result<RawJson, RpcError>;

/// What one client was asked and has not answered yet. Ids are of this client's connection or session only, so nobody
/// else can answer.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    last_id: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
}

/// How many questions one client may have open.
const MAX_OPEN: usize = 64;

impl Asked {
    /// Asks on the way of a request, and waits for the answer. When the wait is given up, the client is told.
    pub(crate) async fn ask(
        &self,
        way: &Way,
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
        let _question = Question { asked: self, way, id };
        way.send(mcp_wire::request(id, method, &params.cloned().into()))
            .map_err(|blocked| match blocked {
                Blocked::Full => ClientRequestError::Busy,
                Blocked::Closed => ClientRequestError::Disconnected,
            })?;
        tokio::select! {
            outcome = answered => outcome.map_err(|_| ClientRequestError::Disconnected)?.map_err(ClientRequestError::Refused),
            () = way.lost() => Err(ClientRequestError::Disconnected),
        }
    }

    /// Takes an answer. One to nothing that is open may be late, and is none of our business.
    pub(crate) fn answer(&self, response: Response) {
        let id = response.id.as_ref().and_then(mcp_wire::integer_id);
        let question = id.and_then(|id| self.open.lock().remove(&id));
        if let Some(question) = question {
            // Nobody waits any more when the request was cancelled right now.
            let _ = question.send(response.outcome);
        }
    }
}

/// A question that is open until it is answered or given up.
struct Question<'a> {
    asked: &'a Asked,
    way: &'a Way,
    id: u64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.asked.open.lock().remove(&self.id).is_some() {
            let params = mcp_wire::cancelled_params(&RawJson::from(self.id), None);
            let _ = self
                .way
                .send(mcp_wire::notification(method::CANCELLED, Some(&params)));
        }
    }
}
