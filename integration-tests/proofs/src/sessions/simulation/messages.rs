//! The messages of sessions, which the channel loses, delays and repeats, and the messages of processes that lie.

use leaderelection::election::PeerMessage;
use leaderelection::sessions::machine::{Fact, Input, SessionId};

use super::world::{LARGE, Messages, REMEMBERED, World};
use crate::simulation::faults::delivery_times;
use crate::simulation::scenario::{Liar, NODES};

impl World {
    /// Says what a fact tells others about the local session of a node.
    pub(super) fn say_fact(&mut self, node: usize, fact: &Fact) {
        match fact {
            Fact::Opened { .. } => self.say_write(node),
            Fact::LockReleased { count, lock } => {
                let Some(session) = self.session_of(node) else { return };
                self.say(node, session, PeerMessage::Released { count: *count, locks: vec![*lock] });
            }
            Fact::Closed { session, released: Some((record, _)), .. } => {
                let ended = PeerMessage::Ended { holder: record.holder_identity.clone(), fencing_token: 0.into() };
                self.say(node, session.clone(), ended);
            }
            _ => {}
        }
    }

    /// Says that a write of the local session of a node is committed.
    pub(super) fn say_write(&mut self, node: usize) {
        let Some(session) = self.session_of(node) else { return };
        let write = self.nodes[node].process.as_ref().and_then(|process| process.member.own_write());
        let Some((holder, write_id)) =
            write.and_then(|(record, _)| Some((record.holder_identity.clone(), record.write_id.clone()?)))
        else {
            return;
        };
        self.messages.number += 1;
        let number = self.messages.number;
        self.say(node, session, PeerMessage::Committed { holder, fencing_token: 0.into(), write_id, number });
    }

    pub(super) fn session_of(&self, node: usize) -> Option<SessionId> {
        let process = self.nodes[node].process.as_ref()?;
        let local = self.nodes[node].clock.local_at(self.timeline.now);
        process.member.session(local).map(|(session, _)| session.clone())
    }

    fn say(&mut self, node: usize, session: SessionId, message: PeerMessage) {
        let Some(peers) = self.scenario.peers else { return };
        self.messages.said.push_front((session.clone(), message.clone()));
        self.messages.said.truncate(REMEMBERED);
        if self.calm && peers.mute_in_calm {
            return;
        }
        let share = if self.calm { 0.0 } else { self.scenario.trouble.of_requests() };
        let timings = self.scenario.timings;
        for listener in (0..NODES).filter(|listener| *listener != node) {
            for takes in delivery_times(share, &timings, &mut self.messages.dice) {
                let (session, message) = (session.clone(), message.clone());
                self.at(self.timeline.now + takes, move |world| world.on_message(listener, session, message));
            }
        }
    }

    pub(super) fn on_message(&mut self, node: usize, session: SessionId, message: PeerMessage) {
        if self.nodes[node].frozen_until <= self.timeline.now && self.nodes[node].process.is_some() {
            self.oracle.stats.messages += 1;
            self.step(node, Input::Message { session, message });
        }
    }

    /// Lies to all members, in good times too, and plans the next lie.
    pub(super) fn lie(&mut self) {
        let Some(liar) = self.scenario.liar() else { return };
        let retry = self.scenario.timings.retry;
        let pause = self.messages.dice.between(retry / 8, retry);
        self.at(self.timeline.now + pause, Self::lie);
        // A liar that speaks all the time is contradicted early.
        if !self.calm && self.messages.dice.chance(0.9) {
            return;
        }
        if let Some((session, message)) = self.false_message(liar) {
            for node in 0..NODES {
                self.on_message(node, session.clone(), message.clone());
            }
        }
    }

    fn false_message(&mut self, liar: Liar) -> Option<(SessionId, PeerMessage)> {
        let Messages { said, number, dice } = &mut self.messages;
        let last = said.front().cloned()?;
        *number += 1;
        let age = usize::try_from(dice.below(said.len() as u64)).ok()?;
        let (session, old) = said[age].clone();
        let committed = |write_id| {
            let (holder, fencing_token) = (String::new(), 0);
            PeerMessage::Committed { holder, fencing_token: fencing_token.into(), write_id, number: LARGE + *number }
        };
        let invented = || committed(format!("invented-{number}"));
        Some(match liar {
            Liar::Repeats => last,
            Liar::Invents => (session, invented()),
            Liar::Mixes => match dice.below(8) {
                0 => (session, PeerMessage::Ended { holder: String::new(), fencing_token: 0.into() }),
                1 => (session, PeerMessage::Nothing),
                2 => (session, PeerMessage::Released { count: dice.below(LARGE), locks: vec![dice.below(4)] }),
                3 => (session, invented()),
                _ => match old {
                    PeerMessage::Committed { write_id, .. } => (session, committed(write_id)),
                    old => (session, old),
                },
            },
        })
    }
}
