//! Access to the server: the addresses to listen on, and the credentials that a client has to present.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use leaderelection_peers::secret;
use subtle::ConstantTimeEq as _;

use super::host::HostArgs;
#[cfg(unix)]
use super::socket;
use super::tls::Files;
use crate::exit::Failure;

/// The address that a server listens on.
pub(crate) const DEFAULT: &str = "127.0.0.1:4040";

/// The environment variable with the token, if there is no token file.
pub(crate) const TOKEN_VARIABLE: &str = "LEADERELECTION_HTTP_TOKEN";

/// The accepted lengths of a token.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;

/// The largest part of a file of tokens that is read.
const LARGEST_FILE: u64 = 256 * 1024;

/// The addresses to listen on, and the permitted clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct AccessArgs {
    /// The address to listen on, or unix:PATH for a socket that only processes of this user open, or stdin for a socket that
    /// is standard input and listens already, as systemd passes one: no connection is refused while this server restarts.
    /// The default serves only this machine; other machines need TLS and a token
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = Listen::parse, default_value = DEFAULT)]
    pub(crate) listen: Listen,
    /// Serve over TLS with this certificate, in PEM, followed by its intermediate certificates
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Demand a certificate of this authority, in PEM, of every client. Then a token is not needed. Probes have none: see
    /// --probe-listen of serve
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// Require a token of this file, which has one per line: as `Authorization: Bearer …`, or as the password of any
    /// user (for browsers). /healthz, /readyz and /leading stay open. The default is the token in
    /// LEADERELECTION_HTTP_TOKEN, if that variable is set. SIGHUP reads the file again
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// Listen for other machines even without TLS or without a token
    #[arg(long)]
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
                Err("name the path, such as unix:/run/leader.sock".to_owned())
            } else {
                Ok(Self::Socket(path.into()))
            };
        }
        #[cfg(unix)]
        if text == "stdin" {
            let address = socket::inherited().and_then(|socket| socket.local_addr());
            return address.map(Self::Stdin).map_err(|error| {
                format!(
                    "standard input is no socket that listens ({error}); start with StandardInput=socket in systemd"
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
        Ok(_) => Err("the name has no address; give an address and a port, such as 127.0.0.1:4040".to_owned()),
        Err(error) => Err(format!("{error}; give an address and a port, such as 127.0.0.1:4040 or 0.0.0.0:4040")),
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
                "--listen {address} is open to other machines; give {missing}, or say --insecure if something else \
                 guards it"
            ))),
            _ => Ok(token),
        }
    }
}

/// The tokens of which a client has to present one. `Debug` does not print them. Clones change together.
#[derive(Clone)]
pub(crate) struct Token {
    /// The file, which may change; `None` if the token is from the environment.
    file: Option<PathBuf>,
    entries: Arc<RwLock<Vec<Entry>>>,
}

/// A token, and the namespaces of Leases that it is for.
struct Entry {
    text: String,
    /// `None` if it is for everything.
    namespaces: Option<BTreeSet<String>>,
}

/// The use of a token: these namespaces of Leases, or everything if there are none.
pub(crate) type Scope = Option<BTreeSet<String>>;

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    fn in_file(path: &Path) -> Result<Self, Failure> {
        Ok(Self::of(Some(path.to_owned()), Self::read(path)?))
    }

    fn of(file: Option<PathBuf>, entries: Vec<Entry>) -> Self {
        Self { file, entries: Arc::new(RwLock::new(entries)) }
    }

    fn entries(&self) -> RwLockReadGuard<'_, Vec<Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, if it has one token for everything, and nothing else.
    pub(crate) fn file_of_one(&self) -> Option<&Path> {
        let is_one = matches!(self.entries().as_slice(), [Entry { namespaces: None, .. }]);
        self.file.as_deref().filter(|_| is_one)
    }

    /// Reads the file again; `None` if there is none. After a failure, the old tokens are valid.
    pub(super) fn reload(&self) -> Option<Result<(), Failure>> {
        let read = Self::read(self.file.as_deref()?);
        Some(read.map(|entries| *self.entries.write().unwrap_or_else(PoisonError::into_inner) = entries))
    }

    fn read(path: &Path) -> Result<Vec<Entry>, Failure> {
        let mut text = String::new();
        let read = secret::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut text));
        let length = read.map_err(|error: io::Error| {
            let problem = format!("cannot read the token in {}: {error}; check --token-file", path.display());
            Failure::internal(problem)
        })?;
        if length as u64 > LARGEST_FILE {
            let most = LARGEST_FILE / 1024;
            let path = path.display();
            return Err(Failure::usage(format!(
                "--token-file {path} is larger than {most} KiB; remove old tokens from it"
            )));
        }
        let lines = text.lines().filter(|line| !line.trim_ascii().is_empty());
        let entries = lines.map(|line| Entry::parse(line, path)).collect::<Result<Vec<_>, _>>()?;
        if entries.is_empty() {
            Self::checked("", &format!("the token in {}", path.display()))?;
        }
        Ok(entries)
    }

    fn from_environment() -> Result<Option<Self>, Failure> {
        std::env::var_os(TOKEN_VARIABLE)
            .map(|text| Self::checked(&text.to_string_lossy(), &format!("the token in {TOKEN_VARIABLE}")))
            .transpose()
            .map(|text| text.map(|text| Self::of(None, vec![Entry { text, namespaces: None }])))
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

    /// Returns `true` if a request with these headers presents a token for everything.
    pub(crate) fn is_shown_by(&self, headers: &HeaderMap) -> bool {
        self.scope_of(headers) == Some(None)
    }

    /// Returns what the token of a request with these headers is for; `None` if it presents none.
    pub(crate) fn scope_of(&self, headers: &HeaderMap) -> Option<Scope> {
        let shown = headers.get(AUTHORIZATION).and_then(|value| shown(value.to_str().ok()?))?;
        self.entries().iter().find(|entry| entry.equals(&shown)).map(|entry| entry.namespaces.clone())
    }
}

impl Entry {
    /// Reads a line: a token, and behind a space the namespaces, with commas between them.
    fn parse(line: &str, path: &Path) -> Result<Self, Failure> {
        let (token, rest) = line.trim_ascii().split_once(' ').unwrap_or((line, ""));
        let text = Token::checked(token, &format!("a token in {}", path.display()))?;
        let namespaces: BTreeSet<_> =
            rest.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if namespaces.is_empty() && !rest.is_empty() {
            let path = path.display();
            return Err(Failure::usage(format!(
                "a token in {path} has {rest:?} behind it, which names no namespace; name one, or end the line with the token"
            )));
        }
        Ok(Self { text, namespaces: (!namespaces.is_empty()).then_some(namespaces) })
    }

    /// Compares in a time that does not depend on the number of equal bytes.
    fn equals(&self, shown: &[u8]) -> bool {
        self.text.as_bytes().ct_eq(shown).into()
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
    use crate::exit::Exit;

    const SECRET: &str = "correct-horse-battery";

    fn token(text: &str) -> Token {
        let text = Token::checked(text, "the token").unwrap();
        Token::of(None, vec![Entry { text, namespaces: None }])
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
    fn a_token_for_namespaces_opens_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{SECRET}\n\nof-two-namespaces web, batch\n")).unwrap();
        let token = Token::in_file(file.path()).unwrap();
        let shown = |secret: &str| {
            let value = HeaderValue::from_str(&format!("Bearer {secret}")).unwrap();
            HeaderMap::from_iter([(AUTHORIZATION, value)])
        };
        let two = BTreeSet::from(["batch".to_owned(), "web".to_owned()]);
        assert_eq!(token.scope_of(&shown("of-two-namespaces")), Some(Some(two)));
        assert!(!token.is_shown_by(&shown("of-two-namespaces")));
        assert_eq!(token.scope_of(&shown(SECRET)), Some(None));
        assert_eq!(token.scope_of(&shown("of-three-namespaces")), None);
        assert_eq!(token.file_of_one(), None);
        std::fs::write(file.path(), format!("{SECRET}\nshort web\n")).unwrap();
        assert!(token.reload().unwrap().is_err());
        assert!(token.is_shown_by(&shown(SECRET)), "the old tokens are valid");
        std::fs::write(file.path(), SECRET).unwrap();
        token.reload().unwrap().unwrap();
        assert_eq!(token.file_of_one(), Some(file.path()));
    }

    #[test]
    fn a_line_that_was_cut_or_names_no_namespace_is_no_token_for_everything() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            Token::in_file(file.path()).unwrap_err()
        };
        let line = format!("{SECRET} web\n");
        let failure = refused(&line.repeat(LARGEST_FILE as usize / line.len() + 1));
        assert!(failure.exit == Exit::Usage && failure.to_string().contains("256 KiB"), "{failure}");
        let failure = refused(&format!("{SECRET} ,\n"));
        assert!(failure.exit == Exit::Usage && failure.to_string().contains("\",\" behind it"), "{failure}");
        std::fs::write(file.path(), line.repeat(LARGEST_FILE as usize / line.len())).unwrap();
        assert!(Token::in_file(file.path()).is_ok());
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
