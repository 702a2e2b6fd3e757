use http::{
    HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use mcp_wire::{Era, Params, Revision, header, method};

use super::{client::Headers, mirrored_headers::header_value};

// Built at compile time, because creating a name validates it.
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
static METHOD: HeaderName = HeaderName::from_static(header::METHOD);

static NAME: HeaderName = HeaderName::from_static(header::NAME);

static SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);

/// Session and revision that requests carry in their headers.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) revision: Option<Revision>,
    /// Number of times the session was opened.
    pub(super) generation: u64,
}

impl Session {
    /// Sequence number of the session.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn era(&self) -> Era {
        self.revision.map_or(Era::Legacy, Revision::era)
    }

    /// `true` if the negotiated revision allows batches.
    pub(super) fn takes_batches(&self) -> bool {
        self.revision.is_some_and(Revision::supports_batches)
    }

    /// Headers of a request.
    pub(super) fn headers(&self, method: &str, params: &Params) -> Headers {
        // Capacity for the headers below and one mirrored argument.
        let mut headers: Headers = Vec::with_capacity(6);
        headers.extend([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (
                ACCEPT,
                HeaderValue::from_static("application/json, text/event-stream"),
            ),
        ]);
        let revision = match method {
            method::INITIALIZE => None,
            method::DISCOVER => Some(Revision::LATEST),
            _ => self.revision,
        };
        if let Some(revision) = revision {
            headers.push((
                PROTOCOL_VERSION.clone(),
                HeaderValue::from_static(revision.as_str()),
            ));
        }
        if revision.is_some_and(|revision| revision.era() == Era::Modern) {
            headers.push((METHOD.clone(), method_value(method)));
            headers.extend(mirrored_name(method, params).map(|name| (NAME.clone(), name)));
        } else if let Some(id) = &self.id {
            headers.push((SESSION_ID.clone(), id.clone()));
        }
        headers
    }
}

/// Encodes a method as a header value, without an allocation for calls.
fn method_value(method: &str) -> HeaderValue {
    match method {
        method::TOOLS_CALL => HeaderValue::from_static(method::TOOLS_CALL),
        other => header_value(other),
    }
}

/// Returns the name, URI or task id that a modern request mirrors in its headers.
fn mirrored_name(method: &str, params: &Params) -> Option<HeaderValue> {
    let key = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => "name",
        method::RESOURCES_READ => "uri",
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => "taskId",
        _ => return None,
    };
    params.get(key)?.text().map(|name| header_value(&name))
}
