//! The deletion of the objects that a probe has written.

use std::time::Duration;

use leaderelection::{StoreError, StoreErrorKind};

use super::calls::Prober;
use super::ledger::Object;

const LIMIT: Duration = Duration::from_secs(10);

impl Prober<'_> {
    /// Deletes the objects of the last check, without repeating a failed deletion.
    pub(super) async fn sweep(&self) {
        for key in self.keys(|object| !object.swept) {
            let removed = async {
                let Some(found) = self.call(&key, self.store.get(&key)).await? else { return Ok(()) };
                self.call(&key, self.store.delete(&key, &found.version)).await
            };
            let removed = removed.await;
            self.swept(&key, removed);
        }
    }

    /// Deletes the objects that the sweeps could not delete, and objects that late creates have written since.
    pub(super) async fn clean_up(&self) {
        let clock = &self.config.clock;
        let insist = async {
            for key in self.keys(|object| !object.denied) {
                let removed = async {
                    let Some(found) = self.get(&key).await? else { return Ok(()) };
                    self.delete(&key, &found.version).await
                };
                let removed = removed.await;
                self.swept(&key, removed);
            }
        };
        tokio::select! {
            biased;
            () = insist => {}
            () = clock.sleep_until(clock.now() + LIMIT) => {}
        }
    }

    fn keys(&self, wanted: impl Fn(&Object) -> bool) -> Vec<String> {
        self.with_ledger(|ledger| {
            ledger.objects.iter().filter(|(_, object)| wanted(object)).map(|(key, _)| key.clone()).collect()
        })
    }

    fn swept(&self, key: &str, removed: Result<(), StoreError>) {
        self.with_ledger(|ledger| {
            let Some(object) = ledger.objects.get_mut(key) else { return };
            object.swept = true;
            object.denied = removed.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Fatal);
            if removed.is_ok() && object.unsettled == 0 {
                ledger.objects.remove(key);
            }
        });
    }
}
