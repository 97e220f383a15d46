//! Threads for calls that block.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use leaderelection::{StoreError, StoreErrorKind};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

type Answer<T> = Result<T, StoreError>;

/// Begins `call` on a thread of the runtime. Panics outside of a runtime.
///
/// A runtime that has no thread, and gets none from the system, panics and leaves the call in its queue. Other calls would
/// wait for it, and a write would be made when nobody expects it any more. So the call is taken out.
pub(super) fn begin<T: Send + 'static>(
    object: impl Display,
    call: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<JoinHandle<Answer<T>>> {
    let runtime = Handle::current();
    let call = Arc::new(Mutex::new(Some(call)));
    let take = |call: &Mutex<Option<_>>| call.lock().unwrap_or_else(PoisonError::into_inner).take();
    let queued = Arc::clone(&call);
    let run = move || take(&queued).map_or_else(|| Err(shortage("", StoreErrorKind::Rejected)), |call| call());
    catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(run))).map_err(|_| {
        // Another call may have got a thread meanwhile, which took this one along.
        let kind = if take(&call).is_some() { StoreErrorKind::Rejected } else { StoreErrorKind::Ambiguous };
        shortage(object, kind)
    })
}

fn shortage(object: impl Display, kind: StoreErrorKind) -> StoreError {
    let advice = "the system gives no thread; raise the limit of processes (pids.max, TasksMax=, ulimit -u)";
    StoreError::new(kind, format!("{object}: {advice}"))
}
