//! The messages of leaders, which the channel loses, delays and repeats, and the messages of processes that lie.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::election::PeerMessage;
use tokio::time::sleep;

use super::dice::Dice;
use super::faults::delivery_times;
use super::names::ProcessId;
use super::scenario::{Liar, NODES};
use super::world::{REMEMBERED, World};

/// Liars say a larger number than any leader.
const LARGE: u64 = 1 << 40;

impl World {
    /// Returns what a process says of its write when the write is committed.
    pub(super) fn sends_write(&self, process: ProcessId, record: &LeaderElectionRecord) -> Option<PeerMessage> {
        self.scenario.peers?;
        let fencing_token = record.leader_transitions;
        let holder = self.oracle().identity_of(process);
        if record.is_released() {
            return Some(PeerMessage::Ended { holder, fencing_token: fencing_token.into() });
        }
        // A request for the lease says nothing about a write of its sender.
        if record.holder_identity != holder {
            return None;
        }
        let write_id = record.write_id.clone()?;
        let message = PeerMessage::Committed {
            holder,
            fencing_token: fencing_token.into(),
            write_id,
            number: self.peers.next_number(),
        };
        let mut writes = self.peers.writes.lock().unwrap();
        writes.push_front(message.clone());
        writes.truncate(REMEMBERED);
        Some(message)
    }

    /// Tells all other processes that a write of the leader on this node is committed.
    pub(super) fn say(self: &Arc<Self>, node: usize, message: PeerMessage) {
        let Some(peers) = self.scenario.peers else { return };
        *self.peers.last.lock().unwrap() = Some(message.clone());
        if self.is_calm() && peers.mute_in_calm {
            return;
        }
        let share = if self.is_calm() { 0.0 } else { self.scenario.trouble.of_requests() };
        let timings = self.scenario.timings;
        let mut dice = self.peers.dice.lock().unwrap();
        for listener in (0..NODES).filter(|listener| *listener != node) {
            for takes in delivery_times(share, &timings, &mut dice) {
                self.carry(listener, message.clone(), takes);
            }
        }
    }

    fn carry(self: &Arc<Self>, node: usize, message: PeerMessage, takes: Duration) {
        let world = Arc::clone(self);
        tokio::spawn(async move {
            sleep(takes).await;
            world.arrive(node, message);
        });
    }

    fn arrive(&self, node: usize, message: PeerMessage) {
        let listener = self.peers.ears.lock().unwrap()[node].clone();
        if let Some((process, elector)) = listener
            && let Some(elector) = elector.upgrade()
        {
            self.oracle().on_message(process, &message);
            elector.peer_channel().deliver(message);
        }
    }
}

/// Lies to all candidates, in good times too.
pub(super) async fn lie_without_end(world: Arc<World>, mut dice: Dice) {
    let Some(liar) = world.scenario.liar() else { return };
    let retry = world.scenario.timings.retry;
    loop {
        sleep(dice.between(retry / 8, retry)).await;
        // A liar that speaks all the time is contradicted early in every term.
        if !world.is_calm() && dice.chance(0.9) {
            continue;
        }
        if let Some(message) = world.lie(liar, &mut dice) {
            (0..NODES).for_each(|node| world.arrive(node, message.clone()));
        }
    }
}

impl World {
    fn lie(&self, liar: Liar, dice: &mut Dice) -> Option<PeerMessage> {
        let last = self.peers.last.lock().unwrap().clone()?;
        let (holder, fencing_token) = match &last {
            PeerMessage::Committed { holder, fencing_token, .. } | PeerMessage::Ended { holder, fencing_token } => {
                (holder.clone(), *fencing_token)
            }
            _ => return None,
        };
        let number = LARGE + self.peers.next_number();
        let committed = |fencing_token, write_id| PeerMessage::Committed {
            holder: holder.clone(),
            fencing_token,
            write_id,
            number,
        };
        let invented = || committed(fencing_token, format!("invented-{number}"));
        Some(match liar {
            Liar::Repeats => last,
            Liar::Invents => invented(),
            Liar::Mixes => match dice.below(12) {
                0 => PeerMessage::Ended { holder, fencing_token },
                1 | 2 => PeerMessage::Nothing,
                3 => invented(),
                4 => committed((u64::from(fencing_token) + 1).into(), format!("next-{number}")),
                kind => {
                    let writes = self.peers.writes.lock().unwrap();
                    let age = dice.pick(&[0, 0, 0, 1, 2, REMEMBERED]).min(writes.len().checked_sub(1)?);
                    match writes[age].clone() {
                        PeerMessage::Committed { holder, fencing_token, write_id, .. } if kind < 9 => {
                            PeerMessage::Committed { holder, fencing_token, write_id, number }
                        }
                        other => other,
                    }
                }
            },
        })
    }
}
