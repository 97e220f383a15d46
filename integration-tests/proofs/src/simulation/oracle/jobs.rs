//! The checks of jobs that have to succeed only once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use leaderelection::clock::LocalInstant;
use leaderelection::lock::{JobId, JobOutcome, REMEMBERED_JOBS};
use leaderelection::{LeaderElectionRecord, Leadership, RunError};

use super::process::Landed;
use super::{Oracle, Property};
use crate::simulation::clock::TrueTime;
use crate::simulation::timeline::{Event, ProcessId, RequestId};

/// The jobs of a run.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// The processes that do jobs.
    pub(super) hosts: BTreeSet<ProcessId>,
    calls: BTreeMap<ProcessId, Call>,
    /// The jobs for which requests were sent.
    of_requests: BTreeMap<RequestId, JobId>,
    /// The terms whose work has succeeded.
    succeeded: BTreeMap<(ProcessId, u64), Success>,
    /// The jobs whose mark has landed, and the terms that wrote the marks.
    marked: HashMap<JobId, BTreeSet<(ProcessId, u64)>>,
}

/// A call of `run_once` that has not returned.
#[derive(Debug)]
struct Call {
    job: JobId,
    since: TrueTime,
    begun: bool,
    /// The term whose work is complete, and `true` if the work has succeeded.
    ended: Option<(u64, bool)>,
}

#[derive(Debug)]
struct Success {
    job: JobId,
    at: LocalInstant,
}

impl Oracle {
    /// Records that a process competes for a job from now on.
    pub(in crate::simulation) fn competes_for(&mut self, now: TrueTime, process: ProcessId, job: &JobId) {
        self.log(now, Some(process), Event::CompetesFor { job: job.to_string() });
        self.jobs.hosts.insert(process);
        self.jobs.calls.insert(process, Call { job: job.clone(), since: now, begun: false, ended: None });
    }

    pub(super) fn remember_job_of_request(&mut self, process: ProcessId, request: RequestId) {
        if let Some(call) = self.jobs.calls.get(&process) {
            self.jobs.of_requests.insert(request, call.job.clone());
        }
    }

    /// Checks that no work begins for a job that the lock says is done.
    pub(super) fn check_job_begins(&mut self, now: TrueTime, process: ProcessId, leadership: &Leadership) {
        let Some(call) = self.jobs.calls.get_mut(&process) else { return };
        call.begun = true;
        // Terms may overlap if clocks are not bounded, or if an operator took the lease away.
        let is_alone = self.scenario.clocks_bounded && Some(leadership.fencing_token()) > self.deposed;
        let job = call.job.clone();
        if is_alone && self.says_done(process, &job) {
            let what = format!("p{process}'s work for {} begins, and the lock says that the job is done", job);
            self.violated(now, Property::OncePerJob, what);
        }
    }

    /// Records that the work of a job is complete.
    pub(in crate::simulation) fn job_ended(&mut self, now: TrueTime, process: ProcessId, token: u64, succeeds: bool) {
        self.log(now, Some(process), Event::JobEnded { token, succeeds });
        let Some(call) = self.jobs.calls.get_mut(&process) else { return };
        call.ended = Some((token, succeeds));
        if succeeds {
            let (job, at) = (call.job.clone(), self.processes[process].clock.local_at(now));
            self.stats.repetitions += u64::from(self.jobs.succeeded.values().any(|success| success.job == job));
            self.jobs.succeeded.insert((process, token), Success { job, at });
        }
    }

    /// Checks the marks of a candidate's write that lands: the write keeps all of them, and only a release of a term
    /// whose work has succeeded adds one. No write begins a term for a job that the replaced record says is done.
    pub(super) fn check_marks(
        &mut self,
        now: TrueTime,
        by: ProcessId,
        request: RequestId,
        record: &LeaderElectionRecord,
    ) {
        let token = record.leader_transitions;
        let begins = !record.is_released() && !self.object.has_begun(by, token);
        if begins && let Some(job) = self.job_of(request).filter(|job| self.object.is_done(job)) {
            let what = format!("p{by} takes the lease for {job}, and the record says that the job is done");
            return self.violated(now, Property::OncePerJob, what);
        }
        let mut expected = self.object.jobs().to_vec();
        if let Some(marked) = self.remember_mark(by, record) {
            expected.retain(|job| job != marked.as_str());
            expected.insert(0, marked.to_string());
            expected.truncate(REMEMBERED_JOBS);
        }
        self.check_marks_are(now, &format!("p{by}'s write"), record, &expected);
    }

    /// Records the mark of a release of a term whose work has succeeded. Returns the job.
    pub(super) fn remember_mark(&mut self, by: ProcessId, record: &LeaderElectionRecord) -> Option<JobId> {
        let term = (by, record.leader_transitions);
        let job = self.jobs.succeeded.get(&term).filter(|_| record.is_released())?.job.clone();
        let is_first = self.jobs.marked.entry(job.clone()).or_default().insert(term);
        self.stats.jobs += u64::from(is_first);
        Some(job)
    }

    pub(super) fn job_of(&self, request: RequestId) -> Option<&JobId> {
        self.jobs.of_requests.get(&request)
    }

    pub(super) fn is_marked(&self, job: &str) -> bool {
        job.parse::<JobId>().is_ok_and(|job| self.jobs.marked.contains_key(&job))
    }

    /// Checks that an operator's write keeps the marks.
    pub(super) fn check_marks_are_kept(&mut self, now: TrueTime, record: &LeaderElectionRecord) {
        let expected = self.object.jobs().to_vec();
        self.check_marks_are(now, "an operator's write", record, &expected);
    }

    fn check_marks_are(&mut self, now: TrueTime, whose: &str, record: &LeaderElectionRecord, expected: &[String]) {
        let marks = record.completed_jobs();
        if marks != expected {
            let what = format!("{whose} leaves the marks {marks:?}, and not {expected:?}");
            self.violated(now, Property::OncePerJob, what);
        }
    }

    /// Checks the result of `run_once`, whose work returns its token.
    pub(in crate::simulation) fn job_told(
        &mut self,
        now: TrueTime,
        process: ProcessId,
        result: &Result<JobOutcome<u64, u64>, RunError>,
    ) {
        self.log(now, Some(process), Event::JobTold { result: format!("{result:?}") });
        let complete = self.processes[process].complete.take();
        let Some(Call { job, begun, ended, .. }) = self.jobs.calls.remove(&process) else { return };
        let marks = self.jobs.marked.get(&job);
        let wrong = match result {
            Ok(JobOutcome::AlreadyDone) => begun || marks.is_none(),
            // The mark may be another term's, which worked beside this one after its window had ended.
            Ok(JobOutcome::Done(token)) => ended != Some((*token, true)) || marks.is_none(),
            Ok(JobOutcome::Unmarked(token)) => ended != Some((*token, true)),
            Ok(JobOutcome::Failed(token)) => ended != Some((*token, false)),
            Ok(_) => true,
            Err(_) => complete.is_some_and(|(_, in_time)| in_time),
        };
        if wrong {
            let what = format!("p{process}, whose work for {job} ended with {ended:?}, is told {result:?}");
            self.violated(now, Property::OncePerJob, what);
        }
        if !matches!(result, Ok(JobOutcome::Done(_)))
            && let Some((token, true)) = ended
            && self.must_be_marked(now, process, token)
        {
            let what = format!("p{process} has done {job} in term {token}, and still holds the lease without a mark");
            self.violated(now, Property::OncePerJob, what);
        }
    }

    /// Returns `true` if nothing kept the process from the release of this term, which would have carried a mark.
    fn must_be_marked(&self, now: TrueTime, process: ProcessId, token: u64) -> bool {
        let (watched, success) = (&self.processes[process], self.jobs.succeeded.get(&(process, token)));
        let (Some(success), Some(Landed { sent, lease, .. })) = (success, watched.landed) else { return false };
        // The timings may have changed since that write was sent.
        let since = watched.clock.local_at(now) - lease.max(watched.timings.lease);
        let in_time = success.at + watched.timings.timeout < sent + lease.min(watched.timings.lease);
        let in_trouble = watched.trouble_since(since).0 > 0
            || watched.was_frozen_since(since)
            || watched.was_deceived_since(since)
            || self.object.was_spoilt_since(watched.clock.true_at(since));
        in_time && !in_trouble && self.object.is_held_by(process, token)
    }

    /// Returns `true` if the process does not have to lead: it competes for no job, or only since a short time, or for a
    /// job that the lock says is done.
    pub(super) fn is_idle(&self, now: TrueTime, process: ProcessId) -> bool {
        let bound = self.scenario.longest_without_leader();
        let has_no_job = |call: &Call| now < call.since + bound || self.says_done(process, &call.job);
        self.jobs.hosts.contains(&process) && self.jobs.calls.get(&process).is_none_or(has_no_job)
    }
}
