//! Rule S8: the looks at all locks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::LockId;
use super::effect::Effect;
use super::lock::{Phase, Seen};
use super::member::{Housekeeping, Member};
use super::rules::Rules;
use crate::clock::LocalInstant;
use crate::election::{Failure, Jitter};
use crate::store::Version;

impl Member {
    pub(super) fn look_at_locks_soon(&mut self, now: LocalInstant) {
        if self.lists_locks {
            // The listing on its way may have begun before the change for which this look is wanted.
            self.list_again = true;
        } else if self.window().is_some() {
            self.housekeeping.hurry(Housekeeping::Locks, now);
        }
    }

    /// Returns `true` if a listing of the locks costs less than reads of each.
    pub(super) fn lists_locks_instead_of_reading(&self) -> bool {
        self.locks.len() - self.vacant.len() > self.rules.reads_per_listing
    }

    /// The pause between two looks at all locks. While a member is new, locks move, and whoever does not read the sessions
    /// that count the releases looks at every retry period.
    fn pause_between_looks(&self, now: LocalInstant) -> Duration {
        let Rules { election, look_around, balance, .. } = &*self.rules;
        let is_new = |since: LocalInstant| now < since + election.lease_duration * 3;
        let locks_move = self.own.as_ref().is_some_and(|own| is_new(own.opened_at))
            || self.peers.values().any(|peer| peer.is_member() && is_new(peer.alive_since));
        if *balance && locks_move && self.lists_instead_of_reading() { election.retry_period } else { *look_around }
    }

    /// Looks for changes of all locks (rule S8).
    pub(super) fn look_at_locks(&mut self, now: LocalInstant) {
        if self.window().is_none() {
            return;
        }
        self.housekeeping.set(Housekeeping::Locks, now + self.pause_between_looks(now));
        if self.lists_locks_instead_of_reading() {
            if !std::mem::replace(&mut self.lists_locks, true) {
                self.housekeeping_in_flight += 1;
                self.effects.push_back(Effect::ListLocks);
            }
            return;
        }
        for index in 0..self.locks.len() {
            let lock = &mut self.locks[index];
            // Nobody waits for a lock without a candidacy, unless it may name this session.
            lock.must_read |= lock.phase != Phase::Idle || lock.in_doubt;
            self.plan(now, LockId::of(index));
        }
    }

    /// Takes a listing of all locks. A listing is a hint: only a read shows a lock.
    pub(super) fn on_locks(
        &mut self,
        now: LocalInstant,
        listing: Result<Vec<(LockId, Option<Version>)>, Failure>,
        jitter: Jitter,
    ) {
        if !std::mem::take(&mut self.lists_locks) {
            return;
        }
        self.housekeeping_in_flight -= 1;
        self.obey(now, listing.as_ref().err().copied());
        let again = std::mem::take(&mut self.list_again);
        let Ok(listed) = listing else {
            let pause = self.poll_pause(jitter);
            return self.housekeeping.set(Housekeeping::Locks, now + pause);
        };
        self.housekeeping.set(Housekeeping::Locks, if again { now } else { now + self.pause_between_looks(now) });
        let listed: BTreeMap<LockId, Option<Version>> = listed.into_iter().collect();
        for index in 0..self.locks.len() {
            let (id, lock) = (LockId::of(index), &mut self.locks[index]);
            // The answer that is awaited may be newer than this listing.
            if self.flights.contains_key(&id.0) {
                continue;
            }
            match (listed.get(&id), &lock.seen) {
                (None, Seen::Unknown) => {
                    // A hint is enough here: if the listing is false, the creation meets a conflict, and a read
                    // follows.
                    self.set_seen(id, Seen::Absent);
                    self.freed(now, id);
                    continue;
                }
                (None, Seen::Absent) => {}
                (Some(Some(version)), _) if lock.version() == Some(version) => {}
                _ => lock.must_read = true,
            }
            self.plan(now, id);
        }
    }
}
