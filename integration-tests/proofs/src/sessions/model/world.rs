//! The state of all processes, the network and the store, and the promises that a write may break.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::{Answer, Failure, Write};
use leaderelection::sessions::machine::{Input, Page, SessionId};
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::node::{Node, id};
use super::setup::Setup;
use crate::kit::{Cell, Flight, Ids, Net};
use crate::model::Violation;
use crate::sessions::wire::{Ask, Target};

/// Returns `true` for a session of another process that nobody else may read.
fn is_denied(setup: &Setup, target: &Target) -> bool {
    matches!(target, Target::Peer(session) if setup.denied == Some(&**session))
}

/// All nodes and objects, and the writes that are in flight although their senders no longer wait.
#[derive(Clone, Debug, Hash)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) sessions: BTreeMap<SessionId, Cell>,
    pub(super) locks: Vec<Option<Cell>>,
    pub(super) net: Net<Target, Ask, Input>,
    /// The tokens of all terms of each lock that have begun, as sets of bits.
    pub(super) started: Vec<u64>,
    pub(super) violation: Option<Violation>,
    pub(super) deleted: bool,
    /// The number of messages that nodes have got.
    pub(super) messages: usize,
    pub(super) ids: Ids,
}

impl World {
    /// Creates a state in which no node competes so far.
    pub(super) fn new(setup: &Setup) -> Self {
        let opened = |id: &str| setup.nodes.iter().any(|node| id.starts_with(node));
        let somebody = Cell::new(Arc::new(LeaderElectionRecord::new("somebody", Duration::from_secs(1))), None);
        let planted = setup.denied.filter(|id| !opened(id)).map(|id| (SessionId::from(id), somebody));
        Self {
            nodes: (0..setup.nodes.len()).map(|index| Node::new(setup, index, 0)).collect(),
            net: Net::new(setup.nodes.len()),
            sessions: planted.into_iter().collect(),
            locks: vec![None; setup.locks],
            started: vec![0; setup.locks],
            violation: None,
            deleted: false,
            messages: 0,
            ids: Ids::default(),
        }
    }

    /// Returns the number of nodes that lead a lock at this moment, each by its own clock.
    pub fn leaders(&self, setup: &Setup, lock: usize) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup, lock).is_some()).count()
    }

    pub(super) fn cell(&self, target: &Target) -> Option<&Cell> {
        match target {
            Target::Own(session) | Target::Peer(session) => self.sessions.get(session),
            Target::Lock(lock) => self.locks[lock.0 as usize].as_ref(),
            Target::Sessions | Target::Locks => None,
        }
    }

    pub(super) fn arrive(&mut self, setup: &Setup, index: usize, target: &Target) {
        let Some(Flight::Sent(ask)) = self.net.take(index, target) else { return };
        let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
        let version = |cell: &Cell| Some(cell.version.clone());
        let reply = match ask {
            Ask::List(_) if *target == Target::Sessions => {
                let listed = self.sessions.iter().map(|(id, cell)| (id.clone(), version(cell)));
                Input::Sessions(Ok(Page::only(listed.collect())))
            }
            Ask::List(_) => {
                let listed = self.locks.iter().enumerate();
                let listed = listed.filter_map(|(lock, cell)| Some((id(lock), version(cell.as_ref()?))));
                Input::Locks(Ok(Page::only(listed.collect())))
            }
            Ask::Read if is_denied(setup, target) && self.cell(target).is_some() => {
                let denial = Failure { kind: StoreErrorKind::Fatal, retry_after: None };
                target.answered(Answer::Read(Err(denial)))
            }
            Ask::Read => target.answered(Answer::Read(Ok(self.cell(target).map(|cell| cell.read(None))))),
            Ask::Write(write) => {
                let applies = self.applies(target, &write);
                if applies {
                    self.write(setup, Some(index), target, write);
                }
                let version = self.cell(target).map(|cell| cell.version.clone()).filter(|_| applies);
                target.answered(Answer::Written(version.ok_or(conflict)))
            }
            Ask::Delete(version) => {
                let applies = self.cell(target).is_some_and(|cell| cell.version == version);
                if applies && let Target::Peer(session) = target {
                    self.delete(setup, session);
                }
                target.deleted(if applies { Ok(()) } else { Err(conflict) })
            }
        };
        self.net.put(index, target.clone(), Flight::Answered(reply));
    }

    /// Deletes the object of a session, which must be over.
    fn delete(&mut self, setup: &Setup, session: &SessionId) {
        self.deleted = true;
        let is_valid = self.nodes.iter().any(|node| node.member.session(setup.now()) == Some((session, true)));
        self.violate(is_valid.then_some(Violation::Erasure));
        self.sessions.remove(session);
    }

    pub(super) fn applies(&self, target: &Target, write: &Write) -> bool {
        self.cell(target).map(|cell| &cell.version) == write.expected.as_ref()
    }

    /// Returns `true` if a request is a write whose condition may hold at some later moment.
    pub(super) fn may_apply(&self, setup: &Setup, target: &Target, ask: &Ask) -> bool {
        let Ask::Write(write) = ask else { return false };
        let is_session = !matches!(target, Target::Lock(_));
        self.applies(target, write) || write.expected.is_none() && is_session && setup.delete_after.is_some()
    }

    /// Applies a write whose condition holds, and checks that no promise forbids the write.
    pub(super) fn write(&mut self, setup: &Setup, writer: Option<usize>, target: &Target, write: Write) {
        let violation = match target {
            Target::Lock(lock) => self.broken_by_lock_write(setup, writer, lock.0 as usize, &write.record),
            Target::Own(session) | Target::Peer(session) => {
                let valid = |node: &Node| node.member.session(setup.now()) == Some((session, true));
                let others = self.nodes.iter().enumerate().any(|(other, node)| Some(other) != writer && valid(node));
                // Nobody ends a session that it has never read.
                (others || is_denied(setup, target)).then_some(Violation::Erasure)
            }
            Target::Sessions | Target::Locks => None,
        };
        self.violate(violation);
        // A session that another process has ended is not the writer's.
        let writer = writer.filter(|_| !matches!(target, Target::Peer(_)));
        let cell = Cell::new(write.record, writer);
        match target {
            Target::Lock(lock) => self.locks[lock.0 as usize] = Some(cell),
            Target::Own(session) | Target::Peer(session) => drop(self.sessions.insert(session.clone(), cell)),
            Target::Sessions | Target::Locks => {}
        }
        let mut late = std::mem::take(&mut self.net.late);
        late.retain(|late| self.may_apply(setup, &late.about, &late.request));
        self.net.late = late;
    }

    fn broken_by_lock_write(
        &self,
        setup: &Setup,
        writer: Option<usize>,
        lock: usize,
        record: &LeaderElectionRecord,
    ) -> Option<Violation> {
        let leads = |(other, node): (usize, &Node)| Some(other) != writer && node.leading(setup, lock).is_some();
        let others_lead = self.nodes.iter().enumerate().any(leads);
        let cell = self.locks[lock].as_ref()?;
        let (token, largest) = (record.leader_transitions, cell.record.leader_transitions);
        if !record.is_released() && token <= largest {
            return Some(Violation::Tokens);
        }
        (others_lead || record.is_released() && token != largest).then_some(Violation::Erasure)
    }
}
