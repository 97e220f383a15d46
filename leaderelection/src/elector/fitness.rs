//! The check that a store has to pass before any candidacy.

use crate::config::LeaderElectionConfig;
use crate::store_check::{Candidacy, StoreFitness, StoreUnfit};

/// The memory of a passed check.
#[derive(Debug, Default)]
pub(super) struct Fitness {
    shown: bool,
}

impl Fitness {
    /// Completes at once if no check is configured or the store has passed it, and otherwise when a check is
    /// conclusive. `new_id` names each check. Cancellation safe.
    pub(super) async fn demand(
        &mut self,
        config: &LeaderElectionConfig,
        mut new_id: impl FnMut() -> String,
    ) -> Result<(), StoreUnfit> {
        let Some(check) = &config.store_check else { return Ok(()) };
        while !self.shown {
            // The builder has made sure that there is a store.
            let Some((store, key)) = config.lock.object() else {
                return Err(StoreUnfit { why: "the lock does not name its store".to_owned() });
            };
            let pause = config.rules.lease_duration;
            let candidacy = Candidacy {
                store,
                key,
                id: new_id(),
                request_timeout: config.timings.request_timeout(),
                pause,
                clock: &config.clock,
            };
            match check.check(candidacy).await {
                StoreFitness::Fit => self.shown = true,
                StoreFitness::Unfit { why } => return Err(StoreUnfit { why }),
                StoreFitness::Inconclusive { .. } => config.clock.sleep_until(config.clock.now() + pause).await,
            }
        }
        Ok(())
    }
}
