use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// Network that requests may reach although it is not public: an address, a block of addresses (CIDR, RFC 4632), or a host
/// name.
///
/// # Examples
///
/// ```
/// use tool_exec_http::Network;
///
/// for written in ["127.0.0.1", "10.0.0.0/8", "fd00::/8", "localhost", "*.corp.example"] {
///     assert_eq!(written.parse::<Network>()?.to_string(), written);
/// }
/// assert!("10.0.0.0/33".parse::<Network>().is_err());
/// # Ok::<(), tool_exec_http::NetworkError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network(Inner);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Inner {
    Block { address: IpAddr, length: u8 },
    Host(String),
    Below(String),
}

/// Error for a text that is not a [`Network`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid network `{0}`: expected an address, a block such as `10.0.0.0/8` or a host name")]
pub struct NetworkError(String);

impl Network {
    fn contains(&self, host: &str, address: IpAddr) -> bool {
        match &self.0 {
            Inner::Block { address: of, length } => in_block(address, *of, *length),
            Inner::Host(name) => name == host,
            Inner::Below(suffix) => host.ends_with(suffix.as_str()),
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        if let Ok(address) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
            let longest = if address.is_ipv4() { 32 } else { 128 };
            let length = length.map_or(Ok(longest), |length| length.parse().map_err(|_| error()))?;
            return if length <= longest {
                Ok(Self(Inner::Block { address, length }))
            } else {
                Err(error())
            };
        }
        let host = text.to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let usable = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !usable || length.is_some() {
            return Err(error());
        }
        Ok(Self(match host.strip_prefix('*') {
            Some(suffix) => Inner::Below(suffix.to_owned()),
            None => Inner::Host(host),
        }))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Block { address, length } if *length == if address.is_ipv4() { 32 } else { 128 } => {
                write!(f, "{address}")
            }
            Inner::Block { address, length } => write!(f, "{address}/{length}"),
            Inner::Host(name) => f.write_str(name),
            Inner::Below(suffix) => write!(f, "*{suffix}"),
        }
    }
}

/// Decides which addresses requests may reach, to prevent server-side request forgery (OWASP, "SSRF Prevention").
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressPolicy {
    /// Networks that are allowed in any case.
    pub networks: Vec<Network>,
    /// `true` if loopback and private networks are allowed.
    pub private: bool,
}

impl AddressPolicy {
    /// Returns `true` if a request to `host` may connect to `address`.
    pub(crate) fn allows(&self, host: &str, address: IpAddr) -> bool {
        let address = embedded(address);
        let host = host.trim_end_matches('.');
        match class(address) {
            Class::Public => true,
            Class::Private if self.private => true,
            Class::Private | Class::Never => self
                .networks
                .iter()
                .any(|network| network.contains(host, address)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Public,
    /// Loopback, private, unique local and carrier-grade NAT addresses.
    Private,
    /// Addresses that are never those of an API: link-local, metadata, multicast, reserved, documentation.
    Never,
}

/// Metadata services of cloud providers, which serve credentials without authentication. Others are link-local and need no
/// entry.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Blocks of the IANA special-purpose address registries (RFC 6890). The first block that contains an address decides.
const BLOCKS: [(&str, Class); 33] = [
    ("127.0.0.0/8", Class::Private),
    ("10.0.0.0/8", Class::Private),
    ("172.16.0.0/12", Class::Private),
    ("192.168.0.0/16", Class::Private),
    ("100.64.0.0/10", Class::Private),
    ("0.0.0.0/8", Class::Never),
    ("169.254.0.0/16", Class::Never),
    ("192.0.0.0/24", Class::Never),
    ("192.0.2.0/24", Class::Never),
    ("192.88.99.0/24", Class::Never),
    ("198.18.0.0/15", Class::Never),
    ("198.51.100.0/24", Class::Never),
    ("203.0.113.0/24", Class::Never),
    ("224.0.0.0/4", Class::Never),
    ("240.0.0.0/4", Class::Never),
    ("::1/128", Class::Private),
    ("fc00::/7", Class::Private),
    ("::/96", Class::Never),
    ("::ffff:0:0/96", Class::Never),
    ("64:ff9b:1::/48", Class::Never),
    ("100::/63", Class::Never),
    ("2001::/23", Class::Never),
    ("2001:db8::/32", Class::Never),
    ("2002::/16", Class::Never),
    ("2620:4f:8000::/48", Class::Never),
    ("3fff::/20", Class::Never),
    ("5f00::/16", Class::Never),
    ("fe80::/10", Class::Never),
    ("fec0::/10", Class::Never),
    ("ff00::/8", Class::Never),
    // Only 2000::/3 is allocated. Addresses with the translation prefix (RFC 6052) are converted before the lookup.
    ("2000::/3", Class::Public),
    ("::/0", Class::Never),
    ("0.0.0.0/0", Class::Public),
];

fn class(address: IpAddr) -> Class {
    if METADATA.contains(&address) {
        return Class::Never;
    }
    blocks()
        .iter()
        .find(|(block, length, _)| in_block(address, *block, *length))
        .map_or(Class::Never, |(_, _, class)| *class)
}

fn blocks() -> &'static [(IpAddr, u8, Class)] {
    static PARSED: std::sync::LazyLock<Vec<(IpAddr, u8, Class)>> = std::sync::LazyLock::new(|| {
        let parse = |(text, class): &(&str, Class)| {
            let (address, length) = text.split_once('/')?;
            Some((address.parse().ok()?, length.parse().ok()?, *class))
        };
        BLOCKS.iter().filter_map(parse).collect()
    });
    &PARSED
}

/// Returns the IPv4 address that is embedded in an IPv6 address: mapped (RFC 4291), translated (RFC 6052) or 6to4 (RFC
/// 3056). Returns any other address unchanged.
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let octets = six.octets();
    let four = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(
            octets[at],
            octets[at + 1],
            octets[at + 2],
            octets[at + 3],
        ))
    };
    match six.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => four(12),
        [0x2002, ..] => match class(four(2)) {
            // A public 6to4 address stays, and is refused: traffic to it would go through a third party's relay.
            Class::Public => address,
            _ => four(2),
        },
        _ => address,
    }
}

fn in_block(address: IpAddr, block: IpAddr, length: u8) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(four) => u128::from(four.to_bits()) << 96,
        IpAddr::V6(six) => six.to_bits(),
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    address.is_ipv4() == block.is_ipv4() && bits(address) & mask == bits(block) & mask
}

#[cfg(test)]
mod tests {
    use super::{AddressPolicy, BLOCKS, blocks};

    #[test]
    fn every_block_is_read() {
        assert_eq!(blocks().len(), BLOCKS.len());
    }

    #[test]
    fn allowed_addresses() {
        let public = AddressPolicy::default();
        let private = AddressPolicy {
            private: true,
            ..AddressPolicy::default()
        };
        // Columns: address, allowed for all, allowed with `allow_private`.
        for (address, open, private_open) in [
            ("1.1.1.1", true, true),
            ("2606:4700:4700::1111", true, true),
            ("::ffff:1.1.1.1", true, true),
            ("64:ff9b::1.1.1.1", true, true),
            ("127.0.0.1", false, true),
            ("127.255.255.254", false, true),
            ("10.1.2.3", false, true),
            ("172.31.255.255", false, true),
            ("172.32.0.0", true, true),
            ("192.168.0.1", false, true),
            ("100.64.0.1", false, true),
            ("100.128.0.1", true, true),
            ("::1", false, true),
            ("fd12::1", false, true),
            ("::ffff:127.0.0.1", false, true),
            ("64:ff9b::10.0.0.1", false, true),
            ("2002:7f00:1::", false, true),
            ("2002:101:101::", false, false),
            ("169.254.169.254", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("64:ff9b::a9fe:a9fe", false, false),
            ("100.100.100.200", false, false),
            ("192.0.0.192", false, false),
            ("fd00:ec2::254", false, false),
            ("0.0.0.0", false, false),
            ("::", false, false),
            ("::7f00:1", false, false),
            ("fe80::1", false, false),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("192.0.2.1", false, false),
            ("2001:db8::1", false, false),
            ("2001::1", false, false),
            ("ff02::1", false, false),
            ("4000::1", false, false),
        ] {
            let parsed = address.parse().unwrap();
            assert_eq!(public.allows("host", parsed), open, "{address}");
            assert_eq!(
                private.allows("host", parsed),
                private_open,
                "{address} with allow_private"
            );
        }
    }

    #[test]
    fn allowed_networks() {
        let policy = AddressPolicy {
            networks: ["10.1.0.0/16", "localhost", "*.corp.example", "::1"]
                .map(|text| text.parse().unwrap())
                .into(),
            private: false,
        };
        for (host, address, allowed) in [
            ("a", "10.1.255.1", true),
            ("a", "10.2.0.1", false),
            ("a", "::ffff:10.1.0.1", true),
            ("localhost", "127.0.0.1", true),
            ("localhost.", "127.0.0.1", true),
            ("notlocalhost", "127.0.0.1", false),
            ("x.corp.example", "192.168.1.1", true),
            ("corp.example", "192.168.1.1", false),
            ("xcorp.example", "192.168.1.1", false),
            ("a", "::1", true),
        ] {
            assert_eq!(
                policy.allows(host, address.parse().unwrap()),
                allowed,
                "{host} {address}"
            );
        }
    }
}
