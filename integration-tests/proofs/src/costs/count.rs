//! The count itself.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::sleep;

use super::case::{Case, HOUR, Requests, Way};
use super::fleet::Fleet;
use super::store::Counted;
use crate::switchboard::Switchboard;

/// The time before the count, in which all locks are taken and every process has looked at all of them.
const SETTLING: Duration = Duration::from_secs(120);

/// The largest number of leases' electors that are counted for a whole hour. More electors are counted for a part of an
/// hour, so that a count takes minutes at most.
const ELECTORS_FOR_AN_HOUR: usize = 10_000;

impl Case {
    /// Counts the requests of an hour in which nothing happens: every lock keeps its leader.
    ///
    /// # Panics
    ///
    /// If a lock has no leader, or more than one.
    #[must_use]
    pub fn count(self) -> Requests {
        self.count_with(None)
    }

    /// Counts the same where the processes hear each other.
    ///
    /// # Panics
    ///
    /// If a lock has no leader, or more than one.
    #[must_use]
    pub fn count_heard(self) -> Requests {
        self.count_with(Some(&Switchboard::default()))
    }

    fn count_with(self, board: Option<&Switchboard>) -> Requests {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let store = Counted::default();
            let fleet = Fleet::start(self, &store, board);
            sleep(SETTLING).await;
            assert!(fleet.is_settled(), "not every lock has one leader: {self}");
            let before = store.requests();
            let share = self.share_of_an_hour();
            sleep(HOUR / share).await;
            assert!(fleet.is_settled(), "not every lock has kept its leader: {self}");
            store.requests().since(before, share.into())
        })
    }

    /// The part of an hour that is counted, as a divisor.
    fn share_of_an_hour(self) -> u32 {
        match self.way {
            Way::Leases => {
                let share = (self.locks * self.processes).div_ceil(ELECTORS_FOR_AN_HOUR);
                u32::try_from(share).expect("a small number")
            }
            // A session's requests do not depend on the number of its locks, so an hour of them is soon counted.
            Way::Sessions => 1,
        }
    }
}
