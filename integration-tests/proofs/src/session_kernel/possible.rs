//! The steps that are possible from a state: whatever a policy may do, whatever the network does, and time.

use std::ops::RangeInclusive;

use super::action::{Action, Deed, Target};
use super::setup::Setup;
use super::world::{Answer, Request, World};
use crate::kit::Flight;

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        actions.extend((0..self.net.late.len()).map(Action::ArriveLate));
        for (session, object) in &self.sessions {
            if object.created.is_some() && object.found.is_none() && !self.has_delivered_again {
                actions.push(Action::DeliverAgain(*session));
            }
            if setup.session_deletion && !self.has_deleted_session && object.found.is_some() {
                actions.push(Action::DeleteSession(*session));
            }
            if setup.spoils && !self.has_spoilt && object.found.is_some() {
                actions.push(Action::Spoil(*session));
            }
            if object.is_spoilt {
                actions.push(Action::Repair(*session));
            }
        }
        let is_plain = |lock: &u32| self.locks[*lock as usize].is_plain();
        actions.extend((0..setup.locks).filter(is_plain).map(Action::PlainRelease));
        let exists = |lock: &u32| self.locks[*lock as usize].found.is_some();
        // In a setup with a late poll, a deletion before it would show nothing new.
        if setup.lock_deletion && !self.has_deleted_lock && (self.has_polled_late || !setup.late_poll) {
            actions.extend((0..setup.locks).filter(exists).map(Action::DeleteLock));
        }
        for index in (0..self.nodes.len()).filter(|index| setup.silent != Some(*index)) {
            self.deeds(setup, index, &mut |deed| actions.push(Action::Node(index, deed)));
        }
    }

    fn reads(&self, setup: &Setup, target: Target, push: &mut impl FnMut(Deed)) {
        push(Deed::Read(target));
        if setup.failed_reads {
            push(Deed::ReadInVain(target));
        }
        if !setup.slow.reads {
            self.stale(target).for_each(|ago| push(Deed::ReadStale(target, ago)));
        }
    }

    /// By how many writes a read may be late.
    fn stale(&self, target: Target) -> RangeInclusive<usize> {
        let object = self.object(target).filter(|object| object.found.is_some());
        1..=object.map_or(0, |object| object.before.len())
    }

    fn deeds(&self, setup: &Setup, index: usize, push: &mut impl FnMut(Deed)) {
        let node = &self.nodes[index];
        let own = node.session();
        let is_idle = |target| self.net.get(index, &target).is_none();
        if is_idle(Target::Own(own)) && node.opened <= setup.sessions {
            self.reads(setup, Target::Own(own), push);
            [Deed::Create, Deed::Renew].into_iter().for_each(&mut *push);
            if setup.stops {
                push(Deed::ReleaseSession);
            }
        }
        if setup.stops {
            push(Deed::EndSession);
        }
        if node.opened < setup.sessions {
            push(Deed::NextSession);
        }
        for (session, _, ()) in node.others.iter() {
            if is_idle(Target::Other(*session)) {
                self.reads(setup, Target::Other(*session), push);
                push(Deed::End(*session));
            }
            if setup.deletes {
                push(Deed::Delete(*session));
            }
            if setup.hints {
                let shown = self.record(Target::Other(*session)).and_then(|record| record.write_id);
                shown.into_iter().for_each(|id| push(Deed::Hint(*session, id)));
            }
        }
        if setup.lists {
            self.sessions.keys().filter(|session| **session != own).for_each(|session| push(Deed::List(*session)));
        }
        for lock in 0..setup.locks {
            if is_idle(Target::Lock(lock)) {
                self.reads(setup, Target::Lock(lock), push);
                push(Deed::Take(lock));
                if setup.stops {
                    push(Deed::Release(lock));
                }
            }
            push(Deed::Start(lock));
            if setup.stops {
                push(Deed::EndTerm(lock));
            }
            if setup.late_work && node.works(lock) {
                push(Deed::WorkEnds(lock));
            }
            if setup.lists && setup.poll_pause.is_some() {
                push(Deed::ListLock(lock));
            }
            if setup.late_poll && !self.has_polled_late && node.leading(setup, lock).is_some() {
                push(Deed::ReadSlowly(lock));
                push(Deed::AskForLock(lock));
            }
            if setup.late_listing && !self.has_polled_late && self.has_deleted_lock {
                push(Deed::AskForLock(lock));
            }
            if node.listing.is_some() {
                push(Deed::ListedLock(lock));
            }
            if setup.forgets {
                push(Deed::Forget(lock));
            }
        }
        for (target, flight) in self.net.of(index) {
            match flight {
                Flight::Sent(Request::Read) => {
                    push(Deed::Arrive(*target));
                    self.stale(*target).for_each(|ago| push(Deed::ArriveStale(*target, ago)));
                }
                Flight::Sent(Request::Write(_)) => {
                    push(Deed::Arrive(*target));
                    push(Deed::Lost(*target));
                }
                // A read without an answer is no more than a pause.
                Flight::Answered(Answer::Read(_)) => push(Deed::Answer(*target)),
                Flight::Answered(Answer::Written(_)) => {
                    push(Deed::Answer(*target));
                    push(Deed::Lost(*target));
                }
            }
        }
        if setup.crashes && node.opened < setup.sessions {
            push(Deed::Crash);
        }
    }
}
