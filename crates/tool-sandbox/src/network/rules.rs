//! Hosts that a command may reach.

use std::net::IpAddr;

use crate::SandboxError;

/// Ports of a host that is named without one.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Hosts that a command may reach.
#[derive(Clone, Debug)]
pub(crate) struct HostRules {
    rules: Vec<HostRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostRule {
    name: HostName,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostName {
    /// One host.
    Exact(String),
    /// All hosts below a domain, which stands with a dot in front.
    Below(String),
    /// An address, which may be one of a private network.
    Address(IpAddr),
}

/// Permission to connect to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostGrant {
    /// To its public addresses.
    Public,
    /// To the address that the command names.
    Named(IpAddr),
    /// To the loopback addresses, since the command names `localhost`.
    Loopback,
}

impl HostRules {
    /// Reads the hosts of a command.
    pub(crate) fn new(hosts: &[String]) -> Result<Self, SandboxError> {
        let rules = hosts.iter().map(|host| {
            read(host).ok_or_else(|| {
                SandboxError::refused(
                    format!("host `{host}`"),
                    "it must be `name`, `*.domain` or an address, each with or without `:port`",
                )
            })
        });
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the permission for a host, or `None` if no rule names it.
    pub(super) fn grant(&self, host: &str, port: u16) -> Option<HostGrant> {
        let host = normal(host);
        let address: Option<IpAddr> = host.parse().ok();
        self.rules
            .iter()
            .filter(|rule| match rule.port {
                Some(named) => named == port,
                None => DEFAULT_PORTS.contains(&port),
            })
            .find_map(|rule| match (&rule.name, address) {
                (HostName::Address(named), Some(address)) => {
                    (*named == address).then_some(HostGrant::Named(address))
                }
                (HostName::Exact(name), None) if *name == host && host == "localhost" => {
                    Some(HostGrant::Loopback)
                }
                (HostName::Exact(name), None) => (*name == host).then_some(HostGrant::Public),
                (HostName::Below(domain), None) => (host.len() > domain.len()
                    && host.ends_with(domain.as_str()))
                .then_some(HostGrant::Public),
                _ => None,
            })
    }
}

/// Returns a name in lower case, without the dot of the root or the brackets of an address.
fn normal(host: &str) -> String {
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn read(text: &str) -> Option<HostRule> {
    let (host, port) = if let Ok(address) = text.parse::<IpAddr>() {
        (address.to_string(), None)
    } else {
        match text.rsplit_once(':') {
            Some((host, port)) => (normal(host), Some(port.parse().ok().filter(|port| *port != 0)?)),
            None => (normal(text), None),
        }
    };
    let name = match (host.parse(), host.strip_prefix('*')) {
        (Ok(address), _) => HostName::Address(address),
        (_, Some(domain)) => HostName::Below(
            domain
                .strip_prefix('.')
                .filter(|name| is_name(name))
                .map(|name| format!(".{name}"))?,
        ),
        _ => HostName::Exact(Some(host).filter(|name| is_name(name))?),
    };
    Some(HostRule { name, port })
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(hosts: &[&str]) -> HostRules {
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        HostRules::new(&hosts).unwrap()
    }

    #[test]
    fn names_are_matched_whole() {
        let rules = rules(&["api.example.com", "*.wild.org", "db.example.com:5432"]);
        for (host, port) in [
            ("api.example.com", 443),
            ("API.Example.com.", 80),
            ("a.wild.org", 443),
            ("a.b.wild.org", 443),
            ("db.example.com", 5432),
        ] {
            assert_eq!(rules.grant(host, port), Some(HostGrant::Public), "{host}:{port}");
        }
        for (host, port) in [
            ("api.example.com", 22),
            ("xapi.example.com", 443),
            ("api.example.com.evil.org", 443),
            ("wild.org", 443),
            ("evilwild.org", 443),
            ("db.example.com", 443),
            ("", 443),
        ] {
            assert_eq!(rules.grant(host, port), None, "{host}:{port}");
        }
    }

    #[test]
    fn addresses_are_reached_only_by_name() {
        let rules = rules(&["10.0.0.1:8080", "[::1]:80", "localhost:3000", "*.example.com"]);
        assert!(matches!(rules.grant("10.0.0.1", 8080), Some(HostGrant::Named(_))));
        assert!(matches!(rules.grant("[::1]", 80), Some(HostGrant::Named(_))));
        assert_eq!(rules.grant("localhost", 3000), Some(HostGrant::Loopback));
        assert_eq!(rules.grant("10.0.0.2", 8080), None);
        assert_eq!(rules.grant("127.0.0.1", 3000), None);
    }

    #[test]
    fn malformed_hosts_are_refused() {
        for host in [
            "",
            "*",
            "*.",
            "a b",
            "https://a.org",
            "a.org:0",
            "a.org:x",
            "a..b",
            "*a.org",
            "a.*.org",
            "a/b",
        ] {
            let refused = HostRules::new(&[host.to_owned()]);
            assert!(matches!(refused, Err(SandboxError::Refused { .. })), "{host}");
        }
    }
}
