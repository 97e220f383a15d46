//! The end of the program, as signals ask for it. Behind the feature `signal`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The future of [`shutdown_signal`]. Clones complete with it, so that a server beside an election can have one.
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

/// Returns a future that completes with SIGTERM, with which orchestrators stop a process, or with Ctrl-C.
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
/// Both signals no longer end the process by themselves, from this call until its end. Signals after the first one have no
/// effect, so the work has to end when it is told to. On Windows, only Ctrl-C counts.
///
/// If the system refuses a handler, the log has an error, and that signal ends the process at once, as it does without this
/// call. The lease then expires by itself. A program that would rather not start calls [`on_signal`].
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

/// Returns the future of [`shutdown_signal`], or the reason why the system refuses a handler.
///
/// # Errors
///
/// If the system refuses a handler. The handlers that it did not refuse stay, so the program has to end.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
pub fn on_signal() -> io::Result<ShutdownSignal> {
    let shutdown = CancellationToken::new();
    install(&shutdown).into_iter().try_for_each(|(_, installed)| installed)?;
    Ok(ShutdownSignal::of(shutdown))
}

/// Installs a handler for each signal. All are there when this function returns, so that no signal is missed before their
/// tasks have a first turn.
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
