//! A firewall that forgets: a relay of connections that can turn silent on those that it has, and that passes new ones on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The relay, on a port of its own on the loopback interface, until it is dropped.
#[derive(Debug)]
pub struct Relay {
    url: String,
    accepted: Arc<AtomicUsize>,
    /// The number of connections that one of both sides has closed.
    closed: watch::Sender<usize>,
    /// The number of times that the relay has turned silent.
    silences: watch::Sender<usize>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// Starts a relay to the server at `url`, such as `http://127.0.0.1:31234`.
    ///
    /// # Panics
    ///
    /// If the URL has no scheme, or if there is no port left.
    pub async fn start(url: &str) -> Self {
        let (scheme, server) = url.trim_end_matches('/').split_once("://").expect("a URL");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address: SocketAddr = listener.local_addr().expect("a bound listener has an address");
        let (accepted, closed, silences) =
            (Arc::new(AtomicUsize::new(0)), watch::Sender::new(0), watch::Sender::new(0));
        let counted = (Arc::clone(&accepted), closed.clone());
        let accepting = tokio::spawn(accept(listener, server.to_owned(), counted, silences.clone()));
        Self { url: format!("{scheme}://{address}"), accepted, closed, silences, accepting }
    }

    /// The URL of the relay, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The number of connections so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Waits until so many connections have been closed.
    pub async fn closed(&self, count: usize) {
        // The sender is here, so the wait cannot fail.
        let _ = self.closed.subscribe().wait_for(|closed| *closed >= count).await;
    }

    /// Leaves all present connections open, and passes nothing more on that comes over them.
    pub fn forget(&self) {
        self.silences.send_modify(|silences| *silences += 1);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: String,
    (accepted, closed): (Arc<AtomicUsize>, watch::Sender<usize>),
    silences: watch::Sender<usize>,
) {
    // Dropping the set closes the connections together with the relay.
    let mut running = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        accepted.fetch_add(1, Ordering::SeqCst);
        let (server, closed, mut silence) = (server.clone(), closed.clone(), silences.subscribe());
        running.spawn(async move {
            let Ok(mut server) = TcpStream::connect(server).await else { return };
            let is_forgotten = tokio::select! {
                biased;
                changed = silence.changed() => changed.is_ok(),
                _ended = copy_bidirectional(&mut client, &mut server) => false,
            };
            if is_forgotten {
                // The relay keeps both streams, and reads neither.
                std::future::pending::<()>().await;
            }
            closed.send_modify(|closed| *closed += 1);
        });
    }
}
