//! The locks that this process competes for: one, or one for every slot.

use futures_util::future::{FutureExt as _, select_all};
use leaderelection::LeaderHandle;

use super::first_look::Held;
use super::refusal;
use crate::exit::{Exit, Failure};

/// The locks. This process leads one at a time.
#[derive(Debug)]
pub(super) struct Locks {
    handles: Vec<LeaderHandle>,
}

/// The writes that the locks refuse.
#[derive(Debug)]
pub(super) struct Refusals {
    handles: Vec<LeaderHandle>,
}

impl Refusals {
    pub(super) fn new(handles: Vec<LeaderHandle>) -> Self {
        Self { handles }
    }

    /// Completes with the next refusal. Cancellation safe.
    pub(super) async fn next(&mut self) -> Failure {
        select_all(self.handles.iter_mut().map(|handle| refusal::next(handle).boxed())).await.0
    }
}

impl Locks {
    pub(super) fn new(handles: Vec<LeaderHandle>) -> Self {
        Self { handles }
    }

    pub(super) fn is_led(&self) -> bool {
        self.handles.iter().any(LeaderHandle::is_leader)
    }

    /// Completes when the status of any lock changes. Cancellation safe.
    pub(super) async fn changed(&mut self) {
        let changes = self.handles.iter_mut().map(|handle| handle.changed().boxed());
        if select_all(changes).await.0.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The holders, if every lock is held by another process.
    pub(super) fn held_by_others(&self) -> Option<Vec<Held>> {
        self.handles.iter().map(held_by_other).collect()
    }

    /// The failure of the store that kept this process from leading; `None` if it waited for other holders.
    pub(super) fn failure_of_store(&self) -> Option<Failure> {
        let is_held = |handle: &LeaderHandle| held_by_other(handle).is_some();
        let failed = |handle: &LeaderHandle| {
            let error = handle.last_error().filter(|_| !is_held(handle))?;
            Some(Failure::new(Exit::Unavailable, error.message))
        };
        let refused = self.handles.iter().find_map(refusal::last);
        refused.or_else(|| self.handles.iter().find_map(failed))
    }
}

fn held_by_other(handle: &LeaderHandle) -> Option<Held> {
    let status = handle.status();
    let holder = status.leader.filter(|leader| leader != handle.identity())?;
    let (lease, seen_for) = status.observed.map(|seen| (seen.lease_duration, seen.unchanged_for)).unwrap_or_default();
    Some(Held { holder, lease, seen_for })
}
