//! The log lines of a session. Thousands of locks share them, so lines about one lock are rare.

use std::time::Duration;

use crate::clock::LocalInstant;
use crate::election::TermEndReason;
use crate::lock::LockError;
use crate::sessions::machine::Refusal;
use crate::store::StoreErrorKind;
use crate::util::last_resort;

pub(super) fn opened(session: &str) {
    tracing::info!(session, "opened a session");
}

pub(super) fn closed(session: &str, reason: Option<&TermEndReason>) {
    match reason {
        Some(reason) => tracing::info!(session, %reason, "the session is over"),
        None => tracing::info!(session, "the session did not begin"),
    }
}

pub(super) fn leads(locks: usize) {
    tracing::info!(locks, "the number of locks that this session leads has changed");
}

pub(super) fn nobody_runs_the_session(waited: Duration) {
    tracing::warn!(
        ?waited,
        "an elector of this session waits, but nobody polls Session::run; spawn it, because no lock is led without it"
    );
}

pub(super) fn peer_ended(session: &str) {
    tracing::info!(session, "another session is over; its locks are free");
}

pub(super) fn duplicate_identity(session: &str) {
    tracing::error!(
        session,
        "another process renews a session under our identity; give every process an identity of its own"
    );
}

pub(super) fn refused(lock: &str, refusal: &Refusal) {
    tracing::error!(lock, %refusal, "the session does not compete for the lock");
}

/// The subject of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A read of another session. Such a read may fail for good although the store can be used.
    AnotherSession,
    AnythingElse,
}

/// Logs the failed requests of a session and of its locks. In an outage, requests about thousands of locks fail, so each kind of failure
/// gets at most one line per lease duration.
#[derive(Debug)]
pub(super) struct Failures {
    pause: Duration,
    /// For each kind of failure and subject, the moment of the last line, and the number of failures since then.
    logged: Vec<((StoreErrorKind, About), LocalInstant, u64)>,
}

impl Failures {
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, logged: Vec::new() }
    }

    pub(super) fn log(&mut self, now: LocalInstant, error: &LockError, about: About) {
        let (kind, chain) = (error.kind(), error.in_full());
        if kind == StoreErrorKind::Conflict {
            return tracing::debug!(error = chain, "somebody else wrote first");
        }
        let others = match self.logged.iter_mut().find(|(of, ..)| *of == (kind, about)) {
            None => {
                self.logged.push(((kind, about), now, 0));
                // The log's lines about another session say what to do, so only other failures go to standard error.
                if about == About::AnythingElse {
                    last_resort::tell("a request of the session failed; trying again", &chain);
                }
                0
            }
            Some((_, logged_at, unlogged)) if *logged_at + self.pause <= now => {
                *logged_at = now;
                std::mem::take(unlogged)
            }
            Some((.., unlogged)) => {
                *unlogged += 1;
                return tracing::debug!(error = chain, "a request of the session failed again");
            }
        };
        match (kind, about) {
            (StoreErrorKind::Fatal, About::AnotherSession) => tracing::error!(
                error = chain,
                others,
                "the object of another session cannot be read, so this process does not take that session's locks; allow \
                 the read, or delete the object"
            ),
            (StoreErrorKind::Unreadable, About::AnotherSession) => tracing::error!(
                error = chain,
                others,
                "an object among the sessions is not a record; delete it; otherwise the locks that name it stay blocked \
                 until two reads, a lease apart, have found it unreadable"
            ),
            (StoreErrorKind::Fatal | StoreErrorKind::Unreadable, About::AnythingElse) => {
                tracing::error!(error = chain, others, "the store cannot be used; trying again");
            }
            _ => tracing::warn!(error = chain, others, "a request of the session failed; trying again"),
        }
    }
}
