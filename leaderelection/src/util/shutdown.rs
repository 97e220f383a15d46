//! Waits for the signals that ask a program to stop. Needs the feature `signal`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The future of [`shutdown_signal`]. Clones complete at the same time, so a server in the same process can wait for a
/// clone.
#[derive(Debug)]
pub struct ShutdownSignal {
    token: CancellationToken,
    asked: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl ShutdownSignal {
    fn of(token: CancellationToken) -> Self {
        Self { asked: Box::pin(token.clone().cancelled_owned()), token }
    }
}

impl Clone for ShutdownSignal {
    fn clone(&self) -> Self {
        Self::of(self.token.clone())
    }
}

impl Future for ShutdownSignal {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.asked.as_mut().poll(context)
    }
}

/// Returns a future that completes at SIGTERM, which orchestrators send to stop a process, or at Ctrl-C.
///
/// ```
/// use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore, shutdown_signal};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
/// let config = LeaderElectionConfig::builder(lock, ()).build()?;
/// let shutdown = shutdown_signal();
/// # let shutdown = { drop(shutdown); std::future::ready(()) };
/// DefaultLeaderElector::new(config).campaign(shutdown).await?;
/// # Ok(())
/// # }
/// ```
///
/// From this call on, neither signal ends the process by itself, and only the first signal has an effect. So the work
/// has to end when it is told to. On Windows, only Ctrl-C is handled.
///
/// If the system refuses a handler, an error is logged. That signal then still ends the process at once, and the lease
/// has to expire. A program that would rather not start calls [`on_signal`].
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
pub fn shutdown_signal() -> ShutdownSignal {
    let shutdown = CancellationToken::new();
    for (signal, installed) in install(&shutdown) {
        if let Err(error) = installed {
            tracing::error!(signal, %error, "a signal cannot be handled; it ends the process, and the lease has to expire");
        }
    }
    ShutdownSignal::of(shutdown)
}

/// Does the same as [`shutdown_signal`], but fails if the system refuses a handler.
///
/// # Errors
///
/// If the system refuses a handler. The handler of the other signal may stay, so that this signal no longer ends the
/// process: the program has to exit by itself.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
pub fn on_signal() -> io::Result<ShutdownSignal> {
    let shutdown = CancellationToken::new();
    install(&shutdown).into_iter().try_for_each(|(_, installed)| installed)?;
    Ok(ShutdownSignal::of(shutdown))
}

/// Installs a handler for each signal. All are installed when this function returns, so a signal that comes before
/// their tasks first run is not missed.
#[cfg(unix)]
fn install(shutdown: &CancellationToken) -> [(&'static str, io::Result<()>); 2] {
    use tokio::signal::unix::{SignalKind, signal};
    [("SIGTERM", SignalKind::terminate()), ("SIGINT", SignalKind::interrupt())].map(|(name, kind)| {
        (name, signal(kind).map(|mut signal| cancel_after(async move { _ = signal.recv().await }, shutdown)))
    })
}

#[cfg(windows)]
fn install(shutdown: &CancellationToken) -> [(&'static str, io::Result<()>); 1] {
    let handler = tokio::signal::windows::ctrl_c();
    [("Ctrl-C", handler.map(|mut signal| cancel_after(async move { _ = signal.recv().await }, shutdown)))]
}

fn cancel_after(signal: impl Future<Output = ()> + Send + 'static, shutdown: &CancellationToken) {
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        signal.await;
        shutdown.cancel();
    });
}
