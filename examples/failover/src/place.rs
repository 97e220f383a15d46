//! The place of the lock and the log.

use std::sync::Arc;

use anyhow::ensure;
use leaderelection::StoreError;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt};
use leaderelection_arena::fenced_log::FencedLog;
use leaderelection_backends::url::Location;

/// A store, and the keys in it. The log is next to the lock.
#[derive(Clone, Debug)]
pub struct Site {
    pub store: Arc<dyn ConditionalStore>,
    pub lock_key: String,
    log_key: String,
}

impl Site {
    pub async fn open(lock: &Location) -> Result<Self, StoreError> {
        let (store, lock_key) = (lock.open().await?, lock.key().to_owned());
        let log_key = format!("{lock_key}.log");
        Ok(Self { store, lock_key, log_key })
    }

    pub fn log(&self) -> FencedLog {
        FencedLog::new(Arc::clone(&self.store), &self.log_key)
    }

    /// Takes the place for this run. A store that cannot be used causes an error here. A place in use is refused,
    /// because the candidates would otherwise compete for a real lock.
    pub async fn claim(&self) -> anyhow::Result<()> {
        for key in [&self.lock_key, &self.log_key] {
            let name = self.store.describe(key);
            let found = self.store.get(key).await?;
            ensure!(found.is_none(), "{name} exists already; give --store a key that nothing uses, or delete it");
        }
        self.log().create().await?;
        Ok(())
    }

    /// Deletes the objects that this run wrote.
    pub async fn clear(&self) {
        for key in [&self.lock_key, &self.log_key] {
            if let Err(error) = self.store.discard(key).await {
                let name = self.store.describe(key);
                eprintln!("warning: {name} was not deleted: {:#}", anyhow::Error::new(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_log_is_next_to_the_lock() {
        let site = Site::open(&"file:///some%20dir/name".parse().unwrap()).await.unwrap();
        let described = [&site.lock_key, &site.log_key].map(|key| site.store.describe(key));
        assert_eq!(described, ["file:///some dir/name", "file:///some dir/name.log"]);
    }
}
