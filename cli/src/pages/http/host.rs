//! The host names under which requests are answered.
//!
//! A page of any site can have its own name resolved to an address of this machine, and could then read what is served here:
//! DNS rebinding. The browser sends the name of that site in `Host`, so such a name is refused. An address in `Host` is always
//! answered, because it is the address of this server.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};

/// The longest name that an answer repeats.
const LONGEST: usize = 253;

/// The names that users allow.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HostArgs {
    /// Answer requests for this host name too
    ///
    /// A name such as leader.example.com or *.example.com; * is any. Repeatable. To prevent DNS rebinding, a server without TLS
    /// and without a token answers only requests for addresses, localhost, this machine's name, and the names that it listens
    /// on or advertises.
    #[arg(
        long = "allow-host",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "HTTP",
        hide_short_help = true
    )]
    names: Vec<String>,
}

/// The names for which a server answers, beside addresses and `localhost`. They are in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(Vec<String>);

impl HostArgs {
    /// The names that users allow, that of this machine, and `own`: names of this server, or URLs that contain them.
    pub(crate) fn with<'a>(&self, own: impl IntoIterator<Item = &'a str>) -> Hosts {
        let names = self.names.iter().map(|name| name.to_ascii_lowercase());
        let hosts = Hosts(names.chain(name_of_machine()).collect());
        own.into_iter().fold(hosts, |hosts, own| hosts.and(own))
    }
}

impl Hosts {
    /// These and one more: a name with or without a port, or a URL that contains it.
    pub(super) fn and(&self, own: &str) -> Self {
        let authority = own.split_once("://").map_or(own, |(_, rest)| rest).split(['/', '?']).next();
        Self(self.0.iter().cloned().chain(authority.map(host_of)).collect())
    }

    /// Refuses requests for all other names, before anything else is done for them.
    pub(super) fn guard(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), only_known))
    }

    fn knows(&self, authority: &str) -> bool {
        let host = host_of(authority);
        let is_address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let is_known = |known: &String| match known.strip_prefix('*') {
            Some(end) => host.ends_with(end),
            None => host == *known,
        };
        is_address || host == "localhost" || host.ends_with(".localhost") || self.0.iter().any(is_known)
    }
}

async fn only_known(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let unknown = asked(request.uri().authority(), request.headers()).find(|host| !hosts.knows(host));
    match unknown {
        None => next.run(request).await,
        Some(host) => {
            let host: String = host_of(&host).chars().take(LONGEST).collect();
            let problem =
                format!("unknown host name {host:?}; if this server should answer for it, add it with --allow-host\n");
            (StatusCode::MISDIRECTED_REQUEST, problem).into_response()
        }
    }
}

/// The hosts that a request names. A client of HTTP/1.0 names none, and no browser is one.
fn asked(target: Option<&Authority>, headers: &HeaderMap) -> impl Iterator<Item = String> {
    let named = headers.get_all(HOST).iter().map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
    target.map(|target| target.as_str().to_owned()).into_iter().chain(named)
}

/// The host of an authority, without its port, in lower case.
fn host_of(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(unix)]
fn name_of_machine() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_ascii_lowercase();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn name_of_machine() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_known_and_those_of_others_are_not() {
        let args = HostArgs { names: vec!["Leader.example.com".to_owned(), "*.internal".to_owned()] };
        let hosts = args.with(["node-1:4040", "https://10.0.1.42:8443/health", "http://front.example.com:80/x?y"]);
        for known in [
            "127.0.0.1",
            "127.0.0.1:4040",
            "10.0.1.42:4041",
            "[::1]:4040",
            "[2001:db8::1]",
            "localhost:4040",
            "LOCALHOST",
            "a.localhost",
            "leader.example.com.",
            "Leader.Example.com:443",
            "a.b.internal",
            "node-1:1",
            "front.example.com",
        ] {
            assert!(hosts.knows(known), "{known}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:4040",
            "leader.example.com.evil.example",
            "internal",
            "127.0.0.1.evil.example",
        ] {
            assert!(!hosts.knows(other), "{other}");
        }
        assert!(HostArgs { names: vec!["*".to_owned()] }.with([]).knows("evil.example"));
    }
}
