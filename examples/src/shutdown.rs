//! What every program that leads needs: to stop in good order.

use std::io;

use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGTERM, which is how orchestrators stop a process, or by Ctrl-C.
///
/// # Errors
///
/// If the handlers cannot be installed.
pub fn on_signal() -> io::Result<CancellationToken> {
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        #[cfg(unix)]
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
        token.cancel();
    });
    Ok(shutdown)
}
