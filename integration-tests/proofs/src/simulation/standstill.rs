//! Standstills at moments at which no timer fires: between a reading of the clock and its consequences.

use std::sync::Weak;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant};

use super::clock::NodeClock;
use super::names::ProcessId;
use super::world::World;

/// The clock of a node, as one process reads it.
///
/// An elector asks for the wall time within its steps: when it makes a write, when a term starts and when its work is
/// about to be polled. Time passes at some of these moments, for all nodes, as if the machine under all nodes had been
/// suspended. The same happens when an elector reports the answer to its
/// write, and when it reports that its work is to be dropped.
#[derive(Clone, Debug)]
pub(super) struct ProcessClock {
    /// The world has handles of electors, which have this clock.
    pub(super) world: Weak<World>,
    pub(super) process: ProcessId,
    pub(super) clock: NodeClock,
}

#[async_trait]
impl Clock for ProcessClock {
    fn now(&self) -> LocalInstant {
        self.clock.now()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        if let Some(world) = self.world.upgrade() {
            world.stand_still_at_times(self.process);
        }
        self.clock.wall_time()
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        self.clock.sleep_until(deadline).await
    }
}
