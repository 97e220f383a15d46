//! Every interleaving of threads, where threads share something.
//!
//! `loom` runs all interleavings of a few threads on the library's own source, with its mutex instead of the standard one.
#![allow(dead_code, clippy::unwrap_used, reason = "the source has callers elsewhere; a test fails by panicking")]

mod stage;
mod terms;
mod windows;

use stage::leadership;

#[path = "../../../../leaderelection/src/elector/term.rs"]
mod term;
#[path = "../../../../leaderelection/src/leadership/window.rs"]
mod window;

/// The library's modules that this source uses.
mod clock {
    pub(crate) use leaderelection::clock::{Clock, LocalInstant};
}
mod election {
    pub(crate) use leaderelection::election::{Command, Input, Term, TermEndReason, WorkEnd};
}
mod config {
    pub(crate) mod callbacks {
        use std::pin::Pin;

        use crate::config::work_outcome::Done;
        use crate::leadership::Leadership;

        pub(crate) type Start = Box<dyn FnOnce(Leadership) -> Pin<Box<dyn Future<Output = Done> + Send>> + Send>;
        pub(crate) type OnStop = dyn Fn(&Leadership, Option<&str>) + Send + Sync;
    }
    pub(crate) mod work_outcome {
        use crate::election::WorkEnd;

        pub(crate) struct Done {
            pub(crate) end: WorkEnd,
            pub(crate) error: Option<String>,
        }
    }
}
mod handle {
    pub(crate) use crate::stage::status;
}
mod util {
    pub(crate) use crate::stage::sync;
}

/// Runs all interleavings in which threads are interrupted twice at most. What they share has one lock, so that a mistake
/// needs no more.
fn explore(history: impl Fn() + Send + Sync + 'static) {
    let mut explorer = loom::model::Builder::new();
    explorer.preemption_bound = Some(2);
    explorer.check(history);
}
