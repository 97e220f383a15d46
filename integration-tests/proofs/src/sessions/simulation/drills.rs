//! A store's speed in a run of planned changes, and what the run remembers.

use std::collections::BTreeSet;
use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::election::Failure;

use super::oracle::Cause;
use crate::sessions::wire::Target;
use crate::simulation::dice::Dice;
use crate::simulation::faults::{self, Fate};
use crate::simulation::scenario::Scenario;
use crate::simulation::timings::QUICK;

/// The speed of a store in such a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The longest time of a read or a write.
    pub(super) request: Duration,
    /// The store refuses every second read, and every second write, of a process about a lock.
    pub(super) refuses: bool,
}

/// A run of planned changes.
#[derive(Debug)]
pub(super) struct Drills {
    pub(super) pace: Pace,
    /// The moment from which every lock has to have a leader.
    pub(super) from: Duration,
    /// The cause of the ends whose reasons say less.
    pub(super) planned: Option<Cause>,
    /// The requests whose next try the store carries out.
    refused: BTreeSet<(u64, Target, bool)>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { request: QUICK, refuses: false }
    }
}

impl Drills {
    /// Draws such a run, if there is time for one.
    pub(super) fn draw(scenario: &Scenario, dice: &mut Dice) -> Option<Self> {
        // Members whose clocks run as they like lose their sessions, and a liar makes others wait.
        let is_drawn = dice.chance(0.2) && scenario.clocks_bounded && scenario.liar().is_none();
        let shortest =
            scenario.all_timings().map(|timings| timings.timeout.min(timings.deadline - timings.retry)).min();
        let longest = shortest.unwrap_or_default().mul_f64(1e6 / scenario.rates.1 as f64) / 2;
        let request = if dice.chance(0.3) { longest.min(Duration::from_secs(1)).max(QUICK) } else { QUICK };
        let pace = Pace { request, refuses: dice.chance(0.3) };
        is_drawn.then(|| Self { pace, from: Duration::MAX, planned: None, refused: BTreeSet::new() })
    }

    /// Draws the fate of a request, and remembers that it was refused.
    pub(super) fn fate(&mut self, process: u64, target: &Target, is_read: bool, dice: &mut Dice) -> Fate {
        let total = dice.up_to(self.pace.request);
        let arrives = dice.up_to(total);
        let about = (process, target.clone(), is_read);
        let is_about_locks = matches!(target, Target::Lock(_) | Target::Locks);
        let refused = self.pace.refuses && is_about_locks && !self.refused.remove(&about);
        let mut reply = faults::Reply::Honest;
        if refused {
            self.refused.insert(about);
            reply = faults::Reply::Refuse(Failure { kind: StoreErrorKind::Rejected, retry_after: None });
        }
        Fate { arrives: Some(arrives), again: None, reply, returns: Some(total - arrives) }
    }
}
