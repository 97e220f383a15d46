//! The messages of all sessions of one process, carried to all others without a network.

use std::sync::{Arc, Mutex};

use leaderelection::Session;
use leaderelection::peers::{LeaderTerm, PeerMessage};
use leaderelection::sessions::{OwnSession, SessionChannel};
use tokio::task::JoinHandle;

/// The sessions that send each other messages. Clones are one switchboard.
#[derive(Clone, Debug, Default)]
pub struct Switchboard(Arc<Mutex<Vec<SessionChannel>>>);

impl Switchboard {
    /// Carries the messages of a session to all others, and theirs to it, until the task is aborted. A session that was lost without a
    /// message is one that says nothing.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn connect(&self, session: &Session) -> JoinHandle<()> {
        let (line, board) = (session.peer_channel(), self.clone());
        let place = {
            let mut lines = self.0.lock().expect("no panic under the lock");
            lines.push(line.clone());
            lines.len() - 1
        };
        tokio::spawn(async move {
            let mut own = line.own();
            loop {
                let session = own.borrow_and_update().clone();
                if let Some(session) = session {
                    board.carry(place, session).await;
                }
                if own.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    /// Carries the messages of one session until its end.
    async fn carry(&self, place: usize, OwnSession { key, mut led, .. }: OwnSession) {
        let id = key.rsplit('/').next().unwrap_or_default().to_owned();
        loop {
            let messages = led.borrow_and_update().as_ref().map(messages).unwrap_or_default();
            self.say(place, &id, &messages);
            if led.changed().await.is_err() {
                return self.say(place, &id, &[PeerMessage::Nothing]);
            }
        }
    }

    fn say(&self, place: usize, id: &str, messages: &[PeerMessage]) {
        let lines = self.0.lock().expect("no panic under the lock").clone();
        for (_, line) in lines.iter().enumerate().filter(|(other, _)| *other != place) {
            let ear = line.channel_to(id);
            messages.iter().for_each(|message| ear.deliver(message.clone()));
        }
    }
}

/// The messages of a session about itself.
fn messages(term: &LeaderTerm) -> Vec<PeerMessage> {
    let (holder, fencing_token) = (term.last.record.holder_identity.clone(), term.leadership.fencing_token());
    if term.released.is_some() {
        return vec![PeerMessage::Ended { holder, fencing_token }];
    }
    let write_id = term.last.record.write_id.clone().unwrap_or_default();
    let committed = PeerMessage::Committed { holder, fencing_token, write_id, number: term.last.number };
    let releases = term.releases.as_ref();
    let released =
        releases.map(|releases| PeerMessage::Released { count: releases.count, locks: releases.locks.clone() });
    [committed].into_iter().chain(released).collect()
}
