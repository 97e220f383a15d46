//! The locks that a server tells of.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use leaderelection::ConfigError;
use leaderelection::peers::LeaderTerm;
use leaderelection_serving::sockets::Connections;
use tokio::sync::watch::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::key::SharedKey;

/// The locks of this process, by name.
#[derive(Debug)]
pub(crate) struct Served {
    locks: RwLock<BTreeMap<String, Receiver<Option<LeaderTerm>>>>,
    streams: Arc<Semaphore>,
    pub(crate) key: Option<SharedKey>,
}

/// One of these locks. The server does not tell of it any more when this is dropped.
#[derive(Debug)]
pub(crate) struct ServedLock {
    served: Arc<Served>,
    name: String,
}

impl Drop for ServedLock {
    fn drop(&mut self) {
        self.served.write().remove(&self.name);
    }
}

impl Served {
    pub(crate) fn new(key: Option<SharedKey>) -> Self {
        // The other half is for those who ask once.
        let most_streams = Connections::of_process().most() / 2;
        Self { locks: RwLock::default(), streams: Arc::new(Semaphore::new(most_streams)), key }
    }

    pub(crate) fn add(
        self: &Arc<Self>,
        lock: &str,
        led: Receiver<Option<LeaderTerm>>,
    ) -> Result<ServedLock, ConfigError> {
        match self.write().entry(lock.to_owned()) {
            Entry::Vacant(place) => {
                place.insert(led);
                Ok(ServedLock { served: Arc::clone(self), name: lock.to_owned() })
            }
            Entry::Occupied(_) => {
                let problem = format!("({lock:?}) is attached already; attach this elector under another name");
                Err(ConfigError::new("lock", problem))
            }
        }
    }

    /// The lock of this name, or the only lock if no name is given.
    pub(crate) fn find(&self, name: Option<&str>) -> Option<(String, Receiver<Option<LeaderTerm>>)> {
        let locks = self.locks.read().unwrap_or_else(PoisonError::into_inner);
        let (name, led) = match name {
            Some(name) => locks.get_key_value(name)?,
            None => locks.first_key_value().filter(|_| locks.len() == 1)?,
        };
        Some((name.clone(), led.clone()))
    }

    /// Takes the place of a stream; `None` if all are taken.
    pub(crate) fn stream(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Receiver<Option<LeaderTerm>>>> {
        // No code that could panic runs under the lock.
        self.locks.write().unwrap_or_else(PoisonError::into_inner)
    }
}
