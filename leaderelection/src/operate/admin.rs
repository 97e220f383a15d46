//! Changes that an operator makes to a lock. Every change is a compare-and-swap, like a candidate's write.
//!
//! No function here competes for the lock, and none lowers or reuses a fencing token. The operator passes the record on
//! which the decision was made. A change applies only to the term of that record, and never to the next leader.

#[cfg(feature = "sessions")]
mod follow;
#[cfg(feature = "sessions")]
mod target;

use std::time::Duration;

use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::policy::back_off::BackOff;

use crate::clock::{self, Clock, SystemClock};
use crate::lock::identity;
use crate::lock::record::{LeaderElectionRecord, MAX_LEADER_TRANSITIONS, WriteMeta};
use crate::lock::refused::SpuriousConflicts;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::store::StoreErrorKind;
use crate::term::FencingToken;
use crate::util::random;

#[cfg(feature = "sessions")]
pub use follow::Followed;
#[cfg(feature = "sessions")]
pub use target::{HoldingSession, ObservedTarget, Target};

/// The most attempts of one change. An attempt fails if a leader renews at the same time.
const MOST_ATTEMPTS: u32 = 8;

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A change that an operator has made: the record before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intervention {
    /// The record before the change.
    pub before: LeaderElectionRecord,
    /// The record after the change; equal to `before` if none was needed.
    pub after: LeaderElectionRecord,
}

/// Why an operator's change failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The lock's object does not exist.
    #[error("{lock} does not exist; check the name, or start a candidate to create it")]
    Missing {
        /// The lock.
        lock: String,
    },
    /// The lock exists, so it cannot be created again.
    #[error("{lock} exists, with fencing token {token}; only a lock whose object is gone can be created again")]
    Exists {
        /// The lock.
        lock: String,
        /// The fencing token in the object.
        token: FencingToken,
    },
    /// Another term has begun since the operator's read.
    #[error("{lock} was {seen}, and is {now} now; check who leads, and decide again")]
    MovedOn {
        /// The lock.
        lock: String,
        /// The term that the operator has seen.
        seen: String,
        /// The term that the lock shows now.
        now: String,
    },
    /// The named candidate leads already.
    #[error("{identity:?} holds {lock} already; name another candidate")]
    AlreadyLeads {
        /// The lock.
        lock: String,
        /// The named candidate.
        identity: String,
    },
    /// No candidate can have this identity.
    #[error("invalid identity {identity:?}: it {problem}; name the candidate that should lead next")]
    BadIdentity {
        /// The named candidate; only the beginning of a long name.
        identity: String,
        /// The problem with the identity.
        problem: String,
    },
    /// A transfer of a session was requested. Only locks can be transferred.
    #[error("{session} is a session, which nobody else can lead; transfer the locks that it holds, one by one")]
    IsSession {
        /// The session.
        session: String,
    },
    /// The fencing token is so large that the next term could not get a larger one.
    #[error("fencing token {token} is too large: it must be less than {MAX_LEADER_TRANSITIONS}")]
    BadToken {
        /// The given token.
        token: FencingToken,
    },
    /// In every attempt, another writer changed the lock at the same time.
    #[error("{lock} was written by somebody else at the same time, {MOST_ATTEMPTS} times; try again")]
    Contended {
        /// The lock.
        lock: String,
    },
    /// The answer to the write was lost, and later reads did not show whether the write was committed.
    #[error("cannot tell if {lock} was changed; check it before trying again")]
    Unknown {
        /// The lock.
        lock: String,
        /// The error that came instead of the answer.
        #[source]
        source: LockError,
    },
    /// The lock could not be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// Takes the lease away from its holder, if the lock still shows the term of `seen`. Use it for a holder that is
/// known to be dead or stuck.
///
/// **Two leaders are possible.** A living holder continues to lead until its next renewal attempt, up to a retry period
/// and a request timeout later, while another candidate may acquire the lease at once. Prefer [`request_transfer`] for
/// a living leader: its work ends before it hands over. Resources that check the fencing token are safe in either case,
/// because the token of the next term is larger.
///
/// `seen` is the record on which the operator has decided. A term that has begun since is not released.
///
/// This function is not cancellation safe: when the future is dropped, the change may have happened or may
/// still happen.
///
/// # Errors
///
/// [`AdminError`], e.g. [`AdminError::MovedOn`] if another term has begun. If the lease was released since, this
/// succeeds.
pub async fn force_release(
    lock: &dyn ObjectStoreBasedLock,
    seen: &LeaderElectionRecord,
) -> Result<Intervention, AdminError> {
    let stamp = stamp();
    let released = |before: &LeaderElectionRecord| {
        // A claim to the lock's parts or service outlives the term, so a released record may still have one (rule M8).
        if before.is_released() && !before.has_claim() && before.preferred_holder.is_none() {
            return before.clone();
        }
        LeaderElectionRecord { preferred_holder: None, ..before.clone() }.without_claim().released(stamp.clone())
    };
    // If this release may have been committed, any later term is success: a release is meant to let one begin.
    change(lock, seen, released, |_| true).await
}

/// Asks the leader to hand over to the candidate `to`: writes that name into `preferredHolder`, if the lock still shows
/// the term of `seen`.
///
/// The leader reads the name at its next renewal, lets its work end, and releases the lease. The named candidate
/// acquires the lease at its next poll. Other candidates wait longer, by one of their lease durations, so that the
/// named one goes first. If the leader is dead, the named candidate takes over once the lease has expired. If the lease
/// is free, the named candidate acquires it at its next poll. This function cannot check that a candidate of that name
/// exists, because the lock does not list its candidates.
///
/// This function is not cancellation safe: when the future is dropped, the change may have happened or may
/// still happen.
///
/// # Errors
///
/// [`AdminError`], e.g. [`AdminError::AlreadyLeads`] if `to` holds the lease, and [`AdminError::MovedOn`] if the term
/// of another candidate has begun.
pub async fn request_transfer(
    lock: &dyn ObjectStoreBasedLock,
    seen: &LeaderElectionRecord,
    to: &str,
) -> Result<Intervention, AdminError> {
    if let Some(problem) = identity::problem_with(to) {
        return Err(AdminError::BadIdentity { identity: identity::excerpt(to), problem });
    }
    if seen.holder_identity == to {
        return Err(AdminError::AlreadyLeads { lock: lock.describe(), identity: to.to_owned() });
    }
    // The write id of the holder's last write stays, so that the holder still recognizes its lease (rule 14).
    let asked = |before: &LeaderElectionRecord| LeaderElectionRecord {
        preferred_holder: Some(to.to_owned()),
        ..before.clone()
    };
    change(lock, seen, asked, |now| now.holder_identity == to).await
}

/// Creates a deleted lock again, without a holder. Pass the largest token that any resource has seen as
/// `fencing_token`: the token of the next term is larger by one.
///
/// # Errors
///
/// [`AdminError::Exists`] if an object exists, whatever its content; [`AdminError::BadToken`]; [`AdminError::Unknown`]
/// if the answer was lost and a read did not show the outcome.
pub async fn recreate(
    lock: &dyn ObjectStoreBasedLock,
    fencing_token: impl Into<FencingToken>,
) -> Result<LeaderElectionRecord, AdminError> {
    let fencing_token = fencing_token.into().number();
    if fencing_token >= MAX_LEADER_TRANSITIONS {
        return Err(AdminError::BadToken { token: fencing_token.into() });
    }
    let new =
        LeaderElectionRecord { leader_transitions: fencing_token, ..LeaderElectionRecord::new("", Duration::ZERO) };
    let record = new.released(stamp());
    let source = match lock.create(&record).await {
        Ok(_) => return Ok(record),
        Err(error) => error,
    };
    let in_doubt = source.kind() == StoreErrorKind::Ambiguous;
    match lock.get().await {
        Ok(Some(found)) if found.record.write_id == record.write_id => Ok(record),
        // The creation may have been committed, and a candidate may have won a term since. A larger token shows that.
        Ok(Some(found)) if in_doubt && found.record.leader_transitions > fencing_token => Ok(found.record),
        Ok(Some(found)) => {
            Err(AdminError::Exists { lock: lock.describe(), token: found.record.leader_transitions.into() })
        }
        Ok(None) | Err(_) if in_doubt => Err(AdminError::Unknown { lock: lock.describe(), source }),
        Ok(None) => Err(source.into()),
        Err(error) => Err(error.into()),
    }
}

/// Replaces the record with the result of `wanted`, if it still shows the term of `seen`. If an attempt may have been
/// committed and another term has begun since, `is_goal` says whether the record of that term means success.
async fn change(
    lock: &dyn ObjectStoreBasedLock,
    seen: &LeaderElectionRecord,
    wanted: impl Fn(&LeaderElectionRecord) -> LeaderElectionRecord,
    is_goal: impl Fn(&LeaderElectionRecord) -> bool,
) -> Result<Intervention, AdminError> {
    let mut sent: Option<Intervention> = None;
    // The error of a write without an answer. From then on, that write may be committed at any time.
    let mut doubt: Option<LockError> = None;
    let (mut conflicts, mut pauses) = (SpuriousConflicts::default(), BackOff::default());
    let give_up = |doubt: Option<LockError>, error: AdminError| match doubt {
        Some(source) => AdminError::Unknown { lock: lock.describe(), source },
        None => error,
    };
    for attempt in 0..MOST_ATTEMPTS {
        // A renewal may be in flight, which only some parts of the lock show so far. After a pause, all of them do.
        if attempt >= 2 {
            clock::pause(pauses.next(LONGEST_PAUSE, Jitter::WHOLE)).await;
        }
        let found = match lock.get().await {
            Ok(found) => found,
            Err(error) => return Err(give_up(doubt, error.into())),
        };
        if let Some(error) = conflicts.saw(found.as_ref(), || lock.describe()) {
            return Err(give_up(doubt, error.into()));
        }
        let Some(VersionedRecord { record: before, version, .. }) = found else {
            return Err(give_up(doubt, AdminError::Missing { lock: lock.describe() }));
        };
        // The last write was committed: its answer was lost, or a proxy sent it twice and passed on the second answer.
        if let Some(committed) = sent.take_if(|sent| same_write(&sent.after, &before)) {
            return Ok(committed);
        }
        if !is_term_of(seen, &before) {
            // A lock may have several parts. A write that met a conflict in one part may have been committed in another
            // one, where the holder follows it.
            let may_be_committed = doubt.is_some() || sent.is_some() && lock.objects().len() > 1;
            if may_be_committed && is_goal(&before) {
                return Ok(Intervention { before: seen.clone(), after: before });
            }
            let moved_on = AdminError::MovedOn { lock: lock.describe(), seen: in_words(seen), now: in_words(&before) };
            return Err(give_up(doubt, moved_on));
        }
        let after = wanted(&before);
        if after == before {
            // If a write without an answer may have made the change, the record before that write is returned.
            let sent = sent.filter(|_| doubt.is_some());
            return Ok(Intervention { before: sent.map_or(before, |sent| sent.before), after });
        }
        let answer = lock.update(&after, &version).await;
        conflicts.answered(Some(&version), answer.as_ref().map_err(LockError::kind));
        match answer {
            Ok(_) => return Ok(Intervention { before, after }),
            Err(error) => match error.kind() {
                StoreErrorKind::Conflict => {}
                StoreErrorKind::Rejected if attempt + 1 < MOST_ATTEMPTS => {}
                StoreErrorKind::Ambiguous => doubt = Some(error),
                _ => return Err(give_up(doubt, error.into())),
            },
        }
        sent = Some(Intervention { before, after });
    }
    Err(give_up(doubt, AdminError::Contended { lock: lock.describe() }))
}

/// Returns `true` if `now` is a record of the term that `seen` shows, or of its release.
fn is_term_of(seen: &LeaderElectionRecord, now: &LeaderElectionRecord) -> bool {
    now.leader_transitions == seen.leader_transitions
        && (now.is_released() || now.holder_identity == seen.holder_identity)
}

fn in_words(record: &LeaderElectionRecord) -> String {
    let token = record.leader_transitions;
    match record.is_released() {
        true => format!("held by nobody, after fencing token {token}"),
        false => format!("held by {:?} with fencing token {token}", record.holder_identity),
    }
}

/// Returns `true` if both records are of the same write. A transfer request keeps the write id, so the requested name
/// is compared, too.
fn same_write(one: &LeaderElectionRecord, other: &LeaderElectionRecord) -> bool {
    one.write_id == other.write_id && one.preferred_holder == other.preferred_holder
}

fn stamp() -> WriteMeta {
    WriteMeta { write_id: random::uuid(), time: SystemClock.wall_time() }
}
