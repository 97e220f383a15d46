//! The limits of a server's connections: their number, and the time that a client may take to read.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use futures_util::future::Either;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// The most connections at a time. There may be half as many streams.
const MOST: usize = 512;

/// The time for which a client may take nothing although something waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// An acceptor that refuses a connection beyond the limit, and drops a client that does not read.
#[derive(Clone, Debug)]
pub(crate) struct Guarded<A> {
    places: Arc<Semaphore>,
    acceptor: A,
}

impl<A> Guarded<A> {
    pub(crate) fn new(acceptor: A) -> Self {
        Self { places: Arc::new(Semaphore::new(MOST)), acceptor }
    }
}

impl<A: Accept<Patient<I>, S>, I, S> Accept<I, S> for Guarded<A> {
    type Stream = A::Stream;
    type Service = A::Service;
    type Future = Either<Ready<io::Result<(A::Stream, A::Service)>>, A::Future>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => Either::Right(
                self.acceptor
                    .accept(Patient { stream, patience: PATIENCE, stalls: None, _place: Some(place) }, service),
            ),
            Err(_) => Either::Left(ready(Err(io::ErrorKind::QuotaExceeded.into()))),
        }
    }
}

/// A stream that fails when its client has taken nothing for a while.
#[derive(Debug)]
pub(crate) struct Patient<I> {
    stream: I,
    patience: Duration,
    /// Runs while something waits for the client.
    stalls: Option<Pin<Box<Sleep>>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl<I> Patient<I> {
    fn watch<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalls = None;
            return progress;
        }
        let patience = self.patience;
        let stalls = self.stalls.get_or_insert_with(|| Box::pin(sleep(patience)));
        stalls.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Patient<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Patient<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A flush takes nothing, so it neither begins nor ends a stall.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_kept_and_one_that_reads_nothing_is_dropped() {
        let (ours, mut theirs) = duplex(1);
        let mut patient = Patient { stream: ours, patience: PATIENCE, stalls: None, _place: None };
        let write = tokio::spawn(async move {
            let start = Instant::now();
            (patient.write_all(b"abcd").await.unwrap_err().kind(), start.elapsed())
        });
        for _ in 0..2 {
            tokio::task::yield_now().await;
            advance(PATIENCE - Duration::from_millis(1)).await;
            theirs.read_u8().await.unwrap();
        }
        let (kind, after) = write.await.unwrap();
        assert_eq!(kind, io::ErrorKind::TimedOut);
        assert!(after >= PATIENCE * 3 - Duration::from_millis(2) && after < PATIENCE * 4, "{after:?}");
    }
}
