//! The check that a store has to pass before the first candidacy.

use crate::store::check::{Candidacy, StoreCheck, StoreFitness, StoreUnfit};

/// Remembers that a check has passed.
#[derive(Debug, Default)]
pub(crate) struct StoreCheckState {
    has_passed: bool,
}

impl StoreCheckState {
    /// Completes at once if no check is configured, or if the store has already passed the check. Otherwise repeats the
    /// check until its result is conclusive, each time with a new `candidacy`. Cancellation safe.
    pub(crate) async fn require_passed<'a>(
        &mut self,
        check: Option<&dyn StoreCheck>,
        mut candidacy: impl FnMut() -> Result<Candidacy<'a>, StoreUnfit>,
    ) -> Result<(), StoreUnfit> {
        let Some(check) = check else { return Ok(()) };
        while !self.has_passed {
            let candidacy = candidacy()?;
            let (clock, pause) = (candidacy.clock, candidacy.pause);
            match check.check(candidacy).await {
                // Not repeated for the next run: a store does not change its contract, and a check costs requests.
                StoreFitness::Fit => self.has_passed = true,
                StoreFitness::Unfit { why } => return Err(StoreUnfit { why }),
                // Errors prove nothing about conditional writes, so an outage only delays the candidacy.
                StoreFitness::Inconclusive { .. } => {
                    clock.sleep_until(clock.now() + pause).await;
                }
            }
        }
        Ok(())
    }
}
