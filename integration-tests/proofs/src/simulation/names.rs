//! The names of what a run has, the senders and the kinds of its requests, and the call that is in flight.

use std::collections::VecDeque;

use leaderelection::LeaderElectionRecord;

use super::clock::TrueTime;

/// One process of a candidate, from its start until it ends or crashes.
pub(crate) type ProcessId = usize;

/// The number of an intervention in its run.
pub(crate) type PlanId = usize;

/// The number of a request in its run.
pub(crate) type RequestId = u32;

/// The number of a successful write in its run.
pub(crate) type WriteNumber = u64;

/// The largest number of locks that a service uses.
pub(crate) const LOCKS: usize = 4;

/// The writes that a read has shown in each lock, the old one first, or in the only lock; 0 for none.
pub(crate) type Shown = [WriteNumber; LOCKS];

/// The sender of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    /// A candidate.
    Process { node: usize, id: ProcessId },
    /// The operator, for one intervention.
    Operator(PlanId),
    /// A candidate of another library.
    Stranger,
    /// The sweeper of a store that can only create.
    Sweeper,
}

impl Client {
    pub(crate) fn process(self) -> Option<ProcessId> {
        if let Self::Process { id, .. } = self { Some(id) } else { None }
    }
}

/// The kind of a candidate's call. `Ask` is a request for the lease of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Read,
    Create { token: u64 },
    Update { token: u64 },
    Ask { token: u64 },
    Release { token: u64 },
}

/// The call that is in flight, if a call takes several requests: of a sequenced lock, or of several locks. A client makes one call
/// at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Call {
    pub(super) id: RequestId,
    pub(super) sent: TrueTime,
    /// The answer to some request was no true one.
    pub(super) was_deceived: bool,
    /// The writes that a read of several locks has shown.
    pub(super) shown: Shown,
    /// The highest number of a sequenced lock when the call began.
    pub(super) highest: u64,
    /// A read of a sequenced lock found no object although there is one.
    pub(super) was_blinded: bool,
}

impl Call {
    pub(super) fn begin(id: RequestId, sent: TrueTime) -> Self {
        Self { id, sent, ..Self::default() }
    }

    /// Records that the answer to a request of a call was no true one.
    pub(super) fn is_deceived(&mut self, id: RequestId) {
        self.was_deceived |= self.id == id;
    }
}

/// The number of writes of which a part may still be sent in the background.
const REMEMBERED: usize = 64;

/// The calls of a candidate for several locks.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The call that is in flight.
    pub(super) now: Call,
    /// The last writes, by their ids: a part of one may be sent when the next call has begun.
    writes: VecDeque<(Option<String>, RequestId, TrueTime)>,
}

impl Calls {
    pub(super) fn begin(&mut self, id: RequestId, sent: TrueTime, written: Option<&LeaderElectionRecord>) {
        self.now = Call::begin(id, sent);
        self.writes.extend(written.map(|record| (record.write_id.clone(), id, sent)));
        self.writes.drain(..self.writes.len().saturating_sub(REMEMBERED));
    }

    /// The call to which a write of a part belongs, and its time.
    pub(super) fn of(&self, record: Option<&LeaderElectionRecord>) -> (RequestId, TrueTime) {
        let id = record.and_then(|record| record.write_id.as_ref());
        let write = self.writes.iter().rev().find(|(write, ..)| id.is_some() && write.as_ref() == id);
        write.map_or((self.now.id, self.now.sent), |(_, id, sent)| (*id, *sent))
    }
}
