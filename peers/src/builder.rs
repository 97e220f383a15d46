//! The settings of a process's peers, checked once.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::ConfigError;
use leaderelection_serving::sockets::Serving;

use crate::allow::{AllowList, Allowed};
use crate::caller::Caller;
use crate::key::SharedKey;
use crate::peers::Peers;
use crate::renewal::Renewal;
use crate::served::Served;
use crate::tls::Files;

/// The path at which a server answers.
pub const DEFAULT_PATH: &str = "/health/leadership";

/// Builds [`Peers`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PeersBuilder {
    listen: Option<SocketAddr>,
    path: String,
    key: Option<SharedKey>,
    files: Files,
    allowed: Vec<Allowed>,
    plain_http: bool,
    reload_interval: Duration,
}

/// The interval at which changed certificates are read, if nothing else is set.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

/// The time that a client may take for the head of its request.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

impl Peers {
    /// Returns a builder of peers.
    pub fn builder() -> PeersBuilder {
        PeersBuilder {
            listen: None,
            path: DEFAULT_PATH.to_owned(),
            key: None,
            files: Files::default(),
            allowed: Vec::new(),
            plain_http: false,
            reload_interval: RELOAD_INTERVAL,
        }
    }
}

impl PeersBuilder {
    /// Answers followers at this address. The default is to run no server: see [`Peers::router`] for a server of your
    /// own.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Sets the path at which followers are answered. The default is [`DEFAULT_PATH`]. The path in the advertised
    /// address has to be the same.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the key that all candidates share. Followers then believe only who knows the key.
    pub fn key(mut self, key: SharedKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the file with the certificates of the authority that signs the peers' certificates, in PEM. Peers then have
    /// to show such a certificate: the leader to its followers, and followers to the leader.
    pub fn ca(mut self, path: impl AsRef<Path>) -> Self {
        self.files.authority = Some(path.as_ref().into());
        self
    }

    /// Sets the files with the certificate of this process and with its private key, both in PEM.
    pub fn certificate(mut self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.files.certificate = Some((certificate.as_ref().into(), key.as_ref().into()));
        self
    }

    /// Sets how often the files of certificates are checked. Changed files are read again, and connections that begin later
    /// use them. Files that cannot be used change nothing. The default is a minute.
    pub fn reload_interval(mut self, interval: Duration) -> Self {
        self.reload_interval = interval;
        self
    }

    /// Sets the name that the certificate of every peer has. The default is the host in the advertised address.
    pub fn peer_name(mut self, name: impl Into<String>) -> Self {
        self.files.name = Some(name.into());
        self
    }

    /// Allows followers to connect to a network or a name. The default is to allow nothing.
    pub fn allow(mut self, allowed: Allowed) -> Self {
        self.allowed.push(allowed);
        self
    }

    /// Decides whether peers may speak over plain HTTP, which needs a [key](Self::key). The default is `false`. Everyone
    /// on the way can then read the lock, and nobody can change what a peer says.
    pub fn plain_http(mut self, plain_http: bool) -> Self {
        self.plain_http = plain_http;
        self
    }

    /// Checks the settings, and begins to listen. Has to be called in a tokio runtime if there is an address to
    /// [listen](Self::listen) on.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the first wrong setting.
    pub fn build(self) -> Result<Peers, ConfigError> {
        let Self { listen, path, key, files, allowed, plain_http, reload_interval } = self;
        if !path.starts_with('/') || path.bytes().any(|byte| !byte.is_ascii_graphic() || b"{}?#".contains(&byte)) {
            return Err(ConfigError::new("path", format!("({path:?}) must begin with / and be a plain path")));
        }
        if files.certificate.is_some() && files.authority.is_none() && key.is_none() {
            return Err(ConfigError::new(
                "ca",
                "is missing; name the CA of the peers' certificates, or give all candidates the same key",
            ));
        }
        if key.is_none() && (files.authority.is_none() || files.certificate.is_none()) {
            let problem =
                "is missing; give all candidates the same key, or give each candidate a certificate from your own CA";
            return Err(ConfigError::new("key", problem));
        }
        if plain_http && key.is_none() {
            return Err(ConfigError::new(
                "plain_http",
                "(true) needs a key, because nothing else proves who a peer is; give all candidates the same key",
            ));
        }
        if listen.is_some() && files.certificate.is_none() && !plain_http {
            let problem = "is missing; a server needs one for TLS, unless plain http is allowed";
            return Err(ConfigError::new("certificate", problem));
        }
        let renewal = Renewal::new(files, reload_interval)?;
        let served = Arc::new(Served::new(key.clone()));
        let serving = match listen {
            None => None,
            Some(address) => {
                let wrong = |error: std::io::Error| ConfigError::new("listen", format!("({address}) failed: {error}"));
                let listener = TcpListener::bind(address).map_err(wrong)?;
                let routes = crate::server::routes(&path, Arc::clone(&served));
                let serving = Serving::start(listener, renewal.server(), routes, HEAD_PATIENCE).map_err(wrong)?;
                let ended = serving.ended();
                tokio::spawn(async move {
                    if let Some(error) = ended.await {
                        tracing::error!(error, "the server for peers has failed; followers read the store");
                    }
                });
                Some(serving)
            }
        };
        let caller = Caller { allowed: AllowList(allowed), plain_http, tls: renewal.client(), key };
        let (caller, serving, renewal) = (Arc::new(caller), serving.map(Arc::new), Arc::new(renewal));
        Ok(Peers { path: path.into(), served, caller, serving, renewal })
    }
}
