//! The shares of members, with balance: after the end of all faults, a member leaves, and a member joins.

use std::hash::Hasher;
use std::time::Duration;

use siphasher::sip::SipHasher24;

use leaderelection::sessions::machine::Input;

use super::node::{Change, Leader};
use super::world::{LOCKS, World};
use crate::simulation::Property;
use crate::simulation::scenario::NODES;
use crate::simulation::timings::Timings;

impl World {
    /// The duration of a leave and a join; zero if the run has none.
    pub(super) fn change_takes(&self) -> Duration {
        let is_lied_to = self.scenario.liar().is_some();
        // Members that list sessions move locks for two leases only, in which a slow listing may show few of them.
        let is_slow = self.lists && self.lists_slowly;
        let has_odds = is_lied_to || is_slow || self.scenario.other_timings.is_some();
        let changes = self.balance && self.scenario.clocks_bounded && !has_odds;
        if changes { self.leave_takes() + self.join_takes() } else { Duration::ZERO }
    }

    pub(super) fn plan_change(&mut self, from: Duration) {
        if !self.change_takes().is_zero() {
            self.at(from, Self::leave);
            self.at(from + self.leave_takes(), Self::join);
            self.at(from + self.change_takes(), Self::joined);
        }
    }

    /// The longest time until every lock of a member that leaves has another leader: two polls of its session, a poll of all
    /// locks, and the waits of all ranks.
    fn leave_takes(&self) -> Duration {
        let Timings { lease, retry, .. } = self.scenario.timings;
        self.scenario.by_the_slowest_clock(lease * 2 + retry * 12)
    }

    /// The longest time until a member that joins has its share: three leases, if the retry period is short enough. The others
    /// search for new sessions, the session counts as a taker, its first in order is handed over to it, and it reads the
    /// locks.
    pub(super) fn join_takes(&self) -> Duration {
        let Timings { lease, retry, .. } = self.scenario.timings;
        let noticed = self.rules("", self.scenario.timings).scan_interval.min(lease * 2);
        let local = (noticed.max(lease + retry) + retry * 6).max(lease * 3);
        self.scenario.by_the_slowest_clock(local)
    }

    /// Lets a member leave.
    pub(super) fn leave(&mut self) {
        let alive: Vec<usize> = (0..NODES).filter(|node| self.nodes[*node].process.is_some()).collect();
        let node = self.dice.pick(&alive);
        let before = self.leaders();
        self.change = Some(Change { node, has_joined: false, before });
        self.timeline.log(|| format!("node {node} leaves"));
        if let Some(process) = &mut self.nodes[node].process {
            process.stopped_at = Some(self.timeline.now);
        }
        self.step(node, Input::Stop);
    }

    /// Checks what a leave has moved, and lets a member join.
    pub(super) fn join(&mut self) {
        self.check();
        let now = self.leaders();
        let Some(Change { node, before, .. }) = self.change.take() else { return };
        let members = self.members();
        for (lock, (before, now)) in before.iter().zip(&now).enumerate() {
            let was_its = before.as_ref().is_none_or(|leader| self.node_of(leader.process).is_none());
            if !was_its {
                self.demand_reason("leave", lock, before.as_ref(), now.as_ref(), first_of(&members, lock).as_ref());
            }
        }
        self.change = Some(Change { node, has_joined: true, before: now });
        self.start(node);
    }

    /// Checks the share of the member that has joined, and what else has moved.
    pub(super) fn joined(&mut self) {
        self.check();
        let now = self.leaders();
        let Some(Change { node, before, .. }) = self.change.take() else { return };
        let members = self.members();
        let joined = self.nodes[node].process.as_ref().map(|process| process.identity.clone());
        // Members that list sessions hand over for one lease after they count on a new member, eight locks in a retry period at
        // least.
        let Timings { lease, retry, .. } = self.scenario.timings;
        let has_time = !self.lists || retry * LOCKS.div_ceil(8) <= lease;
        for (lock, (before, now)) in before.iter().zip(&now).enumerate() {
            let first = first_of(&members, lock);
            let leader = now.as_ref().map(|leader| &leader.identity);
            if first == joined {
                self.timeline.demand(!has_time || leader == first.as_ref(), Property::ShareInTime, || {
                    format!("{first:?} has joined and is the first of lock {lock}, which {now:?} leads")
                });
            } else {
                self.demand_reason("join", lock, before.as_ref(), now.as_ref(), first.as_ref());
            }
        }
    }

    /// Demands that a lock that another member leads now was not led by its first in order before. A hand-over to that one may
    /// have waited: members that list sessions hand over only while one of them is new.
    fn demand_reason(
        &mut self,
        change: &str,
        lock: usize,
        before: Option<&Leader>,
        now: Option<&Leader>,
        first: Option<&String>,
    ) {
        let leader = now.map(|leader| &leader.identity);
        let was_first = before.map(|leader| &leader.identity) == first;
        let has_reason = !was_first && (leader.is_none() || leader == first);
        self.timeline.demand(has_reason || before == now, Property::MovesNoMore, || {
            format!("a {change} moves lock {lock} from {before:?} to {now:?}, and {first:?} is its first")
        });
    }

    fn members(&self) -> Vec<String> {
        self.nodes.iter().filter_map(|node| Some(node.process.as_ref()?.identity.clone())).collect()
    }

    fn leaders(&self) -> Vec<Option<Leader>> {
        let of = |lock| {
            self.nodes.iter().find_map(|node| {
                let (process, token) = (node.process.as_ref()?, node.leading(self.timeline.now, lock)?);
                Some(Leader { process: process.number, identity: process.identity.clone(), token })
            })
        };
        (0..LOCKS).map(of).collect()
    }
}

/// Returns the first of these members in the order of a lock, computed anew from the description of that order.
fn first_of(members: &[String], lock: usize) -> Option<String> {
    fn digest(key: u64, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(key, 0);
        hasher.write(bytes);
        hasher.finish()
    }
    let name = digest(0, format!("shard-{lock}").as_bytes()).to_be_bytes();
    members.iter().max_by_key(|member| digest(digest(0, member.as_bytes()), &name)).cloned()
}
