//! Checks the addresses that an elector writes into the record, for its peers and for clients.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::timings::config_error::ConfigError;

/// The maximum length of an address, in bytes.
const LONGEST: usize = 1024;

/// Fails if `url` is not an HTTP address that others could reach. Sends nothing.
pub(crate) fn check(setting: &'static str, url: &str) -> Result<(), ConfigError> {
    match problem_with(url) {
        None => Ok(()),
        Some(problem) => Err(ConfigError::new(setting, format!("({:?}) {problem}", excerpt(url)))),
    }
}

/// Shortens an address for an error message, and hides its user name and password.
fn excerpt(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let shown = match authority.rsplit_once('@') {
        Some((secret, _)) => format!("{scheme}://…{}", &rest[secret.len()..]),
        None => url.to_owned(),
    };
    shown.chars().take(80).collect()
}

/// The problem with an address, if there is one.
fn problem_with(url: &str) -> Option<String> {
    if url.len() > LONGEST {
        return Some(format!("has {} bytes, more than {LONGEST}", url.len()));
    }
    if let Some(c) = url.chars().find(|c| !c.is_ascii_graphic()) {
        return Some(format!("contains {c:?}, which a URL has to escape"));
    }
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Some("must begin with https:// or http://".to_owned());
    };
    if url.contains('#') {
        return Some("must have no fragment (#…), because a server never sees it".to_owned());
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("must have no user name and no password, because everyone can read the lock".to_owned());
    }
    let (host, port) = split_port(authority);
    if host.is_empty() {
        return Some("names no host".to_owned());
    }
    if let Some(port) = port.filter(|port| !matches!(port.parse::<u16>(), Ok(1..))) {
        return Some(format!("has {port:?} for a port, which must be a number from 1 to 65535"));
    }
    problem_with_host(host)
}

/// Splits an authority into its host and its port. An IPv6 address keeps its brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn problem_with_host(host: &str) -> Option<String> {
    let address = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => match inner.parse::<Ipv6Addr>() {
            Ok(address) => Some(IpAddr::V6(address)),
            Err(_) => return Some(format!("has {host:?} for a host, which is not an IPv6 address")),
        },
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    };
    match address {
        Some(address) if address.is_unspecified() => {
            Some(format!("has {host:?} for a host, which is no address that others can reach"))
        }
        Some(_) => None,
        None if host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')) => None,
        None => Some(format!("has {host:?} for a host, which is neither a name nor an address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_others_can_reach_are_accepted() {
        for url in [
            "https://10.0.1.42:8443/health/leadership",
            "http://node-1.internal",
            "https://[2001:db8::1]:8443/leader?zone=a",
            "https://[2001:db8::1]",
        ] {
            assert_eq!(problem_with(url), None, "{url}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        assert_eq!(excerpt("https://user:secret@a:1/x"), "https://…@a:1/x");
        assert_eq!(excerpt("https://a:1/x@y"), "https://a:1/x@y");
    }

    #[test]
    fn every_problem_is_named() {
        let long = format!("https://a/{}", "x".repeat(LONGEST));
        for (url, problem) in [
            ("", "must begin with"),
            ("10.0.1.42:8443", "must begin with"),
            ("ftp://a", "must begin with"),
            ("https://", "names no host"),
            ("https://:8443", "names no host"),
            ("https:///path", "names no host"),
            ("https://a b", "contains ' '"),
            ("https://\u{e9}", "contains 'é'"),
            ("https://a\n", "contains '\\n'"),
            ("https://user:secret@a", "no user name"),
            ("https://a#b", "no fragment"),
            ("https://a:0", "\"0\" for a port"),
            ("https://a:65536", "\"65536\" for a port"),
            ("https://a:", "\"\" for a port"),
            ("https://[::1", "neither a name nor an address"),
            ("https://[g]", "not an IPv6 address"),
            ("https://a,b", "neither a name nor an address"),
            ("https://0.0.0.0:8443", "no address that others can reach"),
            ("https://[::]:8443", "no address that others can reach"),
            (&long, "has 1034 bytes"),
        ] {
            let found = problem_with(url).unwrap_or_default();
            assert!(found.contains(problem), "{url}: {found}");
        }
    }
}
