//! The span of a term, for traces: `docs/metrics.md` names its attributes.

use tracing::Span;
use tracing::field::Empty;

use super::listeners::Listeners;
use crate::election::{BeginReason, TermEndReason};
use crate::term::FencingToken;

/// Opens the span of a term, which closes with its last clone. Each request that failed is an event in the span.
pub(super) fn begin(listeners: &dyn Listeners, fencing_token: FencingToken, reason: &BeginReason) -> Span {
    let (name, identity) = (&*listeners.name(), listeners.identity());
    macro_rules! span {
        ($level:expr) => {
            tracing::span!(
                $level,
                "leader_election_term",
                leader_election.name = name,
                leader_election.identity = identity,
                leader_election.fencing_token = u64::from(fencing_token),
                leader_election.begin = %reason,
                leader_election.end = Empty,
            )
        };
    }
    match listeners.lock_of_session() {
        None => span!(tracing::Level::INFO),
        // At a lower level, as in the log, because a session has many locks.
        Some(_) => span!(tracing::Level::DEBUG),
    }
}

/// Adds the reason for the end of the term.
pub(super) fn end(span: &Span, reason: &TermEndReason) {
    span.record("leader_election.end", reason.name());
}
