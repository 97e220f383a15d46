//! The signals from the system.

#[cfg(unix)]
use futures_util::future::{FutureExt as _, select_all};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;
#[cfg(unix)]
use crate::supervise::signals::LIKE_TERM;

/// A listener for signals. From its creation on, the signals do not end this process.
#[derive(Debug)]
pub(crate) struct Signals {
    /// The signals, each with `true` if it asks for the end.
    #[cfg(unix)]
    streams: Vec<(Signal, bool)>,
}

impl Signals {
    #[cfg_attr(not(unix), expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere"))]
    pub(crate) fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        let kinds = [(SignalKind::terminate(), true), (SignalKind::interrupt(), true), (SignalKind::hangup(), false)];
        #[cfg(unix)]
        let like_term = LIKE_TERM.map(|raw| (SignalKind::from_raw(raw), true));
        #[cfg(unix)]
        let streams: std::io::Result<_> =
            kinds.into_iter().chain(like_term).map(|(kind, is_end)| Ok((signal(kind)?, is_end))).collect();
        Ok(Self {
            #[cfg(unix)]
            streams: streams.map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))?,
        })
    }

    /// Waits for the next signal. Returns `true` for SIGTERM, SIGINT and what means the same, which ask for the end, and `false` for SIGHUP.
    /// Cancellation safe.
    pub(super) async fn next_is_end(&mut self) -> bool {
        #[cfg(unix)]
        {
            let streams = self.streams.iter_mut();
            let received = streams.map(|(stream, is_end)| stream.recv().map(move |_| *is_end).boxed());
            select_all(received).await.0
        }
        #[cfg(not(unix))]
        match tokio::signal::ctrl_c().await {
            Ok(()) => true,
            Err(_) => std::future::pending().await,
        }
    }
}
