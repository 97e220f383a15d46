//! The events of a simulated run, and the first promise that was found broken.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Display, Formatter};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

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

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run<S> {
    /// The amount of simulated time.
    pub simulated: Duration,
    /// The numbers of the run.
    pub stats: S,
    /// The broken promise, if there is one.
    pub violation: Option<Violation>,
    /// The last events.
    pub story: String,
}

/// The last events of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The time since the start of the run.
    pub(crate) now: Duration,
    /// The number of events to keep.
    most: usize,
    last: VecDeque<String>,
    skipped: usize,
    violation: Option<Violation>,
    /// Is cancelled when a promise is broken.
    pub(crate) is_broken: CancellationToken,
}

impl Timeline {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(crate) fn log(&mut self, what: impl FnOnce() -> String) {
        if self.most > 0 {
            if self.last.len() == self.most {
                self.last.pop_front();
                self.skipped += 1;
            }
            self.last.push_back(format!("{:>11.3}s {}\n", self.now.as_secs_f64(), what()));
        }
    }

    /// Records the first violation only, because later violations may be its consequences.
    pub(crate) fn violated(&mut self, property: impl Debug, what: impl Into<String>) {
        let new = || Violation { property: format!("{property:?}"), at: self.now, what: what.into() };
        self.violation.get_or_insert_with(new);
        self.is_broken.cancel();
    }

    pub(crate) fn demand(&mut self, holds: bool, property: impl Debug, what: impl FnOnce() -> String) {
        if !holds {
            self.violated(property, what());
        }
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The run as its simulation tells it.
    pub(crate) fn end<S>(self, stats: S) -> Run<S> {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!("... {skipped} earlier events\n"),
        };
        let story = self.last.iter().fold(skipped, |story, line| story + line);
        Run { simulated: self.now, stats, violation: self.violation, story }
    }
}
