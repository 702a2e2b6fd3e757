//! What keeps web pages away from a server on loopback: checked before anything of a request is read.

use http::{HeaderMap, Uri, header::ORIGIN};

use super::{AllowedHosts, headers::Known};

const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Whether the request was addressed to a name that this server answers to, its own one or another.
pub(super) fn is_host_allowed(
    known: &Known<'_>,
    uri: &Uri,
    allowed: &AllowedHosts,
    own: Option<&str>,
) -> bool {
    let AllowedHosts::Loopback(more) = allowed else {
        return true;
    };
    if known.host.is_repeated {
        return false;
    }
    let host = known.host.first.and_then(|host| host.to_str().ok());
    // An address in the request line comes before the header (RFC 9112, section 3.2.2); both must be allowed.
    let authority = uri.authority().map(http::uri::Authority::as_str);
    let mut named = host.into_iter().chain(authority).peekable();
    let is_own = |host: &str| own.is_some_and(|own| own.eq_ignore_ascii_case(without_port(host)));
    named.peek().is_some() && named.all(|host| is_own(host) || is_listed(host, more))
}

fn is_listed(host: &str, more: &[String]) -> bool {
    let name = without_port(host);
    // Nearly all are written so: a name that is compared as it is takes a tenth of the steps.
    LOOPBACK.contains(&name)
        || LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name))
        || more
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host))
}

/// The name without its port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    let name = host.trim_end_matches(|digit: char| digit.is_ascii_digit());
    match name.strip_suffix(':') {
        Some(name) if !name.ends_with(':') => name,
        _ => host,
    }
}

/// Whether the request comes from no web page, or from one that may use this server.
pub(super) fn is_origin_allowed(known: &Known<'_>, headers: &HeaderMap, allowed: &[String]) -> bool {
    // Only web pages have one.
    known.origin.first.is_none()
        || headers.get_all(ORIGIN).iter().all(|origin| {
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
