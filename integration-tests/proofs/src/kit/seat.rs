//! A node's terms of one lock and their work, as a driver sees them.

/// The work of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Work {
    /// There is no work.
    #[default]
    None,
    /// The term has started, and its work was not polled yet.
    Pending,
    /// The work runs.
    Running,
    /// The machine has ordered the driver to drop the work, and the work still runs.
    Dropped,
    /// The machine no longer waits for the work, and the work still runs.
    Abandoned,
}

/// The terms of one process for one lock.
#[derive(Clone, Debug, Default, Hash)]
pub struct Seat {
    /// The term that was valid when the model last checked.
    valid: Option<u64>,
    /// The last term of this process that has ended.
    ended: Option<u64>,
    /// `true` after an order to start a term, until the order to stop that term.
    pub leads: bool,
    /// The work of the term.
    pub work: Work,
    /// `true` if the machine has to learn at once that the work has ended.
    pub ends_now: bool,
}

impl Seat {
    /// Returns `true` if work runs.
    pub fn works(&self) -> bool {
        matches!(self.work, Work::Running | Work::Dropped | Work::Abandoned)
    }

    /// Returns `true` if this process has begun the term with this token.
    pub fn has_begun(&self, token: u64) -> bool {
        self.valid.max(self.ended) >= Some(token)
    }

    /// Remembers the term that is valid now. Returns `true` if a term that had ended is valid again.
    pub fn revives(&mut self, valid: Option<u64>) -> bool {
        if self.valid != valid {
            self.ended = self.ended.max(self.valid);
            self.valid = valid;
        }
        valid.is_some() && valid <= self.ended
    }

    /// Carries out the order to stop a term.
    pub fn stop(&mut self, ends_late: bool) {
        self.leads = false;
        self.ends_now = !ends_late && self.work == Work::Running;
    }

    /// Carries out the order to drop the work.
    pub fn drop_work(&mut self) {
        if self.work == Work::Running {
            self.work = Work::Dropped;
        }
    }
}
