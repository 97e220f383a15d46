//! Sessions: one lease for many locks (rules S1 to S7 of docs/protocol.md).
//!
//! A process with many locks renews one *session* instead of each lock. The session is a [`Lease`] that lasts for one term. A *lock* has no
//! lease of its own: its record names a session, and the process with that session leads the lock.
//!
//! ```text
//!   local Lease::of_session -- term(now) --> LockTable <-- is_over(session) -- Directory (one Watch for each other session)
//! ```
//!
//! Two processes never lead one lock:
//!
//! 1. A process leads a lock only while its own session is open, and the lock's last write that is known to be committed names that session
//!    ([`LockTable::term`]).
//! 2. Another process replaces this record only after the session is over ([`Directory::is_over`]), in one of three ways:
//!    - A committed write has ended it. The sender had seen the replaced version unchanged for the session's lease duration. So the windows
//!      of that version's write and of all earlier ones are over. No later renewal can be committed, because the version has changed
//!      ([`Directory::may_end`]).
//!    - Its owner has released it, after all work had ended.
//!    - Its object was unreadable for the session's lease duration. The owner did not write this content, so the owner's renewals fail
//!      ([`Directory::read_answered`]).
//! 3. A session that is over never opens again: each ID is created with only one write, and a closed window is never renewed
//!    ([`Lease::may_acquire`], [`Lease::may_renew`]).
//!
//! Tokens grow, whatever the clocks do: the write that begins a term replaces one version, whose token is smaller.
//!
//! A *policy* decides when to read and when to use which permit: which process takes a free lock first, how many
//! requests are in flight, and which locks are handed over for balance. A policy can neither declare a session over nor
//! build a write. The types cannot check the following, so the policy has to:
//!
//! - Pass the same local [`Lease`] everywhere, and call [`Directory::closed`] before opening the next session.
//! - Stop the work of a term by [`LockTerm::valid_until`], and report the end of all work with [`LockTable::work_ended`].
//! - Call [`Lease::work_ended`] of the local session only after the session's term has stopped and while
//!   [`LockTable::works_for`] is false. If it is called earlier, a lock may begin work while the session is released.
//! - Give the session and the [`Bounds`] the same limits, and use a longer lease only for the next session.
//! - Delete the object of a session only on the version from [`Directory::may_delete`]. Never delete the object of a lock.
//! - Send each write once, and hand in each answer for the request to which it belongs.
//!
//! In addition to the assumptions of a lease, this depends on the following:
//!
//! - The ID of a session is random, and no process uses one twice.
//! - Nobody deletes the object of a lock, or puts another record into it. [`LockTable`] says what happens after a deletion.
//! - A process can read every record that an owner writes. So if an object is unreadable, no owner has written it.
//! - A read or a listing of locks shows nothing that was replaced before it was sent. Only two things need this: the wait after a deletion,
//!   and [`LockTable::forget`], after which an ended term must not begin again.
//!
//! [`Lease`]: crate::lease::Lease
//! [`Lease::may_acquire`]: crate::lease::Lease::may_acquire
//! [`Lease::may_renew`]: crate::lease::Lease::may_renew
//! [`Lease::work_ended`]: crate::lease::Lease::work_ended

mod directory;
mod lock_table;

use std::sync::Arc;
use std::time::Duration;

pub use directory::{Directory, EndPermit, OtherSession};
pub use lock_table::{Bounds, LockId, LockPermit, LockTable, LockTerm, LockView, MAX_POLL_INTERVAL};

use crate::record::Record;

/// The record of a session, or of a lock that a session may hold.
pub trait SessionRecord: Record {
    /// The field `session`: the session that holds the lock. `None` in the records of sessions, of released locks, and of leases.
    fn session(&self) -> Option<Self::SessionId>;

    /// The field `sessionLeaseMillis`: the lease of that session, if the writer has stated it.
    fn session_lease(&self) -> Option<Duration>;

    /// Makes the record of a lock. `decoration` has those fields of the previous record that no rule reads. The whole previous record is
    /// not available, because a process with thousands of locks does not keep whole records.
    fn of_lock(content: LockContent<'_, Self>, decoration: Self::Decoration) -> Self;
}

/// The fields that the kernel decides when it makes the record of a lock.
#[derive(Debug)]
pub struct LockContent<'a, R: SessionRecord> {
    /// The holder, its session, and the lease of that session; `None` after a release. A held lock has no lease of its own, so no
    /// reader takes it for expired.
    pub holder: Option<(&'a R::Identity, &'a R::SessionId, Duration)>,
    /// The fencing token, in the field `leaderTransitions`.
    pub token: u64,
    /// The ID of the write, in the field `writeId`.
    pub write_id: R::WriteId,
}

/// A conditional write to the object of another session or of a lock. Only a permit makes one. Send it once (rule 7).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write<R: Record> {
    record: Arc<R>,
    expected: Option<R::Version>,
}

impl<R: Record> Write<R> {
    /// The record to write.
    #[must_use]
    pub fn record(&self) -> &Arc<R> {
        &self.record
    }

    /// The version to replace; `None` creates the object.
    #[must_use]
    pub fn expected(&self) -> Option<&R::Version> {
        self.expected.as_ref()
    }
}
