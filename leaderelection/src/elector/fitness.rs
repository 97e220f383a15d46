//! The check that a store has to pass before any candidacy.

use crate::store_check::{Candidacy, StoreCheck, StoreFitness, StoreUnfit};

/// The memory of a passed check.
#[derive(Debug, Default)]
pub(super) struct Fitness {
    shown: bool,
}

impl Fitness {
    /// Completes at once if no check is configured or the store has passed it, and otherwise when a check is
    /// conclusive. `candidacy` describes the next check. Cancellation safe.
    pub(super) async fn demand<'a>(
        &mut self,
        check: Option<&dyn StoreCheck>,
        mut candidacy: impl FnMut() -> Result<Candidacy<'a>, StoreUnfit>,
    ) -> Result<(), StoreUnfit> {
        let Some(check) = check else { return Ok(()) };
        while !self.shown {
            let candidacy = candidacy()?;
            let (clock, pause) = (candidacy.clock, candidacy.pause);
            match check.check(candidacy).await {
                StoreFitness::Fit => self.shown = true,
                StoreFitness::Unfit { why } => return Err(StoreUnfit { why }),
                StoreFitness::Inconclusive { .. } => {
                    clock.sleep_until(clock.now() + pause).await;
                }
            }
        }
        Ok(())
    }
}
