//! The events of a simulated run, and the first promise that was found broken.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Display, Formatter};
use std::time::Duration;

/// The breach of a promise.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The name of the promise.
    pub property: String,
    /// The time since the start of the run.
    pub at: Duration,
    /// The breach in words.
    pub what: String,
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { property, at, what } = self;
        write!(f, "{property} at {:.3}s: {what}", at.as_secs_f64())
    }
}

/// The last events of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The number of events to keep.
    most: usize,
    last: VecDeque<String>,
    skipped: usize,
    violation: Option<Violation>,
}

impl Timeline {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(crate) fn log(&mut self, now: Duration, what: impl FnOnce() -> String) {
        if self.most > 0 {
            if self.last.len() == self.most {
                self.last.pop_front();
                self.skipped += 1;
            }
            self.last.push_back(format!("{:>11.3}s {}\n", now.as_secs_f64(), what()));
        }
    }

    /// Records the first violation only, because later violations may be its consequences.
    pub(crate) fn violated(&mut self, now: Duration, property: impl Debug, what: impl Into<String>) {
        let new = || Violation { property: format!("{property:?}"), at: now, what: what.into() };
        self.violation.get_or_insert_with(new);
    }

    pub(crate) fn demand(&mut self, now: Duration, holds: bool, property: impl Debug, what: impl FnOnce() -> String) {
        if !holds {
            self.violated(now, property, what());
        }
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(crate) fn story(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!("... {skipped} earlier events\n"),
        };
        self.last.iter().fold(skipped, |story, line| story + line)
    }
}
