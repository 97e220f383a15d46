//! The socket of a connection, which the budget can close.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::net::TcpStream;

/// The socket of a connection over the network or, where the system has them, within the machine.
#[cfg(unix)]
pub(super) type Stream = tokio_util::either::Either<TcpStream, tokio::net::UnixStream>;
#[cfg(not(unix))]
pub(super) type Stream = tokio_util::either::Either<TcpStream, TcpStream>;

/// The socket of a connection, which the budget can close.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    taken: Mutex<Taken>,
    has_asked: AtomicBool,
}

#[derive(Debug)]
struct Taken {
    /// `None` once the budget has closed the connection.
    stream: Option<Stream>,
    /// The task that waits for the socket.
    waker: Option<Waker>,
}

impl ConnectionPermit {
    pub(super) fn new(stream: Stream) -> Self {
        Self { taken: Mutex::new(Taken { stream: Some(stream), waker: None }), has_asked: AtomicBool::new(false) }
    }

    /// Notes that a whole request has come.
    pub(super) fn asked(&self) {
        self.has_asked.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// Closes the socket, and lets the task of the connection know.
    pub(super) fn close(&self) {
        let mut taken = self.taken();
        let (stream, waker) = (taken.stream.take(), taken.waker.take());
        drop(taken);
        drop(stream);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Polls the socket. Fails once the budget has closed it.
    pub(super) fn poll<T>(
        &self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut Stream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut taken = self.taken();
        let Some(stream) = &mut taken.stream else { return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())) };
        let polled = poll(Pin::new(stream), context);
        if polled.is_pending() {
            taken.waker = Some(context.waker().clone());
        }
        polled
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
