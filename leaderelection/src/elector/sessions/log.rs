//! The log of a session.

use crate::election::EndReason;
use crate::lock::LockError;
use crate::session::Refusal;
use crate::store::StoreErrorKind;

pub(super) fn opened(session: &str) {
    tracing::info!(session, "opened a session");
}

pub(super) fn closed(session: &str, reason: Option<&EndReason>) {
    match reason {
        Some(reason) => tracing::info!(session, %reason, "the session is over"),
        None => tracing::info!(session, "the session did not begin"),
    }
}

pub(super) fn peer_ended(session: &str) {
    tracing::info!(session, "another session is over; its locks are free");
}

pub(super) fn identity_clash(session: &str) {
    tracing::error!(
        session,
        "another process renews a session under our identity; give every process an identity of its own"
    );
}

pub(super) fn refused(lock: &str, refusal: &Refusal) {
    tracing::error!(lock, %refusal, "the session leaves the lock alone");
}

pub(super) fn failed(error: &LockError) {
    let chain = error.in_full();
    match error.kind() {
        StoreErrorKind::Conflict => tracing::debug!(error = chain, "somebody else wrote first"),
        StoreErrorKind::Fatal | StoreErrorKind::Unreadable => {
            tracing::error!(error = chain, "the store cannot be used; trying again");
        }
        StoreErrorKind::Rejected | StoreErrorKind::Ambiguous => {
            tracing::warn!(error = chain, "a request of the session failed; trying again");
        }
    }
}
