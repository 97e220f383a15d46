//! The messages of `serve` to systemd.

use leaderelection::{HealthCheck, LeaderHandle};
use tokio_util::sync::CancellationToken;

use crate::commands::notify::NotifyArgs;
use crate::exit::Failure;
use crate::lock::LockUrl;

/// Tells systemd about the elector, on a task of its own. Signs of life end when /healthz fails.
pub(super) fn tell(
    args: &NotifyArgs,
    (mut handle, health): (LeaderHandle, HealthCheck),
    lock: &LockUrl,
    draining: &CancellationToken,
) -> Result<(), Failure> {
    let notifier = args.start(move || health.check().is_ok())?;
    notifier.follows(&lock.to_string());
    let draining = draining.clone();
    tokio::spawn(async move {
        loop {
            let status = handle.status();
            match (status.leadership, status.leader) {
                (Some(leadership), _) => notifier.leads(leadership.fencing_token()),
                (None, Some(leader)) => notifier.waits_for(&leader),
                (None, None) => {}
            }
            tokio::select! {
                biased;
                () = draining.cancelled() => return notifier.stops(),
                Ok(()) = handle.changed() => {}
            }
        }
    });
    Ok(())
}
