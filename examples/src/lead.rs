//! The part of a program that does not depend on the store of the lock.

use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, Leadership, ObjectStoreBasedLock, shutdown_signal,
};

use crate::timing::Timing;

/// Competes for `lock` until SIGTERM or Ctrl-C, and prints the events.
///
/// # Errors
///
/// If the configuration is invalid, or the store is unfit.
pub async fn until_signalled(lock: impl ObjectStoreBasedLock, timing: Timing) -> anyhow::Result<()> {
    println!("competing for {} as {}", lock.describe(), lock.identity());
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(controller)
        .on_stop_leading(|| println!("stopped leading"))
        .on_new_leader(|leader| println!("{leader} leads"));
    let config = timing.configure(lock, callbacks)?.build()?;
    Ok(DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?)
}

async fn controller(leadership: Leadership) {
    println!("leading with fencing token {}", leadership.fencing_token());
    leadership.lost().await;
}
