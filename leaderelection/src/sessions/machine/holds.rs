//! The holder of a lock, as far as is known, and the index of the locks that a session holds.

use leaderelection_protocol::session::LockView;

use super::member::Member;
use super::{LockId, SessionId};

impl Member {
    /// Returns `true` if `session` is the local session.
    pub(super) fn is_own(&self, session: &SessionId) -> bool {
        self.own.as_ref().is_some_and(|own| own.id == *session)
    }

    /// Returns `true` if the lock names the local session, as far as is known.
    pub(super) fn is_ours(&self, id: LockId) -> bool {
        matches!(self.table.view(id.0), LockView::Held(session) if self.is_own(session))
    }

    /// Changes what is known of a lock, and updates the index of the locks that each other session holds.
    pub(super) fn change_lock(&mut self, id: LockId, change: impl FnOnce(&mut Self)) {
        let holder = |member: &Self| match member.table.view(id.0) {
            LockView::Held(session) => Some(session.clone()),
            _ => None,
        };
        let before = holder(self);
        change(self);
        let after = holder(self);
        if let Some((_, peer)) =
            before.filter(|before| Some(before) != after.as_ref()).and_then(|of| self.peers.get_mut(&of))
        {
            peer.holds.remove(&id.0);
        }
        if let Some((_, peer)) = after.and_then(|of| self.peers.get_mut(&of)) {
            peer.holds.insert(id.0);
        }
    }
}
