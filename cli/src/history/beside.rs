//! The object beside a lock in which candidates with --keep-history write its ended terms.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use leaderelection::history::{self, EndedTerm};
use leaderelection::implement::{ConditionalStore, ListedObject, Version};
use leaderelection::lock::{Bounded, DEFAULT_MAX_LEASE_DURATION, TimeLimit};
use leaderelection::{LeaderElectionRecord, StoreError};

use crate::lock::LockUrl;

/// The number of histories that are read at the same time.
const AT_A_TIME: usize = 16;

/// The objects beside locks whose names are those of histories, by the keys of the locks: what each is was read.
#[derive(Debug, Default)]
pub(crate) struct Histories(BTreeMap<String, (Option<Version>, Content)>);

#[derive(Debug)]
enum Content {
    History(Vec<EndedTerm>),
    /// Somebody else's object, or a lock: a name alone hides nothing.
    Other,
}

impl Content {
    fn terms(self) -> Option<Vec<EndedTerm>> {
        match self {
            Self::History(terms) => Some(terms),
            Self::Other => None,
        }
    }
}

impl Histories {
    /// Takes the histories out of a listing, and reads those that have changed, of a lock with several parts beside the first part
    /// that answers. `parts` has the places of a lock. What cannot be read counts as it did before, and the next poll tries again.
    pub(crate) async fn take_out(
        &mut self,
        listed: &mut Vec<ListedObject>,
        parts: impl Fn(&str) -> Vec<(Arc<dyn ConditionalStore>, String)>,
    ) {
        let keys: BTreeSet<&str> = listed.iter().map(|object| object.key.as_str()).collect();
        let lock_of = |key: &str| history::lock_of(key).filter(|lock| keys.contains(*lock)).map(str::to_owned);
        let beside: BTreeMap<_, _> =
            listed.iter().filter_map(|object| Some((lock_of(&object.key)?, object.version.clone()))).collect();
        self.0.retain(|lock, _| beside.contains_key(lock));
        let is_known = |lock: &String, version: &Option<Version>| {
            version.is_some() && self.0.get(lock).is_some_and(|(known, _)| known == version)
        };
        let changed: Vec<_> = beside.into_iter().filter(|(lock, version)| !is_known(lock, version)).collect();
        let reads = changed.into_iter().map(|(lock, version)| {
            let parts = parts(&lock);
            async move {
                for (store, key) in parts {
                    if let Ok(Some(content)) = content(&store, &key).await {
                        return Some((lock, (version, content)));
                    }
                }
                None
            }
        });
        let read: Vec<_> = stream::iter(reads).buffer_unordered(AT_A_TIME).collect().await;
        self.0.extend(read.into_iter().flatten());
        let is_history = |lock: &str| matches!(self.0.get(lock), Some((_, Content::History(_))));
        listed.retain(|object| !history::lock_of(&object.key).is_some_and(is_history));
    }

    pub(crate) fn of(&self, lock: &str) -> &[EndedTerm] {
        match self.0.get(lock) {
            Some((_, Content::History(terms))) => terms,
            _ => &[],
        }
    }
}

/// The history of the lock at this key; `None` if the lock has none.
pub(crate) async fn read(store: &impl ConditionalStore, key: &str) -> Result<Option<Vec<EndedTerm>>, StoreError> {
    Ok(content(store, key).await?.and_then(Content::terms))
}

async fn content(store: &impl ConditionalStore, key: &str) -> Result<Option<Content>, StoreError> {
    let found = store.get(&history::key_of(key)).await?;
    Ok(found.map(|found| match history::parse(&found.body) {
        Some(terms) if !is_record(&found.body) => Content::History(terms),
        _ => Content::Other,
    }))
}

/// The last term in the history of a lock, if the lock has a history that can be read.
pub(crate) async fn last_term(lock: &LockUrl, limit: TimeLimit) -> Option<EndedTerm> {
    let lock = lock.open_to_read().await.ok()?;
    let store = Bounded::new(lock.store().clone(), limit);
    read(&store, lock.key()).await.ok()??.pop()
}

/// A lock may have a field of any name beside its own.
fn is_record(body: &[u8]) -> bool {
    LeaderElectionRecord::from_json(body, DEFAULT_MAX_LEASE_DURATION).is_ok()
}
