//! The log of an election: level info when leadership changes, warn and error when the store or the work misbehaves, and
//! debug for each request.

use std::io;

use crate::election::{BeginReason, Fact, Operation, TermEndReason};
use crate::lock::LockError;
use crate::store::StoreErrorKind;
use crate::term::FencingToken;
use crate::timings::Timings;
use crate::util::last_resort;

/// Logs at level info, but at level debug for one of the many locks of a session.
macro_rules! info_or_debug {
    ($lock_of_session:expr, $($line:tt)*) => {
        match $lock_of_session {
            None => tracing::info!($($line)*),
            Some(lock) => tracing::debug!(lock, $($line)*),
        }
    };
}

pub(super) fn sending(lock_of_session: Option<&str>, operation: Operation) {
    tracing::debug!(lock = lock_of_session, request = operation.name(), "sending a request to the lock");
}

/// Logs a failed request. For a lock of a session, only at level debug, because the session reports an outage once for all of its locks.
pub(super) fn failed(lock_of_session: Option<&str>, operation: Operation, error: &LockError) {
    let (chain, request) = (error.in_full(), operation.name());
    match error.kind() {
        _ if lock_of_session.is_some() => {
            tracing::debug!(lock = lock_of_session, request, error = chain, "a request to the lock failed");
        }
        // No warning: in each takeover, all candidates but one may get a conflict.
        StoreErrorKind::Conflict => tracing::debug!(request, error = chain, "somebody else wrote the lock first"),
        StoreErrorKind::Fatal | StoreErrorKind::Unreadable => {
            tracing::error!(request, error = chain, "the lock cannot be used; trying again");
        }
        StoreErrorKind::Rejected | StoreErrorKind::Ambiguous => {
            tracing::warn!(request, error = chain, "a request to the lock failed; trying again");
        }
    }
}

pub(super) fn started(lock_of_session: Option<&str>, fencing_token: FencingToken, reason: &BeginReason) {
    info_or_debug!(lock_of_session, fencing_token = u64::from(fencing_token), %reason, "started leading");
}

pub(super) fn stopped(lock_of_session: Option<&str>, fencing_token: FencingToken, reason: &TermEndReason) {
    info_or_debug!(lock_of_session, fencing_token = u64::from(fencing_token), %reason, "stopped leading");
}

pub(super) fn reconfigured(timings: &Timings) {
    let (lease_duration, renew_deadline) = (timings.lease_duration(), timings.renew_deadline());
    let (retry_period, request_timeout) = (timings.retry_period(), timings.request_timeout());
    tracing::info!(?lease_duration, ?renew_deadline, ?retry_period, ?request_timeout, "applied new timings");
}

pub(super) fn work_panicked(lock_of_session: Option<&str>) {
    tracing::error!(lock = lock_of_session, "the leader's work panicked; the term ends");
}

pub(super) fn work_failed(lock_of_session: Option<&str>, error: &str) {
    tracing::error!(lock = lock_of_session, error, "the leader's work failed; the term ends");
    last_resort::tell("the leader's work failed; the term ends", error);
}

pub(super) fn dropped_work(lock_of_session: Option<&str>, fencing_token: FencingToken, was_frozen: bool) {
    let fencing_token = u64::from(fencing_token);
    if was_frozen {
        tracing::error!(
            lock = lock_of_session,
            fencing_token,
            "this process stood still past its deadline, so the leader's work is dropped; check for a suspended process, a paused machine \
             or a lack of CPU time"
        );
    } else {
        tracing::error!(
            lock = lock_of_session,
            fencing_token,
            "the leader's work did not stop in time and is dropped; make it stop when leadership is lost"
        );
    }
    // Not on standard error: nobody has to act, unless the work cannot be dropped, which `abandoned_work` reports.
}

pub(super) fn abandoned_work(lock_of_session: Option<&str>, fencing_token: FencingToken) {
    tracing::error!(
        lock = lock_of_session,
        fencing_token = u64::from(fencing_token),
        "the leader's work cannot be dropped because it does not await, so it outlives its lease; make it await, or \
         end the process when leadership is lost"
    );
    last_resort::tell("the leader's work cannot be dropped", "it does not await, and outlives its lease");
}

pub(super) fn new_leader_panicked(leader: &str) {
    tracing::error!(leader, "on_new_leader panicked; the election continues");
}

pub(super) fn skipped_new_leaders() {
    tracing::warn!(
        "on_new_leader is too slow, so its oldest queued calls were dropped; let it queue the name and return"
    );
}

pub(super) fn no_thread_for_new_leader(error: &io::Error) {
    tracing::error!(
        %error,
        "on_new_leader cannot be called because no thread could be started; it is called at the next change of leader"
    );
}

pub(super) fn duplicate_identity() {
    tracing::error!("another process renews this lock under our identity; give every process an identity of its own");
}

pub(super) fn store_reports_no_age() {
    tracing::warn!(
        "the store does not report the age of the lock, so trust_store_clock has no effect; leave it out for this store"
    );
}

pub(super) fn store_rolled_back() {
    tracing::error!(
        "the store went back in time: it shows an earlier write of ours again, so it was restored or has lost writes; \
         fencing tokens may repeat: stop all candidates, and raise leaderTransitions above the largest token in use"
    );
}

pub(super) fn fact(lock_of_session: Option<&str>, fact: &Fact) {
    match fact {
        Fact::Acquired { fencing_token } => tracing::debug!(lock = lock_of_session, fencing_token, "won the lease"),
        Fact::LeaderChanged { leader: Some(leader) } => info_or_debug!(lock_of_session, leader, "leader changed"),
        Fact::LeaderChanged { leader: None } => info_or_debug!(lock_of_session, "nobody leads"),
        Fact::Released => info_or_debug!(lock_of_session, "released the lease"),
        Fact::ReleaseGivenUp if lock_of_session.is_some() => {
            tracing::debug!(lock = lock_of_session, "could not release the lock in time; trying again");
        }
        Fact::ReleaseGivenUp => {
            tracing::warn!("the lease was not released in time; it has expired, or expires by itself")
        }
        Fact::TokensExhausted => tracing::error!(
            "the lock's leaderTransitions is at its maximum, so nobody can lead; move to a lock of another name, and \
             reset the tokens that its resources remember"
        ),
        Fact::LeftOut { fields } => tracing::warn!(
            ?fields,
            "the lock's object was too large to take over, so these fields that other programs wrote were dropped"
        ),
        Fact::Vanished => tracing::error!(
            "the lock's object was deleted; fencing tokens may restart at 1: do not delete a lock in use"
        ),
        Fact::MessageIgnored(reason) => tracing::debug!(lock = lock_of_session, ?reason, "ignored a message of a peer"),
        Fact::FailbackRequested => tracing::info!("asked the leader, whose rank is worse, to hand over"),
        Fact::Contradicted => {
            tracing::debug!(
                lock = lock_of_session,
                "the store contradicted a peer; ignoring the peer until the next write"
            );
        }
        Fact::Doubted | Fact::Resolved { .. } | Fact::WriteReported | Fact::EndReported => {}
    }
}
