//! Words for sandboxes, which tools with code and servers share.

use std::{borrow::Cow, net::IpAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

/// Level of the sandbox that a tool or a server asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SandboxChoice {
    /// The strongest level that works here.
    #[default]
    Auto,
    /// Namespaces, by bubblewrap.
    Bwrap,
    /// Landlock without namespaces.
    Landlock,
    /// No sandbox.
    None,
}

/// Hosts that a sandboxed program may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkHosts {
    /// None: no network at all.
    #[default]
    Off,
    /// These hosts: `name`, `*.domain` or an address, each with or without `:port`.
    Hosts(Vec<String>),
}

impl NetworkHosts {
    /// Returns the hosts; none if the network is off.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        match self {
            Self::Off => &[],
            Self::Hosts(hosts) => hosts,
        }
    }

    /// Returns `true` if these hosts include another one, which may have a wildcard itself. A host without a port stands for
    /// the default ports of its protocols.
    ///
    /// # Examples
    /// ```
    /// use tool_settings::NetworkHosts;
    ///
    /// let hosts = NetworkHosts::Hosts(vec!["api.example.com".to_owned(), "*.example.org:8443".to_owned()]);
    /// assert!(hosts.includes("API.example.com"));
    /// assert!(hosts.includes("a.b.example.org:8443"));
    /// assert!(!hosts.includes("api.example.com:8080"));
    /// assert!(!hosts.includes("example.org:8443"));
    /// ```
    #[must_use]
    pub fn includes(&self, host: &str) -> bool {
        let Some((wanted, wanted_port)) = parts(host) else {
            return false;
        };
        self.hosts()
            .iter()
            .filter_map(|known| parts(known))
            .any(|(known, port)| {
                let is_below = || {
                    let domain = known.strip_prefix('*')?;
                    let wanted = wanted.strip_prefix('*').unwrap_or(&wanted);
                    (wanted.len() > domain.len() || known == wanted).then(|| wanted.ends_with(domain))
                };
                port == wanted_port && (known == wanted || is_below() == Some(true))
            })
    }

    /// Returns `true` for a text that names a host in a form that a sandbox accepts.
    #[must_use]
    pub fn is_host(text: &str) -> bool {
        parts(text).is_some()
    }

    /// Returns `true` for a host of a private network or of this machine: `localhost`, or an address that is loopback, private
    /// or link-local. Any other name leads to public addresses alone, whatever it resolves to.
    ///
    /// # Examples
    /// ```
    /// use tool_settings::NetworkHosts;
    ///
    /// assert!(NetworkHosts::is_internal("127.0.0.1:8080"));
    /// assert!(NetworkHosts::is_internal("[fd00::1]:80"));
    /// assert!(!NetworkHosts::is_internal("*.example.com"));
    /// ```
    #[must_use]
    pub fn is_internal(host: &str) -> bool {
        let Some((name, _)) = parts(host) else {
            return false;
        };
        match name.parse() {
            Ok(IpAddr::V4(address)) => {
                address.is_loopback()
                    || address.is_private()
                    || address.is_link_local()
                    || address.is_unspecified()
                    // Shared address space of carriers, RFC 6598.
                    || matches!(address.octets(), [100, 64..128, ..])
            }
            Ok(IpAddr::V6(address)) => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unique_local()
                    || address.is_unicast_link_local()
                    || address
                        .to_ipv4_mapped()
                        .is_some_and(|inner| Self::is_internal(&inner.to_string()))
            }
            Err(_) => name == "localhost",
        }
    }
}

/// Returns the name or address of a host in lower case, and its port; `None` if it is written in no known form.
fn parts(text: &str) -> Option<(String, Option<u16>)> {
    let plain = |host: &str| {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let inner = inner.unwrap_or(host);
        inner.strip_suffix('.').unwrap_or(inner).to_ascii_lowercase()
    };
    let (host, port) = match text.parse::<IpAddr>() {
        Ok(_) => (plain(text), None),
        Err(_) => match text.rsplit_once(':') {
            Some((host, port)) => (plain(host), Some(port.parse().ok().filter(|port| *port != 0)?)),
            None => (plain(text), None),
        },
    };
    let name = host.strip_prefix("*.").unwrap_or(&host);
    let is_label = |label: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.bytes().all(is_known)
    };
    let is_host = host.parse::<IpAddr>().is_ok() || name.split('.').all(is_label);
    is_host.then_some((host, port))
}

/// Refuses a host that is written in no known form. The second line of the message is the hint.
fn check<E: Error>(host: &str) -> Result<(), E> {
    match parts(host) {
        Some(_) => Ok(()),
        None => Err(E::custom(format!(
            "`{}` is no host\nwrite it like `api.example.com`, `*.example.com` or `10.0.0.7:8080`",
            host.escape_debug()
        ))),
    }
}

struct NetworkVisitor;

impl<'de> Visitor<'de> for NetworkVisitor {
    type Value = NetworkHosts;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`off`, or a list of hosts")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<NetworkHosts, E> {
        match word {
            "off" => Ok(NetworkHosts::Off),
            _ => Err(E::custom("expected `off`, or a list of hosts")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<NetworkHosts, A::Error> {
        let mut hosts: Vec<String> = Vec::new();
        while let Some(host) = seq.next_element::<String>()? {
            check::<A::Error>(&host)?;
            hosts.push(host);
        }
        Ok(match hosts.is_empty() {
            true => NetworkHosts::Off,
            false => NetworkHosts::Hosts(hosts),
        })
    }
}

impl<'de> Deserialize<'de> for NetworkHosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NetworkVisitor)
    }
}

impl JsonSchema for NetworkHosts {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Network".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"const": "off"}, {"type": "array", "items": {"type": "string"}}]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_in_few_forms() {
        for host in [
            "api.example.com",
            "API.example.com.",
            "*.example.com:8443",
            "localhost",
            "10.0.0.1",
            "10.0.0.1:80",
            "::1",
            "[::1]:80",
        ] {
            assert!(parts(host).is_some(), "{host}");
        }
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
            assert!(parts(host).is_none(), "{host}");
        }
    }

    #[test]
    fn private_addresses_are_internal() {
        for host in [
            "127.0.0.1",
            "10.1.2.3:80",
            "192.168.0.1",
            "169.254.169.254",
            "localhost:3000",
            "LOCALHOST",
            "::1",
            "[::1]:80",
            "fd00::1",
            "::ffff:10.0.0.1",
            "100.64.0.1",
        ] {
            assert!(NetworkHosts::is_internal(host), "{host}");
        }
        for host in [
            "1.1.1.1",
            "api.example.com",
            "*.local.example",
            "2606:4700::1111",
            "a b",
        ] {
            assert!(!NetworkHosts::is_internal(host), "{host}");
        }
    }
}
