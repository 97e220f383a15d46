//! A store behind a network that is slow, loses requests and answers, and delivers late. Everything follows from a seed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{MemoryStore, StoreError, StoreErrorKind};
use serde_json::Value;
use tokio::time::sleep;

/// Numbers that follow from a seed (xorshift).
#[derive(Clone, Debug)]
pub(super) struct Chance(Arc<Mutex<u64>>);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)))
    }

    pub(super) fn below(&self, most: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 11) % most
    }

    /// Returns `true` in one of so many cases.
    pub(super) fn one_in(&self, cases: u64) -> bool {
        self.below(cases) == 0
    }

    pub(super) fn millis(&self, most: u64) -> Duration {
        Duration::from_millis(self.below(most))
    }
}

/// The holder of a term, and when the term began.
type Term = (String, DateTime<Utc>);

/// One of the two places, with the terms that have ever been written into it.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    store: MemoryStore,
    terms: Arc<Mutex<BTreeSet<Term>>>,
}

impl Place {
    /// Returns `true` if this place has ever had the term of this Lease or record.
    pub(super) fn has_had(&self, spec: &Value) -> bool {
        self.terms.lock().unwrap().contains(&term(spec))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let record: Value = serde_json::from_slice(&body).unwrap();
        let version = self.store.put(key, body, precondition).await?;
        self.terms.lock().unwrap().insert(term(&record));
        Ok(version)
    }
}

fn term(spec: &Value) -> Term {
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    (text("holderIdentity").to_owned(), text("acquireTime").parse().unwrap())
}

/// One place, as one server reaches it.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) place: Place,
    pub(super) chance: Chance,
}

impl Network {
    /// Passes a call on. What was sent arrives, even if nobody waits for the answer any more.
    async fn pass<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ambiguous = || Err(StoreError::new(StoreErrorKind::Ambiguous, "lost"));
        let (chance, fate) = (&self.chance, self.chance.below(40));
        let (there, back) = match fate {
            // Long after everybody has given up.
            0 => (chance.millis(30_000), chance.millis(100)),
            _ => (chance.millis(120), chance.millis(120)),
        };
        if fate == 1 {
            sleep(there).await;
            return Err(StoreError::new(StoreErrorKind::Rejected, "refused"));
        }
        if fate == 2 {
            sleep(there + back).await;
            return ambiguous();
        }
        let sent = tokio::spawn(async move {
            sleep(there).await;
            call.await
        });
        if fate == 3 {
            sleep(back).await;
            return ambiguous();
        }
        let answer = sent.await.unwrap();
        sleep(back).await;
        if fate == 4 { ambiguous() } else { answer }
    }
}

#[async_trait]
impl ConditionalStore for Network {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let (store, key) = (self.place.store.clone(), key.to_owned());
        self.pass(async move { store.get(&key).await }).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let (place, key, precondition) = (self.place.clone(), key.to_owned(), precondition.clone());
        self.pass(async move { place.put(&key, body, &precondition).await }).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.place.store.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.place.store.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.place.store.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.place.store.min_write_interval()
    }
}
