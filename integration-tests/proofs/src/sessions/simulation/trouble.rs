//! The faults of a run, and the promises that hold when nothing goes wrong any more.

use leaderelection::election::Command;
use leaderelection::sessions::machine::{Input, LockId};

use super::oracle::Cause;
use super::world::{LOCKS, World};
use crate::simulation::Property;
use crate::simulation::scenario::{NODES, Trouble};

impl World {
    /// Does something bad, and plans the next.
    pub(super) fn trouble(&mut self) {
        let lease = self.scenario.timings.lease;
        let gap = match self.scenario.trouble {
            Trouble::None => lease * 6,
            Trouble::Little => lease * 3,
            Trouble::Much => lease,
        };
        let next = self.timeline.now + self.dice.up_to(gap);
        self.at(next, Self::trouble);
        let node = usize::try_from(self.dice.below(NODES as u64)).unwrap_or_default();
        let lasts = self.scenario.timings.delay(&mut self.dice, lease * 2);
        let Some(process) = &mut self.nodes[node].process else { return };
        let number = process.number;
        if self.calm || self.deletes {
            return;
        }
        let bad = self.scenario.trouble != Trouble::None;
        match self.dice.below(if self.operates { 13 } else { 10 }) {
            10.. => self.intervene(lasts),
            0 | 1 if bad => {
                self.crash(node, Cause::Crash);
                self.at(self.timeline.now + lasts, move |world| world.start(node));
            }
            2 if process.stopped_at.is_none() => {
                self.ask_to_stop(node);
            }
            3 | 4 if bad => {
                self.oracle.stats.freezes += 1;
                self.timeline.log(|| format!("p{number} is frozen for {lasts:?}"));
                self.nodes[node].frozen_until = self.timeline.now + lasts;
            }
            5 if bad => self.nodes[node].link_down_until = self.timeline.now + lasts,
            7 if bad && self.dice.chance(0.3) => {
                self.timeline.log(|| format!("p{number} sees no session for {lasts:?}"));
                self.nodes[node].blind_until = self.timeline.now + lasts;
            }
            6 if bad && self.dice.chance(0.2) => {
                self.timeline.log(|| format!("the store is away for {lasts:?}"));
                self.outage_until = self.timeline.now + lasts;
            }
            _ => {
                let lock = u32::try_from(self.dice.below(u64::from(LOCKS))).unwrap_or_default();
                if self.nodes[node].frozen_until <= self.timeline.now {
                    let command = match self.dice.below(3) {
                        0 => {
                            self.asked.insert(lock);
                            Command::TransferTo("n0".to_owned())
                        }
                        1 => Command::StepDown,
                        _ => Command::Stop,
                    };
                    self.step(node, Input::Command { lock: LockId(lock), command });
                }
            }
        }
    }

    pub(super) fn crash(&mut self, node: usize, cause: Cause) {
        let Some(crashed) = self.nodes[node].process.take() else { return };
        self.oracle.stats.crashes += 1;
        self.timeline.log(|| format!("p{} crashes", crashed.number));
        let led = (0..).zip(&crashed.seats).filter(|(_, seat)| seat.leads.is_some());
        self.takes_no_more();
        led.for_each(|(lock, _)| self.is_left(lock, cause));
    }

    pub(super) fn ask_to_stop(&mut self, node: usize) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let number = process.number;
        process.stopped_at = Some(self.timeline.now);
        self.oracle.stats.stops += 1;
        self.timeline.log(|| format!("p{number} is asked to stop"));
        self.takes_no_more();
        self.step(node, Input::Stop);
        let lease = self.scenario.longest(|timings| timings.lease);
        let longest = self.scenario.by_the_slowest_clock(lease * 3) + lease * 2;
        self.at(self.timeline.now + longest, move |world| {
            let ended = world.node_of(number).is_none();
            world.timeline.demand(ended, Property::EndsWhenCancelled, || format!("p{number} still runs"));
        });
    }

    pub(super) fn set_calm(&mut self, calm: bool) {
        self.calm = calm;
        self.timeline.log(|| format!("calm: {calm}"));
        if calm {
            self.outage_until = self.timeline.now;
            self.repair();
            for node in &mut self.nodes {
                (node.link_down_until, node.blind_until) = (self.timeline.now, self.timeline.now);
            }
            for node in 0..NODES {
                self.at(self.timeline.now, move |world| world.start(node));
            }
        }
    }

    /// Checks that every lock has a leader, or is being handed to one for balance.
    pub(super) fn check(&mut self) {
        if !self.scenario.clocks_bounded {
            return;
        }
        let moves = self.longest_gap(Cause::Handoff);
        for lock in 0..LOCKS {
            let (now, left) = (self.timeline.now, self.oracle.left[lock as usize]);
            let leads = (0..NODES).any(|node| self.nodes[node].leading(now, lock).is_some())
                || left.is_some_and(|(since, cause)| cause == Cause::Handoff && now <= since + moves);
            self.timeline.demand(leads, Property::LeaderInTime, || format!("nobody leads lock {lock}"));
        }
    }
}
