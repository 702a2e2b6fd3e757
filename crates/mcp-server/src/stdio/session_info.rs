use std::sync::{Arc, OnceLock};

use mcp_wire::Revision;

/// Facts about a connection that are shared with the transport that feeds it, HTTP+SSE.
#[derive(Debug)]
pub(crate) struct SessionInfo {
    pub(crate) id: Arc<str>,
    /// Revision that was negotiated, once the connection is open.
    revision: OnceLock<Revision>,
}

impl SessionInfo {
    pub(crate) fn new(id: Arc<str>) -> Self {
        Self {
            id,
            revision: OnceLock::new(),
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
