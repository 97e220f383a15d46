//! The server of a process that has no other.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::TokioTimer;
use tokio::runtime;
use tokio::sync::watch;

use crate::guard::Guarded;

/// The time that a client may take for the head of its request.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// The largest request, and the part of an answer that waits for a client who does not read.
const BUFFER: usize = 16 * 1024;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    address: SocketAddr,
    handle: Handle<SocketAddr>,
    /// Closes when the server has ended.
    running: watch::Receiver<()>,
}

impl Serving {
    pub(crate) fn start(listener: TcpListener, tls: Option<RustlsConfig>, routes: Router) -> io::Result<Self> {
        let (is_running, running) = watch::channel(());
        macro_rules! serve {
            ($server:expr, $handle:expr) => {{
                let mut server = $server.handle($handle).map(Guarded::new).http1_only();
                let mut http = server.http_builder().http1();
                http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(BUFFER);
                let serving = server.serve(routes.into_make_service());
                async move {
                    let _running = is_running;
                    if let Err(error) = serving.await {
                        tracing::error!(%error, "the server for peers has failed; followers read the store");
                    }
                }
            }};
        }
        let runtime = runtime::Handle::try_current().map_err(io::Error::other)?;
        let address = listener.local_addr()?;
        let handle = Handle::new();
        match tls {
            Some(tls) => runtime.spawn(serve!(axum_server::from_tcp_rustls(listener, tls)?, handle.clone())),
            None => runtime.spawn(serve!(axum_server::from_tcp(listener)?, handle.clone())),
        };
        Ok(Self { address, handle, running })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more connections, and ends open ones after `grace`.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.handle.graceful_shutdown(Some(grace));
        // An error means that the server has ended.
        let _ = self.running.clone().changed().await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}
