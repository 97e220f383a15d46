//! The requests of a run: what every check learns of those that are sent, that take effect, and that are answered.

use std::time::Duration;

use leaderelection::election::Failure;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::knowledge::Oracle;
use super::process::{Committed, Watched};
use super::property::Property;
use crate::simulation::clock::TrueTime;
use crate::simulation::names::{Client, ProcessId, RequestId, Sent};
use crate::simulation::scenario::Liar;
use crate::simulation::timings::Timings;

impl Oracle {
    pub(crate) fn sent(&mut self, by: Option<ProcessId>, what: Sent) -> RequestId {
        self.stats.requests += 1;
        let request = RequestId::try_from(self.stats.requests).unwrap_or(RequestId::MAX);
        self.log(by, || format!("r{request} sent: {what:?}"));
        if let Some(by) = by {
            self.check_silence(by);
            self.check_is_late(by, what);
            self.check_read_interval(by, what);
            self.check_takes_what_is_released(by, what);
            self.check_failed_work(by, what);
            self.remember_request_for_lease(by, request, what);
            self.processes[by].remember_request(self.timeline.now, request);
            self.remember_job_of_request(by, request);
            if let Sent::Release { token } = what {
                self.processes[by].seen.releases.push(request);
                self.check_release(by, token);
            }
        }
        request
    }

    /// Records a write that takes effect.
    pub(crate) fn wrote_by(&mut self, client: Client, request: (RequestId, TrueTime), record: &LeaderElectionRecord) {
        match client {
            Client::Process { id, .. } => self.wrote(id, request, record),
            Client::Operator(plan) => self.intervened(plan, record),
            Client::Stranger => {
                self.stats.strangers += 1;
                self.object.remember(None, (self.timeline.now, self.timeline.now), record);
            }
            Client::Sweeper => self.timeline.violated(Property::NoErasure, "the sweeper writes"),
        }
    }

    pub(super) fn wrote(
        &mut self,
        by: ProcessId,
        (request, sent): (RequestId, TrueTime),
        record: &LeaderElectionRecord,
    ) {
        if self.object.is_request(record) {
            return self.asked_for_lease(by, request, record);
        }
        self.check_count_of_requests(by, sent, record);
        self.stats.writes += 1;
        self.stats.releases += u64::from(record.is_released());
        if let Err((property, what)) = self.check_write(None, by, sent, record) {
            self.timeline.violated(property, format!("p{by}'s write: {what}"));
        }
        if self.scenario.rollouts.is_none() {
            self.check_marks(by, request, record);
        }
        self.object.remember(Some(by), (sent, self.timeline.now), record);
        if self.scenario.liar() == Some(Liar::Mixes) {
            self.object.is_known_since(sent);
        }
        let Watched { is, seen } = &mut self.processes[by];
        let Timings { lease, deadline, .. } =
            self.scenario.timings_of_lease(record.lease_duration).unwrap_or(is.timings);
        let (token, sent) = (record.leader_transitions, is.clock.local_at(sent));
        seen.committed = Some(Committed { token, sent, lease, deadline });
    }

    /// Records that a process gets other timings while it runs.
    pub(crate) fn reconfigured(&mut self, process: ProcessId, timings: Timings) {
        self.log(Some(process), || format!("gets the timings of a lease of {:?}", timings.lease));
        self.is_disturbed(process);
        let Watched { is, seen } = &mut self.processes[process];
        seen.reconfigured_at = Some(is.clock.local_at(self.timeline.now));
        let before = is.timings;
        is.timings = Timings {
            lease: before.lease.min(timings.lease),
            deadline: before.deadline.min(timings.deadline),
            retry: before.retry.max(timings.retry),
            timeout: before.timeout.max(timings.timeout),
            follower: before.follower.max(timings.follower),
        };
    }

    /// Records that an answer with a `Retry-After` has reached the elector.
    pub(crate) fn told_to_wait(&mut self, process: ProcessId, asked: Duration) {
        let longest = self.scenario.longest(|timings| timings.lease);
        let Watched { is, seen } = &mut self.processes[process];
        let now = is.clock.local_at(self.timeline.now);
        seen.silent_until = seen.silent_until.max(Some(now + asked.min(is.timings.lease)));
        seen.may_wait_until = seen.may_wait_until.max(Some(now + asked.min(longest)));
    }

    /// Checks that a request is not sent too early. A leader may send one, if its window is open for less than the time of a
    /// request, or was when the process stopped.
    fn check_silence(&mut self, process: ProcessId) {
        let watched = &mut self.processes[process];
        let local = watched.clock.local_at(self.timeline.now);
        let Some(until) = watched.seen.silent_until.filter(|until| local < *until) else { return };
        let window = watched.seen.open.as_ref().map(|open| open.leadership.valid_until());
        let is_last_chance = window
            .is_some_and(|end| (local < end || watched.may_be_late(local)) && end <= local + watched.timings.timeout);
        if std::mem::replace(&mut watched.seen.has_insisted, true) || !is_last_chance {
            let early = until.saturating_since(local);
            let what = format!("p{process} sends a request {early:?} before the store asked for it");
            self.timeline.violated(Property::KeepsRetryAfter, what);
        }
    }

    /// Records a record that existed before all processes.
    pub(crate) fn planted(&mut self, part: usize, record: &LeaderElectionRecord) {
        for object in [&mut self.object, &mut self.halves[part]] {
            object.remember(None, (TrueTime::ZERO, TrueTime::ZERO), record);
        }
    }

    pub(crate) fn answered(&mut self, by: Option<ProcessId>, request: RequestId, error: Option<Failure>, honest: bool) {
        self.log(by, || match error {
            None => format!("r{request} answered: done"),
            Some(Failure { kind, retry_after: None }) => format!("r{request} answered: {kind:?}"),
            Some(Failure { kind, retry_after: Some(pause) }) => {
                format!("r{request} answered: {kind:?}, retry after {pause:?}")
            }
        });
        let Some(by) = by else { return };
        self.processes[by].seen.has_insisted &= error.is_some();
        // A candidate polls slowly after a permanent refusal, even if the refused write has made it the leader.
        let told_to_wait =
            error.is_some_and(|error| error.retry_after.is_some() || error.kind == StoreErrorKind::Fatal);
        // A conflict, even a true one, costs a read and another write: an operator's request makes one.
        if error.is_some_and(|error| error.kind == StoreErrorKind::Conflict) {
            self.is_overtaken(by, request);
        }
        let good = honest && error.is_none_or(|error| error.kind != StoreErrorKind::Conflict);
        self.processes[by].request_answered(self.timeline.now, request, good, told_to_wait);
    }

    pub(crate) fn deleted(&mut self) {
        self.log(None, || "AN OPERATOR DELETES THE OBJECT".to_owned());
        self.object.forget();
    }

    /// Records that the answer to a read is false.
    pub(crate) fn deceived(&mut self, by: ProcessId, request: RequestId) {
        self.processes[by].tried(request).into_iter().for_each(|tried| tried.deceived = true);
    }

    /// Records that something that is no record has taken the record's place.
    pub(crate) fn spoilt(&mut self) {
        self.object.spoilt();
    }

    pub(crate) fn repaired(&mut self) {
        self.log(None, || "the record is put back".to_owned());
        self.object.repaired(self.timeline.now);
    }

    /// Records that an operator has written a preferred holder into the record.
    pub(super) fn asked_for(&mut self, identity: &str) {
        self.object.asked_for(self.timeline.now, identity);
        self.log(None, || format!("an operator asks for {identity} to lead"));
    }

    pub(crate) fn highest_token(&self) -> u64 {
        self.object.highest_token()
    }
}
