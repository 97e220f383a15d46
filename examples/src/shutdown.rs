//! When a program that leads is to end.

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

/// Ends the process, at once, when its parent is gone, however it went: there is nobody left to work for.
///
/// The parent must keep our standard input open, and write nothing to it.
pub fn exit_with_parent() {
    // A thread, because a runtime waits for tokio's own reader of standard input before it ends.
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    });
}
