//! The last Lease that was read or written at each key: an update replaces the whole object, and must keep what others
//! have written into it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use leaderelection::implement::Version;

use crate::lease::Lease;

/// The number of Leases that are remembered. An elector needs one, and a listing must not fill the memory.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<BTreeMap<String, Lease>>);

impl Seen {
    pub(crate) fn remember(&self, key: &str, lease: &Lease) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if leases.len() >= MOST && !leases.contains_key(key) {
            leases.pop_first();
        }
        leases.insert(key.to_owned(), lease.clone());
    }

    /// The Lease at `key` if its last known version is `version`.
    pub(crate) fn at(&self, key: &str, version: &Version) -> Option<Lease> {
        let leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.get(key).filter(|lease| lease.version() == version).cloned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(uid: &str) -> Lease {
        Lease::of_answer(json!({"metadata": {"uid": uid, "resourceVersion": "1"}})).unwrap()
    }

    #[test]
    fn only_the_last_version_is_known_and_not_of_more_than_some_leases() {
        let seen = Seen::default();
        let (first, second) = (lease("first"), lease("second"));
        seen.remember("key", &first);
        assert!(seen.at("key", first.version()).is_some() && seen.at("other", first.version()).is_none());
        seen.remember("key", &second);
        assert!(seen.at("key", first.version()).is_none() && seen.at("key", second.version()).is_some());
        for number in 0..2 * MOST {
            seen.remember(&number.to_string(), &first);
        }
        assert_eq!(seen.0.lock().unwrap().len(), MOST);
    }
}
