//! A store that takes its time, and that counts its requests.

use std::iter::Sum;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_backends::prices::{MONTH, Prices};
use tokio::time::{Instant, sleep};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Requests of an hour, by their kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Conditional writes.
    pub writes: u64,
    /// Reads of one object.
    pub reads: u64,
    /// Pages of listings, each of which is one request.
    pub listings: u64,
    /// Conditional deletions.
    pub deletions: u64,
}

impl Requests {
    /// The price of a month of such hours, in dollars.
    #[must_use]
    pub fn dollars_a_month(&self, prices: &Prices) -> f64 {
        let hours = MONTH.as_secs_f64() / HOUR.as_secs_f64();
        let [writes, reads] = [self.writes + self.listings, self.reads].map(|requests| requests as f64 * hours);
        prices.dollars(writes, reads)
    }

    /// The requests since `before`, so many times.
    #[must_use]
    pub fn since(self, before: Self, times: u64) -> Self {
        Self {
            writes: (self.writes - before.writes) * times,
            reads: (self.reads - before.reads) * times,
            listings: (self.listings - before.listings) * times,
            deletions: (self.deletions - before.deletions) * times,
        }
    }
}

impl Sum for Requests {
    fn sum<I: Iterator<Item = Self>>(requests: I) -> Self {
        requests.fold(Self::default(), |all, one| Self {
            writes: all.writes + one.writes,
            reads: all.reads + one.reads,
            listings: all.listings + one.listings,
            deletions: all.deletions + one.deletions,
        })
    }
}

/// The durations of a store's answers, besides those that the store takes by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: Requests,
    /// The writes that failed because another was first.
    refused: u64,
    /// The second to which `in_second` belongs.
    second: u64,
    in_second: u64,
    renewals: Renewals,
}

impl Client {
    pub(crate) fn new(inner: Arc<dyn ConditionalStore>, pace: Pace) -> Self {
        Self { inner, pace, began: Instant::now(), counts: Arc::default() }
    }

    pub(crate) fn requests(&self) -> Requests {
        self.counts().requests
    }

    /// The writes that failed because another was first.
    pub(crate) fn refused(&self) -> u64 {
        self.counts().refused
    }

    /// The renewals of the process's session so far.
    pub(crate) fn renewals(&self) -> Renewals {
        self.counts().renewals.clone()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("no panic under the lock")
    }

    async fn pass(&self, time: Duration, kind: fn(&mut Requests) -> &mut u64) -> Result<(), StoreError> {
        *kind(&mut self.counts().requests) += 1;
        if !time.is_zero() {
            sleep(time).await;
        }
        let (mut counts, now) = (self.counts(), self.began.elapsed().as_secs());
        if counts.second != now {
            (counts.second, counts.in_second) = (now, 0);
        }
        counts.in_second += 1;
        let refuses = match self.pace.throttle {
            Throttle::Never => false,
            Throttle::EverySecond => counts.in_second.is_multiple_of(2),
            Throttle::Beyond(most) => counts.in_second > most,
        };
        if refuses { Err(StoreError::new(StoreErrorKind::Rejected, "too many requests")) } else { Ok(()) }
    }
}

/// The renewals of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renewals {
    /// The key of the session's object.
    key: String,
    sent_at: Option<Instant>,
    /// The moment of the last one that was committed.
    pub(crate) committed_at: Option<Instant>,
    pub(crate) longest: Pauses,
}

/// The longest times between two renewals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// From the moment at which one was sent to that at which the next was.
    pub sent: Duration,
    /// From the moment at which one was committed to that at which the next did.
    pub committed: Duration,
}

impl Renewals {
    /// Takes a write that is sent. A process creates no session's object but its own.
    pub(crate) fn sends(&mut self, key: &str, precondition: &Precondition) {
        if key.contains("/sessions/") && *precondition == Precondition::Absent {
            (self.key, self.sent_at, self.committed_at) = (key.to_owned(), None, None);
        }
        if key == self.key {
            let before = self.sent_at.replace(Instant::now());
            self.longest.sent = self.longest.sent.max(before.map_or(Duration::ZERO, |before| before.elapsed()));
        }
    }

    /// Takes a write that was committed.
    pub(crate) fn committed(&mut self, key: &str) {
        if key == self.key {
            let before = self.committed_at.replace(Instant::now());
            self.longest.committed =
                self.longest.committed.max(before.map_or(Duration::ZERO, |before| before.elapsed()));
        }
    }
}

impl Pauses {
    pub(crate) fn longer(self, other: Self) -> Self {
        Self { sent: self.sent.max(other.sent), committed: self.committed.max(other.committed) }
    }
}

#[async_trait]
impl ConditionalStore for Client {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.pass(self.pace.request, |requests| &mut requests.reads).await?;
        self.inner.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.counts().renewals.sends(key, precondition);
        self.pass(self.pace.request, |requests| &mut requests.writes).await?;
        let written = self.inner.put(key, body, precondition).await;
        match &written {
            Ok(_) => self.counts().renewals.committed(key),
            Err(_) => self.counts().refused += 1,
        }
        written
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.pass(self.pace.request, |requests| &mut requests.deletions).await?;
        self.inner.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.pass(self.pace.page, |requests| &mut requests.listings).await?;
        self.inner.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.inner.min_write_interval()
    }
}
