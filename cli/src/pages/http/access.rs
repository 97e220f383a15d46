//! Access to the server: the addresses to listen on, and what a client has to present there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::Args;

use super::host::HostArgs;
#[cfg(unix)]
use super::socket;
use super::tls::Files;
use super::token::Token;
use crate::exit::Failure;

/// The address that a server listens on.
pub(crate) const DEFAULT: &str = "127.0.0.1:4040";

/// The addresses to listen on, and the permitted clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct AccessArgs {
    /// Listen here
    ///
    /// An address; or unix:PATH, a socket that only processes of this user can open; or stdin, a listening socket passed as
    /// standard input, for example by systemd, so that no connection is refused during a restart. The default serves only this
    /// machine. Other machines need TLS and a token.
    #[arg(long, value_name = "HOST:PORT", value_parser = Listen::parse, default_value = DEFAULT)]
    pub(crate) listen: Listen,
    /// Serve TLS with this certificate (PEM)
    ///
    /// Append the intermediate certificates to the file.
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Read the private key of --tls-cert (PEM)
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Require client certificates of this CA
    ///
    /// A PEM file. Clients then need no token. Kubernetes probes have no certificate: see --probe-listen of serve.
    #[arg(long, value_name = "PATH", requires = "tls_cert", hide_short_help = true)]
    client_ca: Option<PathBuf>,
    /// Require a token from this file
    ///
    /// The file has one token per line. A client sends one as `Authorization: Bearer …`, or as the password of any user (for
    /// browsers). Probes such as /healthz need none. The default is the token in LEADERELECTION_HTTP_TOKEN, if set.
    /// SIGHUP reloads the file.
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// Serve other machines without TLS or token
    #[arg(long, hide_short_help = true)]
    insecure: bool,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
}

/// The place at which a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Listen {
    At(Addresses),
    #[cfg(unix)]
    Socket(PathBuf),
    /// The socket that is standard input, at this address.
    #[cfg(unix)]
    Stdin(SocketAddr),
}

impl Listen {
    fn parse(text: &str) -> Result<Self, String> {
        #[cfg(unix)]
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err("missing path; expected one such as unix:/run/leader.sock".to_owned())
            } else {
                Ok(Self::Socket(path.into()))
            };
        }
        #[cfg(unix)]
        if text == "stdin" {
            let address = socket::inherited().and_then(|socket| socket.local_addr());
            return address.map(Self::Stdin).map_err(|error| {
                format!(
                    "standard input is not a listening socket ({error}); set StandardInput=socket in the systemd unit"
                )
            });
        }
        addresses(text).map(Self::At)
    }

    /// Returns `true` for the socket that is standard input.
    pub(crate) fn is_stdin(&self) -> bool {
        match self {
            #[cfg(unix)]
            Self::Stdin(_) => true,
            _ => false,
        }
    }

    /// The addresses that other machines may reach.
    fn exposed(&self) -> Option<&SocketAddr> {
        match self {
            Self::At(addresses) => addresses.all.iter().find(|address| !address.ip().is_loopback()),
            #[cfg(unix)]
            Self::Socket(_) => None,
            #[cfg(unix)]
            Self::Stdin(address) => Some(address).filter(|address| !address.ip().is_loopback()),
        }
    }
}

/// The addresses of a host and a port.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// As it was given.
    pub(super) text: String,
    pub(super) all: Vec<SocketAddr>,
}

impl Addresses {
    /// The address at which this machine can ask a server that listens there.
    pub(crate) fn to_ask(&self) -> Option<SocketAddr> {
        let mut address = *self.all.first()?;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Some(address)
    }
}

/// Parses the address of a socket.
pub(crate) fn addresses(text: &str) -> Result<Addresses, String> {
    match text.to_socket_addrs().map(Vec::from_iter) {
        Ok(all) if !all.is_empty() => Ok(Addresses { text: text.to_owned(), all }),
        Ok(_) => Err("host name has no address; expected an address and a port, such as 127.0.0.1:4040".to_owned()),
        Err(error) => Err(format!("{error}; expected an address and a port, such as 127.0.0.1:4040 or 0.0.0.0:4040")),
    }
}

impl AccessArgs {
    /// The files for TLS.
    pub(crate) fn tls(&self) -> Option<Files> {
        let (cert, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(Files { cert, key, client_ca: self.client_ca.clone() })
    }

    /// Returns the required tokens, if there are any. Fails if other machines could read the traffic, or send
    /// requests without a token.
    pub(crate) fn token(&self) -> Result<Option<Token>, Failure> {
        let token = match &self.token_file {
            Some(path) => Some(Token::in_file(path)?),
            None => Token::from_environment()?,
        };
        let exposed = self.listen.exposed();
        let missing = match (self.tls_cert.is_some(), token.is_some() || self.client_ca.is_some()) {
            (true, true) => return Ok(token),
            (false, true) => "--tls-cert and --tls-key",
            (true, false) => "--token-file or --client-ca",
            (false, false) => "--tls-cert, --tls-key and --token-file",
        };
        match exposed {
            Some(address) if !self.insecure => Err(Failure::usage(format!(
                "--listen {address} is reachable from other machines; add {missing}, or --insecure if something else \
                 protects it"
            ))),
            _ => Ok(token),
        }
    }
}
