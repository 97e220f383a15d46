//! The store and the network: requests arrive, are committed, or arrive after their senders stopped waiting.

use std::sync::Arc;

use leaderelection_protocol::lease::ReadError;
use leaderelection_protocol::record::Versioned;

use super::action::Target;
use super::node::Node;
use super::setup::Setup;
use super::world::{Answer, Put, Request, Scene, World};
use crate::kernel::Id;
use crate::kit::Flight;
use crate::model::Violation;

impl World {
    /// Lets the request of a process reach the store. A read shows what was there so many writes ago.
    pub(super) fn arrive(&mut self, setup: &Setup, index: usize, target: Target, ago: usize) {
        let answer = match self.net.take(index, &target) {
            Some(Flight::Sent(Request::Read)) => Answer::Read(match self.object(target) {
                Some(object) if object.is_spoilt => Err(ReadError::Unreadable),
                Some(object) if ago > 0 => Ok(object.before.get(ago - 1).cloned().flatten()),
                object => Ok(object.and_then(|object| object.found.clone())),
            }),
            Some(Flight::Sent(Request::Write(put))) => Answer::Written(self.commit(setup, Some(index), target, &put)),
            _ => return,
        };
        self.net.put(index, target, Flight::Answered(answer));
    }

    /// Commits a write if its condition holds, and checks what it replaces.
    pub(super) fn commit(&mut self, setup: &Setup, writer: Option<usize>, target: Target, put: &Put) -> Option<Id> {
        if self.object(target).is_some_and(|object| object.is_spoilt) || !self.fits(target, put) {
            return None;
        }
        let broken = match target {
            // Nobody else writes these, but to end them.
            Target::Own(_) => None,
            Target::Other(session) => {
                self.scene = Some(Scene::Ended);
                let is_open = self.nodes.iter().any(|node| node.has_open(setup, session));
                (is_open && !setup.lawless).then_some(Violation::Erasure)
            }
            Target::Lock(lock) => self.broken_by(setup, writer, lock, put),
        };
        self.violate(broken);
        let version = self.unused();
        let found = Versioned { record: Arc::clone(&put.record), version };
        let object = self.object_mut(target);
        if setup.deletes && matches!(target, Target::Own(_)) && put.expected.is_none() {
            object.created = Some(found.clone());
        }
        object.is_over |= put.record.holder.is_none() && !matches!(target, Target::Lock(_));
        let before = object.found.replace(found);
        object.before.insert(0, before);
        object.before.truncate(setup.stale_reads);
        Some(version)
    }

    fn broken_by(&mut self, setup: &Setup, writer: Option<usize>, lock: u32, put: &Put) -> Option<Violation> {
        let leads = |(other, node): (usize, &Node)| Some(other) != writer && node.leading(setup, lock).is_some();
        let is_led = self.nodes.iter().enumerate().any(leads);
        let Some(shown) = self.record(Target::Lock(lock)).map(|before| before.token) else {
            // Whoever has seen the object waits for its leader to poll. Nobody else knows that there is one.
            let has_seen = writer.is_some_and(|writer| self.nodes[writer].has_seen[lock as usize]);
            self.is_free_for_all[lock as usize] |= self.has_deleted_lock && !has_seen;
            return (is_led && has_seen).then_some(Violation::Haste);
        };
        if self.locks[lock as usize].is_plain() {
            return Some(Violation::Erasure);
        }
        let is_release = put.record.holder.is_none();
        self.scene = is_release.then_some(Scene::Released);
        match (is_release, put.record.token, shown) {
            (true, token, shown) if token != shown => Some(Violation::Erasure),
            (false, token, shown) if token <= shown => Some(Violation::Tokens),
            _ => {
                let erases = is_led && !setup.lawless && !self.is_free_for_all[lock as usize];
                erases.then_some(Violation::Erasure)
            }
        }
    }

    /// Lets a process stop waiting for its request.
    pub(super) fn orphan(&mut self, setup: &Setup, index: usize, target: Target) {
        if let Some(Flight::Sent(Request::Write(put))) = self.net.take(index, &target)
            && self.may_commit(setup, target, &put)
        {
            self.net.leave(index, target, Request::Write(put), setup.late_writes);
        }
    }
}
