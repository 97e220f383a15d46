//! The state of all processes, of the objects, and of the network.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::lease::{self, ReadError};
use leaderelection_protocol::record::Versioned;
use leaderelection_protocol::session;

use super::action::Target;
use super::node::{Node, names};
use super::setup::Setup;
use super::tiny::Tiny;
use crate::kernel::Id;
use crate::kit::{Flight, Net};
use crate::model::Violation;

/// A request.
#[derive(Clone, Debug, Hash)]
pub(super) enum Request {
    Read,
    Write(Put),
}

/// A conditional write.
#[derive(Clone, Debug, Hash)]
pub(super) struct Put {
    pub(super) record: Arc<Tiny>,
    pub(super) expected: Option<Id>,
}

impl From<lease::Write<Tiny>> for Put {
    fn from(write: lease::Write<Tiny>) -> Self {
        Self { record: Arc::clone(write.record()), expected: write.expected().copied() }
    }
}

impl From<session::Write<Tiny>> for Put {
    fn from(write: session::Write<Tiny>) -> Self {
        Self { record: Arc::clone(write.record()), expected: write.expected().copied() }
    }
}

/// The answer of the store.
#[derive(Clone, Debug, Hash)]
pub(super) enum Answer {
    Read(Result<Option<Versioned<Tiny>>, ReadError>),
    /// The version that a write has made; `None` if it was refused.
    Written(Option<Id>),
}

/// An object that exists or has existed.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Object {
    pub(super) found: Option<Versioned<Tiny>>,
    /// The contents that were replaced, the last one first, as far as a stale read may show them.
    pub(super) before: Vec<Option<Versioned<Tiny>>>,
    /// The content that its creation has left, in a setup in which the network delivers that once more.
    pub(super) created: Option<Versioned<Tiny>>,
    pub(super) is_spoilt: bool,
    /// `true` for a session that was released, or that another process has ended.
    pub(super) is_over: bool,
}

impl Object {
    /// Returns `true` if a plain elector holds the lock.
    pub(super) fn is_plain(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.record.holder.is_some() && found.record.session.is_none())
    }
}

/// A situation that the last step has shown, and the state does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scene {
    LateWrite,
    Ended,
    Released,
    Deleted,
}

/// A state.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) locks: Vec<Object>,
    pub(super) sessions: BTreeMap<Id, Object>,
    pub(super) net: Net<Target, Request, Answer>,
    /// The tokens of all terms of each lock that have begun, as a set of bits.
    pub(super) started: Vec<u64>,
    /// `true` for each lock that was created by a process that had not seen it, after it was deleted. Two may lead it.
    pub(super) is_free_for_all: Vec<bool>,
    /// `true` after the deletion of a lock. Tokens may start again.
    pub(super) has_deleted_lock: bool,
    pub(super) has_deleted_session: bool,
    pub(super) has_spoilt: bool,
    pub(super) has_delivered_again: bool,
    /// `true` after a poll that may be late.
    pub(super) has_polled_late: bool,
    pub(super) violation: Option<Violation>,
    pub(super) scene: Option<Scene>,
    /// No part of the state: `true` if each step of the beginning was possible.
    pub(super) has_begun: bool,
    /// No part of the state: the last id that was used.
    pub(super) ids: Id,
}

impl World {
    pub(super) fn new(setup: &Setup) -> Self {
        let nodes: Vec<_> = (0..setup.rates.len()).map(|index| Node::new(setup, index, 0)).collect();
        let locks = setup.locks as usize;
        let mut world = Self {
            net: Net::new(nodes.len()),
            nodes,
            locks: vec![Object::default(); locks],
            sessions: BTreeMap::new(),
            started: vec![0; locks],
            is_free_for_all: vec![false; locks],
            has_deleted_lock: false,
            has_deleted_session: false,
            has_spoilt: false,
            has_delivered_again: false,
            has_polled_late: false,
            violation: None,
            scene: None,
            has_begun: false,
            ids: names(setup),
        };
        if setup.plain {
            let (holder, lease) = (world.unused(), Duration::from_nanos(setup.lease));
            let record = Tiny { holder: Some(holder), session: None, lease, token: 0, write_id: Some(holder) };
            let plain = Versioned { record: Arc::new(record), version: holder };
            world.locks.iter_mut().for_each(|lock| lock.found = Some(plain.clone()));
        }
        world
    }

    pub(super) fn unused(&mut self) -> Id {
        self.ids = self.ids.next();
        self.ids
    }

    pub(super) fn leaders(&self, setup: &Setup, lock: u32) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup, lock).is_some()).count()
    }

    pub(super) fn violate(&mut self, violation: Option<Violation>) {
        self.violation = self.violation.or(violation);
    }

    pub(super) fn object(&self, target: Target) -> Option<&Object> {
        match target {
            Target::Own(session) | Target::Other(session) => self.sessions.get(&session),
            Target::Lock(lock) => Some(&self.locks[lock as usize]),
        }
    }

    pub(super) fn object_mut(&mut self, target: Target) -> &mut Object {
        match target {
            Target::Own(session) | Target::Other(session) => self.sessions.entry(session).or_default(),
            Target::Lock(lock) => &mut self.locks[lock as usize],
        }
    }

    /// The record of a lock, or of a session.
    pub(super) fn record(&self, target: Target) -> Option<&Tiny> {
        self.object(target)?.found.as_ref().map(|found| &*found.record)
    }

    /// Returns `true` if the write replaces what the object is now.
    pub(super) fn fits(&self, target: Target, put: &Put) -> bool {
        let found = self.object(target).and_then(|object| object.found.as_ref());
        found.map(|found| found.version) == put.expected
    }

    /// Returns `true` if the write may be committed, now or later.
    pub(super) fn may_commit(&self, setup: &Setup, target: Target, put: &Put) -> bool {
        // Only creations wait for a deletion. A spoilt record is put back with its version.
        let may_vanish = match target {
            Target::Lock(_) => setup.lock_deletion && !self.has_deleted_lock,
            _ => setup.deletes || setup.session_deletion && !self.has_deleted_session,
        };
        self.fits(target, put) || put.expected.is_none() && may_vanish
    }

    /// All ids of writes that a read may still show.
    pub(super) fn readable(&self) -> Vec<Id> {
        let of_request = |request: &Request| match request {
            Request::Write(put) => put.record.write_id,
            Request::Read => None,
        };
        let flights = self.net.flights().filter_map(|flight| match flight {
            Flight::Sent(request) => of_request(request),
            Flight::Answered(Answer::Read(Ok(Some(found)))) => found.record.write_id,
            Flight::Answered(_) => None,
        });
        let late = self.net.late.iter().filter_map(|late| of_request(&late.request));
        let objects = self.sessions.values().chain(&self.locks);
        let shown = objects.flat_map(|object| object.before.iter().chain([&object.found, &object.created]));
        let shown = shown.filter_map(|found| found.as_ref()?.record.write_id);
        shown.chain(flights).chain(late).collect()
    }
}
