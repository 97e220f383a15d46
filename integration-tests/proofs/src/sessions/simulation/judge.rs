//! The store's side of a request, and the judgement of every write.

use leaderelection::sessions::machine::{Input, LockId};

use super::world::{Parcel, World};
use crate::sessions::wire::{Ask, Key, Target};
use crate::simulation::Property;
use crate::simulation::faults::{self, CONFLICT, Falsehood};

impl World {
    pub(super) fn arrive(&mut self, parcel: &Parcel) {
        let Parcel { process, target, ask, fate, is_second, .. } = parcel;
        if let faults::Reply::Refuse(refusal) = fate.reply {
            return self.answer(parcel, ask.failed(target, refusal));
        }
        let is_read = ask.is_read();
        if let faults::Reply::False(Falsehood { applied, age }) = fate.reply
            && (is_read || !applied)
        {
            let conflict = ask.failed(target, CONFLICT);
            return self.answer(parcel, if is_read { self.store.show(target, age) } else { conflict });
        }
        let is_blind = self.node_of(*process).is_some_and(|node| self.nodes[node].blind_until > self.timeline.now);
        if is_blind && is_read && matches!(target, Target::Peer(_) | Target::Sessions) {
            return self.answer(parcel, self.store.show(target, None));
        }
        self.judge(*process, target, ask);
        let reply = self.store.answer(target, ask);
        if let (false, Some(again)) = (is_second, fate.again) {
            let second = Parcel { is_second: true, ..parcel.clone() };
            self.at(self.timeline.now + again, move |world| world.arrive(&second));
        }
        let reply = match fate.reply {
            faults::Reply::Lie(refusal) => ask.failed(target, refusal),
            faults::Reply::False(_) => ask.failed(target, CONFLICT),
            faults::Reply::OfSecond if !is_second => return,
            faults::Reply::Honest if *is_second => return,
            _ => reply,
        };
        self.answer(parcel, reply);
    }

    fn answer(&mut self, Parcel { process, target, id, fate, .. }: &Parcel, reply: Input) {
        if let Some(returns) = fate.returns {
            self.answers(self.timeline.now + returns, (*process, target.clone(), *id), reply);
        }
    }

    /// Checks that no promise forbids a write that is about to be applied.
    pub(super) fn judge(&mut self, number: u64, target: &Target, ask: &Ask) {
        if !self.store.accepts(target, ask) {
            return;
        }
        // Nothing keeps processes apart whose clocks run as they like.
        let is_lawless = !self.scenario.clocks_bounded;
        let is_own = matches!(target, Target::Own(_));
        let is_blocked = target.key().is_some_and(|key| self.store.is_blocked(&key));
        self.timeline
            .demand(!is_blocked, Property::NoErasure, || format!("p{number} writes {target:?} without a read"));
        match (target.key(), ask) {
            (Some(Key::Lock(LockId(lock))), Ask::Write(write)) => {
                let owner = self.node_of(number);
                let others = self.leads_beside(owner, lock);
                self.timeline.demand(is_lawless || others.is_none(), Property::NoErasure, || {
                    format!("p{number} replaces lock {lock}, which node {others:?} leads")
                });
                let (token, next) = (write.record.leader_transitions, &mut self.oracle.next_token[lock as usize]);
                let grows = write.record.is_released() && token + 1 == *next || token == *next;
                *next = (*next).max(token + 1);
                self.timeline.demand(grows, Property::Tokens, || format!("p{number} writes {token} to lock {lock}"));
                self.oracle.stats.releases += u64::from(write.record.is_released());
            }
            (Some(Key::Session(session)), Ask::Write(write)) => {
                let is_valid =
                    !is_own && self.nodes.iter().any(|node| node.has_valid_session(self.timeline.now, &session));
                self.timeline
                    .demand(is_lawless || !is_valid, Property::NoErasure, || format!("p{number} ends {session}"));
                self.oracle.stats.sessions += u64::from(write.expected.is_none());
                self.oracle.stats.ended_by_others += u64::from(!is_own);
                if write.record.is_released() {
                    self.timeline.log(|| format!("p{number} ends session {session}"));
                }
            }
            (Some(Key::Session(session)), Ask::Delete(_)) => {
                let is_valid = self.nodes.iter().any(|node| node.has_valid_session(self.timeline.now, &session));
                self.timeline
                    .demand(is_lawless || !is_valid, Property::NoErasure, || format!("p{number} deletes {session}"));
                self.oracle.stats.deletions += 1;
            }
            _ => {}
        }
    }
}
