//! Access to the server: the addresses to listen on, and the credentials that a client has to present.

use std::fmt;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use leaderelection_peers::secret;
use subtle::ConstantTimeEq as _;

use super::host::HostArgs;
use crate::exit::{Exit, Failure};

/// The address that a server listens on.
pub(crate) const DEFAULT: &str = "127.0.0.1:4040";

/// The environment variable with the token, if there is no token file.
pub(crate) const TOKEN_VARIABLE: &str = "LEADERELECTION_HTTP_TOKEN";

/// The accepted lengths of a token.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;

/// The addresses to listen on, and the permitted clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct AccessArgs {
    /// The address to listen on. The default serves only this machine; other machines need TLS and a token
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = addresses, default_value = DEFAULT)]
    listen: Addresses,
    /// Serve over TLS with this certificate, in PEM, followed by its intermediate certificates
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Require the token in this file: as `Authorization: Bearer …`, or as the password of any user (for
    /// browsers). /healthz, /readyz and /leading stay open. The default is the token in
    /// LEADERELECTION_HTTP_TOKEN, if that variable is set. SIGHUP reads the file again
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// Listen for other machines even without TLS or without a token
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    hosts: HostArgs,
}

/// The addresses of a host and a port.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// As it was given.
    text: String,
    all: Vec<SocketAddr>,
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

    pub(super) fn all(&self) -> &[SocketAddr] {
        &self.all
    }

    /// The host and the port as they were given.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Parses the address of a socket.
pub(crate) fn addresses(text: &str) -> Result<Addresses, String> {
    match text.to_socket_addrs().map(Vec::from_iter) {
        Ok(all) if !all.is_empty() => Ok(Addresses { text: text.to_owned(), all }),
        Ok(_) => Err("the name has no address; give an address and a port, such as 127.0.0.1:4040".to_owned()),
        Err(error) => Err(format!("{error}; give an address and a port, such as 127.0.0.1:4040 or 0.0.0.0:4040")),
    }
}

impl AccessArgs {
    /// The addresses to listen on, tried in order until one works.
    pub(super) fn addresses(&self) -> &Addresses {
        &self.listen
    }

    /// The host names that users allow.
    pub(crate) fn hosts(&self) -> &HostArgs {
        &self.hosts
    }

    /// The files of the certificate and its key.
    pub(crate) fn tls(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    /// Returns the required token, if there is one. Fails if other machines could read the traffic, or send
    /// requests without a token.
    pub(crate) fn token(&self) -> Result<Option<Token>, Failure> {
        let token = match &self.token_file {
            Some(path) => Some(Token::in_file(path)?),
            None => Token::from_environment()?,
        };
        let exposed = self.listen.all.iter().find(|address| !address.ip().is_loopback());
        let missing = match (self.tls().is_some(), token.is_some()) {
            (true, true) => return Ok(token),
            (false, true) => "--tls-cert and --tls-key",
            (true, false) => "--token-file",
            (false, false) => "--tls-cert, --tls-key and --token-file",
        };
        match exposed {
            Some(address) if !self.insecure => Err(Failure::usage(format!(
                "--listen {address} is open to other machines; give {missing}, or say --insecure if something else \
                 guards it"
            ))),
            _ => Ok(token),
        }
    }
}

/// The token that a client has to present. `Debug` does not print it. Clones change together.
#[derive(Clone)]
pub(crate) struct Token {
    /// The file, which may change; `None` if the token is from the environment.
    file: Option<PathBuf>,
    text: Arc<RwLock<String>>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    fn in_file(path: &Path) -> Result<Self, Failure> {
        Ok(Self::of(Some(path.to_owned()), Self::read(path)?))
    }

    fn of(file: Option<PathBuf>, text: String) -> Self {
        Self { file, text: Arc::new(RwLock::new(text)) }
    }

    /// Reads the file again; `None` if there is none. After a failure, the old token is valid.
    pub(super) fn reload(&self) -> Option<Result<(), Failure>> {
        let read = Self::read(self.file.as_deref()?);
        Some(read.map(|text| *self.text.write().unwrap_or_else(PoisonError::into_inner) = text))
    }

    fn read(path: &Path) -> Result<String, Failure> {
        let mut text = String::new();
        let limit = u64::try_from(*LENGTHS.end()).unwrap_or(u64::MAX) + 3;
        let read = secret::open(path).and_then(|file| file.take(limit).read_to_string(&mut text));
        read.map_err(|error: io::Error| {
            let problem = format!("cannot read the token in {}: {error}; check --token-file", path.display());
            Failure::new(Exit::Internal, problem)
        })?;
        Self::checked(&text, &format!("the token in {}", path.display()))
    }

    fn from_environment() -> Result<Option<Self>, Failure> {
        std::env::var_os(TOKEN_VARIABLE)
            .map(|text| Self::checked(&text.to_string_lossy(), &format!("the token in {TOKEN_VARIABLE}")))
            .transpose()
            .map(|text| text.map(|text| Self::of(None, text)))
    }

    /// Returns the token in a text.
    fn checked(text: &str, what: &str) -> Result<String, Failure> {
        let token = text.trim_ascii();
        let problem = if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            "has characters that no header can carry"
        } else if token.len() < *LENGTHS.start() {
            "is short enough to be guessed"
        } else if token.len() > *LENGTHS.end() {
            "is too long for a header"
        } else {
            return Ok(token.to_owned());
        };
        Err(Failure::usage(format!("{what} {problem}; make one with `openssl rand -hex 32`")))
    }

    /// Returns `true` if a request with these headers presents the token.
    pub(crate) fn is_shown_by(&self, headers: &HeaderMap) -> bool {
        headers
            .get(AUTHORIZATION)
            .and_then(|value| shown(value.to_str().ok()?))
            .is_some_and(|shown| self.equals(&shown))
    }

    /// Compares in a time that does not depend on the number of equal bytes.
    fn equals(&self, shown: &[u8]) -> bool {
        self.text.read().unwrap_or_else(PoisonError::into_inner).as_bytes().ct_eq(shown).into()
    }
}

/// Returns a bearer token, or the password of a user.
fn shown(authorization: &str) -> Option<Vec<u8>> {
    let (scheme, value) = authorization.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(value.trim_ascii().into()),
        "basic" => {
            let pair = BASE64_STANDARD.decode(value.trim_ascii()).ok()?;
            let colon = pair.iter().position(|byte| *byte == b':')?;
            Some(pair[colon + 1..].to_vec())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const SECRET: &str = "correct-horse-battery";

    fn token(text: &str) -> Token {
        Token::of(None, Token::checked(text, "the token").unwrap())
    }

    fn is_shown(authorization: &str) -> bool {
        let token = token(SECRET);
        let value = HeaderValue::from_str(authorization).unwrap();
        token.is_shown_by(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    #[test]
    fn is_shown_as_a_bearer_s_or_as_a_password() {
        let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
        for right in [format!("Bearer {SECRET}"), format!("bearer  {SECRET}"), basic(&format!("me:{SECRET}"))] {
            assert!(is_shown(&right), "{right}");
        }
        for wrong in [
            SECRET.to_owned(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            format!("Bearer {SECRET}x"),
            format!("Bearer {}", &SECRET[..SECRET.len() - 1]),
            format!("Digest {SECRET}"),
            format!("Basic {SECRET}"),
            basic(SECRET),
            basic(&format!("{SECRET}:me")),
        ] {
            assert!(!is_shown(&wrong), "{wrong}");
        }
        assert!(!token(SECRET).is_shown_by(&HeaderMap::new()));
    }

    #[test]
    fn is_neither_short_nor_strange_and_never_shown() {
        for bad in ["", "too-short", "with spaces in the middle", "naïve-but-long-enough", &"x".repeat(4097)] {
            let failure = Token::checked(bad, "the token in a file").unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(bad.is_empty() || !failure.to_string().contains(bad), "{failure}");
        }
        assert_eq!(format!("{:?}", token(&format!(" {SECRET}\r\n"))), "Token(…)");
    }
}
