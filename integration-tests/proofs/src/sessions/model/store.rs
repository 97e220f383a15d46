//! The store: the objects of sessions and locks, the requests that reach them, and the promises that a write may break.

use leaderelection::election::{Answer, Failure, Write};
use leaderelection::sessions::machine::SessionId;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::node::{Ask, Node, Reply, Target};
use super::promise::Violation;
use super::setup::Setup;
use super::world::World;
use crate::kit::{Cell, Flight};

impl World {
    pub(super) fn cell(&self, target: &Target) -> Option<&Cell> {
        match target {
            Target::Own(session) | Target::Peer(session) => self.sessions.get(session),
            Target::Lock(lock) => self.locks[*lock].as_ref(),
            Target::Sessions | Target::Locks => None,
        }
    }

    pub(super) fn arrive(&mut self, setup: &Setup, index: usize, target: &Target) {
        let Some(Flight::Sent(ask)) = self.net.take(index, target) else { return };
        let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
        let reply = match ask {
            Ask::Read => Reply::Object(Answer::Read(Ok(self.cell(target).map(|cell| cell.read(None))))),
            Ask::Write(write) => {
                let applies = self.applies(target, &write);
                if applies {
                    self.write(setup, Some(index), target, write);
                }
                let version = self.cell(target).map(|cell| cell.version.clone()).filter(|_| applies);
                Reply::Object(Answer::Written(version.ok_or(conflict)))
            }
            Ask::Delete(version) => {
                let applies = self.cell(target).is_some_and(|cell| cell.version == version);
                if applies && let Target::Peer(session) = target {
                    self.delete(setup, session);
                }
                Reply::Deleted(if applies { Ok(()) } else { Err(conflict) })
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
            Target::Lock(lock) => self.broken_by_lock_write(setup, writer, *lock, &write.record),
            Target::Own(session) | Target::Peer(session) => {
                let valid = |node: &Node| node.member.session(setup.now()) == Some((session, true));
                let others = self.nodes.iter().enumerate().any(|(other, node)| Some(other) != writer && valid(node));
                others.then_some(Violation::Erasure)
            }
            Target::Sessions | Target::Locks => None,
        };
        self.violate(violation);
        // A session that another process has ended is not the writer's.
        let writer = writer.filter(|_| !matches!(target, Target::Peer(_)));
        let cell = Cell::new(write.record, writer);
        match target {
            Target::Lock(lock) => self.locks[*lock] = Some(cell),
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
        let others_lead = self
            .nodes
            .iter()
            .enumerate()
            .any(|(other, node)| Some(other) != writer && node.leading(setup, lock).is_some());
        let cell = self.locks[lock].as_ref()?;
        let (token, largest) = (record.leader_transitions, cell.record.leader_transitions);
        if !record.is_released() && token <= largest {
            return Some(Violation::Tokens);
        }
        (others_lead || record.is_released() && token != largest).then_some(Violation::Erasure)
    }
}
