//! The member's own session, as the member knows it.

use super::SessionId;
use crate::clock::LocalInstant;
use crate::election::{Election, Term, TermEndReason};

/// The member's own session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LocalSession {
    pub(super) id: SessionId,
    pub(super) election: Election,
    /// The window, as long as the session is open.
    pub(super) term: Option<Term>,
    /// When the session was opened; before that, when the member began to open it.
    pub(super) opened_at: LocalInstant,
    /// The reason for the end, after the session has ended.
    pub(super) ended: Option<TermEndReason>,
    /// `true` once the election was told that all work has ended.
    pub(super) concluded: bool,
}
