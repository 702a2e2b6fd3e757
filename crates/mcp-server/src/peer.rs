use raw_json::RawJson;

use crate::{Principal, RequestContext};

/// Identifies the client of a request or of an open stream, as far as a service can tell clients apart.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Peer {
    /// The number of its connection or session, see [`RequestContext::connection`].
    pub connection: Option<u64>,
    /// The principal that it acts for.
    pub principal: Principal,
    /// The capabilities that it declared.
    pub capabilities: Option<RawJson>,
}

impl Peer {
    /// The client of a request.
    #[must_use]
    pub fn of(cx: &RequestContext) -> Self {
        Self {
            connection: cx.connection(),
            principal: cx.principal().clone(),
            capabilities: cx.client_capabilities(),
        }
    }
}
