//! A store that takes its time, and that counts its requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::store::{ListedObject, ListedPage, PageToken};
use leaderelection::{ConditionalStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject};
use tokio::time::{Instant, sleep};

use super::renewals::Renewals;

/// The durations of a store's answers, besides those that the store takes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The time of one read or write.
    pub request: Duration,
    /// The time of one page of a listing.
    pub page: Duration,
    /// The requests that the store refuses.
    pub throttle: Throttle,
}

/// The requests that a store refuses because there are too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Throttle {
    /// None.
    #[default]
    Never,
    /// Every second request.
    EverySecond,
    /// All beyond this number in a second.
    Beyond(u64),
}

/// One process's way to the store. Clones have the same counts.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    inner: Arc<dyn ConditionalStore>,
    pace: Pace,
    began: Instant,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    writes: AtomicU64,
    refused: AtomicU64,
    reads: AtomicU64,
    pages: AtomicU64,
    /// The second to which `in_second` belongs.
    second: AtomicU64,
    in_second: AtomicU64,
    renewals: Mutex<Renewals>,
}

/// The numbers of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    pub(crate) writes: u64,
    /// The writes that failed because another was first.
    pub(super) refused: u64,
    pub(crate) reads: u64,
}

impl Requests {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            refused: self.refused + other.refused,
            reads: self.reads + other.reads,
        }
    }

    pub(super) fn all(self) -> u64 {
        self.writes + self.reads
    }
}

impl Client {
    pub(crate) fn new(inner: Arc<dyn ConditionalStore>, pace: Pace) -> Self {
        Self { inner, pace, began: Instant::now(), counts: Arc::default() }
    }

    pub(crate) fn requests(&self) -> Requests {
        let Counts { writes, refused, reads, pages, .. } = &*self.counts;
        let [writes, refused, reads, pages] =
            [writes, refused, reads, pages].map(|counter| counter.load(Ordering::Relaxed));
        Requests { writes, refused, reads: reads + pages }
    }

    /// The renewals of the process's session so far.
    pub(super) fn renewals(&self) -> Renewals {
        self.counts.renewals.lock().expect("no panic under the lock").clone()
    }

    fn note(&self, change: impl FnOnce(&mut Renewals)) {
        change(&mut self.counts.renewals.lock().expect("no panic under the lock"));
    }

    async fn pass(&self, time: Duration, counter: &AtomicU64) -> Result<(), StoreError> {
        counter.fetch_add(1, Ordering::Relaxed);
        sleep(time).await;
        let Counts { second, in_second, .. } = &*self.counts;
        let now = self.began.elapsed().as_secs();
        if second.swap(now, Ordering::Relaxed) != now {
            in_second.store(0, Ordering::Relaxed);
        }
        let earlier = in_second.fetch_add(1, Ordering::Relaxed);
        let refuses = match self.pace.throttle {
            Throttle::Never => false,
            Throttle::EverySecond => !earlier.is_multiple_of(2),
            Throttle::Beyond(most) => earlier >= most,
        };
        if refuses { Err(StoreError::new(StoreErrorKind::Rejected, "too many requests")) } else { Ok(()) }
    }
}

#[async_trait]
impl ConditionalStore for Client {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.pass(self.pace.request, &self.counts.reads).await?;
        self.inner.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.note(|renewals| renewals.sends(key, precondition));
        self.pass(self.pace.request, &self.counts.writes).await?;
        let written = self.inner.put(key, body, precondition).await;
        match &written {
            Ok(_) => self.note(|renewals| renewals.landed(key)),
            Err(_) => drop(self.counts.refused.fetch_add(1, Ordering::Relaxed)),
        }
        written
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.pass(self.pace.request, &self.counts.writes).await?;
        self.inner.delete(key, expected).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        ListedPage::all(self, prefix).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        at_most: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.pass(self.pace.page, &self.counts.pages).await?;
        self.inner.list_page(prefix, token, at_most).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.inner.has_unique_versions()
    }
}
