//! The addresses that a follower may connect to. Whoever can write the lock could point followers anywhere.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::IpNet;
use leaderelection::ConfigError;

use crate::refusal::Refusal;

/// Services of clouds that answer with credentials, outside the link-local networks: AWS for machines and for pods, Google,
/// Oracle and Scaleway over IPv6, and Alibaba, Azure and Oracle over IPv4.
const METADATA: [&str; 8] = [
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
];

/// A network or a name that followers may connect to.
///
/// ```
/// use leaderelection_peers::Allowed;
///
/// for text in ["10.0.0.0/8", "fd12:3456::/32", "10.0.1.42", "node-1.internal", "*.internal"] {
///     assert_eq!(text.parse::<Allowed>()?.to_string(), text);
/// }
/// assert!("10.0.0.0/33".parse::<Allowed>().is_err());
/// # Ok::<(), leaderelection::ConfigError>(())
/// ```
///
/// A loopback, link-local or metadata address is allowed only by a network that has nothing but such addresses, such as
/// `127.0.0.0/8` or `169.254.169.254`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Network(IpNet),
    /// A host name, or its end if it begins with a dot.
    Name(String),
}

impl FromStr for Allowed {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::new("allow", format!("({text:?}) must be a network, an address or a host name"));
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self(Rule::Network(network.trunc())));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(Rule::Network(address.into())));
        }
        let (name, suffix) = match text.strip_prefix('*') {
            Some(rest) if rest.starts_with('.') => (&rest[1..], true),
            _ => (text, false),
        };
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        // What looks like an address and is none is a mistake, and no name.
        let is_name = name.split('.').all(is_label) && name.bytes().any(|byte| byte.is_ascii_alphabetic());
        if !is_name {
            return Err(wrong());
        }
        let name = name.to_ascii_lowercase();
        Ok(Self(Rule::Name(if suffix { format!(".{name}") } else { name })))
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rule::Network(network) if network.prefix_len() == network.max_prefix_len() => {
                write!(f, "{}", network.addr())
            }
            Rule::Network(network) => write!(f, "{network}"),
            Rule::Name(name) if name.starts_with('.') => write!(f, "*{name}"),
            Rule::Name(name) => f.write_str(name),
        }
    }
}

/// All that followers may connect to.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowList(pub(crate) Vec<Allowed>);

impl AllowList {
    /// Returns `true` if a host may be allowed by its name.
    pub(crate) fn names(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|Allowed(rule)| match rule {
            Rule::Name(name) if name.starts_with('.') => host.ends_with(name.as_str()),
            Rule::Name(name) => host == *name,
            Rule::Network(_) => false,
        })
    }

    /// Refuses an address that followers may not connect to. `is_named` is `true` if the name of the host is allowed.
    pub(crate) fn admit(&self, address: IpAddr, is_named: bool) -> Result<(), Refusal> {
        // Otherwise, an IPv4 address in an IPv6 address would be no loopback address.
        let address = address.to_canonical();
        if is_nobodys(address) || embedded(address).any(|inner| is_nobodys(inner.into())) {
            return Err(Refusal::SpecialAddress { address });
        }
        let mut networks = self.0.iter().filter_map(|Allowed(rule)| match rule {
            Rule::Network(network) if network.contains(&address) => Some(network),
            _ => None,
        });
        if is_special(address) {
            let listed = networks.any(|network| is_special(network.network()) && is_special(network.broadcast()));
            return if listed { Ok(()) } else { Err(Refusal::SpecialAddress { address }) };
        }
        if is_named || networks.next().is_some() {
            return Ok(());
        }
        Err(Refusal::NotAllowed { host: address.to_string() })
    }
}

/// Returns `true` for addresses that no single machine has.
fn is_nobodys(address: IpAddr) -> bool {
    address.is_unspecified() || address.is_multicast() || address == IpAddr::from([255; 4])
}

/// The IPv4 addresses to which a translator, a relay or an old system may pass on what is sent to an IPv6 address.
fn embedded(address: IpAddr) -> impl Iterator<Item = Ipv4Addr> {
    let inner = match address {
        IpAddr::V4(_) => [None; 2],
        IpAddr::V6(address) => {
            let at = |high: u16, low: u16| {
                let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
                Some(Ipv4Addr::new(a, b, c, d))
            };
            match address.segments() {
                // IPv4-compatible addresses, SIIT, and NAT64 by its well-known prefix.
                [0, 0, 0, 0, 0, 0, high, low]
                | [0, 0, 0, 0, 0xffff, 0, high, low]
                | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [at(high, low), None],
                // NAT64 by a prefix of one's own, of 96 bits or of 48, which leaves the ninth byte out.
                [0x64, 0xff9b, 1, first, second, third, high, low] => {
                    let [_, c] = second.to_be_bytes();
                    let [d, _] = third.to_be_bytes();
                    [at(high, low), at(first, u16::from_be_bytes([c, d]))]
                }
                // 6to4.
                [0x2002, high, low, ..] => [at(high, low), None],
                // Teredo, whose clients' addresses are inverted.
                [0x2001, 0, _, _, _, _, high, low] => [at(!high, !low), None],
                _ => [None; 2],
            }
        }
    };
    inner.into_iter().flatten().filter(|inner| !inner.is_unspecified())
}

/// Returns `true` for addresses that mean something else on every machine.
fn is_special(address: IpAddr) -> bool {
    let is_near = match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
    };
    is_near
        || METADATA.iter().any(|metadata| metadata.parse() == Ok(address))
        || embedded(address).any(|inner| is_special(inner.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(allowed: &[&str]) -> AllowList {
        AllowList(allowed.iter().map(|text| text.parse().unwrap()).collect())
    }

    fn admits(allowed: &[&str], address: &str) -> bool {
        list(allowed).admit(address.parse().unwrap(), false).is_ok()
    }

    #[test]
    fn only_listed_networks_are_allowed() {
        assert!(!admits(&[], "10.0.1.42"));
        assert!(admits(&["10.0.0.0/8"], "10.0.1.42") && admits(&["10.0.0.0/8"], "::ffff:10.0.1.42"));
        assert!(!admits(&["10.0.0.0/8", "node-1"], "11.0.0.1"));
        assert!(admits(&["2001:db8::/32"], "2001:db8::1") && !admits(&["2001:db8::/32"], "2001:db9::1"));
        assert!(admits(&["0.0.0.0/0"], "8.8.8.8"));
    }

    #[test]
    fn special_addresses_are_refused_unless_they_are_listed_by_themselves() {
        let everything = ["0.0.0.0/0", "::/0"];
        for address in [
            "127.0.0.1",
            "127.3.2.1",
            "::1",
            "::ffff:127.0.0.1",
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            // IPv4-compatible, SIIT, NAT64 by both prefixes and both lengths, 6to4 and Teredo.
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::169.254.169.254",
            "64:ff9b:1:a9fe:a9:fe00::",
            "2002:a9fe:a9fe::1",
            "2002:7f00:1::",
            "2001:0:1:2:3:4:5601:5601",
            "2001:0:1:2:3:4:9b9b:9b37",
        ] {
            assert!(!admits(&everything, address), "{address}");
            assert!(list(&["node"]).admit(address.parse().unwrap(), true).is_err(), "{address} by a name");
            let canonical = address.parse::<IpAddr>().unwrap().to_canonical().to_string();
            assert!(admits(&[&canonical], address), "{address}");
        }
        // One end of these networks is special, and the other is not.
        assert!(!admits(&["169.254.0.0/15"], "169.254.169.254") && !admits(&["126.0.0.0/7"], "127.0.0.1"));
        assert!(admits(&["127.0.0.0/8"], "127.0.0.1") && admits(&["169.254.0.0/16"], "169.254.169.254"));
        assert!(admits(&["64:ff9b::/96"], "64:ff9b::8.8.8.8") && !admits(&["64:ff9b::/96"], "64:ff9b::169.254.0.1"));
        for never in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "64:ff9b::224.0.0.1"] {
            assert!(!admits(&[never], never), "{never}");
        }
    }

    #[test]
    fn what_is_allowed_is_shown_as_it_is_written() {
        for text in ["10.0.0.0/8", "10.0.1.42", "2001:db8::/32", "2001:db8::1", "node-1.internal", "*.example.com"] {
            assert_eq!(text.parse::<Allowed>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn names_are_allowed_as_a_whole_or_by_their_end() {
        let names = list(&["Node-1.internal", "*.example.com"]);
        for name in ["node-1.internal", "NODE-1.INTERNAL.", "a.example.com", "a.b.example.com"] {
            assert!(names.names(name), "{name}");
        }
        for name in ["xnode-1.internal", "node-1.internal.evil.com", "example.com", "aexample.com", "10.0.0.1"] {
            assert!(!names.names(name), "{name}");
        }
        for wrong in ["", "*", "*.", "*example.com", "a..b", "a b", "10.0.0.0/33", "10.0.0.256", "https://a", "a:80"] {
            let error = wrong.parse::<Allowed>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("allow ({wrong:?})")), "{error}");
        }
    }
}
