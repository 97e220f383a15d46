//! One process: the real state machine, and the requests that it waits for.

use std::sync::Arc;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{EntropySource, Jitter, TermEndReason, WriteMeta};
use leaderelection::sessions::machine::{LockId, Member, SessionEntropy};

use super::setup::Setup;
use crate::kit::{Cell, Ids, Seat, Work};
use crate::model::Violation;
use crate::sessions::wire::{Ask, Target};

/// A process.
#[derive(Clone, Debug, Hash)]
pub(super) struct Node {
    pub(super) member: Member,
    pub(super) seats: Vec<Seat>,
    /// The locks for which the elector has to compete again.
    pub(super) again: Vec<bool>,
    /// The end of the lease of the local session, by the machine's orders to the driver.
    pub(super) lease_end: Option<LocalInstant>,
    /// The number of sessions that this node has opened, all its processes together.
    pub(super) opened: usize,
    /// `true` after the process was asked to stop.
    pub(super) stopped: bool,
}

/// A source of ids without chance, and of the names of the sessions of one node.
pub(super) struct Source<'a> {
    pub(super) ids: &'a mut Ids,
    pub(super) identity: &'static str,
    pub(super) opened: &'a mut usize,
}

impl EntropySource for Source<'_> {
    fn jitter(&mut self) -> Jitter {
        self.ids.jitter()
    }

    fn stamp(&mut self) -> WriteMeta {
        self.ids.stamp()
    }
}

impl SessionEntropy for Source<'_> {
    fn session(&mut self) -> Arc<str> {
        *self.opened += 1;
        format!("{}{}", self.identity, self.opened).into()
    }
}

impl Node {
    pub(super) fn new(setup: &Setup, index: usize, opened: usize) -> Self {
        let mut member = Member::new(setup.rules(index));
        for lock in 0..setup.locks {
            member.add_lock(&format!("lock-{lock}"));
        }
        Self {
            member,
            seats: vec![Seat::default(); setup.locks],
            again: vec![false; setup.locks],
            lease_end: None,
            opened,
            stopped: false,
        }
    }

    /// Returns the token of the term of a lock that this node leads.
    pub(super) fn leading(&self, setup: &Setup, lock: usize) -> Option<u64> {
        self.member.leading(setup.now(), id(lock)).map(|term| term.fencing_token)
    }

    /// Returns the promise that sending a request now would break.
    pub(super) fn may_send(&self, target: &Target, ask: &Ask) -> Option<Violation> {
        let works = match target {
            Target::Own(_) => self.seats.iter().any(Seat::works),
            Target::Lock(lock) => self.seats[lock.0 as usize].works(),
            _ => false,
        };
        (works && ask.is_release()).then_some(Violation::EarlyRelease)
    }

    /// Returns the promise that the end of a term for this reason breaks.
    pub(super) fn stops(
        reason: &TermEndReason,
        token: u64,
        cell: Option<&Cell>,
        session: Option<&Cell>,
        index: usize,
    ) -> Option<Violation> {
        let deposed = matches!(
            reason,
            TermEndReason::TakenOver { .. }
                | TermEndReason::Emptied
                | TermEndReason::Deleted
                | TermEndReason::Unreadable
        );
        let is_own_session = session.is_some_and(|session| session.writer == Some(index));
        let still_ours = is_own_session && cell.is_some_and(|cell| cell.is_of(index, token));
        (deposed && still_ours).then_some(Violation::SpuriousLoss)
    }

    /// Compares the terms that are valid now with the terms that have ended.
    pub(super) fn check_terms(&mut self, setup: &Setup) -> Option<Violation> {
        let mut broken = None;
        for lock in 0..self.seats.len() {
            let valid = self.leading(setup, lock);
            if self.seats[lock].revives(valid) {
                broken = Some(Violation::Revival);
            }
        }
        broken
    }

    /// Returns the promise that is broken after a step of the machine: work whose lease is over was not dropped.
    pub(super) fn after_step(&self, setup: &Setup) -> Option<Violation> {
        let is_over = self.lease_end.is_some_and(|end| setup.now() >= end);
        let works = self.seats.iter().any(|seat| seat.work == Work::Running);
        (is_over && works).then_some(Violation::Overrun)
    }
}

pub(super) fn id(lock: usize) -> LockId {
    LockId(u32::try_from(lock).expect("few locks"))
}
