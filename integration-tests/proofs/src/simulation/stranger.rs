//! A candidate of another library, such as client-go, whose records have no write id.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant};
use leaderelection::lock::{Bounded, MAX_LEADER_TRANSITIONS, TimeLimit};
use leaderelection::{LeaderElectionRecord, ObjectLock, ObjectStoreBasedLock as _};
use tokio::time::sleep;

use super::clock::NodeClock;
use super::dice::Dice;
use super::names::Client;
use super::store::Connection;
use super::world::World;

/// The stranger's identity.
const IDENTITY: &str = "stranger";

/// Competes at times, for a while each, and then dies.
pub(super) async fn compete_at_times(world: Arc<World>, mut dice: Dice) {
    let (lease, clock) = (world.scenario.timings.lease, world.stranger.clone());
    let limit = TimeLimit::new(world.scenario.timings.timeout).on_clock(clock.clone());
    let connection = Connection::new(&world, Client::Stranger);
    let lock = Bounded::new(ObjectLock::new(connection, "lock", IDENTITY), limit);
    loop {
        world.until_calm(false).await;
        sleep(dice.up_to(lease * 12)).await;
        if !world.is_calm() {
            let mut stranger = Stranger { world: &world, lock: &lock, clock: &clock, seen: None };
            tokio::select! {
                biased;
                () = world.until_calm(true) => {}
                () = sleep(dice.up_to(lease * 8)) => {}
                () = stranger.compete() => {}
            }
        }
    }
}

struct Stranger<'a> {
    world: &'a World,
    lock: &'a Bounded<ObjectLock<Connection>>,
    clock: &'a NodeClock,
    /// The last record that was new, and the moment at which it was read.
    seen: Option<(LeaderElectionRecord, LocalInstant)>,
}

impl Stranger<'_> {
    /// Reads, and writes if the record is free or its own, once per retry period: client-go's `tryAcquireOrRenew`.
    async fn compete(&mut self) {
        let retry = self.world.scenario.timings.retry;
        loop {
            if let Ok(found) = self.lock.get().await {
                let now = self.clock.now();
                let found = found.map(|found| (found.record, found.version));
                match found {
                    // The answers do not matter: the next read shows what has become of the write.
                    None => drop(self.lock.create(&self.record(0)).await),
                    Some((old, version)) if self.may_take(now, &old) => {
                        let is_own = old.holder_identity == IDENTITY;
                        let token = old.leader_transitions + u64::from(!is_own);
                        let mut record = self.record(token);
                        // Another library keeps the fields that it does not know.
                        (record.rank, record.failbacks) = (old.rank.clone(), old.failbacks);
                        drop(self.lock.update(&record, &version).await);
                    }
                    Some(_) => {}
                }
            }
            self.clock.sleep_until(self.clock.now() + retry).await;
        }
    }

    fn may_take(&mut self, now: LocalInstant, record: &LeaderElectionRecord) -> bool {
        let since = match &self.seen {
            Some((seen, since)) if seen == record => *since,
            _ => {
                self.seen = Some((record.clone(), now));
                now
            }
        };
        if record.leader_transitions == MAX_LEADER_TRANSITIONS {
            return false;
        }
        record.is_released() || record.holder_identity == IDENTITY || now >= since + record.lease_duration
    }

    /// A record whose times make it unlike every earlier one.
    fn record(&self, token: u64) -> LeaderElectionRecord {
        let time = DateTime::<Utc>::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + self.world.now();
        let mut record = LeaderElectionRecord::new(IDENTITY, self.world.scenario.timings.lease);
        (record.acquire_time, record.renew_time) = (Some(time), Some(time));
        record.leader_transitions = token;
        record
    }
}
