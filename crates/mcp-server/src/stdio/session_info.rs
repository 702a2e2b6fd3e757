use std::sync::{Arc, OnceLock};

use mcp_wire::Revision;
use parking_lot::Mutex;

use crate::Principal;

/// Facts about a connection that are shared with the transport that feeds it, HTTP+SSE.
#[derive(Debug)]
pub(crate) struct SessionInfo {
    pub(crate) id: Arc<str>,
    /// Revision that was negotiated, once the connection is open.
    revision: OnceLock<Revision>,
    /// Principal, with the claims of the latest message.
    principal: Mutex<Principal>,
}

impl SessionInfo {
    pub(crate) fn new(id: Arc<str>, principal: Principal) -> Self {
        Self {
            id,
            revision: OnceLock::new(),
            principal: Mutex::new(principal),
        }
    }

    /// Returns the principal that requests are made for now.
    pub(super) fn principal(&self) -> Principal {
        self.principal.lock().clone()
    }

    /// Takes over the claims of a message of the same principal.
    pub(crate) fn set_claims(&self, principal: &Principal) {
        let mut known = self.principal.lock();
        if *known == *principal {
            *known = principal.clone();
        }
    }

    /// Sets the revision that was negotiated.
    pub(super) fn set_revision(&self, revision: Revision) {
        // The connection alone sets it, and is opened once.
        let _ = self.revision.set(revision);
    }

    /// Returns `true` if the client may send batches.
    pub(crate) fn accepts_batches(&self) -> bool {
        self.revision
            .get()
            .is_some_and(|revision| revision.supports_batches())
    }
}
