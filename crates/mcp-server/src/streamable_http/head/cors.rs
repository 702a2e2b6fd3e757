//! Cross-origin resource sharing (the CORS protocol of the Fetch standard): headers that make a browser let a page of another
//! origin read the responses. Only origins that the operator lists get them.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
    request::Parts,
};

use super::{allow_list::AllowList, guard};

/// CORS headers of one response.
#[derive(Debug, Clone)]
pub(crate) enum Cors {
    /// No headers: no origin is listed, and responses do not depend on the origin.
    Absent,
    /// Only `Vary`: the response depends on the origin, and that of this request may not read it.
    Closed,
    /// Headers for the origin of the request, which may read the response.
    Open(HeaderValue),
}

/// Request headers that pages may send in addition to the CORS-safelisted ones: those of MCP and of credentials.
const REQUEST_HEADERS: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
                               mcp-protocol-version, mcp-session-id, traceparent, tracestate";
/// Prefix of the headers that mirror a tool's arguments: each tool has its own.
const PARAM_PREFIX: &str = "mcp-param-";
/// Maximum number of such headers in one preflight.
const MAX_PARAMS: usize = 64;
/// Maximum length of the name of such a header, in bytes.
const MAX_PARAM: usize = 128;
/// Response headers that pages may read in addition to the CORS-safelisted ones.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("mcp-session-id, mcp-protocol-version, retry-after, www-authenticate");
const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");
/// Time for which a browser may cache the response to a preflight, in seconds. Requests are checked by their own origin.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const PREFLIGHT_VARY: HeaderValue = HeaderValue::from_static(
    "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network",
);
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

impl Cors {
    /// Selects the headers for the head of a request.
    pub(crate) fn from_headers(headers: &HeaderMap, allowed: &AllowList) -> Self {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) if guard::is_origin_listed(origin, &allowed.origins) => {
                Self::Open(origin.clone())
            }
            (None, _) if allowed.origins.is_empty() => Self::Absent,
            _ => Self::Closed,
        }
    }

    /// Adds the headers to any response: a page must be able to read errors and streams, too.
    pub(crate) fn apply<B>(self, response: &mut Response<B>) {
        let headers = response.headers_mut();
        match self {
            Self::Absent => return,
            Self::Closed => {}
            Self::Open(origin) => {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            }
        }
        // A preflight has a `Vary` with more names.
        headers.entry(VARY).or_insert(HeaderValue::from_static("Origin"));
    }

    /// Returns the headers of the response to a preflight of a listed origin. Returns `None` for any other request.
    ///
    /// A preflight has no credentials, so it is answered before the principal is identified.
    pub(crate) fn preflight(&self, head: &Parts) -> Option<HeaderMap> {
        if head.method != Method::OPTIONS || !matches!(self, Self::Open(_)) {
            return None;
        }
        head.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, request_headers(&head.headers));
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        // The operator has listed the origin for a server that is often on loopback.
        if head.headers.contains_key(&REQUEST_PRIVATE_NETWORK) {
            headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        headers.insert(VARY, PREFLIGHT_VARY);
        Some(headers)
    }
}

/// Returns the allowed request headers: the fixed ones, and those requested ones that mirror arguments. A wildcard would not
/// cover `Authorization`, and there is none for a prefix.
fn request_headers(headers: &HeaderMap) -> HeaderValue {
    let mut allowed = REQUEST_HEADERS.to_owned();
    let asked = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let asked = asked
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let params = asked
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| name.starts_with(PARAM_PREFIX) && name.len() <= MAX_PARAM)
        .filter(|name| HeaderName::from_bytes(name.as_bytes()).is_ok());
    for name in params.take(MAX_PARAMS) {
        allowed.push_str(", ");
        allowed.push_str(&name);
    }
    HeaderValue::from_str(&allowed).unwrap_or(HeaderValue::from_static(REQUEST_HEADERS))
}
