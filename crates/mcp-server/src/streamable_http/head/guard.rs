//! Checks that keep web pages away from a server on loopback, made before the body of a request is read.

use http::{HeaderMap, HeaderValue, Uri};

use super::{
    allow_list::{AllowList, AllowedHosts},
    known_headers::KnownHeaders,
};

const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Returns `true` if the request is addressed to an allowed host name, or to the server's own.
pub(crate) fn is_host_allowed(
    known: &KnownHeaders<'_>,
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
    // An authority in the request line overrides the header (RFC 9112, section 3.2.2); both must be allowed.
    let authority = uri.authority().map(http::uri::Authority::as_str);
    let mut named = host.into_iter().chain(authority).peekable();
    let is_own = |host: &str| own.is_some_and(|own| own.eq_ignore_ascii_case(without_port(host)));
    named.peek().is_some() && named.all(|host| is_own(host) || is_listed(host, more))
}

fn is_listed(host: &str, more: &[String]) -> bool {
    let name = without_port(host);
    // Nearly all names are in lower case, whose comparison takes a tenth of the instructions.
    LOOPBACK.contains(&name)
        || LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name))
        || more
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host))
}

/// Removes the port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    let name = host.trim_end_matches(|digit: char| digit.is_ascii_digit());
    match name.strip_suffix(':') {
        Some(name) if !name.ends_with(':') => name,
        _ => host,
    }
}

/// Returns `true` if the request does not come from a web page, or comes from one of the server's own origin or of a listed
/// origin.
pub(crate) fn is_origin_allowed(
    known: &KnownHeaders<'_>,
    uri: &Uri,
    allowed: &AllowList,
    own_host: Option<&str>,
) -> bool {
    // Only web pages send the header.
    let Some(origin) = known.origin.first else {
        return true;
    };
    let host = known.host.first.and_then(|host| host.to_str().ok());
    let host = uri.authority().map(http::uri::Authority::as_str).or(host);
    !known.origin.is_repeated
        && (is_origin_listed(origin, &allowed.origins)
            || host.is_some_and(|host| is_own_origin(origin, host, &allowed.hosts, own_host)))
}

/// Returns `true` if the operator lists the origin.
pub(super) fn is_origin_listed(origin: &HeaderValue, listed: &[String]) -> bool {
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let origin = without_default_port(origin);
    listed.iter().any(|known| {
        let known = without_default_port(known.trim_end_matches('/'));
        // An opaque origin (`null`) identifies no page.
        known.eq_ignore_ascii_case(origin) && !origin.eq_ignore_ascii_case("null")
    })
}

/// Returns `true` if an origin is that of the address that the request was sent to. A name under which the server is not
/// known is not its own, even if any host is allowed: a page may have bound it to this machine's address.
fn is_own_origin(origin: &HeaderValue, host: &str, hosts: &AllowedHosts, own_host: Option<&str>) -> bool {
    let Some((scheme, authority)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
        return false;
    };
    let names = match hosts {
        AllowedHosts::Loopback(names) => names.as_slice(),
        AllowedHosts::Any => &[],
    };
    let is_own_name = own_host.is_some_and(|own| own.eq_ignore_ascii_case(without_port(host)));
    let is_web = ["http", "https"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(scheme));
    let sent_to = format!("{scheme}://{host}");
    is_web
        && (is_own_name || is_listed(host, names))
        && without_default_port(&sent_to)
            .eq_ignore_ascii_case(without_default_port(&format!("{scheme}://{authority}")))
}

/// Removes the default port of an origin's scheme, which browsers leave out.
fn without_default_port(origin: &str) -> &str {
    let lower = |prefix: &str| {
        origin
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let port = if lower("http://") {
        ":80"
    } else if lower("https://") {
        ":443"
    } else {
        return origin;
    };
    origin.strip_suffix(port).unwrap_or(origin)
}

impl AllowList {
    /// Returns `true` if a request does not come from a web page, or comes from one that may use the server: for routes that
    /// are served next to MCP. `own_host` is the name of the server's own address.
    #[must_use]
    pub fn allows_origin(&self, head: &HeaderMap, uri: &Uri, own_host: Option<&str>) -> bool {
        is_origin_allowed(&KnownHeaders::from_map(head), uri, self, own_host)
    }
}
