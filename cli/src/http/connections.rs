//! The limit on open connections.
//!
//! At the limit, the oldest connection is closed in favour of a new one. Strangers who connect and ask nothing, or who
//! ask and read no answer, keep nobody out: a probe is the newest connection until it has its answer. A client that
//! keeps a connection for its next request has to open another one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// The limit is far above any legitimate need.
const MOST: usize = 512;

/// The open connections of a server.
#[derive(Clone, Debug)]
pub(crate) struct Connections(Arc<Mutex<Open>>);

#[derive(Debug)]
struct Open {
    most: usize,
    /// By age, the oldest first. A connection is closed when its sender is dropped.
    places: BTreeMap<u64, oneshot::Sender<Infallible>>,
    next: u64,
}

impl Connections {
    /// Leaves half of the files that this process may open to the elector and its store.
    pub(crate) fn new() -> Self {
        Self::at_most(MOST.min(most_open_files() / 2).max(1))
    }

    fn at_most(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Open { most, places: BTreeMap::new(), next: 0 })))
    }

    /// Applies the limit before the acceptor, and so before any handshake.
    pub(crate) fn before<A>(self, acceptor: A) -> Admission<A> {
        Admission { connections: self, acceptor }
    }

    fn admit<I>(&self, stream: I) -> Connection<I> {
        let (sender, place) = oneshot::channel();
        let mut open = self.open();
        while open.places.len() >= open.most {
            open.places.pop_first();
        }
        let number = open.next;
        open.next += 1;
        open.places.insert(number, sender);
        drop(open);
        Connection { stream, place, is_over: false, number, connections: self.clone() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
fn most_open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
fn most_open_files() -> usize {
    usize::MAX
}

#[derive(Clone, Debug)]
pub(crate) struct Admission<A> {
    connections: Connections,
    acceptor: A,
}

impl<A: Accept<Connection<I>, S>, I, S> Accept<I, S> for Admission<A> {
    type Stream = A::Stream;
    type Service = A::Service;
    type Future = A::Future;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        self.acceptor.accept(self.connections.admit(stream), service)
    }
}

/// A stream that fails as soon as its place is given away.
#[derive(Debug)]
pub(crate) struct Connection<I> {
    stream: I,
    place: oneshot::Receiver<Infallible>,
    is_over: bool,
    number: u64,
    connections: Connections,
}

impl<I> Connection<I> {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.is_over = self.is_over || Pin::new(&mut self.place).poll(context).is_ready();
        if self.is_over { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

impl<I> Drop for Connection<I> {
    fn drop(&mut self) {
        self.connections.open().places.remove(&self.number);
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Connection<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Connection<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    fn pair(connections: &Connections) -> (Connection<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(1);
        (connections.admit(ours), theirs)
    }

    #[tokio::test]
    async fn the_oldest_makes_room_whether_it_reads_or_writes() {
        let connections = Connections::at_most(2);
        let (mut reads, _first) = pair(&connections);
        let (mut writes, _second) = pair(&connections);
        let read = tokio::spawn(async move { reads.read_u8().await.unwrap_err().kind() });
        let written = tokio::spawn(async move { writes.write_all(b"more than fits").await.unwrap_err().kind() });
        tokio::task::yield_now().await;
        assert!(!read.is_finished() && !written.is_finished());
        let (_third, mut theirs) = pair(&connections);
        assert_eq!(read.await.unwrap(), io::ErrorKind::ConnectionAborted);
        assert!(!written.is_finished());
        let (mut fourth, _their_end) = pair(&connections);
        assert_eq!(written.await.unwrap(), io::ErrorKind::ConnectionAborted);
        theirs.write_u8(1).await.unwrap();
        fourth.write_u8(1).await.unwrap();
        assert_eq!(connections.open().places.len(), 2);
    }

    #[tokio::test]
    async fn a_connection_that_ends_leaves_its_place() {
        let connections = Connections::at_most(2);
        let (_first, _their_first) = pair(&connections);
        for _ in 0..3 {
            drop(pair(&connections));
        }
        let (mut last, mut theirs) = pair(&connections);
        last.write_u8(7).await.unwrap();
        assert_eq!(theirs.read_u8().await.unwrap(), 7);
        assert_eq!(connections.open().places.keys().copied().collect::<Vec<_>>(), [0, 4]);
    }
}
