//! Protection of a mock on loopback from web pages: a page with DNS rebinding names its own host, other pages name
//! their origin.

use http::{HeaderMap, Uri, header};

/// Returns `true` if a request names this machine as its host and does not come from a page elsewhere.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let origin = headers.get(header::ORIGIN);
    let is_origin_local = origin.is_none_or(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        origin.is_some_and(|origin| origin.host().is_some_and(is_loopback))
    });
    let host = host.and_then(|host| host.parse::<Uri>().ok());
    is_origin_local && host.is_some_and(|host| host.host().is_some_and(is_loopback))
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}
