//! How a probe cleans up behind itself.

use std::time::Duration;

use super::calls::Prober;
use crate::store::{StoreError, StoreErrorKind};

const LIMIT: Duration = Duration::from_secs(10);

/// Something that may be in the store because of us.
#[derive(Default)]
pub(super) struct Object {
    /// Creates whose outcome is not known: they may land after a deletion.
    pub(super) unsettled: usize,
    swept: bool,
    /// Not worth another try.
    denied: bool,
}

impl Prober<'_> {
    /// Deletes what the last check has left, but does not insist.
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

    /// Deletes what the sweeps could not, or what has landed since.
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

    pub(super) fn unsettled(&self, key: &str, change: impl Fn(usize) -> usize) {
        self.with_ledger(|ledger| {
            if let Some(object) = ledger.objects.get_mut(key) {
                object.unsettled = change(object.unsettled);
            }
        });
    }
}
