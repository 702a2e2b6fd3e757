//! What keeps web pages away from a server on loopback: checked before anything of a request is read.

use http::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
};

use super::AllowedHosts;

const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Whether the request was addressed to a name that this server answers to, its own one or another.
pub(super) fn is_host_allowed(
    headers: &HeaderMap,
    uri: &Uri,
    allowed: &AllowedHosts,
    own: Option<&str>,
) -> bool {
    let AllowedHosts::Loopback(more) = allowed else {
        return true;
    };
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() {
        return false;
    }
    // An address in the request line comes before the header (RFC 9112, section 3.2.2); both must be allowed.
    let authority = uri.authority().map(http::uri::Authority::as_str);
    let mut named = host.into_iter().chain(authority).peekable();
    let is_own = |host: &str| own.is_some_and(|own| own.eq_ignore_ascii_case(without_port(host)));
    named.peek().is_some() && named.all(|host| is_own(host) || is_listed(host, more))
}

fn is_listed(host: &str, more: &[String]) -> bool {
    let name = without_port(host);
    LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name))
        || more
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host))
}

/// The name without its port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Whether the request comes from no web page, or from one that may use this server.
pub(super) fn is_origin_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    headers.get_all(ORIGIN).iter().all(|origin| {
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        let is_listed = allowed
            .iter()
            .any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(origin));
        is_listed || is_loopback_origin(origin)
    })
}

fn is_loopback_origin(origin: &str) -> bool {
    let host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(|host| is_listed(host, &[]))
}
