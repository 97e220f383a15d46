//! The names of what a run has, and the senders and the kinds of its requests.

/// One process of a candidate, from its start until it ends or crashes.
pub(crate) type ProcessId = usize;

/// The number of an intervention in its run.
pub(crate) type PlanId = usize;

/// The number of a request in its run.
pub(crate) type RequestId = u32;

/// The number of a successful write in its run.
pub(crate) type WriteNumber = u64;

/// The writes that a read has shown, in the old lock and in the new one, or in the only lock; 0 for none.
pub(crate) type Shown = [WriteNumber; 2];

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

/// The kind of a candidate's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Read,
    Create {
        token: u64,
    },
    Update {
        token: u64,
    },
    /// A request for the lease of another.
    Ask {
        token: u64,
    },
    Release {
        token: u64,
    },
}
