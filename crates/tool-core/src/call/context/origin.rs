use std::{fmt, sync::Arc};

use crate::{Asker, Caller, ClientCapabilities, ClientIdentity, ClientKey, Progress};

/// Facts about the caller of a call and its client.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallOrigin {
    /// Principal, tenant and permissions on whose behalf the call is made.
    pub caller: Arc<Caller>,
    /// Key of the calling client, if the edge can tell clients apart. Clients that cannot be asked have one as well.
    pub client: Option<ClientKey>,
    /// Questions that the client declared to answer, whether or not the call has a way back to it.
    pub client_capabilities: ClientCapabilities,
    /// Way back to the client, for questions and log messages.
    pub ask: Option<Asker>,
    /// Receiver of the tool's progress.
    pub progress: Option<Arc<dyn Progress>>,
}

impl CallOrigin {
    /// Creates the origin of a call whose client is unknown.
    #[must_use]
    pub fn new(caller: Arc<Caller>) -> Self {
        Self {
            caller,
            client: None,
            client_capabilities: ClientCapabilities::default(),
            ask: None,
            progress: None,
        }
    }

    /// Returns the identity of the calling client.
    #[must_use]
    pub fn client_identity(&self) -> ClientIdentity {
        let ask = self.ask.as_ref().map(|asker| &**asker.client());
        ClientIdentity::new(ask, self.client.as_ref(), self.client_capabilities, &self.caller)
    }
}

impl fmt::Debug for CallOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOrigin")
            .field("caller", &self.caller)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
