//! The messages of peers, which may be late, repeated, or lies. No peer names the id of a write before the write was sent.

use leaderelection::LeaderElectionRecord;
use leaderelection::election::{Input, PeerMessage, Request};

use super::promise::Violation;
use super::setup::Setup;
use super::world::World;
use crate::kit::Flight;

/// The number of the write that the last message to a node reported. Only the order of numbers matters.
pub(super) const LAST: u64 = 1;
const NEXT: u64 = LAST + 1;

/// A message that a node gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The write that the object shows is committed.
    Newest,
    /// The write that a node has sent is committed, although it may not have.
    Sent(usize),
    /// A write is committed that nobody has made.
    Invented,
    /// The write that the last message reported is committed, with a larger number.
    Again,
    /// A write is committed that is older than the one that the last message reported.
    Older,
    /// A write of the term after the one that the node follows is committed.
    OfNextTerm,
    /// The term that the node follows is over.
    End,
    /// The peer does not answer.
    Nothing,
}

impl World {
    /// The messages that the node at `index` can get.
    pub(super) fn possible_messages(&self, setup: &Setup, index: usize) -> impl Iterator<Item = Message> + use<> {
        let election = &self.nodes[index].election;
        let listens = setup.messages > 0 && election.listens();
        let (knows, counts) = (election.last_message().is_some(), self.messages < setup.messages);
        let echoes = [Message::Again, Message::Older, Message::OfNextTerm].into_iter().filter(move |_| knows);
        let news = [Message::Newest, Message::Invented, Message::End, Message::Nothing].into_iter();
        let others = (0..self.nodes.len()).filter(move |other| *other != index).map(Message::Sent);
        echoes.chain(news.chain(others).filter(move |_| counts)).filter(move |_| listens)
    }

    /// Gives a node a message. A message that reports nothing new must change nothing.
    pub(super) fn on_message(&mut self, setup: &Setup, index: usize, kind: Message) {
        let Some(message) = self.said(index, kind) else { return };
        let is_echo = matches!(kind, Message::Again | Message::Older | Message::OfNextTerm);
        if is_echo {
            let after = |input| {
                let mut election = self.nodes[index].election.clone();
                election.handle(setup.now(), input, &mut { self.ids });
                while election.next().is_some() {}
                election
            };
            let changes = after(Input::Message(message.clone())) != after(Input::Tick);
            self.violate(setup, changes.then_some(Violation::Echo));
        }
        // A refusal counts for nothing unless an earlier message counted.
        self.messages += usize::from(!is_echo && kind != Message::Nothing);
        self.step(setup, index, Input::Message(message));
    }

    fn said(&mut self, index: usize, kind: Message) -> Option<PeerMessage> {
        let invented = self.ids.unused();
        let election = &self.nodes[index].election;
        let (followed, _) = election.observed()?;
        let committed = |record: &LeaderElectionRecord, write_id: String, number| PeerMessage::Committed {
            holder: record.holder_identity.clone(),
            fencing_token: record.leader_transitions.into(),
            write_id,
            number,
        };
        Some(match kind {
            Message::Newest => {
                let record = &self.cell.as_ref()?.record;
                committed(record, record.write_id.clone()?, NEXT)
            }
            Message::Sent(other) => {
                let Some(Flight::Sent(Request::Write(write))) = self.net.get(other, &()) else { return None };
                committed(&write.record, write.record.write_id.clone()?, NEXT)
            }
            Message::Invented => committed(followed, invented, NEXT),
            Message::Again => committed(followed, election.last_message()?.to_owned(), NEXT),
            Message::Older => committed(followed, invented, LAST - 1),
            Message::OfNextTerm => PeerMessage::Committed {
                holder: followed.holder_identity.clone(),
                fencing_token: (followed.leader_transitions + 1).into(),
                write_id: invented,
                number: NEXT,
            },
            Message::End => PeerMessage::Ended {
                holder: followed.holder_identity.clone(),
                fencing_token: followed.leader_transitions.into(),
            },
            Message::Nothing => PeerMessage::Nothing,
        })
    }
}
