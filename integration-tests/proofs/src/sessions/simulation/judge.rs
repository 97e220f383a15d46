//! The store's side of a request, and the judgement of every write.

use leaderelection::StoreErrorKind;
use leaderelection::election::Failure;

use super::node::Target;
use super::oracle::Property;
use super::store::{Ask, Key, Reply};
use super::world::{Event, World};
use crate::simulation::faults::{self, Falsehood, Fate};

impl World {
    pub(super) fn arrive(&mut self, number: u64, target: &Target, id: u64, ask: &Ask, fate: Fate, is_second: bool) {
        if let faults::Reply::Refuse(refusal) = fate.reply {
            let failure = Failure { kind: refusal.kind, retry_after: refusal.retry_after };
            return self.answer(number, target, id, ask.failed(failure), fate);
        }
        let is_read = !matches!(ask, Ask::Write(..) | Ask::Delete(..));
        if let faults::Reply::False(Falsehood { applied, age }) = fate.reply
            && (is_read || !applied)
        {
            let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
            let reply = if is_read { self.store.false_answer(ask, age) } else { ask.failed(conflict) };
            return self.answer(number, target, id, reply, fate);
        }
        let is_blind = self.node_of(number).is_some_and(|node| self.nodes[node].blind_until > self.timeline.now);
        if is_blind && is_read && matches!(target, Target::Peer(_) | Target::Sessions) {
            return self.answer(number, target, id, self.store.false_answer(ask, None), fate);
        }
        self.judge(number, target, ask);
        let reply = self.store.answer(ask);
        if let (false, Some(again)) = (is_second, fate.again) {
            let (target, ask) = (target.clone(), ask.clone());
            self.at(
                self.timeline.now + again,
                Event::Arrive { process: number, target, id, ask, fate, is_second: true },
            );
        }
        let reply = match fate.reply {
            faults::Reply::Lie(refusal) => ask.failed(Failure { kind: refusal.kind, retry_after: refusal.retry_after }),
            faults::Reply::False(_) => ask.failed(Failure { kind: StoreErrorKind::Conflict, retry_after: None }),
            faults::Reply::OfSecond if !is_second => return,
            faults::Reply::Honest if is_second => return,
            _ => reply,
        };
        self.answer(number, target, id, reply, fate);
    }

    pub(super) fn answer(&mut self, process: u64, target: &Target, id: u64, reply: Reply, fate: Fate) {
        if let Some(returns) = fate.returns {
            self.at(self.timeline.now + returns, Event::Return { process, target: target.clone(), id, reply });
        }
    }

    /// Checks that no promise forbids a write that is about to be applied.
    pub(super) fn judge(&mut self, number: u64, target: &Target, ask: &Ask) {
        if !self.store.accepts(ask) {
            return;
        }
        let is_own = matches!(target, Target::Own(_));
        match ask {
            Ask::Write(Key::Lock(lock), write) => {
                let lock = *lock;
                let owner = self.node_of(number);
                let others = self.leads_beside(owner, lock);
                if self.scenario.clocks_bounded {
                    self.timeline.demand(others.is_none(), Property::NoErasure, || {
                        format!("p{number} replaces lock {lock}, which node {others:?} leads")
                    });
                }
                let (token, next) = (write.record.leader_transitions, &mut self.oracle.next_token[lock as usize]);
                let grows = write.record.is_released() && token + 1 == *next || token == *next;
                *next = (*next).max(token + 1);
                self.timeline.demand(grows, Property::Tokens, || format!("p{number} writes {token} to lock {lock}"));
                self.oracle.stats.releases += u64::from(write.record.is_released());
            }
            Ask::Write(Key::Session(session), write) => {
                let is_valid =
                    !is_own && self.nodes.iter().any(|node| node.has_valid_session(self.timeline.now, session));
                if self.scenario.clocks_bounded {
                    self.timeline.demand(!is_valid, Property::NoErasure, || format!("p{number} ends {session}"));
                }
                self.oracle.stats.sessions += u64::from(write.expected.is_none());
                self.oracle.stats.ended_by_others += u64::from(!is_own);
                if write.record.is_released() {
                    self.timeline.log(|| format!("p{number} ends session {session}"));
                }
            }
            Ask::Delete(Key::Session(session), _) => {
                let is_valid = self.nodes.iter().any(|node| node.has_valid_session(self.timeline.now, session));
                if self.scenario.clocks_bounded {
                    self.timeline.demand(!is_valid, Property::NoErasure, || format!("p{number} deletes {session}"));
                }
                self.oracle.stats.deletions += 1;
            }
            _ => {}
        }
    }
}
