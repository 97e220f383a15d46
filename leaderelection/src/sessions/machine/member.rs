//! The state machine: the actions of a step, in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::policy::back_off::BackOff;
use leaderelection_protocol::policy::concurrency_limit::ConcurrencyLimit;
use leaderelection_protocol::policy::ranking;
use leaderelection_protocol::policy::released::Released;
use leaderelection_protocol::policy::timer_queue::TimerQueue;
use leaderelection_protocol::session::{Bounds, LockTable};

use super::effect::{Effect, Fact};
use super::hand_over::{Handoff, Leaving, RebalanceScan};
use super::input::{Input, SessionEntropy};
use super::listing::Listing;
use super::local_session::LocalSession;
use super::lock::{Job, Lock, Phase};
use super::peer::Peers;
use super::rules::SessionConfig;
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::{self, Term};
use crate::lock::record::LeaderElectionRecord;
use crate::store::Version;
use crate::term::RunOutcome;

/// A process that leads locks through sessions: its own session, its knowledge of other sessions, and its locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    pub(super) rules: Arc<SessionConfig>,
    pub(super) identity: Arc<str>,
    pub(super) identity_hash: u64,
    pub(super) own: Option<LocalSession>,
    /// The earlier sessions of this member whose objects may still look alive.
    pub(super) past: Vec<SessionId>,
    pub(super) peers: Peers,
    pub(super) locks: Vec<Lock>,
    /// What the rules know about the locks.
    pub(super) table: LockTable<LeaderElectionRecord>,
    /// The numbers of removed locks, for the next locks.
    pub(super) vacant: BTreeSet<LockId>,
    /// The next attempt to open a session; `None` if none is planned. Requests for the local session do not wait until
    /// fewer others are in flight.
    pub(super) open_at: Option<LocalInstant>,
    /// How many creations in a row failed to open a session, and when the next one may be sent.
    pub(super) open_backoff: BackOff,
    pub(super) open_after: LocalInstant,
    pub(super) housekeeping: TimerQueue<Housekeeping>,
    pub(super) due_locks: TimerQueue<u32>,
    /// The deadlines of terms that end before their session: first for the end of the work, then for the release.
    pub(super) ending_deadlines: TimerQueue<u32>,
    /// Until when nothing is sent, because the store asked for a pause (`Retry-After`).
    pub(super) asked_until: LocalInstant,
    /// The number of requests about other sessions and of listings in flight.
    pub(super) housekeeping_in_flight: usize,
    pub(super) session_listing: Listing,
    /// The unreadable objects among the sessions, with their versions in listings; some stores do not list versions.
    pub(super) unreadable_objects: BTreeMap<SessionId, Option<Version>>,
    /// The sessions that the listing in flight has shown.
    pub(super) listed_sessions: BTreeSet<SessionId>,
    pub(super) lock_listing: Listing,
    /// How long the last complete listing of the locks took, if that was long.
    pub(super) listing_took: Duration,
    /// When to list the locks again after the listing in flight; `None` if the usual pause is short enough.
    pub(super) list_again: Option<LocalInstant>,
    /// When the last scan began, and how many releases messages have reported since.
    pub(super) scanned_at: LocalInstant,
    pub(super) reported_releases: u64,
    /// `true` after the first complete listing of sessions.
    pub(super) knows_sessions: bool,
    /// The locks that the local session has released.
    pub(super) released: Released,
    /// The locks that are being handed over for balance.
    pub(super) handing_over: BTreeMap<u32, Handoff>,
    /// The jobs of the candidacies that have one.
    pub(super) jobs: BTreeMap<u32, Job>,
    /// The locks whose candidacies are a single attempt.
    pub(super) attempts: BTreeSet<u32>,
    /// The session that released a lock, from the report until somebody takes the lock. The ranking leaves it out.
    pub(super) last_releaser: BTreeMap<u32, SessionId>,
    /// The search for locks to hand over, while it lasts.
    pub(super) rebalance_scan: Option<RebalanceScan>,
    /// `true` if the sessions were listed since the local one was opened.
    pub(super) has_listed_members: bool,
    /// `true` if every session was also read since then: see `learn_members`.
    pub(super) knows_members: bool,
    pub(super) concurrency: ConcurrencyLimit,
    /// The number of requests that may be in flight.
    pub(super) in_flight_limit: usize,
    /// Since when more requests about locks are due than may be in flight; `None` if the last renewal found fewer.
    pub(super) busy_since: Option<LocalInstant>,
    pub(super) begun: bool,
    pub(super) stop_asked: bool,
    pub(super) leaving: Option<Leaving>,
    pub(super) effects: VecDeque<Effect>,
}

/// An action that is not about one lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Housekeeping {
    /// Reads another session, ends it, or deletes its object.
    Peer(SessionId),
    /// Searches for new sessions.
    Sessions,
    /// Scans the locks for changes.
    Locks,
    /// Searches for locks to hand over.
    Balance,
}

impl Member {
    /// Creates a member that has no session yet: see [`Input::Begin`].
    #[must_use]
    pub fn new(rules: SessionConfig) -> Self {
        let identity: Arc<str> = rules.election.identity.as_str().into();
        // Every poll counts forever: this member polls its locks often enough anyway, and failed polls must not end a
        // term. So after a deletion, the wait of rule S5 protects a leader only if its polls succeed.
        let bounds =
            Bounds { poll_counts_for: Duration::MAX, ..Bounds::new(rules.election.limits(), rules.scan_interval) };
        Self {
            peers: Peers::new(rules.election.lease_duration),
            table: LockTable::new(rules.election.identity.clone(), bounds),
            identity_hash: ranking::hash(&identity),
            rules: Arc::new(rules),
            identity,
            own: None,
            past: Vec::new(),
            locks: Vec::new(),
            vacant: BTreeSet::new(),
            open_at: None,
            open_backoff: BackOff::default(),
            open_after: LocalInstant::default(),
            housekeeping: TimerQueue::default(),
            due_locks: TimerQueue::default(),
            ending_deadlines: TimerQueue::default(),
            asked_until: LocalInstant::default(),
            housekeeping_in_flight: 0,
            session_listing: Listing::default(),
            unreadable_objects: BTreeMap::new(),
            listed_sessions: BTreeSet::new(),
            lock_listing: Listing::default(),
            listing_took: Duration::ZERO,
            list_again: None,
            scanned_at: LocalInstant::default(),
            reported_releases: 0,
            knows_sessions: false,
            released: Released::default(),
            handing_over: BTreeMap::new(),
            jobs: BTreeMap::new(),
            attempts: BTreeSet::new(),
            last_releaser: BTreeMap::new(),
            rebalance_scan: None,
            has_listed_members: false,
            knows_members: false,
            concurrency: ConcurrencyLimit::default(),
            in_flight_limit: 0,
            busy_since: None,
            begun: false,
            stop_asked: false,
            leaving: None,
            effects: VecDeque::new(),
        }
    }

    /// Adds a lock, for which [`Input::Compete`] then competes. Lock names must be unique. The lock may get the number of a removed lock.
    pub fn add_lock(&mut self, name: &str) -> LockId {
        let lock = Lock::new(ranking::hash(name));
        if let Some(id) = self.vacant.pop_first() {
            self.locks[id.0 as usize] = lock;
            return id;
        }
        if self.locks.len() == self.locks.capacity() {
            // A vector that grows by itself would double its capacity, which is much for ten thousand locks.
            self.locks.reserve_exact(self.locks.len() / 8 + 8);
        }
        self.locks.push(lock);
        let id = LockId::of(self.locks.len() - 1);
        self.table.add(id.0);
        id
    }

    /// Removes a lock without a candidacy. Returns `false` if that has to wait: the lock may name the member's session,
    /// its work runs, or a request is in flight.
    pub fn remove_lock(&mut self, id: LockId) -> bool {
        let is_idle = |lock: &Lock| lock.phase == Phase::Idle && !lock.in_doubt;
        let mut is_removed = self.lock(id).is_some_and(is_idle) && !self.vacant.contains(&id);
        if is_removed {
            self.change_lock(id, |member| {
                let own = member.own.as_ref().map(|own| own.election.lease());
                is_removed = member.table.forget(id.0, own).is_ok();
            });
        }
        if is_removed {
            self.due_locks.cancel(&id.0);
            self.handing_over.remove(&id.0);
            self.last_releaser.remove(&id.0);
            self.vacant.insert(id);
        }
        is_removed
    }

    /// Takes one step. Before the driver waits for anything, it has to carry out all effects, which
    /// [`next`](Self::next) returns one by one.
    ///
    /// `now` never decreases from call to call.
    pub fn handle(&mut self, now: LocalInstant, input: Input, draw: &mut impl SessionEntropy) {
        self.update_in_flight_limit(now);
        let fails_to_open = self.fails_to_open(&input);
        if let Input::Own { answer, .. } = &input {
            // A `Retry-After` counts even if the session that sent the request is over.
            self.apply_retry_after(now, answer.failure());
        }
        let (of_own, input) = match input {
            Input::Own { session, answer } if self.own.as_ref().is_some_and(|own| own.id == session) => {
                (election::Input::Answer(answer), Input::Tick)
            }
            Input::Expired => (election::Input::Expired, Input::Tick),
            input => (election::Input::Tick, input),
        };
        // This comes first: a late input must not prolong the session (rules S1 and S2).
        self.step_own(now, of_own, draw);
        match input {
            Input::Begin => self.begin(now),
            Input::Tick | Input::Expired | Input::Own { .. } => {}
            Input::Stop => self.stop(now, draw),
            Input::Peer { session, answer } => self.on_peer_answer(now, &session, answer, draw.jitter()),
            Input::Deleted { session, result } => self.on_deleted(now, &session, result),
            Input::Sessions(listing) => self.on_sessions(now, listing, draw.jitter()),
            Input::Lock { lock, answer } => self.on_lock_answer(now, lock, answer, draw.jitter()),
            Input::Locks(listing) => self.on_locks(now, listing, draw.jitter()),
            Input::Message { session, message } => self.on_message(now, &session, message),
            Input::Compete { lock, stand_back, ends_with_work, job, one_attempt } => {
                self.compete(now, lock, stand_back, ends_with_work, job, one_attempt);
            }
            Input::Command { lock, command } => self.on_command(now, lock, command),
            Input::WorkEnded { lock, end } => self.on_work_ended(now, lock, end),
        }
        // This comes after the input: if the input is the end of late work, there is nothing to drop.
        self.drop_late_work(now);
        self.leave(now, draw);
        // If the last work has ended in this step, the session can be released now.
        self.follow_own(now, draw);
        self.send(now, draw);
        self.end_attempts(now, fails_to_open);
    }

    /// Returns the next effect, oldest first.
    #[allow(clippy::should_implement_trait, reason = "a member is not an iterator: a later step adds effects")]
    pub fn next(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The moment for the next [`Input::Tick`]; `None` if only another input can change the state.
    #[must_use]
    pub fn wake_at(&self) -> Option<LocalInstant> {
        let own = self.own.as_ref().and_then(|own| own.election.wake_at());
        let requests = self.housekeeping.next_at().into_iter().chain(self.due_locks.next_at()).min();
        // If too many requests are in flight, the next one waits for an answer. Requests of the local session never wait.
        let requests = requests.filter(|_| self.begun && self.may_send_more()).into_iter().chain(self.open_at).min();
        let requests = requests.map(|at| at.max(self.asked_until));
        let leaves_at = self.leaving.as_ref().map(|leaving| leaving.until);
        own.into_iter().chain(requests).chain(self.ending_deadlines.next_at()).chain(leaves_at).min()
    }

    /// The term of a lock, if it is valid at `now`. Each call compares `now` with the session's deadline (rule S2).
    #[must_use]
    pub fn leading(&self, now: LocalInstant, lock: LockId) -> Option<Term> {
        let own = &self.own.as_ref()?.election;
        let term = self.table.term(now, lock.0, own.lease())?;
        Some(Term { fencing_token: term.token(), ..own.leading(now)? })
    }

    /// The member's own session, and `true` if it is open at `now`.
    #[must_use]
    pub fn session(&self, now: LocalInstant) -> Option<(&SessionId, bool)> {
        self.own.as_ref().map(|own| (&own.id, own.election.leading(now).is_some()))
    }

    /// The number of sessions that are known to be alive, including the member's own.
    #[must_use]
    pub fn sessions(&self) -> usize {
        let own = usize::from(self.window().is_some());
        own + self.peers.iter().filter(|(_, session, peer)| peer.is_member(session)).count()
    }

    pub(super) fn lock(&self, id: LockId) -> Option<&Lock> {
        self.locks.get(id.0 as usize)
    }

    pub(super) fn lock_mut(&mut self, id: LockId) -> Option<&mut Lock> {
        self.locks.get_mut(id.0 as usize)
    }

    /// The window of the local session, if it is open.
    pub(super) fn window(&self) -> Option<Term> {
        self.own.as_ref().and_then(|own| own.term)
    }

    fn begin(&mut self, now: LocalInstant) {
        self.begun = true;
        self.housekeeping.set(Housekeeping::Sessions, now);
        self.open_at = Some(now);
    }

    /// Ends every candidacy that is left, and the member.
    pub(super) fn end(&mut self, now: LocalInstant) {
        self.housekeeping.clear();
        self.due_locks.clear();
        (self.begun, self.open_at) = (false, None);
        for index in 0..self.locks.len() {
            if self.locks[index].phase != Phase::Idle {
                self.finish(now, LockId::of(index));
            }
        }
        self.effects.push_back(Effect::Ended);
    }

    /// Ends the candidacy of a lock. If the term was over before its work could begin, the elector competes again
    /// instead (rule 12).
    pub(super) fn finish(&mut self, now: LocalInstant, id: LockId) {
        // After the release for a hand-over, this member still waits until the other one has taken the lock.
        self.handing_over.retain(|lock, handoff| *lock != id.0 || handoff.released.is_some());
        self.ending_deadlines.cancel(&id.0);
        let stops = self.stop_asked;
        let Some(lock) = self.lock_mut(id) else { return };
        let (stops, work) = (stops || lock.stop_asked, lock.work_end.take());
        let outcome = match std::mem::replace(&mut lock.phase, Phase::Idle) {
            Phase::Ending(ending) => ending.outcome(work, stops),
            _ => Some(RunOutcome::NeverLed),
        };
        let Some(outcome) = outcome else {
            lock.phase = Phase::Competing;
            return self.begin_waits(now, id);
        };
        let outcome = self.outcome_of_job(id, outcome, work);
        self.jobs.remove(&id.0);
        self.attempts.remove(&id.0);
        self.order(id, election::Effect::Finished(outcome));
        self.plan(now, id);
    }

    /// Sends the requests that are due, as many as may be in flight.
    fn send(&mut self, now: LocalInstant, draw: &mut impl SessionEntropy) {
        if !self.begun || now < self.asked_until {
            return;
        }
        // No lock can be led without a session, so this comes first.
        if self.open_at.take_if(|at| *at <= now).is_some() {
            self.open(now, draw);
        }
        while self.may_send_more() {
            // Housekeeping comes before locks: ending one session may free thousands of them.
            if let Some(task) = self.housekeeping.pop_due(now) {
                self.keep_house(now, task, draw);
            } else if let Some(lock) = self.due_locks.pop_due(now) {
                self.send_for(now, LockId(lock), draw);
            } else {
                break;
            }
        }
    }

    fn keep_house(&mut self, now: LocalInstant, task: Housekeeping, draw: &mut impl SessionEntropy) {
        match task {
            Housekeeping::Peer(session) => self.attend_to(now, &session, draw),
            Housekeeping::Sessions => self.list_sessions(now),
            Housekeeping::Locks => self.poll_locks(now),
            Housekeeping::Balance => self.balance(now),
        }
    }

    /// Emits an effect about one lock.
    pub(super) fn order(&mut self, lock: LockId, effect: election::Effect) {
        self.effects.push_back(Effect::Lock { lock, effect });
    }

    pub(super) fn emit(&mut self, fact: Fact) {
        self.effects.push_back(Effect::Fact(fact));
    }

    /// Announces the leader of a lock, if it has changed.
    pub(super) fn announce(&mut self, id: LockId, leader: Option<Arc<str>>) {
        let Some(lock) = self.lock_mut(id) else { return };
        if lock.announced != leader {
            lock.announced.clone_from(&leader);
            let leader = leader.map(|leader| leader.to_string());
            self.order(id, election::Effect::Fact(election::Fact::LeaderChanged { leader }));
        }
    }
}
