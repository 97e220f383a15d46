//! Answers in parts, which are made as fast as the client reads them.

use std::io;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

/// The way to a client. `None` is the end.
#[derive(Debug)]
pub(crate) struct Parts(mpsc::Sender<Option<Bytes>>);

/// Returns the body that `write` sends. Without the end, the body is broken. What is `held` is dropped with the body.
pub(crate) fn body<F>(held: impl Send + 'static, write: impl FnOnce(Parts) -> F) -> Body
where
    F: Future<Output = Option<()>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(1);
    // A connection asks for no part while its client reads nothing, so a task of its own keeps the time.
    tokio::spawn(write(Parts(sender)));
    Body::from_stream(stream::unfold(Some((receiver, held)), |open| async move {
        let (mut receiver, held) = open?;
        match receiver.recv().await {
            Some(Some(part)) => Some((Ok(part), Some((receiver, held)))),
            Some(None) => None,
            None => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), None)),
        }
    }))
}

impl Parts {
    /// Sends a part once the one before is taken. Returns `None` if it is not in time, or if the client is gone.
    pub(crate) async fn send(&self, part: Bytes, limit: Instant) -> Option<()> {
        consume_budget().await;
        timeout_at(limit, self.0.send(Some(part))).await.ok()?.ok()
    }

    /// Completes when the client is gone.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }

    pub(crate) async fn end(self) -> Option<()> {
        self.0.send(None).await.ok()
    }
}
