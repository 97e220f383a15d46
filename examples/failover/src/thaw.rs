//! The state that a candidate finds after a freeze.

use std::time::Duration;

use leaderelection::LeaderHandle;
use leaderelection_arena::fenced_log::{Entry, FencedLog};
use leaderelection_arena::report::Report;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Reports after every SIGCONT whether this candidate still leads. A candidate that no longer leads then writes with
/// the token of its last term, which no real program should do, to show that the log refuses this token.
pub async fn watch(mut handle: LeaderHandle, log: FencedLog, name: String) {
    let Ok(mut go_on) = signal(SignalKind::from_raw(Signal::CONT.as_raw())) else {
        tracing::error!("cannot listen for SIGCONT");
        return;
    };
    let mut last_token = None;
    loop {
        tokio::select! {
            biased;
            Some(()) = go_on.recv() => {
                let leading = handle.is_leader();
                Report::Thawed { leading }.send();
                if let (false, Some(token)) = (leading, last_token) {
                    try_stale_token(&log, token, &name).await.send();
                }
            }
            Ok(()) = handle.changed() => last_token = handle.fencing_token().map(u64::from).or(last_token),
            else => return,
        }
    }
}

async fn try_stale_token(log: &FencedLog, token: u64, name: &str) -> Report {
    let entry = Entry::new(token, name, "written by a leader of the past");
    loop {
        match log.append(&entry).await {
            Ok(()) => return Report::TriedStaleToken { token, refused: false, answer: "accepted".to_owned() },
            Err(error) => match error.stale() {
                Some(stale) => return Report::TriedStaleToken { token, refused: true, answer: stale.to_string() },
                // Connections do not always survive a freeze, and an error of the store proves nothing.
                None => tracing::warn!(error = format!("{:#}", anyhow::Error::new(error)), "trying again"),
            },
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
