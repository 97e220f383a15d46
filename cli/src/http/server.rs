//! The socket, and the end of its connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use hyper_util::rt::TokioTimer;
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;

use super::access::AccessArgs;
use super::connections::Connections;
use super::tls::Tls;
use crate::exit::{Exit, Failure};

/// The time that a client may take for a request, and the longest pause between two requests.
const CLIENT_PATIENCE: Duration = Duration::from_secs(30);

/// The number of connections that wait to be accepted. A crowd that comes at once is larger than the usual 128, and the
/// system makes those who find no room try again after a second.
const BACKLOG: u32 = 4096;

/// The largest request, and the part of an answer that waits for a client who does not read.
const BUFFER: usize = 16 * 1024;

/// The time that unfinished answers get when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// A bound socket that accepts no connections yet.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl Server {
    pub(crate) fn bind(access: &AccessArgs) -> Result<Self, Failure> {
        let tls = access.tls().map(|(cert, key)| Tls::load(cert, key)).transpose()?;
        let bound = listen(access.addresses()).and_then(|listener| {
            let address = listener.local_addr()?;
            Ok(Self { listener, address, tls })
        });
        bound.map_err(|error| Failure::new(Exit::Internal, cannot_listen(access.addresses(), &error)))
    }

    /// The URL of the page.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// The TLS settings, if TLS is used.
    pub(crate) fn tls(&self) -> Option<Tls> {
        self.tls.clone()
    }

    /// Serves on a task of its own.
    pub(crate) fn start(self, routes: Router) -> Running {
        let handle = Handle::new();
        let task = tokio::spawn(self.serve(routes, handle.clone()));
        Running { handle, task }
    }

    async fn serve(self, routes: Router, handle: Handle<SocketAddr>) -> io::Result<()> {
        macro_rules! serve {
            ($server:expr) => {{
                let connections = Connections::new();
                let mut server = $server.handle(handle).map(|acceptor| connections.before(acceptor)).http1_only();
                let mut http = server.http_builder().http1();
                http.timer(TokioTimer::new()).header_read_timeout(CLIENT_PATIENCE).max_buf_size(BUFFER);
                server.serve(routes.into_make_service()).await
            }};
        }
        match self.tls {
            Some(tls) => serve!(axum_server::from_tcp_rustls(self.listener, tls.config())?),
            None => serve!(axum_server::from_tcp(self.listener)?),
        }
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

fn cannot_listen(addresses: &[SocketAddr], error: &io::Error) -> String {
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "stop the process that listens there, or name another port with --listen",
        io::ErrorKind::PermissionDenied => "name a port above 1023 with --listen",
        _ => "name an address of this machine with --listen",
    };
    format!("cannot listen on {addresses}: {error}; {advice}")
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    handle: Handle<SocketAddr>,
    task: JoinHandle<io::Result<()>>,
}

impl Running {
    /// Completes if the server ends unexpectedly. Cancellation safe.
    pub(crate) async fn failed(&mut self) -> Failure {
        let problem = match (&mut self.task).await {
            Ok(Ok(())) => "it ended".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Failure::new(Exit::Internal, format!("the HTTP server failed: {problem}; start again"))
    }

    /// Refuses new connections, and new requests on existing connections.
    pub(crate) fn stop_accepting(&self) {
        self.handle.graceful_shutdown(Some(GRACE));
    }

    /// Waits until all unfinished answers are complete.
    pub(crate) async fn finish(self) {
        self.stop_accepting();
        if !self.task.is_finished() {
            // The result of the task no longer matters.
            let _ = self.task.await;
        }
    }
}
