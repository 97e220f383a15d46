//! The door of a listening socket, which can be shut while nobody has to go.

use std::future::pending;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The way to the connections of a socket. A clone is the same door.
#[derive(Clone, Debug, Default)]
pub(super) struct Door {
    shut: CancellationToken,
    inside: TaskTracker,
}

/// A connection that came through the door, until it is dropped.
pub(super) type Inside = TaskTrackerToken;

impl Door {
    /// Lets the next one in. Never completes once the door is shut.
    pub(super) async fn open_to<T>(&self, next: impl Future<Output = T>) -> (Inside, T) {
        let came = tokio::select! {
            biased;
            () = self.shut.cancelled() => pending().await,
            came = next => came,
        };
        (self.inside.token(), came)
    }

    /// Shuts the door, and waits until all who came in have left.
    pub(super) async fn shut(&self) {
        self.shut.cancel();
        self.inside.close();
        self.inside.wait().await;
    }
}
