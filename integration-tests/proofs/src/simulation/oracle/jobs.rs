//! The checks of jobs that have to succeed only once.

use leaderelection::lock::{JobId, JobOutcome, REMEMBERED_JOBS};
use leaderelection::{LeaderElectionRecord, Leadership, RunError};

use super::knowledge::{Call, Oracle};
use super::process::Committed;
use super::property::Property;
use crate::simulation::names::{ProcessId, RequestId};

impl Oracle {
    /// Records that a process competes for a job from now on.
    pub(crate) fn competes_for(&mut self, process: ProcessId, job: &JobId) {
        self.is_disturbed(process);
        self.log(Some(process), || format!("competes for {job}"));
        self.jobs.hosts.insert(process);
        self.jobs.calls.insert(process, Call { job: job.clone(), since: self.now(), begun: false, ended: None });
    }

    pub(super) fn remember_job_of_request(&mut self, process: ProcessId, request: RequestId) {
        if let Some(call) = self.jobs.calls.get(&process) {
            self.jobs.of_requests.insert(request, call.job.clone());
        }
    }

    /// Checks that no work begins for a job that the lock says is done.
    pub(super) fn check_job_begins(&mut self, process: ProcessId, leadership: &Leadership) {
        let Some(call) = self.jobs.calls.get_mut(&process) else { return };
        call.begun = true;
        // Terms may overlap if clocks are not bounded, or if an operator took the lease away.
        // A lock may say anything if its writer is hostile.
        let is_alone = self.scenario.clocks_bounded
            && self.scenario.hostile.is_none()
            && Some(u64::from(leadership.fencing_token())) > self.deposed;
        let job = call.job.clone();
        let is_repeated = is_alone && self.says_done(process, &job);
        self.timeline.demand(!is_repeated, Property::OncePerJob, || {
            format!("p{process}'s work for {job} begins, and the lock says that the job is done")
        });
    }

    /// Records that the work of a job is complete.
    pub(crate) fn job_ended(&mut self, process: ProcessId, token: u64, succeeds: bool) {
        let how = if succeeds { "HAS SUCCEEDED" } else { "has failed" };
        self.log(Some(process), || format!("the job of term {token} {how}"));
        let Some(call) = self.jobs.calls.get_mut(&process) else { return };
        call.ended = Some((token, succeeds));
        if succeeds {
            let (job, at) = (call.job.clone(), self.processes[process].clock.local_at(self.timeline.now));
            self.stats.repetitions += u64::from(self.jobs.succeeded.values().any(|(done, _)| *done == job));
            self.jobs.succeeded.insert((process, token), (job, at));
        }
    }

    /// Checks the marks of a candidate's write that is committed: the write keeps all of them, and only a release of a
    /// term whose work has succeeded adds one. No write begins a term for a job that the replaced record says is done.
    pub(super) fn check_marks(&mut self, by: ProcessId, request: RequestId, record: &LeaderElectionRecord) {
        let begins = !record.is_released() && !self.object.has_begun(by, record.leader_transitions);
        if begins && let Some(job) = self.job_of(request).filter(|job| self.object.is_done(job)) {
            let what = format!("p{by} takes the lease for {job}, and the record says that the job is done");
            return self.timeline.violated(Property::OncePerJob, what);
        }
        let mut expected = self.object.jobs();
        if let Some(marked) = self.remember_mark(by, record) {
            expected.retain(|job| job != marked.as_str());
            expected.insert(0, marked.to_string());
            expected.truncate(REMEMBERED_JOBS);
        }
        self.check_marks_are(&format!("p{by}'s write"), record, &expected);
    }

    /// Records the mark of a release of a term whose work has succeeded. Returns the job.
    pub(super) fn remember_mark(&mut self, by: ProcessId, record: &LeaderElectionRecord) -> Option<JobId> {
        let job = self.job_marked(by, record)?;
        let is_first = self.jobs.marked.entry(job.clone()).or_default().insert((by, record.leader_transitions));
        self.stats.jobs += u64::from(is_first);
        Some(job)
    }

    /// Returns the job that a release says is done.
    fn job_marked(&self, by: ProcessId, record: &LeaderElectionRecord) -> Option<JobId> {
        let success = self.jobs.succeeded.get(&(by, record.leader_transitions));
        success.filter(|_| record.is_released()).map(|(job, _)| job.clone())
    }

    /// Fills the list of a record that is there from the start. The jobs count if the lock is in use.
    pub(crate) fn plants_jobs(&mut self, record: &mut LeaderElectionRecord, name: &str, is_in_use: bool) {
        let jobs: Vec<String> = (0..REMEMBERED_JOBS).map(|number| format!("{name}-{number}")).collect();
        record.unknown.set("completedJobs", &jobs);
        for job in jobs.iter().rev().map(|job| job.parse::<JobId>().expect("a valid name")) {
            self.jobs.marked.entry(job.clone()).or_default();
            if is_in_use && self.jobs.committed.insert(job.clone()) {
                self.jobs.written.push(job);
            }
        }
    }

    /// Records that the mark of a release is in a lock. Later writes carry it into the others, where it takes the place of an
    /// older one. A job whose earlier mark is committed is no younger for a new mark in too few of them.
    pub(super) fn mark_is_written(&mut self, by: ProcessId, record: &LeaderElectionRecord) {
        if let Some(job) = self.job_marked(by, record).filter(|job| !self.jobs.committed.contains(job)) {
            self.is_newest(job);
        }
    }

    /// Records that the mark of a release is committed in as many locks as its writer needs.
    pub(super) fn mark_is_committed(&mut self, by: ProcessId, record: &LeaderElectionRecord) {
        if let Some(job) = self.job_marked(by, record) {
            self.jobs.committed.insert(job.clone());
            self.is_newest(job);
        }
    }

    fn is_newest(&mut self, job: JobId) {
        self.jobs.written.retain(|written| *written != job);
        self.jobs.written.push(job);
    }

    /// Checks that no term begins for one of the last jobs, whatever the locks still say.
    pub(super) fn check_job_is_new(&mut self, by: ProcessId, request: RequestId) {
        let Some(job) = self.job_of(request).filter(|job| self.jobs.committed.contains(*job)) else { return };
        let since = self.jobs.written.iter().rev().position(|written| written == job);
        if let Some(others) = since.filter(|others| *others < REMEMBERED_JOBS) {
            let what = format!("p{by} begins a term for {job}, whose mark was committed {others} jobs ago");
            self.timeline.violated(Property::OncePerJob, what);
        }
    }

    pub(super) fn job_of(&self, request: RequestId) -> Option<&JobId> {
        self.jobs.of_requests.get(&request)
    }

    pub(super) fn is_marked(&self, job: &str) -> bool {
        job.parse::<JobId>().is_ok_and(|job| self.jobs.marked.contains_key(&job))
    }

    /// Checks that an operator's write keeps the marks.
    pub(super) fn check_marks_are_kept(&mut self, record: &LeaderElectionRecord) {
        let expected = self.object.jobs();
        self.check_marks_are("an operator's write", record, &expected);
    }

    fn check_marks_are(&mut self, whose: &str, record: &LeaderElectionRecord, expected: &[String]) {
        let marks = record.completed_jobs();
        self.timeline.demand(marks == expected, Property::OncePerJob, || {
            format!("{whose} leaves the marks {marks:?}, and not {expected:?}")
        });
    }

    /// Checks the result of `run_once`, whose work returns its token.
    pub(crate) fn job_told(&mut self, process: ProcessId, result: &Result<JobOutcome<u64, u64>, RunError>) {
        self.is_disturbed(process);
        self.log(Some(process), || format!("run_once() returned: {result:?}"));
        let complete = self.processes[process].seen.complete.take();
        let Some(Call { job, begun, ended, .. }) = self.jobs.calls.remove(&process) else { return };
        let is_unsaid = !self.jobs.marked.contains_key(&job) && !self.jobs.forged.contains(job.as_str());
        let wrong = match result {
            Ok(JobOutcome::AlreadyDone) => begun || is_unsaid,
            // The mark may be another term's, which worked beside this one after its window had ended.
            Ok(JobOutcome::Done(token)) => ended != Some((*token, true)) || is_unsaid,
            Ok(JobOutcome::Unmarked(token)) => ended != Some((*token, true)),
            Ok(JobOutcome::Failed(token)) => ended != Some((*token, false)),
            Ok(_) => true,
            Err(_) => complete.is_some_and(|(_, in_time)| in_time),
        };
        self.timeline.demand(!wrong, Property::OncePerJob, || {
            format!("p{process}, whose work for {job} ended with {ended:?}, gets {result:?}")
        });
        if !matches!(result, Ok(JobOutcome::Done(_)))
            && let Some((token, true)) = ended
            && self.must_be_marked(process, token)
        {
            let what = format!("p{process} has done {job} in term {token}, and still holds the lease without a mark");
            self.timeline.violated(Property::OncePerJob, what);
        }
    }

    /// Returns `true` if nothing kept the process from the release of this term, which would have carried a mark.
    fn must_be_marked(&self, process: ProcessId, token: u64) -> bool {
        let (watched, success) = (&self.processes[process], self.jobs.succeeded.get(&(process, token)));
        let (Some((_, at)), Some(Committed { sent, lease, .. })) = (success, watched.seen.committed) else {
            return false;
        };
        // The timings may have changed since that write was sent.
        let since = watched.clock.local_at(self.now()) - lease.max(watched.timings.lease);
        let in_time = *at + watched.timings.timeout < sent + lease.min(watched.timings.lease);
        let in_trouble = watched.trouble_since(since) != (0, false)
            || watched.was_frozen_since(since)
            || watched.was_deceived_since(since)
            || self.object.was_spoilt_since(watched.clock.true_at(since));
        in_time && !in_trouble && self.scenario.hostile.is_none() && self.object.is_held_by(process, token)
    }

    /// Returns `true` if the process does not have to lead: it competes for no job, or only since a short time, or for a
    /// job that the lock says is done.
    pub(super) fn is_idle(&self, process: ProcessId) -> bool {
        let bound = self.scenario.longest_without_leader();
        let has_no_job = |call: &Call| self.now() < call.since + bound || self.says_done(process, &call.job);
        self.jobs.hosts.contains(&process) && self.jobs.calls.get(&process).is_none_or(has_no_job)
    }
}
