//! One candidate: what an application that elects a leader looks like.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectLock};
use leaderelection_arena::fenced_log::Entry;
use leaderelection_arena::shutdown;

use crate::args::Settings;
use crate::place::{Log, Site};
use crate::report::{Report, entry_text};
use crate::thaw;

/// Competes for the lock, and works while it leads, until SIGTERM.
pub async fn run(name: String, settings: Settings) -> anyhow::Result<()> {
    let site = Site::open(settings.store.as_ref().context("a candidate needs --store")?).await?;
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
    let config = LeaderElectionConfig::builder(lock, callbacks)
        .timings(settings.timing.check()?)
        .release_on_cancel(true)
        .build()?;
    let elector = DefaultLeaderElector::new(config);

    tokio::spawn(thaw::watch(elector.handle(), log, name));
    // Whoever has started us reads what we report, and we have nobody else to compete for.
    shutdown::exit_with_parent();
    // Returns when the work has ended and the lease is released.
    elector.campaign(shutdown::on_signal()?).await?;
    Ok(())
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
