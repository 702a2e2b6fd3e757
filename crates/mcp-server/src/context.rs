use std::{fmt, sync::Arc};

use mcp_wire::{Era, Revision, meta_key};
use raw_json::RawJson;

use crate::{Progress, outline::Outline};

/// What is known about a request besides the request itself.
#[derive(Debug)]
pub struct RequestContext {
    pub(crate) revision: Revision,
    pub(crate) outline: Outline,
    pub(crate) client: Option<Arc<Client>>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) principal: Principal,
    pub(crate) progress: Progress,
    pub(crate) http: Option<http::request::Parts>,
}

impl RequestContext {
    /// The revision that the request is written in.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The era of that revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// On whose behalf the request is made.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The legacy session that the request belongs to; nothing on stdio, in the modern era, and for a client that
    /// does without.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<str>> {
        self.session.as_ref()
    }

    /// The head of the HTTP request with headers and extensions; nothing on stdio.
    #[must_use]
    pub fn http(&self) -> Option<&http::request::Parts> {
        self.http.as_ref()
    }

    /// Where reports of progress go.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The `_meta` of the request, as the client wrote it.
    #[must_use]
    pub fn meta(&self) -> Option<&RawJson> {
        self.outline.meta.as_ref()
    }

    /// The `name` among the parameters of the request: of a tool or prompt.
    ///
    /// The protocol's own checks read the parameters once; what they found is here, so that a service need not look
    /// again.
    #[must_use]
    pub fn name(&self) -> Option<&RawJson> {
        self.outline.name.as_ref()
    }

    /// The `uri` among the parameters of the request: of a resource.
    #[must_use]
    pub fn uri(&self) -> Option<&RawJson> {
        self.outline.uri.as_ref()
    }

    /// The `arguments` among the parameters of the request, of whatever kind they are.
    #[must_use]
    pub fn arguments(&self) -> Option<&RawJson> {
        self.outline.arguments.as_ref()
    }

    /// The capabilities that the client declared: with this request in the modern era, when it opened the connection
    /// in the legacy one.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<RawJson> {
        match self.era() {
            Era::Modern => self.outline.meta.as_ref()?.get(meta_key::CLIENT_CAPABILITIES),
            Era::Legacy => self.client.as_ref()?.capabilities.clone(),
        }
    }

    /// What the client calls itself. It is not verified: good for logs, not for decisions.
    #[must_use]
    pub fn client_info(&self) -> Option<RawJson> {
        match self.era() {
            Era::Modern => self.outline.meta.as_ref()?.get(meta_key::CLIENT_INFO),
            Era::Legacy => self.client.as_ref()?.info.clone(),
        }
    }

    /// The client's trace in the form of the W3C headers `traceparent` and `tracestate`, from `_meta`.
    #[must_use]
    pub fn trace(&self) -> Option<(String, Option<String>)> {
        let meta = self.outline.meta.as_ref()?;
        let parent = meta.get(meta_key::TRACE_PARENT)?.string()?;
        let state = meta.get(meta_key::TRACE_STATE).and_then(|state| state.string());
        Some((parent, state))
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        // Also when the request is cancelled: no report may follow.
        self.progress.close();
    }
}

/// What a legacy client said of itself when it opened the connection.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) revision: Revision,
    pub(crate) info: Option<RawJson>,
    pub(crate) capabilities: Option<RawJson>,
}

/// On whose behalf a request is made. Sessions belong to the principal that opened them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal by its name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
