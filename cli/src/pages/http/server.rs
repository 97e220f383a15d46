//! The socket, and its server.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use leaderelection_serving::sockets::{Serving, Socket};
use tokio::net::TcpSocket;

use super::access::{AccessArgs, Addresses, Listen};
use super::host::Hosts;
use super::signals::Signals;
use super::thread;
use super::tls::Tls;
use super::token::Token;
use crate::exit::Failure;

/// The time that a client may take for a request, and the longest pause between two requests.
const CLIENT_PATIENCE: Duration = Duration::from_secs(30);

/// The number of connections that wait to be accepted. A crowd that comes at once is larger than the usual 128, and the
/// system makes those who find no room try again after a second.
const BACKLOG: u32 = 4096;

/// The time that unfinished answers get when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// The time that a client gets to ask and to be answered when the server leaves its socket to another process.
const FAREWELL: Duration = Duration::from_secs(10);

/// A bound socket that accepts no connections yet.
#[derive(Debug)]
pub(crate) struct Server {
    socket: Socket,
    /// The address for people; that of a socket in the file system begins with `unix:`.
    address: String,
    pub(super) tls: Option<Tls>,
    /// `None` if a certificate or a token keeps pages of other sites from reading.
    hosts: Option<Hosts>,
    /// Another process has the socket, too, so connections that nobody accepts are not lost.
    is_shared: bool,
}

impl Server {
    /// Binds the socket for people and programs, who show the token if there is one. From now on, signals do not end this
    /// process.
    pub(crate) fn bind(access: &AccessArgs, hosts: &Hosts) -> Result<(Self, Option<Token>, Signals), Failure> {
        let (signals, token) = (Signals::listen()?, access.token()?);
        raise_limit_of_files();
        let tls = access.tls().map(Tls::load).transpose()?;
        let hosts = (tls.is_none() && token.is_none()).then_some(hosts);
        let server = match &access.listen {
            Listen::At(addresses) => Self::bind_to(addresses, tls, hosts, "--listen")?,
            #[cfg(unix)]
            Listen::Socket(path) => {
                let socket = Socket::Unix(super::socket::listen(path)?);
                // No page of another site reaches it.
                let address = format!("unix:{}", path.display());
                Self { socket, address, tls, hosts: None, is_shared: false }
            }
            #[cfg(unix)]
            Listen::Stdin(_) => {
                let found = super::socket::inherited().and_then(|socket| Self::over(socket, tls, hosts.cloned()));
                let wrong = |error| Failure::internal(format!("cannot listen on standard input: {error}"));
                Self { is_shared: true, ..found.map_err(wrong)? }
            }
        };
        Ok((server, token, signals))
    }

    /// Binds a socket that the option `flag` names, for answers that are open to everybody.
    pub(crate) fn bind_open(addresses: &Addresses, hosts: &Hosts, flag: &str) -> Result<Self, Failure> {
        Self::bind_to(addresses, None, Some(hosts), flag)
    }

    fn bind_to(addresses: &Addresses, tls: Option<Tls>, hosts: Option<&Hosts>, flag: &str) -> Result<Self, Failure> {
        let hosts = hosts.map(|hosts| hosts.and(&addresses.text));
        let addresses = &addresses.all;
        let bound = listen(addresses).and_then(|listener| Self::over(listener, tls, hosts));
        bound.map_err(|error| Failure::internal(cannot_listen(addresses, flag, &error)))
    }

    fn over(listener: TcpListener, tls: Option<Tls>, hosts: Option<Hosts>) -> io::Result<Self> {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}/", listener.local_addr()?);
        Ok(Self { socket: listener.into(), address, tls, hosts, is_shared: false })
    }

    /// The URL of the page.
    pub(crate) fn url(&self) -> &str {
        &self.address
    }

    /// Serves on the thread of the servers.
    pub(crate) fn start(self, routes: Router) -> Result<Running, Failure> {
        let _entered = thread::of_servers()?.enter();
        let tls = self.tls.map(|tls| tls.config());
        let routes = match self.hosts {
            Some(hosts) => hosts.guard(routes),
            None => routes,
        };
        let serving = Serving::start(self.socket, tls, routes, CLIENT_PATIENCE);
        let running = serving.map(|serving| Running { serving, is_shared: self.is_shared });
        running.map_err(|error| Failure::internal(format!("cannot serve: {error}")))
    }
}

/// Listens on the first address that is possible.
fn listen(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let listen = |address: &SocketAddr| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Another process may have listened there a moment ago.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(*address)?;
        socket.listen(BACKLOG)?.into_std()
    };
    let mut problem = io::ErrorKind::AddrNotAvailable.into();
    for address in addresses {
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// Makes room for connections beside the files that the election needs. The process starts no program that could be harmed
/// by a limit above the usual one.
fn raise_limit_of_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // Where the system refuses it, the budget is smaller.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

fn cannot_listen(addresses: &[SocketAddr], flag: &str, error: &io::Error) -> String {
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "stop the process that uses it, or choose another port",
        io::ErrorKind::PermissionDenied => "choose a port above 1023",
        _ => "choose an address of this machine",
    };
    format!("cannot listen on {addresses}: {error}; {advice} with {flag}")
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    serving: Serving,
    is_shared: bool,
}

impl Running {
    /// Completes if the server ends unexpectedly. Cancellation safe.
    pub(crate) async fn failed(&self) -> Failure {
        let problem = self.serving.ended().await.unwrap_or_else(|| "it stopped".to_owned());
        Failure::internal(format!("the HTTP server failed: {problem}; restart it"))
    }

    /// Refuses new connections and new requests, and waits until all unfinished answers are complete.
    pub(crate) async fn finish(self) {
        if self.is_shared {
            self.serving.leave(GRACE / 2, FAREWELL).await;
        }
        self.serving.finish(GRACE).await;
    }
}
