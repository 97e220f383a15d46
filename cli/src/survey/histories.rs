//! The histories beside the locks: each is read when it has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use leaderelection::history::{self, EndedTerm};
use leaderelection::store::ListedObject;
use leaderelection::{ConditionalStore, Version};

/// The number of histories that are read at the same time.
const AT_A_TIME: usize = 16;

/// The histories that were read, by the keys of their locks.
#[derive(Debug, Default)]
pub(super) struct Histories(BTreeMap<String, (Option<Version>, Vec<EndedTerm>)>);

impl Histories {
    /// Takes the histories out of a listing. An object with such a name is one only beside the lock that it names.
    pub(super) fn split_off(listed: &mut Vec<ListedObject>) -> Vec<(String, Option<Version>)> {
        let keys: BTreeSet<String> = listed.iter().map(|object| object.key.clone()).collect();
        let lock_of = |key: &str| history::lock_of(key).filter(|lock| keys.contains(*lock)).map(str::to_owned);
        let found = listed.iter().filter_map(|object| Some((lock_of(&object.key)?, object.version.clone()))).collect();
        listed.retain(|object| lock_of(&object.key).is_none());
        found
    }

    /// Reads those that have changed, of a lock with several parts beside the first part that answers. `parts` has the places of
    /// a lock. A history that cannot be read stays as it was, and the next look tries again.
    pub(super) async fn read(
        &mut self,
        parts: impl Fn(&str) -> Vec<(Arc<dyn ConditionalStore>, String)>,
        listed: Vec<(String, Option<Version>)>,
    ) {
        let there: BTreeSet<&String> = listed.iter().map(|(lock, _)| lock).collect();
        self.0.retain(|lock, _| there.contains(lock));
        let is_known = |(lock, version): &(String, Option<Version>)| {
            version.is_some() && self.0.get(lock).is_some_and(|(known, _)| known == version)
        };
        let changed: Vec<_> = listed.into_iter().filter(|listed| !is_known(listed)).collect();
        let reads = changed.into_iter().map(|(lock, version)| {
            let parts = parts(&lock);
            async move {
                for (store, key) in parts {
                    if let Ok(Some(found)) = store.get(&history::key_of(&key)).await {
                        return Some((lock, (version, history::parse(&found.body).unwrap_or_default())));
                    }
                }
                None
            }
        });
        let read: Vec<_> = stream::iter(reads).buffer_unordered(AT_A_TIME).collect().await;
        self.0.extend(read.into_iter().flatten());
    }

    pub(super) fn of(&self, lock: &str) -> &[EndedTerm] {
        self.0.get(lock).map(|(_, terms)| terms.as_slice()).unwrap_or_default()
    }
}
