//! What an operator does to a lock from outside, by compare-and-swap like everybody else.
//!
//! No function here competes for the lock, and none lowers or reuses a fencing token.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::clock::{Clock, SystemClock};
use crate::identity;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::record::{LeaderElectionRecord, MAX_LEADER_TRANSITIONS, RELEASED_LEASE, UnknownFields};
use crate::store::StoreErrorKind;

/// How often a change is tried against a leader that renews at the same time.
const MOST_ATTEMPTS: u32 = 8;

/// What a lock said before and says after an intervention.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intervention {
    /// The record that was found.
    pub before: LeaderElectionRecord,
    /// The record as it is now; the same if there was nothing to do.
    pub after: LeaderElectionRecord,
}

/// Why an intervention did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// There is no object.
    #[error("{lock} does not exist; check the name, or start a candidate to create it")]
    Missing {
        /// The lock.
        lock: String,
    },
    /// There is an object where none was expected.
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
        /// Who was named.
        identity: String,
    },
    /// No candidate can have this identity.
    #[error("no candidate can be called {identity:?}: the identity {problem}; name the candidate that is to lead next")]
    BadIdentity {
        /// Who was named; the beginning, if it is long.
        identity: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No term could come after it.
    #[error("fencing token {token} is too large: it must be less than {MAX_LEADER_TRANSITIONS}")]
    BadToken {
        /// What was given.
        token: u64,
    },
    /// Somebody else wrote the lock at the same time, again and again.
    #[error("{lock} was written by somebody else at the same time, {MOST_ATTEMPTS} times; try again")]
    Contended {
        /// The lock.
        lock: String,
    },
    /// The lock could not be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// Takes the lease away from whoever holds it: for a holder that is known to be dead or stuck.
///
/// **Two leaders are possible.** A holder that is alive goes on leading until it next tries to renew, up
/// to a retry period and a request timeout later, while another may begin at once. Prefer
/// [`request_transfer`], which a living leader obeys in good order. The fencing token, which is kept and
/// is raised by the next term, protects resources in either case.
///
/// Not cancellation safe: when the future is dropped, the change may have happened or may happen yet.
///
/// # Errors
///
/// [`AdminError`]. A lock that nobody holds is left as it is, and is no error.
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

/// Asks the leader to hand over to the candidate `to`, by writing its name into `preferredHolder`.
///
/// The leader sees it when it next renews, lets its work end, and releases the lease. The named candidate
/// takes over at its next poll; all others let it go first for one lease duration of theirs. If the leader
/// is dead, the same happens once its lease has expired; if nobody leads, at once. Whether a candidate of
/// that name exists, the lock does not tell.
///
/// Not cancellation safe: when the future is dropped, the change may have happened or may happen yet.
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
        // With the write id of the holder's own write, so that the holder knows its lease again (rule 14).
        Ok(LeaderElectionRecord { preferred_holder: Some(to.to_owned()), ..before.clone() })
    })
    .await
}

/// Creates a lock anew that was deleted, nobody holding it, so that the next term's token is one more than
/// `fencing_token`: give it the largest token that any resource has seen.
///
/// # Errors
///
/// [`AdminError::Exists`] if there is an object, whatever it is; [`AdminError::BadToken`].
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

/// Replaces the record by what `wanted` makes of it, unless that is the same.
async fn change(
    lock: &dyn ObjectStoreBasedLock,
    wanted: impl Fn(&LeaderElectionRecord) -> Result<LeaderElectionRecord, AdminError>,
) -> Result<Intervention, AdminError> {
    let mut sent: Option<Intervention> = None;
    for _ in 0..MOST_ATTEMPTS {
        let Some(VersionedRecord { record: before, version }) = lock.get().await? else {
            return Err(AdminError::Missing { lock: lock.describe() });
        };
        // An answer that was lost, or a conflict with ourselves.
        if let Some(landed) = sent.take_if(|sent| same_write(&sent.after, &before)) {
            return Ok(landed);
        }
        let after = wanted(&before)?;
        if after == before {
            return Ok(Intervention { before, after });
        }
        match lock.update(&after, &version).await {
            Ok(_) => return Ok(Intervention { before, after }),
            Err(error) if matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Ambiguous) => {
                sent = Some(Intervention { before, after });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(AdminError::Contended { lock: lock.describe() })
}

/// Times are not compared: JSON keeps fewer digits of them.
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
    uuid::Builder::from_random_bytes(rand::make_rng::<Xoshiro256PlusPlus>().random()).into_uuid().to_string()
}
