//! One candidate: the real state machine, and the request it waits for.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{
    Answer, DuplicateIdentityDetector, Election, Fact, Purpose, Request, Term, TermEndReason, Write,
};
use leaderelection::implement::Version;

use super::promise::Violation;
use super::setup::{MOST_DOUBLINGS, Setup};
use crate::kit::{Cell, Seat, Work};

/// The answer to a request.
#[derive(Clone, Debug, Hash)]
pub(super) struct Answered {
    /// The answer of the store.
    pub(super) answer: Answer,
    /// `true` if the request was a write, and the store applied that write.
    pub(super) applied: bool,
    /// `true` if the request was a read of a record that another process wrote under the reader's identity.
    pub(super) duplicate: bool,
}

/// A candidate.
#[derive(Clone, Debug, Hash)]
pub(super) struct Node {
    pub(super) election: Election,
    pub(super) identity: &'static str,
    pub(super) seat: Seat,
    /// `true` while the node has the longer timings.
    pub(super) is_longer: bool,
    /// The end of the lease of the last term, by the machine's orders to the driver; `None` without work.
    pub(super) lease_end: Option<LocalInstant>,
    /// `true` after the node was asked to stop: this candidacy must not compete for another term.
    pub(super) stop_asked: bool,
    /// `true` if the candidacy is over, and the next candidacy waits for abandoned work.
    pub(super) waits: bool,
    /// `true` if the candidacy is over because the job is done. The next candidacy begins at any later moment.
    pub(super) rests: bool,
    /// The token of the candidacy's last term, in a setup with a job.
    pub(super) term: Option<u64>,
    /// `true` after the machine gave up the work or the release of its lease, until the end of this step.
    pub(super) gave_up: bool,
    /// The watch over the identity, in a setup in which processes share an identity.
    pub(super) duplicate_detector: Option<DuplicateIdentityDetector>,
    /// The time for which the node has competed without a failed read, in a setup in which a node takes the lease back.
    pub(super) well: Duration,
    /// The time for which the store has asked the node to send nothing.
    pub(super) silent: Duration,
    /// `true` if the node has sent a request within that time, and has had no answer since without an error.
    pub(super) has_insisted: bool,
    /// The version that the node read last, and the time for which that version blocks the node from a term.
    pub(super) blocked: Option<(Version, Duration)>,
}

impl Node {
    /// Creates a candidate that does not compete yet.
    pub(super) fn new(setup: &Setup, index: usize) -> Self {
        let identity = setup.nodes[index].0;
        let is_shared = setup.nodes.iter().filter(|(other, _)| *other == identity).count() > 1 || setup.crashes;
        Self {
            election: Election::new(setup.rules(index, false)),
            identity,
            seat: Seat::default(),
            is_longer: false,
            lease_end: None,
            stop_asked: false,
            waits: false,
            rests: false,
            term: None,
            gave_up: false,
            duplicate_detector: is_shared.then(|| DuplicateIdentityDetector::new(identity)),
            well: Duration::ZERO,
            silent: Duration::ZERO,
            has_insisted: false,
            blocked: None,
        }
    }

    /// Returns the token of the term that this node leads.
    pub(super) fn leading(&self, setup: &Setup) -> Option<u64> {
        self.election.leading(setup.now()).map(|term| term.fencing_token)
    }

    /// Remembers the version in an answer, if a property needs this version: every memory multiplies the states.
    pub(super) fn see(&mut self, setup: &Setup, index: usize, answer: &Answer) {
        // The wait for a rank begins when the machine gets to know the version, which it may have written itself.
        if (setup.deletion || setup.has_ranks() && !self.knows(answer))
            && let Answer::Read(Ok(Some(found))) = answer
            && self.blocked.as_ref().is_none_or(|(version, _)| *version != found.version)
        {
            let free = found.record.is_released() || found.record.holder_identity == self.identity;
            let lease = if free { Duration::ZERO } else { found.record.lease_duration };
            let rank = Duration::from_nanos(setup.retry) * u32::from(setup.rank_of(index));
            self.blocked = Some((found.version.clone(), lease + rank));
        }
    }

    /// Returns `true` if a read shows the version that the node has seen before.
    pub(super) fn knows(&self, answer: &Answer) -> bool {
        match (answer, self.election.observed()) {
            (Answer::Read(Ok(Some(found))), Some((_, version))) => found.version == *version,
            _ => false,
        }
    }

    /// Returns the breach if a node that has just read, and follows without a request, would read later than a retry period from now
    /// (rule 20).
    pub(super) fn is_slow(&self, setup: &Setup, waits: bool) -> Option<Violation> {
        let follows = setup.follower.is_some() && self.election.listens() && !waits;
        (follows && self.sleeps(setup, 1)).then_some(Violation::Sloth)
    }

    /// Returns the breach if a node that waits for no answer would read later than a silent leader allows (rule 16).
    fn trusts_in_silence(&self, setup: &Setup, waits: bool) -> Option<Violation> {
        let follows = setup.messages > 0 && self.election.listens() && !waits;
        (follows && self.sleeps(setup, 2)).then_some(Violation::Trust)
    }

    /// Returns `true` if nothing happens before the end of so many retry periods.
    fn sleeps(&self, setup: &Setup, retry_periods: u64) -> bool {
        let latest = setup.now() + Duration::from_nanos(retry_periods * setup.retry);
        self.election.wake_at().is_none_or(|wake_at| wake_at > latest)
    }

    /// Returns the breach if a node whose work has just failed leads, or competes although it has not released the lease
    /// (rule 21).
    pub(super) fn is_futile(&self, setup: &Setup, releases: bool) -> Option<Violation> {
        let is_futile = setup.fails && (self.seat.leads || !releases && self.election.listens());
        is_futile.then_some(Violation::Futility)
    }

    /// The end of the lease of the last write that is known to be committed.
    pub(super) fn lease_until(&self, term: Term) -> Option<LocalInstant> {
        let (record, _) = self.election.observed()?;
        Some(term.sent_at + record.lease_duration)
    }

    /// Returns the promise that sending `request` now would break.
    pub(super) fn may_send(&self, setup: &Setup, index: usize, request: &Request) -> Option<Violation> {
        let blocked = self.blocked.as_ref().is_some_and(|(_, lease)| !lease.is_zero());
        match request {
            _ if !self.silent.is_zero() && !self.may_insist(setup) => Some(Violation::Hurry),
            Request::Write(Write { purpose: Purpose::Acquire, .. }) if blocked && self.pushes(setup, index) => {
                Some(Violation::Pushing)
            }
            Request::Write(Write { purpose: Purpose::Ask, .. }) if self.is_insolent(setup, index) => {
                Some(Violation::Insolence)
            }
            Request::Write(write) if self.forgets(write) => Some(Violation::Oblivion),
            Request::Write(Write { expected: None, .. }) if setup.deletion && blocked => Some(Violation::Haste),
            Request::Write(Write { purpose: Purpose::Acquire, .. }) if self.stop_asked => Some(Violation::Disobedience),
            Request::Write(Write { record, .. }) if record.is_released() && self.seat.works() => {
                Some(Violation::EarlyRelease)
            }
            _ => None,
        }
    }

    /// Returns `true` if the node may send a request although the store has asked it to wait: its term is about to end, and
    /// it has not tried that yet (rule 6).
    fn may_insist(&self, setup: &Setup) -> bool {
        let last_chance = |term: Term| term.valid_until - Duration::from_nanos(setup.timeout);
        !self.has_insisted && self.election.leading(setup.now()).is_some_and(|term| setup.now() >= last_chance(term))
    }

    /// Returns `true` if a node that waits for no answer would let its term end because the store has asked it to wait,
    /// although it may ask once more.
    fn resigns(&self, setup: &Setup, waits: bool) -> bool {
        let is_silent = !waits && !self.silent.is_zero() && !self.has_insisted;
        let would_end = |term: Term| self.election.wake_at().is_none_or(|wake_at| wake_at >= term.valid_until);
        is_silent && self.election.leading(setup.now()).is_some_and(would_end)
    }

    /// Returns `true` if the node may not ask for the lease that it has seen (rule 24).
    fn is_insolent(&self, setup: &Setup, index: usize) -> bool {
        let Some((record, _)) = self.election.observed() else { return true };
        let delay = setup.lease << record.failbacks.min(MOST_DOUBLINGS);
        let is_worse = record.leader_rank() > setup.rank_of(index);
        !is_worse || record.preferred_holder.is_some() || self.well < Duration::from_nanos(delay)
    }

    /// Returns `true` if the write loses the count of requests, or does not count itself. A leader may forget the count.
    fn forgets(&self, write: &Write) -> bool {
        let count = self.election.observed().map_or(0, |(record, _)| record.failbacks);
        let expected = match write.purpose {
            Purpose::Ask => (count + 1).min(MOST_DOUBLINGS),
            Purpose::Renew => return ![0, count].contains(&write.record.failbacks),
            _ => count,
        };
        write.record.failbacks != expected
    }

    /// Returns `true` if the node has to leave a free lease to better ranks (rule 23).
    fn pushes(&self, setup: &Setup, index: usize) -> bool {
        let observed = self.election.observed();
        let is_named = observed.is_some_and(|(record, _)| record.preferred_holder.as_deref() == Some(self.identity));
        setup.has_ranks() && setup.rank_of(index) > 0 && !is_named
    }

    /// Checks an answer for a duplicate identity, and returns the promise that a report breaks. `clash` is `true` if the
    /// answer shows a duplicate identity.
    pub(super) fn watch(&mut self, duplicate: bool) -> Option<Violation> {
        let observed = self.election.observed();
        // A read that does not show a write of another process shows a write of this process.
        let reported = self.duplicate_detector.as_mut().is_some_and(|watch| watch.saw(observed, !duplicate));
        (reported && !duplicate).then_some(Violation::FalseDuplicate)
    }

    /// Returns the promise that the reported `fact` breaks.
    pub(super) fn on_message(&mut self, fact: &Fact) -> Option<Violation> {
        match fact {
            Fact::LeaderChanged { leader } if self.seat.leads && leader.as_deref() != Some(self.identity) => {
                Some(Violation::Order)
            }
            Fact::ReleaseGivenUp => {
                self.gave_up = true;
                None
            }
            _ => None,
        }
    }

    /// Returns the promise that the end of a term for this reason breaks.
    pub(super) fn stops(
        &self,
        token: u64,
        reason: &TermEndReason,
        cell: Option<&Cell>,
        index: usize,
    ) -> Option<Violation> {
        let deposed =
            matches!(reason, TermEndReason::TakenOver { .. } | TermEndReason::Emptied | TermEndReason::Deleted);
        let still_ours = cell.is_some_and(|cell| cell.is_of(index, token));
        (deposed && still_ours).then_some(Violation::SpuriousLoss)
    }

    /// Compares the term that is valid now with the terms that have ended.
    pub(super) fn check_terms(&mut self, setup: &Setup) -> Option<Violation> {
        let valid = self.leading(setup);
        self.seat.revives(valid).then_some(Violation::Revival)
    }

    /// Returns the promise that is broken after a step of the machine: work whose lease is over was not dropped, a leader
    /// gives its term up to a store that has asked it to wait, or a candidate trusts in a peer that is silent.
    pub(super) fn after_step(&self, setup: &Setup, waits: bool) -> Option<Violation> {
        let overruns = self.seat.work == Work::Running && self.lease_end.is_some_and(|end| setup.now() >= end);
        let resigns = setup.waits && self.resigns(setup, waits);
        let broken = overruns.then_some(Violation::Overrun).or(resigns.then_some(Violation::Resignation));
        broken.or_else(|| self.trusts_in_silence(setup, waits))
    }
}
