//! The changes that an operator makes to a lock from outside, by compare-and-swap like every candidate.
//!
//! No function here competes for the lock, and none lowers or reuses a fencing token.

use crate::clock::{Clock, SystemClock};
use crate::identity;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::random;
use crate::refused::RefusedWrites;
use crate::record::{LeaderElectionRecord, MAX_LEADER_TRANSITIONS, RELEASED_LEASE, UnknownFields};
use crate::store::StoreErrorKind;

/// The number of times that a change is tried while a leader renews at the same time.
const MOST_ATTEMPTS: u32 = 8;

/// The record before and after an intervention.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intervention {
    /// The record before the intervention.
    pub before: LeaderElectionRecord,
    /// The record after the intervention; equal to `before` if no change was needed.
    pub after: LeaderElectionRecord,
}

/// The reason for which an intervention did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The lock's object does not exist.
    #[error("{lock} does not exist; check the name, or start a candidate to create it")]
    Missing {
        /// The lock.
        lock: String,
    },
    /// An object exists, but must not exist for this intervention.
    #[error("{lock} exists; nothing was changed")]
    Exists {
        /// The lock.
        lock: String,
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
    #[error("no candidate can be called {identity:?}: the identity {problem}; name the candidate that is to lead next")]
    BadIdentity {
        /// The named candidate; only the beginning of a long name.
        identity: String,
        /// The problem with the identity.
        problem: String,
    },
    /// The fencing token leaves no larger token for the next term.
    #[error("fencing token {token} is too large: it must be less than {MAX_LEADER_TRANSITIONS}")]
    BadToken {
        /// The given token.
        token: u64,
    },
    /// Another writer changed the lock at the same time, in every attempt.
    #[error("{lock} was written by somebody else at the same time, {MOST_ATTEMPTS} times; try again")]
    Contended {
        /// The lock.
        lock: String,
    },
    /// The lock could not be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// Takes the lease away from its holder. Use it for a holder that is known to be dead or stuck.
///
/// **Two leaders are possible.** A living holder goes on leading until its next renewal attempt, up to a retry
/// period and a request timeout later, while another candidate may begin at once. Prefer [`request_transfer`]:
/// a living leader lets its work end before it hands over. The release keeps the fencing token and the next
/// term raises it, so the token protects resources in either case.
///
/// This function is not cancellation safe: when the future is dropped, the change may have happened or may
/// still happen.
///
/// # Errors
///
/// [`AdminError`]. A lock without a holder stays unchanged and causes no error.
pub async fn force_release(lock: &dyn ObjectStoreBasedLock) -> Result<Intervention, AdminError> {
    let write_id = write_id();
    change(lock, |before| {
        if before.is_released() {
            return Ok(before.clone());
        }
        Ok(LeaderElectionRecord { unknown: before.unknown.clone(), ..released(before.leader_transitions, &write_id) })
    })
    .await
}

/// Asks the leader to hand over to the candidate `to`, by writing that name into `preferredHolder`.
///
/// The leader reads the name at its next renewal, lets its work end, and releases the lease. The named
/// candidate takes over at its next poll. All other candidates wait one lease duration of their own longer, so
/// that the named candidate can go first. If the leader is dead, the named candidate takes over once the lease
/// has expired. If the lease has no holder, the named candidate takes over at once. This function cannot check
/// whether a candidate of that name exists, because the lock does not list its candidates.
///
/// This function is not cancellation safe: when the future is dropped, the change may have happened or may
/// still happen.
///
/// # Errors
///
/// [`AdminError`]; [`AdminError::AlreadyLeads`] if `to` holds the lease.
pub async fn request_transfer(lock: &dyn ObjectStoreBasedLock, to: &str) -> Result<Intervention, AdminError> {
    if let Some(problem) = identity::problem_with(to) {
        return Err(AdminError::BadIdentity { identity: identity::excerpt(to), problem });
    }
    change(lock, |before| {
        if before.holder_identity == to {
            return Err(AdminError::AlreadyLeads { lock: lock.describe(), identity: to.to_owned() });
        }
        // The write id of the holder's own write stays, so that the holder recognises its lease (rule 14).
        Ok(LeaderElectionRecord { preferred_holder: Some(to.to_owned()), ..before.clone() })
    })
    .await
}

/// Creates a deleted lock again, without a holder. The fencing token of the next term is `fencing_token` plus
/// one, so pass the largest token that any resource has seen.
///
/// # Errors
///
/// [`AdminError::Exists`] if an object exists, whatever its content; [`AdminError::BadToken`].
pub async fn recreate(lock: &dyn ObjectStoreBasedLock, fencing_token: u64) -> Result<LeaderElectionRecord, AdminError> {
    if fencing_token >= MAX_LEADER_TRANSITIONS {
        return Err(AdminError::BadToken { token: fencing_token });
    }
    let record = released(fencing_token, &write_id());
    let error = match lock.create(&record).await {
        Ok(_) => return Ok(record),
        Err(error) => error,
    };
    match lock.get().await? {
        Some(found) if found.record.write_id == record.write_id => Ok(record),
        Some(_) => Err(AdminError::Exists { lock: lock.describe() }),
        None => Err(error.into()),
    }
}

/// Replaces the record with the result of `wanted`, unless the two are equal.
async fn change(
    lock: &dyn ObjectStoreBasedLock,
    wanted: impl Fn(&LeaderElectionRecord) -> Result<LeaderElectionRecord, AdminError>,
) -> Result<Intervention, AdminError> {
    let mut sent: Option<Intervention> = None;
    let mut refused = RefusedWrites::default();
    for _ in 0..MOST_ATTEMPTS {
        let found = lock.get().await?;
        if let Some(error) = refused.saw(found.as_ref(), || lock.describe()) {
            return Err(error.into());
        }
        let Some(VersionedRecord { record: before, version }) = found else {
            return Err(AdminError::Missing { lock: lock.describe() });
        };
        // The answer to our write was lost, or our write conflicted with itself.
        if let Some(landed) = sent.take_if(|sent| same_write(&sent.after, &before)) {
            return Ok(landed);
        }
        let after = wanted(&before)?;
        if after == before {
            return Ok(Intervention { before, after });
        }
        let answer = lock.update(&after, &version).await;
        refused.answered(Some(&version), answer.as_ref().map_err(LockError::kind));
        match answer {
            Ok(_) => return Ok(Intervention { before, after }),
            Err(error) if matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Ambiguous) => {
                sent = Some(Intervention { before, after });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(AdminError::Contended { lock: lock.describe() })
}

/// Compares two records without their times, because JSON stores times with fewer digits.
fn same_write(one: &LeaderElectionRecord, other: &LeaderElectionRecord) -> bool {
    one.write_id == other.write_id && one.preferred_holder == other.preferred_holder
}

fn released(fencing_token: u64, write_id: &str) -> LeaderElectionRecord {
    let now = SystemClock.wall_time();
    LeaderElectionRecord {
        holder_identity: String::new(),
        lease_duration: RELEASED_LEASE,
        acquire_time: Some(now),
        renew_time: Some(now),
        leader_transitions: fencing_token,
        write_id: Some(write_id.to_owned()),
        preferred_holder: None,
        unknown: UnknownFields::default(),
    }
}

fn write_id() -> String {
    random::uuid().to_string()
}
