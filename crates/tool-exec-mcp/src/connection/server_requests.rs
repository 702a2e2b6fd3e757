//! Requests of a server to the client of a call: elicitation, sampling and roots.

use std::sync::Arc;

use mcp_client::{Handlers, ServerRequest};
use mcp_wire::{RpcError, code, method};
use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{AskError, Asker, Question};

use super::call_slots::{CallSlots, Unattributed};

/// Answers requests of the server for the one client of a dedicated connection.
pub(crate) struct ServerRequestHandler {
    slots: Arc<CallSlots>,
    roots: Mutex<Option<KnownRoots>>,
}

/// Roots of the client as it returned them last.
#[derive(Clone)]
struct KnownRoots {
    answer: RawJson,
    /// Tag of the call in which it returned them.
    during: u64,
}

impl ServerRequestHandler {
    pub(crate) fn new(slots: Arc<CallSlots>) -> Arc<Self> {
        Arc::new(Self {
            slots,
            roots: Mutex::default(),
        })
    }

    /// Returns handlers for the capabilities that the client declared, and no others.
    pub(crate) fn handlers(self: &Arc<Self>, declared: &RawJson) -> Handlers {
        let make_handler = || {
            let handler = self.clone();
            move |request| {
                let handler = handler.clone();
                async move { handler.answer(request).await }
            }
        };
        let mut handlers = Handlers::new();
        if let Some(declared) = declared.get("elicitation") {
            handlers = handlers.elicitation(declared, make_handler());
        }
        if let Some(declared) = declared.get("sampling") {
            handlers = handlers.sampling(declared, make_handler());
        }
        if let Some(declared) = declared.get("roots") {
            handlers = handlers.roots(declared, make_handler());
        }
        handlers
    }

    /// Asks the client of the call that the request belongs to. The question is withdrawn when the call ends.
    async fn answer(&self, request: ServerRequest) -> Result<RawJson, RpcError> {
        let is_roots = request.method == method::ROOTS_LIST;
        let known = self.roots().filter(|_| is_roots);
        let call = match self.slots.attribute(request.tag) {
            Ok(call) => call,
            // A server may ask for roots when no call is in progress, such as right after the opening.
            Err(_) if known.is_some() => return Ok(known.expect("there are roots").answer),
            Err(reason) => return Err(unattributed(reason)),
        };
        if let Some(known) = known.as_ref().filter(|known| known.during == call.tag) {
            return Ok(known.answer.clone());
        }
        let Some(asker) = &call.asker else {
            return Err(unattributed(Unattributed::NoCall));
        };
        let question = Question::new(request.method, request.params);
        self.slots
            .router
            .record_question(&question, &asker.client().client());
        tokio::select! {
            biased;
            answer = asker.ask(question) => {
                let answer = answer.map_err(client_error)?;
                if is_roots && known.is_some() {
                    self.store_roots(answer.clone(), call.tag);
                }
                Ok(answer)
            }
            () = self.slots.wait_until_ended(call.tag) => {
                known.map(|known| known.answer).ok_or_else(|| unattributed(Unattributed::NoCall))
            }
        }
    }

    /// Requests the client's roots during a call and stores them, since a server may want them at any time. Returns
    /// `true` if the client returned them.
    pub(crate) async fn request_roots(&self, asker: &Asker, tag: u64) -> bool {
        let question = Question::new(method::ROOTS_LIST.to_owned(), None);
        match asker.ask(question).await {
            Ok(answer) => {
                self.store_roots(answer, tag);
                true
            }
            Err(error) => {
                tracing::debug!(%error, "a client did not return its roots");
                false
            }
        }
    }

    fn roots(&self) -> Option<KnownRoots> {
        self.roots.lock().clone()
    }

    fn store_roots(&self, answer: RawJson, during: u64) {
        *self.roots.lock() = Some(KnownRoots { answer, during });
    }
}

fn unattributed(reason: Unattributed) -> RpcError {
    let message = match reason {
        Unattributed::NoCall => "no client can be asked: this belongs to no call in progress",
        Unattributed::SeveralClients => {
            "no client can be asked: calls of several clients are in progress, and it is unknown to which one this belongs"
        }
    };
    RpcError::new(code::INVALID_REQUEST, message)
}

fn client_error(error: AskError) -> RpcError {
    match error {
        AskError::Refused(error) => RpcError::from_raw(&error),
        AskError::Impossible(_) => RpcError::new(code::METHOD_NOT_FOUND, error.to_string()),
        _ => RpcError::new(code::INTERNAL_ERROR, error.to_string()),
    }
}
