//! The oracle, which knows true time and sees every event, and checks every promise.

mod callbacks;
mod clashes;
mod failures;
mod interventions;
mod jobs;
mod object;
mod peers;
mod process;
mod ranks;
mod stats;
mod terms;
mod two_locks;

use std::time::Duration;

use leaderelection::migration::view::Half;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::clock::TrueTime;
use super::faults::Refusal;
use super::scenario::{Liar, Scenario, Timings};
use super::store::Client;
use super::timeline::{Effect, Event, Heard, ProcessId, RequestId, Sent, Timeline};
use super::vandal::Spoilt;
use crate::kit::Violation;
pub(super) use interventions::Told;
use object::ObjectHistory;
use process::Landed;
pub(super) use process::{Newcomer, Watched};
pub use stats::Stats;

/// A promise of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// No two leadership windows overlap in true time.
    Exclusion,
    /// The token of every term is larger than all earlier tokens, and no two terms share one.
    Tokens,
    /// A term that has ended never comes back.
    NoRevival,
    /// A window ends one renew deadline after the sending of a write that landed, or earlier.
    WindowOfALandedWrite,
    /// A leader whose renewals landed, and could be seen to have landed in time, keeps its term.
    NoSpuriousLoss,
    /// A write replaces its own term's record, or one that is released or expired. A renewal or a release does not
    /// recreate a deleted object.
    NoErasure,
    /// `on_stop_leading` is called exactly once per `on_start_leading`, after the work has ended.
    StopOncePerStart,
    /// `on_new_leader` is called with the observed holders, in order, and never with an empty holder. The
    /// oracle cannot check that slow calls wait for each other: time stands still while a thread blocks.
    NewLeaderInOrder,
    /// The leader's future begins while its term is valid.
    WorkBeginsInWindow,
    /// The leader's future does not run after its lease has expired.
    WorkWithinLease,
    /// The leader's work is told in time that its window has closed.
    ToldInTime,
    /// The lease is released after the work has ended.
    ReleaseAfterWork,
    /// Leadership is over when `step_down` returns, and before any request about the end is sent.
    EndsAtOnce,
    /// A process tells that it leads no more before it tells that another leads.
    StopBeforeNextLeader,
    /// A process names itself as the leader only while it leads.
    NamesItselfOnlyInTerm,
    /// A process that is cancelled ends, and begins no other term.
    EndsWhenCancelled,
    /// The preferred candidate goes first, for one lease duration of every other candidate.
    PreferredFirst,
    /// After the end of all faults, a leader exists within the bound that the configuration implies.
    LeaderInTime,
    /// A clash of identities is reported only for a write that another process made under the same identity, or
    /// that an earlier process of this candidate made.
    NoFalseClash,
    /// No request is sent before the time that the store's last `Retry-After` named, one lease later at most.
    KeepsRetryAfter,
    /// Output of work that was complete in time is delivered, and no other output.
    DeliversOutput,
    /// An operator's intervention changes the lock only while the lock shows the term that the operator has seen.
    InterventionInItsTerm,
    /// An operator is not told that an intervention failed which took effect, or that one succeeded which did not.
    InterventionToldTrue,
    /// Once the lock says that a job is done, no term begins for the job, and no work that begins does the job again. The
    /// lock says so by the release of a term whose work has succeeded, and by nothing else; every write keeps what
    /// the lock says of the last jobs. A success is marked, unless the lease was lost or the process was in trouble. A process
    /// says so only if the lock does, and the result of `run_once` is that of its work.
    OncePerJob,
    /// A candidate reads within 2.2 retry periods, or once in its follower interval while the leader renews. A candidate that
    /// hears from a leader reads the store all the same: within that time after the last word, and once in the infrequent
    /// interval.
    LooksAllTheSame,
    /// A term whose work has failed is not renewed, and its process lets others go first for the cool-down.
    FailedWorkEndsTerm,
    /// The highest number of a sequenced lock is never removed.
    HighestStays,
    /// A read of a sequenced lock shows what was the lock's newest write at some moment of the call, and a write that is
    /// acknowledged was the newest one.
    OneHistory,
    /// A candidate of rank n leaves a free lease to others for n retry periods.
    BetterRanksFirst,
    /// A candidate asks for the lease only if its rank is better than the leader's, and if it has competed without a failed
    /// read for a lease duration, doubled for each earlier request. The lock counts the requests until a leader has led for
    /// long.
    AsksWhenSettled,
    /// While nothing goes wrong, a leader of a worse rank hands over to a candidate that asks.
    TakenBackInTime,
    /// Only code that is told to panic panics.
    NoPanic,
}

#[derive(Debug)]
pub(super) struct Oracle {
    scenario: Scenario,
    pub(super) timeline: Timeline,
    processes: Vec<Watched>,
    live: Vec<ProcessId>,
    /// The lock: its only object, or in a move what both locks show together.
    object: ObjectHistory,
    /// In a move, the old lock and the new one.
    halves: [ObjectHistory; 2],
    rollout: two_locks::Rollout,
    jobs: jobs::Jobs,
    plans: Vec<interventions::Watch>,
    /// The largest token of a term whose lease an operator took away. Such a term may overlap with the next.
    deposed: Option<u64>,
    pub(super) stats: Stats,
    /// The last end of a term.
    last_led: TrueTime,
    violation: Option<Violation>,
}

impl Oracle {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            timeline: Timeline::default(),
            processes: Vec::new(),
            live: Vec::new(),
            object: ObjectHistory::default(),
            halves: <[ObjectHistory; 2]>::default(),
            rollout: two_locks::Rollout::default(),
            jobs: jobs::Jobs::default(),
            plans: Vec::new(),
            deposed: None,
            stats: Stats::default(),
            last_led: TrueTime::ZERO,
            violation: None,
        }
    }

    pub(super) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Records the first violation only, because later violations may be its consequences.
    pub(super) fn violated(&mut self, now: TrueTime, property: Property, what: impl Into<String>) {
        self.violation.get_or_insert_with(|| Violation {
            property: format!("{property:?}"),
            at: now,
            what: what.into(),
        });
    }

    pub(super) fn log(&mut self, now: TrueTime, process: Option<ProcessId>, event: Event) {
        if let (Some(process), Event::RunEnded { .. } | Event::CompetesFor { .. } | Event::JobTold { .. }) =
            (process, &event)
        {
            self.is_disturbed(process);
        }
        self.timeline.push(now, process, event);
    }

    pub(super) fn story(&self, most: usize) -> String {
        self.timeline.to_text(most, |process| {
            let watched = &self.processes[process];
            (watched.node, watched.clock.clone())
        })
    }

    pub(super) fn sent(&mut self, now: TrueTime, by: Option<ProcessId>, what: Sent) -> RequestId {
        self.stats.requests += 1;
        let request = RequestId::try_from(self.stats.requests).unwrap_or(RequestId::MAX);
        self.log(now, by, Event::Sent { request, what });
        if let Some(by) = by {
            self.check_silence(now, by);
            self.check_is_late(now, by, what);
            self.check_looks(now, by, what);
            self.check_failed_work(now, by, what);
            self.remember_request_for_lease(now, by, request, what);
            self.processes[by].remember_request(now, request);
            self.remember_job_of_request(by, request);
            if let Sent::Release { token } = what {
                self.processes[by].releases.push(request);
                self.check_release(now, by, token);
            }
        }
        request
    }

    pub(super) fn arrived(
        &mut self,
        now: TrueTime,
        by: Option<ProcessId>,
        (request, half): (RequestId, Option<Half>),
        effect: Effect,
    ) {
        self.log(now, by, Event::Arrived { request, half, effect });
    }

    /// Records a write that takes effect.
    pub(super) fn wrote_by(
        &mut self,
        now: TrueTime,
        client: Client,
        request: (RequestId, TrueTime),
        record: &LeaderElectionRecord,
    ) {
        match client {
            Client::Process { id, .. } => self.wrote(now, id, request, record),
            Client::Operator(plan) => self.intervened(now, plan, record),
            Client::Stranger => self.stranger_wrote(now, record),
            Client::Sweeper => self.violated(now, Property::NoErasure, "the sweeper writes"),
        }
    }

    fn wrote(
        &mut self,
        now: TrueTime,
        by: ProcessId,
        (request, sent): (RequestId, TrueTime),
        record: &LeaderElectionRecord,
    ) {
        if self.object.is_request(record) {
            return self.asked_for_lease(now, by, request, record);
        }
        self.check_count_of_requests(now, by, sent, record);
        self.stats.writes += 1;
        self.stats.releases += u64::from(record.is_released());
        if let Err((property, what)) = self.check_write(None, by, sent, record) {
            self.violated(now, property, format!("p{by}'s write: {what}"));
        }
        if self.scenario.rollouts.is_none() {
            self.check_marks(now, by, request, record);
        }
        self.object.remember(Some(by), (sent, now), record);
        if self.scenario.peers.is_some_and(|peers| peers.liar == Some(Liar::Mixes)) {
            self.object.is_known_since(sent);
        }
        let writer = &mut self.processes[by];
        let Timings { lease, deadline, .. } =
            self.scenario.timings_of_lease(record.lease_duration).unwrap_or(writer.timings);
        let sent = writer.clock.local_at(sent);
        writer.landed = Some(Landed { token: record.leader_transitions, sent, lease, deadline });
    }

    /// Records that a process gets other timings while it runs.
    pub(super) fn reconfigured(&mut self, now: TrueTime, process: ProcessId, timings: Timings) {
        self.log(now, Some(process), Event::Reconfigured { lease: timings.lease });
        self.is_disturbed(process);
        let watched = &mut self.processes[process];
        watched.reconfigured_at = Some(watched.clock.local_at(now));
        let before = watched.timings;
        watched.timings = Timings {
            lease: before.lease.min(timings.lease),
            deadline: before.deadline.min(timings.deadline),
            retry: before.retry.max(timings.retry),
            timeout: before.timeout.max(timings.timeout),
            follower: before.follower.max(timings.follower),
        };
    }

    /// Records that an answer with a `Retry-After` has reached the elector.
    pub(super) fn told_to_wait(&mut self, now: TrueTime, process: ProcessId, asked: Duration) {
        let watched = &mut self.processes[process];
        let until = watched.clock.local_at(now) + asked.min(watched.timings.lease);
        watched.silent_until = watched.silent_until.max(Some(until));
    }

    fn check_silence(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &self.processes[process];
        let local = watched.clock.local_at(now);
        if let Some(until) = watched.silent_until.filter(|until| local < *until) {
            let early = until.saturating_since(local);
            let what = format!("p{process} sends a request {early:?} before the store asked for it");
            self.violated(now, Property::KeepsRetryAfter, what);
        }
    }

    /// Records a record that existed before all processes.
    pub(super) fn planted(&mut self, half: Half, record: &LeaderElectionRecord) {
        for object in [&mut self.object, &mut self.halves[half as usize]] {
            object.remember(None, (TrueTime::ZERO, TrueTime::ZERO), record);
        }
    }

    /// Records a write of a candidate of another library.
    fn stranger_wrote(&mut self, now: TrueTime, record: &LeaderElectionRecord) {
        self.stats.strangers += 1;
        self.object.remember(None, (now, now), record);
    }

    pub(super) fn answered(
        &mut self,
        now: TrueTime,
        by: Option<ProcessId>,
        request: RequestId,
        error: Option<Refusal>,
        honest: bool,
    ) {
        let answer = error.map_or(Heard::Done, |error| Heard::Error(error.kind, error.retry_after));
        self.log(now, by, Event::Answered { request, answer });
        let Some(by) = by else { return };
        // A candidate polls slowly after a permanent refusal, even if the refused write has made it the leader.
        let told_to_wait =
            error.is_some_and(|error| error.retry_after.is_some() || error.kind == StoreErrorKind::Fatal);
        // A conflict, even a true one, costs a read and another write: an operator's request makes one.
        let good = honest && error.is_none_or(|error| error.kind != StoreErrorKind::Conflict);
        self.processes[by].request_answered(now, request, good, told_to_wait);
    }

    pub(super) fn deleted(&mut self, now: TrueTime) {
        self.log(now, None, Event::Deleted);
        self.object.forget();
    }

    /// Records that the answer to a read is false.
    pub(super) fn deceived(&mut self, by: ProcessId, request: RequestId) {
        self.processes[by].request_is_deceived(request);
    }

    /// Records that something that is no record has taken the record's place.
    pub(super) fn spoilt(&mut self, now: TrueTime, spoilt: Spoilt) {
        self.log(now, None, Event::Spoilt(spoilt));
        self.object.spoilt();
    }

    pub(super) fn repaired(&mut self, now: TrueTime) {
        self.log(now, None, Event::Repaired);
        self.object.repaired(now);
    }

    /// Records that an operator has written a preferred holder into the record.
    fn asked_for(&mut self, now: TrueTime, identity: String) {
        self.object.asked_for(now, &identity);
        self.log(now, None, Event::AskedFor { identity });
    }

    pub(super) fn highest_token(&self) -> u64 {
        self.object.highest_token()
    }

    fn live_but(&self, process: ProcessId) -> impl Iterator<Item = (ProcessId, &Watched)> {
        self.live.iter().filter(move |other| **other != process).map(|other| (*other, &self.processes[*other]))
    }
}
