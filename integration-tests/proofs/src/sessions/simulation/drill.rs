//! A run in which nothing goes wrong but what is planned, one after the other: so it shows what each change of the members, and
//! each act of an operator, costs by itself.

use std::time::Duration;

use clap::ValueEnum;
use leaderelection::election::Command;
use leaderelection::sessions::machine::{Input, LockId};

use super::oracle::Cause;
use super::world::{LOCKS, RUN_LENGTH, World};
use crate::sessions::wire::Key;
use crate::simulation::scenario::NODES;

/// A planned change.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Drill {
    Stop,
    Crash,
    Blackout,
    Roll,
    StepDown,
    /// A lock is handed over, and handed back.
    ThereAndBack,
    Request,
    Delete,
    DeleteSession,
    Release,
    Spoil,
}

impl World {
    /// Plans a run of planned changes.
    pub(super) fn begin_drills(&mut self) {
        self.calm = true;
        let from = self.longest_without_leader();
        if let Some(drills) = &mut self.drills {
            drills.from = from;
        }
        self.at(from, Self::check);
        self.at(from, Self::drill);
        self.at(RUN_LENGTH, |world| world.is_over = true);
    }

    /// Does one thing, and plans the moment at which its consequences must be over.
    pub(super) fn drill(&mut self) {
        self.judge_gaps();
        self.check();
        let kind = self.dice.pick(Drill::value_variants());
        let lock = u32::try_from(self.dice.below(LOCKS.into())).unwrap_or_default();
        let (Some(leader), node) = (self.leads_beside(None, lock), self.dice.below(NODES as u64) as usize) else {
            return;
        };
        let noticed = self.scenario.by_the_slowest_clock(self.rules("", self.scenario.timings).scan_interval)
            + self.longest_gap(Cause::Repair);
        let now = self.timeline.now;
        self.timeline.log(|| format!("drill: {kind:?}"));
        self.oracle.stats.drills += 1;
        let takes = match kind {
            Drill::Stop => {
                self.ask_to_stop(node);
                self.longest_gap(Cause::Stop)
            }
            Drill::Crash => {
                self.crash(node, Cause::Crash);
                self.longest_gap(Cause::Crash)
            }
            Drill::Blackout => {
                (0..NODES).for_each(|node| self.crash(node, Cause::Blackout));
                (0..NODES).for_each(|node| self.at(now + Duration::from_secs(1), move |world| world.start(node)));
                self.longest_gap(Cause::Blackout)
            }
            Drill::Roll => {
                let step =
                    self.longest_gap(Cause::Roll) + self.scenario.by_the_slowest_clock(self.scenario.timings.lease);
                (0..NODES).for_each(|node| self.at(now + step * node as u32, move |world| world.replace(node)));
                step * NODES as u32
            }
            Drill::StepDown => {
                self.step(leader, Input::Command { lock: LockId(lock), command: Command::StepDown });
                self.longest_gap(Cause::Release)
            }
            Drill::ThereAndBack => {
                let other = self.identity_of((leader + 1) % NODES);
                let takes = self.longest_gap(Cause::Request);
                if let (Some(other), Some(back)) = (other, self.identity_of(leader)) {
                    self.hand_over(lock, other);
                    self.at(now + takes, move |world| world.hand_over(lock, back));
                }
                takes * 2
            }
            Drill::Request => {
                let to = if self.dice.chance(0.5) { self.identity_of(node) } else { None };
                self.ask_for(lock, to.unwrap_or_else(|| "nobody".to_owned()));
                noticed + self.longest_gap(Cause::ForNobody)
            }
            Drill::Delete => {
                self.timeline.log(|| format!("an operator deletes {lock}"));
                self.store.remove(&Key::Lock(LockId(lock)));
                // Others wait for as long as its leader might need to notice, whatever comes meanwhile (rule S5).
                self.longest_without_leader().max(noticed)
            }
            Drill::DeleteSession => {
                self.plan_cause(Some(Cause::SessionDeleted));
                self.delete_session(node);
                self.longest_gap(Cause::SessionDeleted) * 2
            }
            Drill::Release => {
                if let Some(record) = self.store.lock(lock) {
                    let token = record.leader_transitions;
                    self.release(lock, record, token);
                }
                noticed
            }
            Drill::Spoil => {
                self.spoil(lock, noticed);
                noticed * 2
            }
        };
        self.at(now + takes, Self::drilled);
    }

    /// Checks that the last change is over, and plans the next one.
    pub(super) fn drilled(&mut self) {
        self.judge_gaps();
        self.plan_cause(None);
        (0..NODES).for_each(|node| self.at(self.timeline.now, move |world| world.start(node)));
        let scan_interval = self.rules("", self.scenario.timings).scan_interval;
        let known =
            self.scenario.by_the_slowest_clock(scan_interval * 2 + self.scenario.longest(|timings| timings.lease));
        let next = self.timeline.now + self.join_takes().max(known) + self.dice.up_to(self.scenario.timings.retry);
        if next + self.longest_gap(Cause::Blackout) < RUN_LENGTH {
            self.at(next, Self::drill);
        }
    }

    /// Stops a process. Its successor begins soon after its end.
    pub(super) fn replace(&mut self, node: usize) {
        self.judge_gaps();
        self.plan_cause(Some(Cause::Roll));
        self.ask_to_stop(node);
    }

    /// Lets the leader of a lock hand it over.
    pub(super) fn hand_over(&mut self, lock: u32, to: String) {
        if let Some(leader) = self.leads_beside(None, lock) {
            self.asked.insert(lock);
            self.step(leader, Input::Command { lock: LockId(lock), command: Command::TransferTo(to) });
        }
    }

    fn plan_cause(&mut self, cause: Option<Cause>) {
        if let Some(drills) = &mut self.drills {
            drills.planned = cause;
        }
    }

    fn identity_of(&self, node: usize) -> Option<String> {
        Some(self.nodes[node].process.as_ref()?.identity.clone())
    }
}
