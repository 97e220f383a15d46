//! Timer queue ordered by deadline, with an index by key: the times of the next actions, one for each object.

use std::collections::{BTreeMap, BTreeSet};

use crate::LocalInstant;

/// A set of actions, each with the time at which it is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TimerQueue<K: Ord> {
    by_time: BTreeSet<(LocalInstant, K)>,
    by_key: BTreeMap<K, LocalInstant>,
}

impl<K: Ord + Clone> Default for TimerQueue<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_key: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> TimerQueue<K> {
    /// Sets the time of an action, and replaces its earlier time.
    pub fn set(&mut self, key: K, at: LocalInstant) {
        self.cancel(&key);
        self.by_time.insert((at, key.clone()));
        self.by_key.insert(key, at);
    }

    /// Sets the time of an action, unless the action is due earlier already.
    pub fn set_earlier(&mut self, key: K, at: LocalInstant) {
        if self.by_key.get(&key).is_none_or(|before| *before > at) {
            self.set(key, at);
        }
    }

    /// Removes an action.
    pub fn cancel(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
    }

    /// Removes all actions.
    pub fn clear(&mut self) {
        self.by_time.clear();
        self.by_key.clear();
    }

    /// The time of the earliest action.
    pub fn next_at(&self) -> Option<LocalInstant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The time of an action.
    pub fn at(&self, key: &K) -> Option<LocalInstant> {
        self.by_key.get(key).copied()
    }

    /// The number of actions.
    #[allow(clippy::len_without_is_empty, reason = "no caller asks whether it is empty")]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The number of actions that are due.
    pub fn due(&self, now: LocalInstant) -> usize {
        self.by_time.iter().take_while(|(at, _)| *at <= now).count()
    }

    /// Removes and returns the earliest action, if it is due.
    pub fn pop_due(&mut self, now: LocalInstant) -> Option<K> {
        if self.next_at()? > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// Passes the time of each action to `change`.
    pub fn visit(&mut self, mut change: impl FnMut(&mut LocalInstant)) {
        self.by_key.values_mut().for_each(&mut change);
        // The new times may be in another order.
        self.by_time = self.by_key.iter().map(|(key, at)| (*at, key.clone())).collect();
    }
}
