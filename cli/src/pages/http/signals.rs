//! The signals from the system.

use crate::exit::Failure;

/// The request that a signal expresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// SIGTERM or SIGINT.
    End,
    /// SIGHUP.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal"))]
    Reload,
}

/// A listener for signals. From its creation on, the signals do not end this process.
#[derive(Debug)]
pub(crate) struct Signals(imp::Streams);

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let streams = imp::Streams::listen();
        streams.map(Self).map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))
    }

    /// Returns the next request. Cancellation safe.
    pub(crate) async fn next(&mut self) -> Told {
        self.0.next().await
    }
}

#[cfg(unix)]
mod imp {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::Told;

    #[derive(Debug)]
    pub(crate) struct Streams {
        terminate: Signal,
        interrupt: Signal,
        hangup: Signal,
    }

    impl Streams {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        pub(crate) async fn next(&mut self) -> Told {
            tokio::select! {
                biased;
                _ = self.terminate.recv() => Told::End,
                _ = self.interrupt.recv() => Told::End,
                _ = self.hangup.recv() => Told::Reload,
            }
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io;

    use super::Told;

    #[derive(Debug)]
    pub(crate) struct Streams;

    impl Streams {
        #[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn next(&mut self) -> Told {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Told::End,
                Err(_) => std::future::pending().await,
            }
        }
    }
}
