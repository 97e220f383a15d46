//! The arguments of `run` and `serve` for candidates that get their leader's messages.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::{ConfigError, DefaultLeaderElector, LeaderElectionConfigBuilder as Builder};
use leaderelection_peers::{Allowed, Attached, Peers, PeersBuilder, SharedKey};
use tokio::runtime::Handle;

use super::set;
use crate::exit::{Failure, Options, in_options};
use crate::pages::http::thread;

/// The time for the report to followers that the lease is released.
const GRACE: Duration = Duration::from_secs(1);

/// The options that set the fields of the peers.
const OPTIONS: &Options = &[
    ("key", "--peer-key-file"),
    ("ca", "--peer-ca"),
    ("certificate", "--peer-cert"),
    ("certificate_key", "--peer-cert-key"),
    ("peer_name", "--peer-name"),
    ("allow", "--peer-allow"),
    ("plain_http", "--peer-plain-http"),
    ("listen", "--peer-listen"),
];

/// The candidates of a lock as peers: what this one says of itself, and whom it believes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Peers")]
pub(crate) struct PeerArgs {
    /// Publish this URL in the lock while leading
    ///
    /// Clients and peers use it to find the leader. With --peer-listen, it is the address at which other machines reach that
    /// listener, such as https://10.0.1.42:8443/health/leadership.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    advertise: Option<String>,
    /// Publish this URL for clients
    ///
    /// Set it if clients use another address than peers do. The default is --advertise.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    advertise_to_clients: Option<String>,
    /// Listen here, and tell followers of renewals
    ///
    /// The path is /health/leadership. A follower that receives the messages polls the store only every 30s, and competes as
    /// soon as the lease is released.
    #[arg(long, value_name = "ADDRESS:PORT", hide_short_help = true)]
    peer_listen: Option<SocketAddr>,
    /// Read the key that all candidates share
    ///
    /// The key has 32 bytes or more and is never sent. Followers ignore leaders that do not know it.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    peer_key_file: Option<PathBuf>,
    /// Trust peers with certificates of this CA
    ///
    /// A PEM file with the certificates of the authority.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    peer_ca: Option<PathBuf>,
    /// Show peers this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "peer_cert_key", hide_short_help = true)]
    peer_cert: Option<PathBuf>,
    /// Read the private key of --peer-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "peer_cert", hide_short_help = true)]
    peer_cert_key: Option<PathBuf>,
    /// Expect this name in the peers' certificates
    ///
    /// The default is the host in the advertised address.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    peer_name: Option<String>,
    /// Let followers connect to this network
    ///
    /// A network, an address or a host name, such as 10.0.0.0/8 or *.internal. Repeatable. Followers connect to nothing else,
    /// whatever the lock says.
    #[arg(long, value_name = "NETWORK", value_delimiter = ',', hide_short_help = true)]
    peer_allow: Vec<Allowed>,
    /// Use plain HTTP between peers
    ///
    /// Requires --peer-key-file. Anyone on the network path can read the lock.
    #[arg(long, hide_short_help = true)]
    peer_plain_http: bool,
}

impl PeerArgs {
    /// Advertises the addresses in the arguments.
    pub(crate) fn advertise(&self, config: Builder) -> Builder {
        let config = set(config, self.advertise.as_ref(), Builder::advertise);
        set(config, self.advertise_to_clients.as_ref(), Builder::advertise_to_clients)
    }

    /// The addresses under which others know this process.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &str> {
        [&self.advertise, &self.advertise_to_clients].into_iter().filter_map(|address| address.as_deref())
    }

    /// Fails if the arguments ask for peers, which `feature` does not have.
    pub(crate) fn must_be_absent(&self, feature: &str) -> Result<(), Failure> {
        if self.addresses().next().is_none() && !self.asks_for_peers() {
            return Ok(());
        }
        Err(Failure::usage(format!("{feature} cannot be used with --advertise and --peer-*; remove these options")))
    }

    /// Connects the elector with its peers, if the arguments ask for that.
    pub(crate) fn connect(&self, elector: &DefaultLeaderElector) -> Result<Option<Connected>, Failure> {
        if !self.asks_for_peers() {
            return Ok(None);
        }
        let servers = self.peer_listen.map(|_| thread::of_servers()).transpose()?;
        let connect = || {
            let peers = {
                let _entered = servers.map(Handle::enter);
                self.peers()?
            };
            let attached = Arc::new(peers.attach(elector)?);
            Ok(Connected { peers, attached })
        };
        connect().map(Some).map_err(|error: ConfigError| Failure::usage(in_options(&error, OPTIONS)))
    }

    fn asks_for_peers(&self) -> bool {
        let files = [&self.peer_key_file, &self.peer_ca, &self.peer_cert];
        self.peer_listen.is_some()
            || self.peer_plain_http
            || self.peer_name.is_some()
            || !self.peer_allow.is_empty()
            || files.iter().any(|file| file.is_some())
    }

    fn peers(&self) -> Result<Peers, ConfigError> {
        let certificate = self.peer_cert.as_ref().zip(self.peer_cert_key.as_ref());
        let key = self.peer_key_file.as_ref().map(SharedKey::read).transpose()?;
        let peers = Peers::builder().plain_http(self.peer_plain_http);
        let peers = set(peers, self.peer_listen, PeersBuilder::listen);
        let peers = set(peers, key, PeersBuilder::key);
        let peers = set(peers, self.peer_ca.as_ref(), PeersBuilder::ca);
        let peers = set(peers, certificate, |peers, (certificate, key)| peers.certificate(certificate, key));
        let peers = set(peers, self.peer_name.as_ref(), PeersBuilder::peer_name);
        self.peer_allow.iter().cloned().fold(peers, PeersBuilder::allow).build()
    }
}

/// An elector that is connected with its peers.
#[derive(Debug)]
pub(crate) struct Connected {
    peers: Peers,
    attached: Arc<Attached>,
}

impl Connected {
    /// Returns the connection, for those who show its status.
    pub(crate) fn attached(&self) -> Arc<Attached> {
        Arc::clone(&self.attached)
    }

    /// Shuts down gracefully, after the election.
    pub(crate) async fn finish(self) {
        self.peers.finish(GRACE).await;
    }
}
