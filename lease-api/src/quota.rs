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

/// The namespaces that are remembered.
const MOST: usize = 4096;

#[derive(Debug)]
pub(crate) struct Quota {
    most: usize,
    counted: Mutex<HashMap<String, Counted>>,
}

/// The Leases of a namespace at the last count, and the new or large ones since.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    leases: usize,
    bytes: usize,
    since: usize,
    created: usize,
    at: Option<Instant>,
}

impl Quota {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, counted: Mutex::default() }
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
        if counted.since.is_multiple_of(BETWEEN) || is_full && !was_counted {
            let (leases, bytes) = listings.count(namespace, deadline).await?;
            let at = Some(Instant::now());
            counted = self.noted(namespace, |counted| *counted = Counted { leases, bytes, since: 1, created, at });
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
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= MOST && !counted.contains_key(namespace) {
            counted.clear();
        }
        let of_namespace = counted.entry(namespace.to_owned()).or_default();
        change(of_namespace);
        *of_namespace
    }
}
