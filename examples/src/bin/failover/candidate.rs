//! One candidate: what an application that elects a leader looks like.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use leaderelection::{
    ConfigError, DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectLock,
    ObjectStoreBasedLock,
};
use leaderelection_examples::fenced_log::Entry;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::Settings;
use crate::place::Log;
use crate::report::{Report, entry_text};
use crate::thaw;

/// Competes for the lock, and works while it leads, until SIGTERM.
pub async fn run(name: String, settings: Settings) -> anyhow::Result<()> {
    let place = settings.store.as_ref().context("a candidate needs --store")?;
    let site = place.open().await;
    let log = site.log();
    let append_period = settings.append_period();

    let lock = ObjectLock::new(Arc::clone(&site.store), &site.lock_key, &name);
    let callbacks = LeaderCallbacks::new()
        .on_start_leading({
            let (log, name) = (log.clone(), name.clone());
            move |leadership| lead(leadership, log.clone(), name.clone(), append_period)
        })
        .on_stop_leading(|| Report::StoppedLeading.send())
        .on_new_leader(|leader| tracing::info!(leader, "new leader"));
    let elector = DefaultLeaderElector::new(config(lock, callbacks, &settings)?);

    tokio::spawn(thaw::watch(elector.handle(), log, name));
    exit_with_parent();

    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            terminate.recv().await;
            shutdown.cancel();
        }
    });
    // Returns when the work has ended and the lease is released.
    elector.campaign(shutdown).await;
    Ok(())
}

/// The election's settings.
pub fn config(
    lock: impl ObjectStoreBasedLock,
    callbacks: LeaderCallbacks,
    settings: &Settings,
) -> Result<LeaderElectionConfig, ConfigError> {
    LeaderElectionConfig::builder(lock, callbacks)
        .lease_duration(settings.lease)
        .renew_deadline(settings.renew)
        .retry_period(settings.retry)
        .release_on_cancel(true)
        .build()
}

/// The work that only the leader may do: appending to the log, until the term is over.
async fn lead(leadership: Leadership, log: Log, name: String, every: Duration) {
    let token = leadership.fencing_token();
    Report::Leading { token }.send();
    let mut entry = 0;
    // Checked anew before every piece of work: a frozen process wakes up long after its last check.
    while leadership.is_valid() {
        let report = match log.append(&Entry::new(token, &name, entry_text(entry))).await {
            Ok(()) => Report::Appended { token, entry },
            Err(error) => Report::NotAppended { token, error: format!("{:#}", anyhow::Error::new(error)) },
        };
        report.send();
        entry += 1;
        tokio::select! {
            biased;
            () = leadership.lost() => {}
            () = tokio::time::sleep(every) => {}
        }
    }
}

/// A candidate whose parent is gone, however it went, has nobody to compete for.
fn exit_with_parent() {
    // A thread, because a runtime waits for tokio's own reader of standard input before it ends.
    std::thread::spawn(|| {
        // Nothing is ever written to our standard input, and it ends when the parent does.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}
