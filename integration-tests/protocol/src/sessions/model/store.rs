//! The store: the objects of sessions and locks, the requests that reach them, and the promises that a write may break.

use std::sync::Arc;

use leaderelection::election::{Answer, Failure, Write};
use leaderelection::session::SessionId;
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version, VersionedRecord};

use super::node::{Ask, Flight, Node, Reply, Target, now};
use super::world::{Cell, Setup, Violation, World};

impl World {
    pub(super) fn cell(&self, target: &Target) -> Option<&Cell> {
        match target {
            Target::Own(session) | Target::Peer(session) => self.sessions.get(session),
            Target::Lock(lock) => self.locks[*lock].as_ref(),
            Target::Sessions | Target::Locks => None,
        }
    }

    pub(super) fn arrive(&mut self, setup: &Setup, index: usize, target: &Target) {
        let Some(Flight::Sent(ask)) = self.nodes[index].flights.remove(target) else { return };
        let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
        let reply = match ask {
            Ask::Read => Reply::Object(Answer::Read(Ok(self.cell(target).map(Cell::read)))),
            Ask::Write(write) => {
                let (applies, version) = (self.applies(target, &write), version_of(&write.record));
                if applies {
                    self.write(setup, Some(index), target, write);
                }
                Reply::Object(Answer::Written(if applies { Ok(version) } else { Err(conflict) }))
            }
            Ask::Delete(version) => {
                let applies = self.cell(target).is_some_and(|cell| cell.version == version);
                if applies && let Target::Peer(session) = target {
                    self.delete(setup, session);
                }
                Reply::Deleted(if applies { Ok(()) } else { Err(conflict) })
            }
        };
        self.nodes[index].flights.insert(target.clone(), Flight::Answered(reply));
    }

    /// Deletes the object of a session, which must be over.
    fn delete(&mut self, setup: &Setup, session: &SessionId) {
        self.deleted = true;
        let is_valid = self.nodes.iter().any(|node| node.member.session(now(setup)) == Some((session, true)));
        self.violate(is_valid.then_some(Violation::Erasure));
        self.sessions.remove(session);
    }

    pub(super) fn applies(&self, target: &Target, write: &Write) -> bool {
        self.cell(target).map(|cell| &cell.version) == write.expected.as_ref()
    }

    /// Returns `true` if the condition of a write may hold at some later moment.
    pub(super) fn may_apply(&self, setup: &Setup, target: &Target, write: &Write) -> bool {
        let is_session = !matches!(target, Target::Lock(_));
        self.applies(target, write) || write.expected.is_none() && is_session && setup.delete_after.is_some()
    }

    /// Applies a write whose condition holds, and checks that no promise forbids the write.
    pub(super) fn write(&mut self, setup: &Setup, writer: Option<usize>, target: &Target, write: Write) {
        let violation = match target {
            Target::Lock(lock) => self.broken_by_lock_write(setup, writer, *lock, &write.record),
            Target::Own(session) | Target::Peer(session) => {
                let valid = |node: &Node| node.member.session(now(setup)) == Some((session, true));
                let others = self.nodes.iter().enumerate().any(|(other, node)| Some(other) != writer && valid(node));
                others.then_some(Violation::Erasure)
            }
            Target::Sessions | Target::Locks => None,
        };
        self.violate(violation);
        let version = version_of(&write.record);
        // A session that another process has ended is not the writer's.
        let writer = writer.filter(|_| !matches!(target, Target::Peer(_)));
        let cell = Cell { record: Arc::unwrap_or_clone(write.record), version, writer };
        match target {
            Target::Lock(lock) => self.locks[*lock] = Some(cell),
            Target::Own(session) | Target::Peer(session) => drop(self.sessions.insert(session.clone(), cell)),
            Target::Sessions | Target::Locks => {}
        }
        let kept: Vec<bool> =
            self.orphans.iter().map(|orphan| self.may_apply(setup, &orphan.target, &orphan.write)).collect();
        let mut kept = kept.into_iter();
        self.orphans.retain(|_| kept.next().unwrap_or(false));
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

impl Cell {
    pub(super) fn read(&self) -> VersionedRecord {
        VersionedRecord::new(self.record.clone(), self.version.clone())
    }
}

/// Returns the version of a record: its write id, because versions are as unique as write ids.
fn version_of(record: &LeaderElectionRecord) -> Version {
    Version::new(record.write_id.clone().unwrap_or_default())
}
