//! Which request a lock needs next, and when.

use leaderelection_protocol::session::LockView;

use super::LockId;
use super::lock::{Lock, Phase};
use super::member::Member;
use crate::clock::LocalInstant;
use crate::election::BeginReason;

/// The next request that a lock needs.
pub(super) enum Want {
    Read,
    /// A poll at this moment, to find out who has taken a lock that was handed over.
    FindTaker(LocalInstant),
    Take,
    Release,
}

impl Member {
    /// The reason of the term that begins if the lock is taken now; `None` if it cannot be taken (rules S4 and S5).
    pub(super) fn acquire_reason(&self, id: LockId, lock: &Lock) -> Option<BeginReason> {
        match self.table.view(id.0) {
            // Never taken, because the record is incompatible.
            _ if lock.is_incompatible => None,
            LockView::Absent(_) => Some(BeginReason::Created),
            LockView::Free => {
                let preferred = lock.extras.as_ref().and_then(|extras| extras.preferred.as_deref());
                let is_for_us = preferred == Some(&*self.identity);
                Some(if is_for_us { BeginReason::Transferred } else { BeginReason::Released })
            }
            // The local session is not among the others, so its own record is never taken.
            LockView::Held(session) => {
                let (_, peer) = self.peers.get(session).filter(|(session, _)| session.is_over())?;
                let of = peer.identity.as_deref().unwrap_or(session).to_owned();
                Some(BeginReason::Expired { of })
            }
            LockView::Unknown | LockView::Refused => None,
        }
    }

    pub(super) fn want(&self, id: LockId) -> Option<Want> {
        let lock = self.lock(id)?;
        let (is_ours, works) = (self.is_ours(id), self.table.work_of(id.0).is_some());
        // Without a candidacy, a read is needed only if the record may name this session, and so block others.
        let competes = match &lock.phase {
            Phase::Idle => false,
            Phase::Ending(ending) => !ending.is_of_session(),
            Phase::Competing | Phase::Leading { .. } => true,
        };
        let matters = competes || lock.in_doubt || is_ours;
        if lock.must_read && matters {
            return Some(Want::Read);
        }
        if let Some(at) = self.taker_poll_at(id) {
            return Some(Want::FindTaker(at));
        }
        match &lock.phase {
            Phase::Ending(ending) if is_ours && ending.is_releasing() => Some(Want::Release),
            // No term leads with this record: its term has ended, or its write was committed too late.
            Phase::Idle | Phase::Competing if is_ours && !works => Some(Want::Release),
            // Rule 8: while abandoned work of an earlier term runs, no other term begins.
            Phase::Competing if !works && !lock.is_exhausted && !self.stop_asked => {
                self.acquire_reason(id, lock).map(|_| Want::Take)
            }
            _ => None,
        }
    }

    /// Sets the time of the next request about a lock.
    pub(super) fn plan(&mut self, now: LocalInstant, id: LockId) {
        let Some(lock) = self.lock(id) else { return };
        // If a lock had two requests in flight, the older answer could come last and be taken for the newer one.
        let may_send = self.window().is_some() && !self.table.is_busy(id.0);
        let Some(want) = self.want(id).filter(|_| may_send) else { return self.due_locks.cancel(&id.0) };
        let at = match want {
            Want::FindTaker(at) => at,
            Want::Take => self.takeover_rank(id, lock).at,
            // Only writes wait until `not_before`. If reads did, too, a free lock would be noticed too late.
            Want::Read if !lock.read_failed => self.next_read_at(now, id, lock),
            Want::Read | Want::Release => lock.not_before,
        };
        // Requests about a lock without a leader go first: when a session has ended, thousands of reads may be waiting.
        let goes_first = !matches!(want, Want::Read) || self.last_releaser.contains_key(&id.0);
        if at > now {
            self.due_locks.set(id.0, at);
        } else if goes_first {
            self.due_locks.set(id.0, LocalInstant::default());
        } else {
            // A repeated read keeps its place in the queue. Otherwise the last of thousands might never be sent.
            self.due_locks.set_earlier(id.0, now);
        }
    }

    /// Returns the reason of the term that an answer may begin. Has to be called before the answer changes the view.
    pub(super) fn begin_reason(&self, id: LockId) -> BeginReason {
        self.lock(id).and_then(|lock| self.acquire_reason(id, lock)).unwrap_or(BeginReason::Released)
    }
}
