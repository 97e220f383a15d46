//! The hosts of URLs of blobs.

use std::net::Ipv4Addr;

use leaderelection_store_support::url::is_name;

/// The public cloud's endpoint of an account, behind the account's name.
pub(crate) const PUBLIC: &str = ".blob.core.windows.net";

/// The domains of other clouds, whose objects have URLs that begin with `https://` too.
pub(crate) const S3: &[&str] = &["amazonaws.com", "amazonaws.com.cn", "amazonaws.eu"];
pub(crate) const GOOGLE: &[&str] = &["storage.googleapis.com", "storage.cloud.google.com"];

/// Returns `true` if the host is below one of these domains, with or without a port.
pub(crate) fn is_of(authority: &str, domains: &[&str]) -> bool {
    let host = authority.split(':').next().unwrap_or_default();
    domains.iter().any(|domain| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Returns `true` if the host of a URL has a name of Azure's: that of an account in any cloud, or of its private endpoint.
pub(crate) fn is_blob_host(url: &str) -> bool {
    url.split('/').nth(2).is_some_and(|host| host.contains(".blob."))
}

/// Returns `true` if the text is a host, with or without a port.
pub(crate) fn is_host(authority: &str) -> bool {
    let (host, port) = authority.split_once(':').unwrap_or((authority, "0"));
    is_name(host) && !host.ends_with('.') && port.parse::<u16>().is_ok_and(|number| number.to_string() == port)
}

/// Leaves out the port that a URL of this scheme has without one.
pub(crate) fn without_port_of<'a>(scheme: Option<&str>, authority: &'a str) -> &'a str {
    let port = match scheme {
        Some("https") => ":443",
        Some("http") => ":80",
        _ => return authority,
    };
    authority.strip_suffix(port).filter(|host| !host.contains(':')).unwrap_or(authority)
}

/// Returns `true` if the account is the first part of the path, as on a host that has no name for the account.
pub(crate) fn is_emulator(authority: &str) -> bool {
    let host = authority.split(':').next().unwrap_or_default();
    host == "localhost" || host.parse::<Ipv4Addr>().is_ok()
}
