//! The operators of the locks, who write and delete without a session.

use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::lock::MAX_LEADER_TRANSITIONS;
use leaderelection::sessions::machine::LockId;

use super::oracle::Cause;
use super::world::{LOCKS, World};
use crate::sessions::wire::Key;
use crate::simulation::scenario::NODES;

impl World {
    /// Asks a leader to hand over, takes a lock away from its leader, or writes a token that has no successor, by mistake.
    pub(super) fn intervene(&mut self, lasts: Duration) {
        let lock = u32::try_from(self.dice.below(LOCKS.into())).unwrap_or_default();
        let Some(record) = self.right_record(lock) else { return };
        self.oracle.stats.interventions += 1;
        let token = record.leader_transitions;
        match self.dice.below(4) {
            0 | 1 => {
                let node = self.dice.below(NODES as u64);
                self.ask_for(lock, format!("n{node}"));
            }
            2 => {
                self.timeline.log(|| format!("an operator releases {lock} with {token}"));
                self.release(lock, record, token);
            }
            _ => self.spoil(lock, lasts),
        }
    }

    /// Deletes the object of a node's session.
    pub(super) fn delete_session(&mut self, node: usize) {
        let Some(session) = self.session_of(node) else { return };
        self.oracle.stats.interventions += 1;
        self.timeline.log(|| format!("an operator deletes {session}"));
        self.store.remove(&Key::Session(session));
    }

    /// Asks the leader of a lock to hand over.
    pub(super) fn ask_for(&mut self, lock: u32, to: String) {
        let Some(mut record) = self.right_record(lock) else { return };
        self.timeline.log(|| format!("an operator asks for {to} to lead {lock}"));
        self.asked.insert(lock);
        record.preferred_holder = Some(to);
        self.store.put(Key::Lock(LockId(lock)), &record);
    }

    /// Releases a lock with a token that has no successor, and puts that right later.
    pub(super) fn spoil(&mut self, lock: u32, lasts: Duration) {
        let Some(record) = self.right_record(lock) else { return };
        let token = record.leader_transitions;
        self.timeline.log(|| format!("an operator spoils {lock} with {token}"));
        self.release(lock, record, MAX_LEADER_TRANSITIONS);
        self.spoilt.push((lock, token));
        self.at(self.timeline.now + lasts, Self::repair);
    }

    fn right_record(&self, lock: u32) -> Option<LeaderElectionRecord> {
        self.store.lock(lock).filter(|record| record.leader_transitions < MAX_LEADER_TRANSITIONS)
    }

    /// Releases a lock. Its leader may lead on beside the next one, until it polls the lock.
    pub(super) fn release(&mut self, lock: u32, record: LeaderElectionRecord, token: u64) {
        let deposed = &mut self.oracle.deposed[lock as usize];
        *deposed = (*deposed).max(Some(record.leader_transitions));
        let mut released = LeaderElectionRecord::new("", Duration::from_secs(1));
        (released.leader_transitions, released.unknown) = (token, record.unknown);
        self.store.put(Key::Lock(LockId(lock)), &released);
    }

    /// Puts all tokens right.
    pub(super) fn repair(&mut self) {
        for (lock, token) in std::mem::take(&mut self.spoilt) {
            if let Some(record) = self.store.lock(lock)
                && record.leader_transitions == MAX_LEADER_TRANSITIONS
            {
                self.timeline.log(|| format!("an operator puts {lock} right"));
                let deposed = self.oracle.deposed[lock as usize];
                self.release(lock, record, token);
                self.oracle.deposed[lock as usize] = deposed;
                if let Some(left) = &mut self.oracle.left[lock as usize] {
                    *left = (self.timeline.now, Cause::Repair);
                }
            }
        }
    }

    /// Deletes locks which every member has seen under a leader, and plans the next deletion. Nothing else goes wrong then,
    /// because a member that joins between the two would create the lock with its first token.
    pub(super) fn delete(&mut self) {
        let settled = self.longest_without_leader();
        self.at(self.timeline.now + settled, Self::delete);
        if self.calm || self.timeline.now < settled {
            return;
        }
        for lock in 0..LOCKS {
            if self.dice.chance(0.3) {
                self.oracle.stats.interventions += 1;
                self.timeline.log(|| format!("an operator deletes {lock}"));
                self.store.remove(&Key::Lock(LockId(lock)));
            }
        }
    }

    /// Deletes a session while another node has no process, cuts its member off, and starts a process that has never read it.
    pub(super) fn delete_unread_session(&mut self) {
        let lease = self.scenario.timings.lease;
        let next = self.timeline.now + self.dice.up_to(lease);
        self.at(next, Self::delete_unread_session);
        let absent = (0..NODES).find(|node| self.nodes[*node].process.is_none());
        let node = usize::try_from(self.dice.below(NODES as u64)).unwrap_or_default();
        if let (Some(absent), false) = (absent, self.calm) {
            self.delete_session(node);
            self.nodes[node].link_down_until = self.timeline.now + self.dice.up_to(lease * 2);
            self.start(absent);
        }
    }
}
