//! The steps that are possible in a state.

use super::setup::Setup;
use super::world::{Node, Stored, World};
use crate::phase::next;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The time goes on by one unit. While a request is in flight, this makes it a slow one.
    Tick,
    /// A request of a process to one of its locks is carried out and answered.
    Step(usize, usize),
    /// A request of a process fails without an effect.
    Lose(usize),
    /// A request of a process is carried out, and its answer is lost.
    Doubt(usize),
    /// The process gives up waiting for a write, which may still be committed.
    Delay(usize),
    /// A write is committed for whose answer nobody waits.
    Arrive(usize),
    /// A process crashes, and begins anew.
    Crash(usize),
    /// A process is asked to stop, and begins anew in the next phase.
    Roll(usize),
    /// An operator releases one of the locks.
    Release(usize),
    /// A lock stops answering.
    Stop(usize),
    /// A lock is restored from a backup.
    Restore(usize),
    /// A hostile writer replaces the record of one of its locks.
    Forge(usize, Forgery),
}

/// A record that a hostile writer has seen or can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forgery {
    /// The record with the highest token, with its write id and without its holder.
    Emptied,
    /// The record of another lock.
    Copied,
    /// The record of somebody with a higher token.
    Higher,
    /// None.
    Missing,
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        if self.violation.is_some() {
            return;
        }
        let is_eventful = self.now <= setup.eventful;
        let may_fail = is_eventful && self.faults < setup.faults;
        let is_quiet = self.nodes.iter().all(|node| node.call.is_none() && node.background.is_empty());
        if is_quiet || may_fail {
            actions.push(Action::Tick);
        }
        let orders = if setup.any_order { usize::MAX } else { 1 };
        for (index, node) in self.nodes.iter().enumerate() {
            let parts = self.next_parts(index);
            actions.extend(parts.iter().take(orders).map(|part| Action::Step(index, *part)));
            if may_fail && !parts.is_empty() {
                actions.push(Action::Lose(index));
                if self.next_put(index).is_some() {
                    actions.extend([Action::Doubt(index), Action::Delay(index)]);
                }
            }
            if is_eventful && self.crashes < setup.crashes {
                actions.push(Action::Crash(index));
            }
            if is_eventful && !node.stops && self.may_roll(setup, node) {
                actions.push(Action::Roll(index));
            }
        }
        if is_eventful {
            actions.extend((0..self.late.len()).map(Action::Arrive));
            if self.releases < setup.releases {
                let is_held = |part: &usize| self.locks[*part].as_ref().is_some_and(Stored::is_held);
                actions.extend((0..self.locks.len()).filter(is_held).map(Action::Release));
            }
            actions.extend(setup.stops.filter(|_| self.gone.is_none()).map(Action::Stop));
            // From the start, it keeps all from leading: before anybody has led, a claim of other parts shows a mistake (M8).
            let may_forge = self.forgeries < setup.forgeries && (setup.gap.is_none() || self.led.is_some());
            if may_forge {
                let forgeries = [Forgery::Emptied, Forgery::Copied, Forgery::Higher, Forgery::Missing];
                let of_lock = |lock: &usize| forgeries.map(|forgery| Action::Forge(*lock, forgery));
                actions.extend(setup.hostile.iter().flat_map(of_lock));
            }
            let may_restore = !self.is_restored && (setup.hasty || self.is_everywhere());
            actions.extend(setup.restores.filter(|_| may_restore).map(Action::Restore));
        }
    }

    /// Returns `true` if all locks show one write.
    fn is_everywhere(&self) -> bool {
        let mut ids = self.locks.iter().map(|lock| lock.as_ref().and_then(|stored| stored.record.write_id.as_ref()));
        let first = ids.next().flatten();
        first.is_some() && ids.all(|id| id == first)
    }

    /// The rule of the rollouts (M8).
    fn may_roll(&self, setup: &Setup, node: &Node) -> bool {
        let Some((rolls, next)) = setup.rolls.and_then(|rolls| Some((rolls, next(&rolls, node.phase)?))) else {
            return false;
        };
        let [_, joint, last] = rolls;
        let is_left = self.nodes.iter().all(|other| other.phase == joint || other.phase == next);
        next != last || (setup.all_at_once || is_left) && (setup.hasty || [Some(next), Some(joint)].contains(&self.led))
    }
}
