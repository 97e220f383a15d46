//! The time that a client may take to read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The time for which a client may take nothing although something waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A stream that fails when its client has taken nothing for a while.
#[derive(Debug)]
pub(crate) struct WriteTimeout<I> {
    stream: I,
    /// Runs while something waits for the client.
    stalls: Option<Pin<Box<Sleep>>>,
}

impl<I> WriteTimeout<I> {
    pub(super) fn new(stream: I) -> Self {
        Self { stream, stalls: None }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalls = None;
            return progress;
        }
        let stalls = self.stalls.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        stalls.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WriteTimeout<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
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
    async fn a_slow_reader_is_kept_and_a_stuck_one_is_dropped() {
        let (ours, mut theirs) = duplex(1);
        let mut patient = WriteTimeout::new(ours);
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
