//! The messages of `serve` to systemd.

use leaderelection::DefaultLeaderElector;
use tokio_util::sync::CancellationToken;

use super::TOLERATED_DELAY;
use crate::exit::Failure;
use crate::lock::LockUrl;
use crate::notify::NotifyArgs;

/// Tells systemd about the elector, on a task of its own. Signs of life end when /healthz fails.
pub(super) fn tell(
    args: &NotifyArgs,
    elector: &DefaultLeaderElector,
    lock: &LockUrl,
    draining: &CancellationToken,
) -> Result<(), Failure> {
    let health = elector.health_check(TOLERATED_DELAY);
    let notifier = args.start(move || health.check().is_ok())?;
    notifier.follows(&lock.to_string());
    let (mut handle, draining) = (elector.handle(), draining.clone());
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
