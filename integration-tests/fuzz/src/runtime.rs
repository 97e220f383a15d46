//! A runtime for targets that await.

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    // One for all inputs, and on the thread of the target, whose memory is measured.
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_all().build().expect("a runtime can be made"));
}

/// Waits for a future.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow(|runtime| runtime.block_on(future))
}
