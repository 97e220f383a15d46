//! What this candidate does about its lock, in a sentence, and the next step of somebody who was called.

use std::borrow::Cow;
use std::time::Duration;

use leaderelection::TermEndReason;

use super::snapshot::Snapshot;
use crate::cause::Cause;
use crate::lock::status::LockStatus;
use crate::lock::view::{View, short};

/// This candidate, as its page tells of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) view: &'a View,
    /// The lease duration of this candidate.
    pub(super) lease: Duration,
    pub(super) draining: bool,
    /// The end of the last term that this process saw, if that was its own.
    pub(super) own_end: Option<&'a TermEndReason>,
}

impl Role<'_> {
    /// The lock names this candidate, which does not lead.
    pub(super) fn is_lapsed(self) -> bool {
        !self.snapshot.leading
            && matches!(self.view.status, LockStatus::Held | LockStatus::Expired)
            && self.snapshot.holder == self.snapshot.identity
    }

    /// The sentence after that of the lock; empty where that one tells all.
    pub(super) fn sentence(self) -> Cow<'static, str> {
        let cannot_write = self.snapshot.trouble.is_some();
        let text = match self.view.status {
            _ if self.snapshot.leading && self.draining => "That is this candidate, and it is about to stop.",
            _ if self.snapshot.leading => "That is this candidate.",
            _ if self.is_lapsed() => match self.own_end {
                _ if self.draining => "That is this candidate, which does not lead: it is stopping.",
                Some(TermEndReason::RenewDeadline) => {
                    "That is this candidate, which could not renew it in time, and does not lead."
                }
                Some(_) => "That is this candidate, which does not lead: its term is over.",
                None => "That is also the identity of this candidate, which does not lead.",
            },
            LockStatus::DuplicateIdentity => "This candidate does not lead.",
            LockStatus::Unknown(_) => "",
            LockStatus::Free | LockStatus::Expired | LockStatus::Doubtful => match self.view.status {
                _ if self.draining => "This candidate is stopping.",
                _ if cannot_write => "This candidate cannot take it.",
                LockStatus::Free if self.view.preferred_holder.is_some() => {
                    // It lets the other one go first for a lease of its own (rule 14).
                    let left = short(self.lease.saturating_sub(self.snapshot.unchanged_for.unwrap_or_default()));
                    return format!("This candidate takes over in {left}, unless that one leads first.").into();
                }
                LockStatus::Free => "This candidate competes.",
                LockStatus::Doubtful => {
                    let left = short(self.snapshot.left.unwrap_or_default());
                    return format!("This candidate takes over in {left}, unless that process renews it.").into();
                }
                _ => "This candidate takes over.",
            },
            _ => "This candidate waits.",
        };
        text.into()
    }

    /// The next step of somebody who was called. What is wrong with the store comes first.
    pub(super) fn next_step(self) -> Option<String> {
        self.own_step().map(str::to_owned).or_else(|| self.view.next_step().filter(|_| !self.draining))
    }

    /// The next step that this candidate knows, which may not be that of the lock.
    fn own_step(self) -> Option<&'static str> {
        match (&self.snapshot.trouble, self.view.status) {
            (Some(error), _) => LockStatus::Unknown(Cause::of(error.kind)).next_step(),
            _ if self.draining => None,
            (None, LockStatus::Held) if self.is_lapsed() && self.own_end.is_none() => Some(
                "wait for one lease; if another process has this identity, restart this one with its own `--identity`",
            ),
            (None, LockStatus::Free) if self.view.preferred_holder.is_some() => {
                Some("wait, or start that candidate; if it runs, read its log")
            }
            (None, LockStatus::Doubtful) => Some("wait; then find out why that process stopped"),
            (None, LockStatus::Free | LockStatus::Expired) => Some("if this lasts, read the log of this candidate"),
            _ => None,
        }
    }
}
