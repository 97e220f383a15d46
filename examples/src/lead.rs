//! The part of a program that is the same whatever store the lock is in.

use leaderelection::{DefaultLeaderElector, LeaderCallbacks, ObjectStoreBasedLock};

use crate::shutdown;
use crate::timing::Timing;

/// Competes for `lock` until SIGTERM or Ctrl-C, and says what happens.
///
/// # Errors
///
/// If the configuration is wrong, or the signals' handlers cannot be installed.
pub async fn until_signalled(lock: impl ObjectStoreBasedLock, timing: Timing) -> anyhow::Result<()> {
    println!("competing for {} as {}", lock.describe(), lock.identity());
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(|leadership| async move {
            println!("leading with fencing token {}", leadership.fencing_token());
            leadership.lost().await;
        })
        .on_stop_leading(|| println!("stopped leading"))
        .on_new_leader(|leader| println!("{leader} leads"));
    let elector = DefaultLeaderElector::new(timing.configure(lock, callbacks).build()?);
    elector.campaign(shutdown::on_signal()?).await;
    Ok(())
}
