//! Servers of a configuration that are the gateway itself.

use std::net::{IpAddr, SocketAddr};

use toolplane::manifest::{Configuration, ServerTransport};

use crate::{command::Serve, output::Console};

/// Refuses the servers whose URL is the address at which this gateway serves: it would offer its own tools, and those of the lists with
/// them, without end.
pub(super) fn refuse(configuration: &mut Configuration, serve: &Serve, console: Console) {
    if serve.stdio {
        return;
    }
    let address = serve.http.unwrap_or(configuration.gateway.listen);
    for server in &mut configuration.servers {
        let ServerTransport::Http { url, .. } = &server.transport else {
            continue;
        };
        if url.literal().is_some_and(|url| leads_to(url, address)) {
            let reason = format!("it is this gateway, which serves at `{address}`");
            console.warn(&format!("the server `{}` is not used: {reason}", server.name));
            server.transport = ServerTransport::Refused { reason };
        }
    }
}

/// Returns `true` if a URL leads to an address. Every loopback address and name counts for another, and for one of all networks.
fn leads_to(url: &str, address: SocketAddr) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip: Option<IpAddr> = host.parse().ok();
    let is_loopback = host == "localhost" || ip.is_some_and(|ip| ip.to_canonical().is_loopback());
    let listens = address.ip().to_canonical();
    let is_here = match is_loopback {
        true => listens.is_loopback() || listens.is_unspecified(),
        false => ip.is_some_and(|ip| ip.to_canonical() == listens),
    };
    address.port() != 0 && url.port_or_known_default() == Some(address.port()) && is_here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_lead_to_the_gateway() {
        let leads = |url: &str, address: &str| leads_to(url, address.parse().unwrap());
        for (url, address) in [
            ("http://127.0.0.1:7080/mcp", "127.0.0.1:7080"),
            ("http://localhost:7080/mcp", "127.0.0.1:7080"),
            ("http://[::1]:7080/", "127.0.0.1:7080"),
            ("http://127.0.0.1/mcp", "0.0.0.0:80"),
            ("http://10.0.0.1:7080/mcp", "10.0.0.1:7080"),
        ] {
            assert!(leads(url, address), "{url} {address}");
        }
        for (url, address) in [
            ("http://127.0.0.1:7081/mcp", "127.0.0.1:7080"),
            ("http://10.0.0.1:7080/mcp", "127.0.0.1:7080"),
            ("http://example.com:7080/mcp", "0.0.0.0:7080"),
            ("http://127.0.0.1:7080/mcp", "127.0.0.1:0"),
            ("no URL", "127.0.0.1:7080"),
        ] {
            assert!(!leads(url, address), "{url} {address}");
        }
    }
}
