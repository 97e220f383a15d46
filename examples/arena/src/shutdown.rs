//! The reasons for ending a program that leads.

use std::io;

use tokio_util::sync::CancellationToken;

/// Returns a token that is cancelled by SIGTERM, with which orchestrators stop a process, or by Ctrl-C.
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

/// Ends the process at once when its parent has ended in any way, because nobody needs its work any more.
///
/// The parent must keep this process's standard input open, and write nothing to it.
pub fn exit_with_parent() {
    // A thread of its own: a runtime would wait for tokio's reader of standard input before it ends.
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    });
}
