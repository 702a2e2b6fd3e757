use raw_json::RawJson;

use crate::{Principal, RequestContext};

/// Identity of the client of a request or an open stream, as far as a service can tell clients apart.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Peer {
    /// Number of its connection or session, see [`RequestContext::connection`].
    pub connection: Option<u64>,
    /// Principal that it acts for.
    pub principal: Principal,
    /// Capabilities that it declared.
    pub capabilities: Option<RawJson>,
}

impl Peer {
    /// Returns the client of a request.
    #[must_use]
    pub fn from_request(cx: &RequestContext) -> Self {
        Self {
            connection: cx.connection(),
            principal: cx.principal().clone(),
            capabilities: cx.client_capabilities(),
        }
    }
}
