//! The times without a leader, and the longest that each may be while nothing else goes wrong.

use std::time::Duration;

use leaderelection::election::TermEndReason;

use super::oracle::Cause;
use super::store::PAGE;
use super::world::{LOCKS, World};
use crate::simulation::Property;
use crate::simulation::scenario::{NODES, Scenario};

/// The longest time for which work goes on after it was cancelled, while nothing goes wrong.
pub(super) const WORK_ENDS: Duration = Duration::from_millis(50);

/// Returns the time of a page of a slow listing, which ends within each request timeout by the fastest clock. A slow store is slow
/// for all members (rule S5).
pub(super) fn longest_page(scenario: &Scenario) -> Duration {
    let shortest = scenario.all_timings().map(|timings| timings.timeout).min();
    shortest.unwrap_or_default().mul_f64(0.9e6 / scenario.rates.1 as f64)
}

impl World {
    /// The cause for which a term of a lock ends.
    pub(super) fn cause_of(&mut self, node: usize, lock: u32, reason: &TermEndReason) -> Cause {
        let stops = self.nodes[node].process.as_ref().is_some_and(|process| process.stopped_at.is_some());
        let planned = self.drills.as_ref().and_then(|drills| drills.planned);
        let was_asked = self.asked.remove(&lock);
        match reason {
            TermEndReason::Transferred { to } => {
                let mut processes = self.nodes.iter().filter_map(|node| node.process.as_ref());
                let is_there = processes.any(|process| process.identity == *to && process.stopped_at.is_none());
                match is_there {
                    false => Cause::ForNobody,
                    true if was_asked => Cause::Request,
                    true => Cause::Handoff,
                }
            }
            TermEndReason::Deleted => planned.unwrap_or(Cause::TakenAway),
            TermEndReason::Emptied | TermEndReason::TakenOver { .. } => Cause::TakenAway,
            TermEndReason::RenewDeadline => Cause::Loss,
            TermEndReason::Cancelled if stops => planned.unwrap_or(Cause::Stop),
            _ => Cause::Release,
        }
    }

    /// The longest time without a leader, while nothing else goes wrong: the terms of `docs/many-locks.md`, by the slowest
    /// clock, with a queue for which each request takes as long as it may.
    pub(super) fn longest_gap(&self, cause: Cause) -> Duration {
        let pace = self.drills.as_ref().map(|drills| drills.pace).unwrap_or_default();
        let (scenario, request) = (&self.scenario, pace.request);
        let by_clock = |local: Duration| scenario.by_the_slowest_clock(local);
        let (lease, retry) = (scenario.longest(|timings| timings.lease), scenario.longest(|timings| timings.retry));
        let ranks = by_clock(retry * (NODES as u32 - 1));
        // A refused request is tried again within a retry period, and a read may come first.
        let again = if pace.refuses { by_clock(retry * 2) } else { Duration::ZERO };
        let one = request + again;
        // Eight requests at a time are the fewest, and each lock needs two.
        let queue = request * LOCKS.div_ceil(8) * 2 + again;
        let page = self.page_takes();
        // A listing may be in flight, which says nothing new.
        let pages = LOCKS.div_ceil(PAGE as u32) * 2;
        let poll_all = if self.lists { (page + again) * pages } else { Duration::ZERO };
        let scan_interval = by_clock(self.rules("", scenario.timings).scan_interval) + poll_all;
        // The leader's next renewal names what it has released, and others read that, or list all locks now and then.
        // A listing shows the end of a session as it shows a renewal: the next one finds no further renewal, and a read follows.
        let session_is_seen =
            if self.lists { by_clock(retry.mul_f64(4.4)) + page * 4 + request } else { by_clock(retry) + request * 2 };
        // A session that sends messages is read when it has been silent for two retry periods.
        let session_is_seen =
            session_is_seen + if scenario.peers.is_some() { by_clock(retry * 2) } else { Duration::ZERO };
        let release_is_seen =
            WORK_ENDS + one + if self.lists { scan_interval } else { by_clock(retry) + request + session_is_seen };
        let stop = WORK_ENDS + request + session_is_seen + poll_all + queue + one * 2;
        let expiry = by_clock(lease + retry / 10) + session_is_seen + request * 3 + poll_all + queue + one * 2;
        // A process that begins knows no session before its first listing.
        let first_read = if self.lists { poll_all } else { page + again };
        match cause {
            Cause::Crash => expiry,
            Cause::Blackout => expiry + session_is_seen + first_read + by_clock(retry * 2) + ranks + request * 4,
            // Its member ends its terms at its next try to renew the session, and then all wait for the lease.
            Cause::SessionDeleted => expiry + by_clock(lease),
            Cause::Stop => stop,
            Cause::Roll => stop + poll_all + by_clock(retry * 2),
            Cause::Release => release_is_seen + by_clock(retry) + one * 3 + queue,
            // Whoever is not the first in order reads a retry period later.
            Cause::Request => release_is_seen + by_clock(retry) + one * 2 + queue,
            Cause::ForNobody => release_is_seen + by_clock(lease) + ranks + one * 3 + queue,
            // A renewal may come too soon for the release.
            Cause::Handoff => {
                let seen_by_others =
                    if self.lists { by_clock(retry) + poll_all } else { by_clock(retry) + session_is_seen };
                // A member that gave the lock up may still stand back by a slower clock than the leader's.
                let is_even = scenario.rates.0 == scenario.rates.1;
                let preferred_grace = if is_even { Duration::ZERO } else { by_clock(lease) };
                WORK_ENDS + by_clock(retry / 4) + seen_by_others + preferred_grace + one * 3 + queue
            }
            Cause::TakenAway => WORK_ENDS + ranks + one * 3 + queue,
            Cause::Repair => scan_interval + ranks + one * 3 + queue,
            Cause::Loss => Duration::ZERO,
        }
    }

    /// The time of a page of a listing.
    pub(super) fn page_takes(&self) -> Duration {
        let pace = self.drills.as_ref().map(|drills| drills.pace).unwrap_or_default();
        if self.lists_slowly { longest_page(&self.scenario).max(pace.request) } else { pace.request }
    }

    /// Notes that a term of a lock is over.
    pub(super) fn is_left(&mut self, lock: u32, cause: Cause) {
        if self.leads_beside(None, lock).is_none() {
            self.oracle.left[lock as usize].get_or_insert((self.timeline.now, cause));
        }
    }

    /// Notes that a process ends, which may be the one that was to take what is in flight.
    pub(super) fn takes_no_more(&mut self) {
        for (_, cause) in self.oracle.left.iter_mut().flatten() {
            if matches!(cause, Cause::Request | Cause::Handoff) {
                *cause = Cause::ForNobody;
            }
        }
    }

    /// Notes that a term of a lock begins.
    pub(super) fn is_led(&mut self, lock: u32) {
        if let Some((since, cause)) = self.oracle.left[lock as usize].take() {
            let lasted = self.timeline.now - since;
            self.oracle.stats.count_gap(cause, lasted);
            self.judge_gap(lock, since, cause);
        }
    }

    /// Checks that no lock has been without a leader for too long.
    pub(super) fn judge_gaps(&mut self) {
        for lock in 0..LOCKS {
            let is_spoilt = self.spoilt.iter().any(|(spoilt, _)| *spoilt == lock);
            if let (Some((since, cause)), false) = (self.oracle.left[lock as usize], is_spoilt) {
                self.judge_gap(lock, since, cause);
            }
        }
    }

    fn judge_gap(&mut self, lock: u32, since: Duration, cause: Cause) {
        if self.drills.as_ref().is_none_or(|drills| since < drills.from) {
            return;
        }
        let (lasted, longest) = (self.timeline.now - since, self.longest_gap(cause));
        self.timeline.demand(lasted <= longest, Property::GapInTime, || {
            format!("lock {lock} had no leader for {lasted:?} after {cause:?}, and {longest:?} is the most")
        });
    }
}
