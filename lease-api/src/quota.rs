//! What the Leases of a namespace may take. A write asks for no second request to the store: they are counted once in a while. A
//! renewal of a Lease that does not grow needs no room.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::status::Failure;
use crate::watch::Listings;

/// The number of new or large Leases of a namespace between two counts.
const BETWEEN: usize = 64;

/// The pause between two counts of a namespace that is full.
const PAUSE: Duration = Duration::from_secs(1);

/// The bytes that a Lease may take if all of its namespace take as much.
const EACH: usize = 4 * 1024;

/// The namespaces that are remembered. When there are more, all are forgotten, and each is counted before its next Lease: whoever
/// names many gains no room, and pays for each with a Lease of its own.
const MOST: usize = 4096;

#[derive(Debug)]
pub(crate) struct Quota {
    most: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    by_namespace: HashMap<String, Counted>,
    has_forgotten: bool,
}

/// The Leases of a namespace at the last count, and the new or large ones since.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    leases: usize,
    bytes: usize,
    since: usize,
    created: usize,
    at: Option<Instant>,
    /// There may have been a count that was forgotten.
    is_unknown: bool,
}

impl Quota {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, counts: Mutex::default() }
    }

    /// Counts a write of a Lease that is new, or large and growing, if there is room for it.
    pub(crate) async fn admit(
        &self,
        namespace: &str,
        is_new: bool,
        listings: &Listings,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let created = usize::from(is_new);
        let mut counted = self.noted(namespace, |counted| {
            counted.since = counted.since.saturating_add(1);
            counted.created = counted.created.saturating_add(created);
        });
        let has_too_many = |counted: Counted| is_new && counted.leases.saturating_add(counted.created) > self.most;
        let is_full = has_too_many(counted);
        let was_counted = counted.at.is_some_and(|at| at.elapsed() < PAUSE);
        if counted.since.is_multiple_of(BETWEEN) || counted.is_unknown || is_full && !was_counted {
            let (leases, bytes) = listings.count(namespace, deadline).await?;
            let at = Some(Instant::now());
            counted = self.noted(namespace, |counted| {
                *counted = Counted { leases, bytes, since: 1, created, at, is_unknown: false }
            });
        }
        let (most, most_bytes) = (self.most, self.most.saturating_mul(EACH));
        if has_too_many(counted) {
            let why = format!("it may have {most} Leases, and has {}, with those that were deleted", counted.leases);
            return Err(Failure::exceeded(namespace, &why));
        }
        if counted.bytes > most_bytes {
            let why = format!("its Leases may take {most_bytes} bytes, and take {}", counted.bytes);
            return Err(Failure::exceeded(namespace, &why));
        }
        Ok(())
    }

    fn noted(&self, namespace: &str, change: impl FnOnce(&mut Counted)) -> Counted {
        // No change can panic half-way.
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.by_namespace.len() >= MOST && !counts.by_namespace.contains_key(namespace) {
            *counts = Counts { has_forgotten: true, ..Counts::default() };
        }
        let unknown = Counted { is_unknown: counts.has_forgotten, ..Counted::default() };
        let of_namespace = counts.by_namespace.entry(namespace.to_owned()).or_insert(unknown);
        change(of_namespace);
        *of_namespace
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use leaderelection::implement::{ConditionalStore as _, Precondition};
    use leaderelection::{LeaderElectionRecord, MemoryStore};

    use super::*;
    use crate::leases::Leases;

    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_is_full_stays_so_beside_any_number_of_others() {
        let (store, body) = (MemoryStore::new(), LeaderElectionRecord::new("a", PAUSE).to_json());
        for name in ["one", "two"] {
            store.put(&format!("full/{name}"), body.clone().into(), &Precondition::Absent).await.unwrap();
        }
        let leases = Arc::new(Leases::new(Arc::new(store), String::new()));
        let (quota, listings) = (Quota::new(2), Listings::new(leases, PAUSE));
        let later = || Instant::now() + PAUSE;
        for number in 0..3 * MOST {
            quota.noted(&number.to_string(), |counted| counted.since += 1);
            assert!(quota.counts.lock().unwrap().by_namespace.len() <= MOST);
        }
        for _ in 0..2 {
            quota.admit("full", true, &listings, later()).await.unwrap_err();
        }
        quota.admit("free", true, &listings, later()).await.unwrap();
    }
}
