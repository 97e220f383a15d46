//! The suite for stores: the checks of the probe, and what the probe leaves out.

use std::sync::Arc;

use leaderelection::implement::{ConditionalStore, ListedObject};

use super::effort::Effort;
use super::run::{must_pass, passed, prober};
use crate::probe::{CheckKind, Finding, Prober};

/// Checks that `store` keeps the contract of [`ConditionalStore`].
///
/// A store that has no deletion with a condition passes if it refuses every deletion as
/// [`Fatal`](leaderelection::StoreErrorKind::Fatal). Everything under `prefix` is deleted before and after the check. A call that the store rejects is repeated,
/// so that a store with a rate limit can pass, if slowly. Use a runtime with several threads: the races depend
/// on it.
///
/// The check does not cover cases that the trait cannot cause: an object over
/// [`MAX_BODY_BYTES`](leaderelection::implement::MAX_BODY_BYTES) that another program wrote (must be
/// [`Unreadable`](leaderelection::StoreErrorKind::Unreadable)), network failures, and crashes.
///
/// # Panics
///
/// If the store breaks its contract, or answers nothing but errors.
pub async fn check_store(store: impl ConditionalStore, prefix: &str, effort: Effort) {
    assert!(!prefix.is_empty(), "the suite deletes what is under its prefix: name one, not the whole store");
    let prober = prober(Arc::new(store), &format!("{prefix}/"), effort);
    passed(&prober, prober.clear(prefix).await);
    let mut deletes = false;
    for kind in CheckKind::ALL {
        deletes = must_pass(&prober, kind).await;
    }
    passed(&prober, prober.beyond_a_probe(deletes).await);
    passed(&prober, prober.clear(prefix).await);
}

impl Prober {
    /// Checks what no election depends on, and what takes too long for a probe. `deletes`: the store can delete by a version.
    async fn beyond_a_probe(&self, deletes: bool) -> Finding<()> {
        self.create_equal().await?;
        self.deletions(deletes).await?;
        self.versions().await?;
        self.body_sizes().await?;
        self.listings().await?;
        self.racing_deletions(deletes).await?;
        self.rewriting().await?;
        self.ages().await
    }

    async fn clear(&self, prefix: &str) -> Finding<()> {
        for ListedObject { key, .. } in self.list(prefix).await? {
            self.discard(&key).await?;
        }
        Ok(())
    }
}
