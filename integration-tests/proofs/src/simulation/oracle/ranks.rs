//! The checks of the lease that a better candidate takes back (rule 24).

use std::time::Duration;

use leaderelection::LeaderElectionRecord;

use super::knowledge::Oracle;
use super::process::Watched;
use super::property::Property;
use crate::simulation::clock::TrueTime;
use crate::simulation::names::{ProcessId, RequestId, Sent};

impl Oracle {
    /// Records that the process has just started, or that its term has ended.
    pub(super) fn restart_failback_delay(&mut self, process: ProcessId) {
        let Watched { is, seen } = &mut self.processes[process];
        seen.well_since = is.clock.local_at(self.timeline.now);
        seen.unwell_at = seen.well_since;
    }

    /// Records that a read of the process has failed, which costs it a lease at least.
    pub(crate) fn is_unwell(&mut self, process: ProcessId) {
        let Watched { is, seen } = &mut self.processes[process];
        seen.unwell_at = is.clock.local_at(self.timeline.now);
        seen.well_since = (seen.well_since + is.timings.lease).min(seen.unwell_at);
    }

    pub(super) fn remember_request_for_lease(&mut self, by: ProcessId, request: RequestId, sent: Sent) {
        let Watched { is, seen } = &mut self.processes[by];
        if let Sent::Ask { .. } = sent {
            let well_for = is.clock.local_at(self.timeline.now).saturating_since(seen.well_since);
            seen.asks.push((request, well_for));
        }
    }

    /// Records that a write of another has come before the request, which is made again after the next poll. If renewals come as often
    /// as requests take, chance decides which is first.
    pub(super) fn is_overtaken(&mut self, process: ProcessId, request: RequestId) {
        let Watched { is, seen } = &mut self.processes[process];
        if seen.asks.iter().any(|(ask, _)| *ask == request) {
            seen.unwell_at = is.clock.local_at(self.timeline.now);
        }
    }

    fn failback_delay(&self, lease: Duration, failbacks: u8) -> Duration {
        lease * (1 << failbacks.min(self.scenario.failback_doublings))
    }

    /// Checks a request that is committed.
    pub(super) fn asked_for_lease(&mut self, by: ProcessId, request: RequestId, record: &LeaderElectionRecord) {
        let before = self.object.failback_requests().map_or(0, |(count, _)| count);
        let (named, leader) = self.object.count_request(record);
        let watched = &self.processes[by];
        let rank = self.scenario.rank_of(watched.node);
        let leaders = leader.map_or(0, |leader| self.scenario.rank_of(self.processes[leader].node));
        let failback_delay = self.failback_delay(watched.timings.lease, before);
        let well_for = watched.seen.asks.iter().find(|(ask, _)| *ask == request).map(|(_, well_for)| *well_for);
        let what = if rank >= leaders || !watched.takes_back {
            Some(format!("with rank {rank} for the lease of rank {leaders}"))
        } else if well_for.is_none_or(|well_for| well_for < failback_delay) {
            Some(format!("after {well_for:?} without a failure, and not {failback_delay:?}, after {before} requests"))
        } else if record.failbacks != (before + 1).min(self.scenario.failback_doublings) {
            Some(format!("and counts {} requests after {before}", record.failbacks))
        } else {
            named.filter(|named| *named != record.holder_identity).map(|named| format!("although it names {named:?}"))
        };
        self.stats.failbacks += 1;
        if let Some(what) = what {
            self.timeline.violated(Property::AsksAfterFailbackDelay, format!("p{by} asks {what}"));
        }
        self.asked_for(&self.identity_of(by));
    }

    /// Checks that a write keeps the count of requests, unless its term has lasted for long.
    pub(super) fn check_count_of_requests(&mut self, by: ProcessId, sent: TrueTime, record: &LeaderElectionRecord) {
        let Some((before, began)) = self.object.failback_requests().filter(|(before, _)| record.failbacks != *before)
        else {
            return;
        };
        let watched = &self.processes[by];
        let led_for = watched.clock.local_at(sent).saturating_since(watched.clock.local_at(began));
        let longest = self.failback_delay(watched.timings.lease, u8::MAX) * 2;
        let renews = !record.is_released() && self.object.is_held_by(by, record.leader_transitions);
        let forgives = renews && record.failbacks == 0 && led_for >= longest;
        self.stats.forgiven += u64::from(forgives);
        self.timeline.demand(forgives, Property::AsksAfterFailbackDelay, || {
            let counts = record.failbacks;
            format!("p{by} counts {counts} requests after {before}, {led_for:?} after the start of its term")
        });
    }

    /// Checks that no leader of a worse rank leads on beside a candidate that asks. Nothing went wrong since `calm_since`.
    pub(crate) fn check_best_leads(&mut self, calm_since: TrueTime) {
        let (Some(leader), Some((failbacks, began))) = (self.object.leader(), self.object.failback_requests()) else {
            return;
        };
        let (now, leaders) = (self.now(), &self.processes[leader]);
        let by_slowest = |local: Duration| self.scenario.by_the_slowest_clock(local);
        let lease = leaders.timings.lease;
        if self.scenario.operator_insists || !leaders.leads() || now < began + by_slowest(lease * 2) {
            return;
        }
        let ready_by = |since: TrueTime| {
            since + self.scenario.longest_without_leader() + by_slowest(self.failback_delay(lease, failbacks) + lease)
        };
        let better = self.live_but(leader).find(|(process, watched)| {
            self.scenario.rank_of(watched.node) < self.scenario.rank_of(leaders.node)
                && watched.takes_back
                && watched.campaigns
                && !watched.seen.cancelled
                && watched.identity != leaders.identity
                && !self.jobs.hosts.contains(process)
                && now >= ready_by(calm_since.max(watched.clock.true_at(watched.seen.unwell_at)))
        });
        if let Some((better, _)) = better {
            let what = format!("p{leader} leads beside p{better}, whose rank is better, after {failbacks} requests");
            self.timeline.violated(Property::TakenBackInTime, what);
        }
    }
}
