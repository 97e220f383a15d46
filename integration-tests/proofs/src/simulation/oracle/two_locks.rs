//! The checks of several locks that are used as one (rules M1 to M10).

use leaderelection::LeaderElectionRecord;
use leaderelection::lock::{JobId, REMEMBERED_JOBS};

use super::knowledge::{Oracle, Rollout};
use super::object::{Attempt, ObjectHistory, Verdict};
use super::property::Property;
use crate::phase::{Phase, Rollouts};
use crate::simulation::clock::TrueTime;
use crate::simulation::dice::Dice;
use crate::simulation::names::{ProcessId, RequestId};

impl Oracle {
    /// The locks that the next process uses. A rollout may begin whenever a process does, and the last one after a leader of
    /// the second rollout alone (rule M8).
    pub(crate) fn next_locks(&mut self, dice: &mut Dice) -> Phase {
        let Some(rollouts) = self.scenario.rollouts else { return Phase::default() };
        let Rollout { number, both_led, .. } = &mut self.rollout;
        let may_begin = match *number {
            0 => true,
            1 => *both_led,
            _ => false,
        };
        if dice.chance(0.1) && may_begin {
            *number += 1;
        }
        rollouts[*number]
    }

    pub(super) fn note_leader_of_both(&mut self) {
        let joint = self.scenario.rollouts.map(|[_, joint, _]| joint);
        self.rollout.both_led |= self.live.iter().all(|live| Some(self.processes[*live].locks) == joint);
    }

    /// Records a write that takes effect in one of the locks. Each lock by itself is written as if there was no other, but by a
    /// leader that takes a lock back. A write counts for the election when it is committed in as many locks as its writer
    /// needs, and a release when it is committed in one of them: its writer leads no more.
    pub(crate) fn wrote_half(
        &mut self,
        (by, this): (ProcessId, usize),
        (request, sent): (RequestId, TrueTime),
        record: &LeaderElectionRecord,
    ) {
        if self.scenario.hostile.is_some() {
            return self.wrote_beside_a_hostile_writer((by, this), (request, sent), record);
        }
        let (uses, token) = (self.processes[by].locks, record.leader_transitions);
        if self.halves[this].is_request(record) {
            return self.asked_in_half((by, this), request, record);
        }
        // Half a release is written again with the other half, and a half that was rolled back is taken again by its own
        // term.
        let again = self.halves[this].was_released_by(by, token);
        let takes_back = uses.needs < uses.parts.len()
            && self.object.has_begun(by, token)
            && self.halves[this].term().is_none_or(|(theirs, _)| theirs <= token);
        if let Err((property, what)) = self.check_write(Some(this), by, sent, record)
            && !(again || takes_back)
        {
            self.timeline.violated(property, format!("p{by}'s write into lock {this}: {what}"));
        }
        self.check_marks_of_half((by, this), request, record);
        self.mark_is_written(by, record);
        let others = || uses.parts.iter().filter(|part| **part != this).map(|part| &self.halves[*part]);
        let shown = others().filter(|other| other.shows(record)).count() + 1;
        let is_release = self.processes[by].seen.releases.contains(&request);
        let commits = match record.is_released() {
            // The half that a candidate gives back is no release of a term.
            true => is_release && self.object.is_last_led_by(by, token),
            // A renewal that reaches a further part after the release has begun is believed by nobody who has sent it.
            false if uses.needs < uses.parts.len() && self.object.was_released_by(by, token) => false,
            false => shown == uses.needs && self.rollout.committed.insert(request),
        };
        let begins = !record.is_released() && !self.object.has_begun(by, token);
        let first = others().filter(|other| other.shows(record)).filter_map(ObjectHistory::applied).min();
        if record.is_released() && shown >= uses.needs {
            self.mark_is_committed(by, record);
        }
        self.halves[this].remember(Some(by), (sent, self.timeline.now), record);
        self.note_released_locks(uses);
        let has_minorities = |phases: Rollouts| phases.iter().any(|phase| phase.needs < phase.parts.len());
        let since = first.into_iter().chain(self.rollout.committed_since.get(&request).copied()).min();
        if let Some(first) = since.filter(|_| self.scenario.rollouts.is_some_and(has_minorities)) {
            // A part that a write reaches late begins no other lease than the parts before, for those who need fewer parts.
            self.halves[this].is_known_since(first);
        }
        if commits {
            self.rollout.committed_since.insert(request, first.unwrap_or(self.timeline.now));
            if begins {
                self.check_job_is_new(by, request);
            }
            // A request that has reached one lock is counted there, whatever is written into the other.
            let counts =
                self.halves.iter().filter_map(ObjectHistory::failback_requests).map(|(counts, _)| counts).max();
            let mut whole = record.clone();
            whole.failbacks = counts.unwrap_or_default();
            let lease = self.object.lease().filter(|_| record.is_released() && shown < uses.parts.len());
            self.wrote(by, (request, sent), &whole);
            self.object.is_shown_elsewhere(lease);
            // A candidate that uses one lock only counts from the first of the parts.
            if let Some(first) = first {
                self.object.is_known_since(first);
            }
        } else if shown < uses.needs && !self.rollout.committed.contains(&request) || record.is_released() {
            // Both halves may have been committed before one of them is rolled back.
            let is_rolled_back = record.is_released() && !is_release;
            self.object.is_broken_by(by, token + u64::from(is_rolled_back));
        }
    }

    /// Checks a write of a candidate into the lock, or in a move into one of the two.
    pub(super) fn check_write(
        &self,
        half: Option<usize>,
        by: ProcessId,
        sent: TrueTime,
        record: &LeaderElectionRecord,
    ) -> Verdict {
        let (writer, object) = (&self.processes[by], half.map_or(&self.object, |half| &self.halves[half]));
        let reclaims = self.scenario.reclaim_own_identity;
        let fastest = self.scenario.store_clock_slack.map(|_| self.scenario.rates.1);
        // A candidate waits for others by what it reads: one lock of the two, or what both show together.
        let reads_it = half.is_some() == (writer.locks.parts.len() == 1);
        let rank = if reads_it { self.scenario.rank_of(writer.node) } else { 0 };
        let attempt = Attempt { writer, by, sent, record };
        object.check(attempt, (reclaims, rank), fastest)?;
        // A candidate of both is not always shown a name that stands in one of them.
        if writer.locks.parts.len() > 1 || !reads_it { Ok(()) } else { object.check_preferred_grace(attempt) }
    }

    /// Records a request for the lease that takes effect in one of the two locks. It counts from the first of them.
    fn asked_in_half(&mut self, (by, half): (ProcessId, usize), request: RequestId, record: &LeaderElectionRecord) {
        let asker = self.processes[by].identity.clone();
        self.halves[half].count_request(record);
        self.halves[half].asked_for(self.timeline.now, &asker);
        if self.object.is_request(record) && !self.object.prefers(&asker) {
            self.asked_for_lease(by, request, record);
        }
    }

    /// Checks the marks of a write into one of the two locks: it loses none that it replaces, and invents none.
    fn check_marks_of_half(
        &mut self,
        (by, this): (ProcessId, usize),
        request: RequestId,
        record: &LeaderElectionRecord,
    ) {
        let begins = !record.is_released() && !self.object.has_begun(by, record.leader_transitions);
        if begins && let Some(job) = self.job_of(request).filter(|job| self.halves[this].is_done(job)) {
            let what = format!("p{by} takes a lock for {job}, and the lock says that the job is done");
            return self.timeline.violated(Property::OncePerJob, what);
        }
        self.remember_mark(by, record);
        let marks = record.completed_jobs();
        // Half a mark is none, if others answer that are without it.
        let uses = self.processes[by].locks;
        let is_committed = |job: &str| self.jobs.committed.iter().any(|committed| committed.as_str() == job);
        let is_promised = |job: &str| uses.needs == uses.parts.len() || is_committed(job);
        let lost = |job: &&String| !marks.contains(job) && marks.len() < REMEMBERED_JOBS && is_promised(job);
        let wrong = self.halves[this].jobs().iter().find(lost).map(|job| format!("loses the mark of {job}"));
        let invented = || marks.iter().find(|job| !self.is_marked(job)).map(|job| format!("invents a mark of {job}"));
        if let Some(what) = wrong.or_else(invented) {
            self.timeline.violated(Property::OncePerJob, format!("p{by}'s write {what}"));
        }
    }

    /// The lock, or in a move those of the two that the process uses.
    pub(super) fn locks_of(&self, process: ProcessId) -> impl Iterator<Item = &ObjectHistory> {
        let uses = self.processes[process].locks;
        let only = uses.parts.is_empty().then_some(&self.object);
        only.into_iter().chain(uses.parts.iter().map(|part| &self.halves[*part]))
    }

    /// Returns `true` if so many of the locks that the process uses say that the job is done that every poll shows it.
    pub(super) fn says_done(&self, process: ProcessId, job: &JobId) -> bool {
        let uses = self.processes[process].locks;
        self.locks_of(process).filter(|lock| lock.is_done(job)).count() > uses.parts.len() - uses.needs
    }
}
