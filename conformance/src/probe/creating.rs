//! The checks of a store that can only create: its creations and its listings themselves, without the layer above them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_sequenced::CreateOnlyStore;

use super::calls::Prober;
use super::check::{Finding, Stopped};
use crate::contract::{Breach, CREATE_ONCE, STRONG_LISTING};
use crate::race::at_once;

const FIRST: &[u8] = b"the first creation of a probe\n";
const SECOND: &[u8] = b"a creation of a probe that must be refused\n";

/// The number of creators that list at the same time, at most.
const LISTERS: usize = 16;

type Objects = Arc<dyn CreateOnlyStore>;

impl Prober {
    /// Creates one key twice. Some stores ignore the condition, depending on settings of their bucket.
    pub(super) async fn create_again(&self, objects: &Objects) -> Finding {
        let key = number(&self.new_key("create-again"), 1);
        self.call(&key, objects.create(&key, Bytes::from_static(FIRST))).await?;
        match self.call(&key, objects.create(&key, Bytes::from_static(SECOND))).await {
            Ok(()) => return Err(Breach::new("the same key was created a second time", CREATE_ONCE).into()),
            Err(error) if error.kind() != StoreErrorKind::Conflict => return Err(error.into()),
            Err(_) => {}
        }
        let found = self.call(&key, objects.read(&key)).await?;
        let is_first = found.is_some_and(|content| content.bytes == FIRST);
        Breach::unless(is_first, "a creation failed with Conflict, but changed the object", CREATE_ONCE)?;
        Ok("a second creation failed with Conflict, and changed nothing".to_owned())
    }

    /// Lets creators of different keys list at the same time. A listing shows every key whose creation was answered
    /// before the listing began.
    pub(super) async fn listed_at_once(&self, objects: &Objects) -> Finding {
        let creators = self.config.writers.min(LISTERS);
        let mut races = 0;
        for _ in 0..self.config.rounds {
            let (folder, created) = (self.new_key("listed-at-once"), Arc::<Mutex<_>>::default());
            let listings = at_once((0..creators).map(|creator| {
                let (prober, objects) = (self.clone(), Arc::clone(objects));
                let (folder, created) = (folder.clone(), Arc::clone(&created));
                async move { prober.create_and_list(&objects, &folder, creator + 1, &created).await }
            }));
            for listed in listings.await {
                if let Some(missing) = listed? {
                    let what = format!("a listing that began after the creation of {missing} does not show it");
                    return Err(Breach::new(what, STRONG_LISTING).into());
                }
            }
            races += 1;
            self.sweep().await;
        }
        Ok(format!("{races} times {creators} creators listed: every listing showed all that was there before it"))
    }

    /// Returns a key that the listing misses.
    async fn create_and_list(
        &self,
        objects: &Objects,
        folder: &str,
        creator: usize,
        created: &Mutex<BTreeSet<String>>,
    ) -> Result<Option<String>, StoreError> {
        let key = number(folder, creator);
        self.call(&key, objects.create(&key, Bytes::from_static(FIRST))).await?;
        let before = {
            let mut created = created.lock().unwrap_or_else(PoisonError::into_inner);
            created.insert(key.clone());
            created.clone()
        };
        let listed = self.call(&key, objects.list(&format!("{folder}/"), None)).await?;
        let listed: BTreeSet<_> = listed.into_iter().map(|entry| entry.key).collect();
        Ok(before.difference(&listed).next().cloned())
    }
}

/// The key of a numbered object, as a sequenced lock has them, so that a discarded lock takes the object with it.
fn number(folder: &str, number: usize) -> String {
    format!("{folder}/{number:020}")
}

impl Stopped {
    /// Returns `true` if the store says that it cannot do what it was asked for.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Unclear(error) => error.kind() == StoreErrorKind::Fatal,
            Self::Broken(_) => false,
        }
    }
}
