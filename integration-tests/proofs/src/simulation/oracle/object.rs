//! The checks of applied writes: no erasure, growing tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::lock::JobId;

use super::process::Watched;
use super::property::Property;
use crate::simulation::clock::{Rate, TrueTime};
use crate::simulation::names::{ProcessId, WriteNumber};

/// The error of a rate that is applied in floating point.
const GRAIN: Duration = Duration::from_micros(1);

/// The promise that a write breaks, if it breaks one, and the breach in words.
pub(super) type Verdict = Result<(), (Property, String)>;

/// The part of the object's history that the checks need.
#[derive(Debug, Default)]
pub(super) struct ObjectHistory {
    newest: Option<Write>,
    highest_token: Option<u64>,
    /// The terms that a write has begun.
    begun: BTreeSet<(ProcessId, u64)>,
    /// The writer of each write; `None` if no process has written it. Adding a preferred holder does not change the
    /// writer.
    writers: Vec<Option<ProcessId>>,
    /// Something that is no record has taken the place of the newest write.
    is_spoilt: bool,
    repaired_at: Option<TrueTime>,
}

#[derive(Debug)]
struct Write {
    /// The process that wrote the record; `None` for an operator or a stranger.
    by: Option<ProcessId>,
    record: LeaderElectionRecord,
    /// The first request for each preferred holder. Only the first request on a write begins the grace of the named candidate, and
    /// later requests do not prolong it.
    asked: BTreeMap<String, TrueTime>,
    applied: TrueTime,
    /// The moment from which others may count the lease: a liar may have named the write before it was applied, and the first
    /// half of a write comes before the second.
    counts_from: TrueTime,
    /// The time at which the first write of the term was sent.
    began: TrueTime,
    /// The process that was the first to take one of the two locks since, or to give it back.
    broken_by: Option<ProcessId>,
    /// The lease that another lock still shows after a release that has reached one lock only, and since when it counts.
    shown_elsewhere: Option<(TrueTime, Duration)>,
}

impl Write {
    fn token(&self) -> u64 {
        self.record.leader_transitions
    }

    fn holder(&self) -> &str {
        &self.record.holder_identity
    }

    fn names(&self, identity: &str) -> bool {
        self.record.preferred_holder.as_deref() == Some(identity)
    }

    /// Returns `true` if the write is one of this term.
    fn is_of(&self, by: ProcessId, token: u64) -> bool {
        self.by == Some(by) && self.token() == token
    }
}

/// A write of a candidate, and the moment at which it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    pub(super) writer: &'a Watched,
    pub(super) by: ProcessId,
    pub(super) sent: TrueTime,
    pub(super) record: &'a LeaderElectionRecord,
}

impl ObjectHistory {
    /// Checks that a write may replace the current record. `fastest` is the rate of the fastest
    /// clock there is, if the writer may count by another clock than its own.
    pub(super) fn check(
        &self,
        Attempt { writer, by, sent, record }: Attempt<'_>,
        (reclaims_own_identity, rank): (bool, u8),
        fastest: Option<Rate>,
    ) -> Verdict {
        let token = record.leader_transitions;
        if record.is_released() || self.has_begun(by, token) {
            return self.check_own(by, record);
        }
        // The first token of a lock is 1. Only another library, which writes no id, creates a record with 0.
        let highest = self.highest_token.or(record.write_id.is_some().then_some(0));
        if let Some(highest) = highest.filter(|highest| token <= *highest) {
            return Err((Property::Tokens, format!("begins a term with token {token}, after {highest}")));
        }
        let Some(newest) = self.last_before(by) else { return Ok(()) };
        let since = |time| waited(writer, time, sent);
        let rank = writer.timings.retry * u32::from(rank);
        // Whoever has released one lock alone counts from the end of its own term.
        let is_reclaimed = reclaims_own_identity && newest.holder() == writer.identity;
        let is_exempt =
            newest.names(&writer.identity) || newest.broken_by.is_some() && newest.by == Some(by) || is_reclaimed;
        // Whoever has outwaited the leader before it released one lock waits no second time.
        let has_outwaited = newest.shown_elsewhere.is_some_and(|(from, lease)| since(from) >= lease + rank);
        if !is_exempt && !has_outwaited && since(newest.counts_from) < rank {
            let waited = since(newest.counts_from);
            return Err((Property::BetterRanksFirst, format!("takes a free lease after {waited:?}, and not {rank:?}")));
        }
        if newest.record.is_released() || is_reclaimed {
            return Ok(());
        }
        if newest.by == Some(by) {
            // The writer itself led by the current record, and has stopped.
            let what = || (Property::NoErasure, format!("begins a term with token {token} while it works on the last"));
            // A part of an earlier try may be committed late, beside the term of the next one.
            let is_late = writer.seen.committed.is_some_and(|committed| committed.token > token);
            return if writer.seen.works == 0 || is_late { Ok(()) } else { Err(what()) };
        }
        // The store's clock, by which a candidate may count, runs as fast as any candidate's.
        let waited = fastest.map_or_else(
            || since(newest.counts_from),
            |rate| (sent - newest.counts_from).mul_f64(rate as f64 / 1e6) + GRAIN,
        );
        let lease = newest.record.lease_duration;
        if waited >= lease && waited < lease + rank && !is_exempt {
            let what = format!("takes a lease of {lease:?} after {waited:?}, and not {rank:?} later");
            return Err((Property::BetterRanksFirst, what));
        }
        if waited < lease {
            let (by, theirs) = (newest.by, newest.token());
            let what = format!(
                "token {token} replaces the live lease of {by:?} with token {theirs}, {waited:?} by a clock after \
                 others could know of it, for {lease:?}"
            );
            return Err((Property::NoErasure, what));
        }
        Ok(())
    }

    /// Checks that a term leaves a lease duration of its candidate to whoever the record names.
    pub(super) fn check_preferred_grace(&self, Attempt { writer, by, sent, record }: Attempt<'_>) -> Verdict {
        let begins = !record.is_released() && !self.has_begun(by, record.leader_transitions);
        if let Some(newest) = self.last_before(by).filter(|_| begins)
            && let Some(preferred) = newest.record.preferred_holder.as_ref().filter(|preferred| **preferred != writer.identity)
            // A leader whose release is not committed lets its own candidate go first from then on. An operator's
            // request replaces that, and begins no second wait.
            && let own = writer.seen.gave_way.filter(|(token, _)| *token == newest.token()).map(|(_, at)| at)
            && let asked = newest.asked.values().min().copied().unwrap_or(newest.applied)
            && let waited = waited(writer, own.map_or(asked, |own| own.min(asked)), sent)
            && waited < writer.timings.lease
        {
            let what = format!("begins a term {waited:?} after {preferred} was to lead next");
            return Err((Property::PreferredFirst, what));
        }
        Ok(())
    }

    /// Checks a renewal or a release.
    fn check_own(&self, by: ProcessId, record: &LeaderElectionRecord) -> Verdict {
        let token = record.leader_transitions;
        let what = if record.is_released() { "release" } else { "renewal" };
        match &self.newest {
            None => Err((Property::NoErasure, format!("a {what} where there is no object"))),
            Some(newest) if newest.by != Some(by) => {
                Err((Property::NoErasure, format!("a {what} replaces a write of {:?}", newest.by)))
            }
            Some(newest) if newest.token() != token => {
                let theirs = newest.token();
                Err((Property::Tokens, format!("a {what} with token {token} of the term with token {theirs}")))
            }
            Some(newest) if newest.record.is_released() => {
                Err((Property::NoRevival, format!("a {what} of the term with token {token}, which was released")))
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn remember(
        &mut self,
        by: Option<ProcessId>,
        (sent, applied): (TrueTime, TrueTime),
        record: &LeaderElectionRecord,
    ) {
        let token = record.leader_transitions;
        let before = self.newest.as_ref().filter(|newest| newest.token() == token && newest.by == by);
        let began = before.map_or(sent, |newest| newest.began);
        self.highest_token = self.highest_token.max(Some(token));
        self.is_spoilt = false;
        self.begun.extend(by.map(|by| (by, token)));
        self.writers.push(by);
        let asked = record.preferred_holder.iter().map(|preferred| (preferred.clone(), applied)).collect();
        let record = record.clone();
        let (counts_from, broken_by, shown_elsewhere) = (applied, None, None);
        self.newest = Some(Write { by, record, asked, applied, counts_from, began, broken_by, shown_elsewhere });
    }

    /// The newest lease, and the moment from which others may count it.
    pub(super) fn lease(&self) -> Option<(TrueTime, Duration)> {
        self.newest.as_ref().map(|newest| (newest.counts_from, newest.record.lease_duration))
    }

    /// Records that another lock than that of the newest write still shows this lease.
    pub(super) fn is_shown_elsewhere(&mut self, lease: Option<(TrueTime, Duration)>) {
        if let Some(newest) = &mut self.newest {
            newest.shown_elsewhere = lease;
        }
    }

    /// Records that a process with a term of this token, or a later one, has taken one of the two locks or given it back, and
    /// leads nothing yet.
    pub(super) fn is_broken_by(&mut self, process: ProcessId, token: u64) {
        if let Some(newest) = self.newest.as_mut().filter(|newest| newest.token() < token) {
            // Whoever was named for the next term has left it to others by then, so nobody else waits for that candidate. A
            // holder that gives its own part back has too few parts for anybody to wait.
            if newest.broken_by.is_none() || newest.by == Some(process) {
                newest.broken_by = Some(process);
            }
        }
    }

    /// The newest write as the term of a process replaces it; `None` if another has taken a part of it since.
    fn last_before(&self, by: ProcessId) -> Option<&Write> {
        self.newest.as_ref().filter(|newest| newest.broken_by.is_none_or(|breaker| breaker == by))
    }

    /// Returns `true` if the newest write is the release of this term.
    pub(super) fn was_released_by(&self, by: ProcessId, token: u64) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.is_of(by, token) && newest.record.is_released())
    }

    /// The moment of the newest write.
    pub(super) fn applied(&self) -> Option<TrueTime> {
        self.newest.as_ref().map(|newest| newest.applied)
    }

    /// The token of the newest write.
    pub(super) fn token(&self) -> Option<u64> {
        self.newest.as_ref().map(Write::token)
    }

    /// Returns `true` if the newest write is a release that names no next leader.
    pub(super) fn is_released_for_all(&self) -> bool {
        let newest = self.newest.as_ref().map(|newest| &newest.record);
        newest.is_some_and(|record| record.is_released() && record.preferred_holder.is_none())
    }

    /// Returns `true` if this is the newest write.
    pub(super) fn shows(&self, record: &LeaderElectionRecord) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.record.write_id == record.write_id)
    }

    /// Returns `true` if the record is the newest write with a request to hand over.
    pub(super) fn is_request(&self, record: &LeaderElectionRecord) -> bool {
        self.newest.as_ref().is_some_and(|newest| {
            newest.record.write_id.is_some()
                && newest.record.write_id == record.write_id
                && newest.token() == record.leader_transitions
                && newest.holder() == record.holder_identity
        })
    }

    /// The requests of better candidates that the object counts, and the start of the term.
    pub(super) fn failback_requests(&self) -> Option<(u8, TrueTime)> {
        self.newest.as_ref().map(|newest| (newest.record.failbacks, newest.began))
    }

    /// Takes the count of a request. Returns the next leader that was named before, and the writer of the record.
    pub(super) fn count_request(&mut self, record: &LeaderElectionRecord) -> (Option<String>, Option<ProcessId>) {
        let Some(newest) = &mut self.newest else { return (None, None) };
        newest.record.failbacks = record.failbacks;
        (newest.record.preferred_holder.clone(), newest.by)
    }

    /// The writer of the record.
    pub(super) fn leader(&self) -> Option<ProcessId> {
        self.newest.as_ref().filter(|newest| !newest.record.is_released() && !self.is_spoilt)?.by
    }

    /// Records that others may know of the newest write since then.
    pub(super) fn is_known_since(&mut self, since: TrueTime) {
        if let Some(newest) = &mut self.newest {
            newest.counts_from = since;
        }
    }

    /// Records that a preferred holder was written into the current record.
    pub(super) fn asked_for(&mut self, now: TrueTime, identity: &str) {
        if let Some(newest) = &mut self.newest {
            newest.record.preferred_holder = Some(identity.to_owned());
            newest.asked.entry(identity.to_owned()).or_insert(now);
            self.writers.push(newest.by);
        }
    }

    /// Returns `true` if the object asks for another leader than its holder, now or before the last request: a
    /// read may be in progress.
    pub(super) fn asks_for_another(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.asked.keys().any(|preferred| preferred != newest.holder()))
    }

    pub(super) fn spoilt(&mut self) {
        self.is_spoilt = true;
        // What is still readable is what the writer of the record wrote.
        self.writers.push(self.newest.as_ref().and_then(|newest| newest.by));
    }

    pub(super) fn repaired(&mut self, now: TrueTime) {
        self.is_spoilt = false;
        self.repaired_at = Some(now);
        self.writers.push(self.newest.as_ref().and_then(|newest| newest.by));
    }

    /// Returns `true` if the record was spoilt at `since` or later.
    pub(super) fn was_spoilt_since(&self, since: TrueTime) -> bool {
        self.is_spoilt || self.repaired_at.is_some_and(|at| at >= since)
    }

    /// Returns `true` if the object names this candidate as the next leader.
    pub(super) fn prefers(&self, identity: &str) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.names(identity))
    }

    pub(super) fn forget(&mut self) {
        self.newest = None;
    }

    /// The jobs that the record says are done, newest first.
    pub(super) fn jobs(&self) -> Vec<String> {
        self.newest.as_ref().map(|newest| newest.record.completed_jobs()).unwrap_or_default()
    }

    pub(super) fn is_done(&self, job: &JobId) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.record.is_done(job))
    }

    /// Returns the token and the holder of the newest write.
    pub(super) fn term(&self) -> Option<(u64, String)> {
        self.newest.as_ref().map(|newest| (newest.token(), newest.holder().to_owned()))
    }

    pub(super) fn highest_token(&self) -> u64 {
        self.highest_token.unwrap_or_default()
    }

    pub(super) fn writer(&self, write: WriteNumber) -> Option<ProcessId> {
        *self.writers.get(usize::try_from(write).ok()?.checked_sub(1)?)?
    }

    /// Records a term that a process without a bound on its clock begins, although its write was never the newest.
    pub(super) fn begins_late(&mut self, by: ProcessId, token: u64) {
        self.begun.insert((by, token));
    }

    pub(super) fn has_begun(&self, by: ProcessId, token: u64) -> bool {
        self.begun.contains(&(by, token))
    }

    /// Returns `true` if the object is still the record of this term.
    pub(super) fn is_held_by(&self, by: ProcessId, token: u64) -> bool {
        self.is_last_led_by(by, token) && self.newest.as_ref().is_some_and(|newest| newest.broken_by.is_none())
    }

    /// Returns `true` if nobody has led since this term, which has not been released.
    pub(super) fn is_last_led_by(&self, by: ProcessId, token: u64) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.is_of(by, token) && !newest.record.is_released())
    }
}

/// The time from a moment to the sending of a write, by the clock of its writer.
fn waited(writer: &Watched, from: TrueTime, sent: TrueTime) -> Duration {
    writer.clock.local_at(sent).saturating_since(writer.clock.local_at(from)) + Duration::from_nanos(1)
}
