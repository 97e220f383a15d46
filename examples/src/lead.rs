//! The part of a program that does not depend on the store of the lock.

use leaderelection::{DefaultLeaderElector, LeaderCallbacks, ObjectStoreBasedLock};

use crate::shutdown;
use crate::timing::Timing;

/// Competes for `lock` until SIGTERM or Ctrl-C, and prints the events.
///
/// # Errors
///
/// If the configuration is invalid, the store is unfit, or the signal handlers cannot be installed.
pub async fn until_signalled(lock: impl ObjectStoreBasedLock, timing: Timing) -> anyhow::Result<()> {
    println!("competing for {} as {}", lock.describe(), lock.identity());
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(|leadership| async move {
            println!("leading with fencing token {}", leadership.fencing_token());
            leadership.lost().await;
        })
        .on_stop_leading(|| println!("stopped leading"))
        .on_new_leader(|leader| println!("{leader} leads"));
    let elector = DefaultLeaderElector::new(timing.configure(lock, callbacks)?.build()?);
    Ok(elector.campaign(shutdown::on_signal()?).await?)
}
