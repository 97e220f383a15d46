//! The messages of other sessions, which may be late, repeated, or lies. Nobody names the id of a write before the write was sent.

use leaderelection::election::PeerMessage;
use leaderelection::sessions::machine::{Input, SessionId};

use super::setup::Setup;
use super::world::World;
use crate::kit::Flight;
use crate::sessions::wire::{Ask, Target};

/// The number of the write that the last message to a node reported. Only the order of numbers matters.
pub(super) const LAST: u64 = 1;

/// A message that a node learns of another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The write that the session's object shows is committed.
    Newest,
    /// The write that the session's process has sent is committed, although it may not have.
    Sent,
    /// A write is committed that nobody has made.
    Invented,
    /// The session is over.
    End,
    /// The session has released its locks.
    Releases,
    /// The session does not answer.
    Nothing,
}

impl World {
    /// The messages that the node at `index` can get.
    pub(super) fn possible_messages(&self, setup: &Setup, index: usize) -> impl Iterator<Item = (SessionId, Message)> {
        let own = self.nodes[index].member.session(setup.now()).map(|(own, _)| own.clone());
        let others = self.sessions.keys().filter(move |id| setup.messages > 0 && Some(*id) != own.as_ref());
        let counts = self.messages < setup.messages;
        others.flat_map(move |id| {
            let news = [Message::Newest, Message::Sent, Message::Invented, Message::End, Message::Releases];
            let news = news.into_iter().filter(move |_| counts);
            news.chain([Message::Nothing]).map(|kind| (id.clone(), kind))
        })
    }

    /// Gives a node a message.
    pub(super) fn on_message(&mut self, setup: &Setup, index: usize, session: &SessionId, kind: Message) {
        let Some(message) = self.said(setup, session, kind) else { return };
        self.messages += usize::from(kind != Message::Nothing);
        self.step(setup, index, Input::Message { session: session.clone(), message });
    }

    fn said(&mut self, setup: &Setup, session: &SessionId, kind: Message) -> Option<PeerMessage> {
        let (holder, fencing_token) = (String::new(), 0);
        let committed = |write_id: String| PeerMessage::Committed {
            holder: String::new(),
            fencing_token: fencing_token.into(),
            write_id,
            number: LAST + 1,
        };
        Some(match kind {
            Message::Newest => committed(self.sessions.get(session)?.record.write_id.clone()?),
            Message::Sent => {
                let target = Target::Own(session.clone());
                let sent = (0..self.nodes.len()).find_map(|node| match self.net.get(node, &target) {
                    Some(Flight::Sent(Ask::Write(write))) => write.record.write_id.clone(),
                    _ => None,
                });
                committed(sent?)
            }
            Message::Invented => committed(self.ids.unused()),
            Message::End => PeerMessage::Ended { holder, fencing_token: fencing_token.into() },
            Message::Releases => {
                // Without the names, the node reads all locks.
                PeerMessage::Released { count: setup.locks as u64, locks: Vec::new() }
            }
            Message::Nothing => PeerMessage::Nothing,
        })
    }
}
