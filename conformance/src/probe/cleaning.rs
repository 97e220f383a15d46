//! The deletion of the objects that a probe has written.

use leaderelection::implement::ConditionalStoreExt;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::lock::TimeLimit;
use leaderelection::{StoreError, StoreErrorKind};

use super::calls::Prober;
use super::ledger::{Ledger, Object};
use crate::patience::patiently;

const LIMIT: Duration = Duration::from_secs(10);

impl Prober {
    /// Deletes the objects of the last check, without repeating a failed deletion.
    pub(crate) async fn sweep(&self) {
        for key in self.keys(|object| !object.swept) {
            let removed = self.call(&key, self.store.discard(&key)).await;
            let is_stable = self.with_ledger(|ledger| ledger.objects.get(&key).is_none_or(|it| it.unsettled == 0));
            self.swept(&key, removed, is_stable);
        }
    }

    /// Deletes the objects that the sweeps could not delete, and objects that late creates have written since.
    pub(super) async fn clean_up(&self) {
        // A store that has answered nothing does not delete either.
        if !self.with_ledger(Ledger::may_delete) {
            return;
        }
        let insist = async {
            for key in self.keys(|object| !object.denied) {
                let removed = self.discard(&key).await;
                self.swept(&key, removed, true);
            }
            // What could not be deleted may never have been there.
            for key in self.keys(|_| true) {
                if matches!(self.call(&key, self.store.get(&key)).await, Ok(None)) {
                    self.with_ledger(|ledger| ledger.objects.remove(&key));
                }
            }
        };
        // What is still there at the end of the time is left behind.
        let _ = TimeLimit::new(LIMIT).on_clock(Arc::clone(&self.config.clock)).answer(insist).await;
    }

    /// Discards an object, and repeats a deletion that the store rejects for now.
    pub(crate) async fn discard(&self, key: &str) -> Result<(), StoreError> {
        patiently(|time| self.sleep(time), || self.call(key, self.store.discard(key))).await
    }

    fn keys(&self, wanted: impl Fn(&Object) -> bool) -> Vec<String> {
        self.with_ledger(|ledger| {
            ledger.objects.iter().filter(|(_, object)| wanted(object)).map(|(key, _)| key.clone()).collect()
        })
    }

    /// Notes an attempt to delete. `is_final` if no later attempt is needed after a success.
    fn swept(&self, key: &str, removed: Result<(), StoreError>, is_final: bool) {
        self.with_ledger(|ledger| {
            let Some(object) = ledger.objects.get_mut(key) else { return };
            object.swept = true;
            object.denied = removed.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Fatal);
            if removed.is_ok() && is_final {
                ledger.objects.remove(key);
            }
        });
    }
}
