//! The gate of a listening socket, which can be shut while nobody has to go.

use std::future::pending;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The way to the connections of a socket. A clone is the same gate.
#[derive(Clone, Debug, Default)]
pub(super) struct AcceptGate {
    shut: CancellationToken,
    inside: TaskTracker,
    unanswered: TaskTracker,
}

/// A connection that came through the gate, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    gate: AcceptGate,
    _inside: TaskTrackerToken,
    /// `None` while the last thing that happened is an answer.
    unanswered: Option<TaskTrackerToken>,
}

impl Admitted {
    pub(super) fn has_asked(&mut self) {
        self.unanswered.get_or_insert_with(|| self.gate.unanswered.token());
    }

    pub(super) fn was_answered(&mut self) {
        self.unanswered = None;
    }
}

impl AcceptGate {
    /// Lets the next one in. Never completes once the gate is shut.
    pub(super) async fn open_to<T>(&self, next: impl Future<Output = T>) -> (Admitted, T) {
        // Before anybody comes: or else `shut` sees nobody while one stands in the gate.
        let mut inside = Admitted { gate: self.clone(), _inside: self.inside.token(), unanswered: None };
        let came = tokio::select! {
            biased;
            () = self.shut.cancelled() => None,
            came = next => Some(came),
        };
        let Some(came) = came else {
            drop(inside);
            return pending().await;
        };
        // Who has just come is going to ask.
        inside.has_asked();
        (inside, came)
    }

    /// Shuts the gate, and waits until all who came in have left. Those who have an answer get `patience` to leave; those
    /// who wait for one get `longest`, because only a client who has had an answer on its connection asks again when that
    /// connection ends.
    pub(super) async fn shut(&self, patience: Duration, longest: Duration) {
        self.shut.cancel();
        self.inside.close();
        self.unanswered.close();
        let all = timeout(patience, self.inside.wait()).await;
        if all.is_err() {
            let _ = timeout(longest.saturating_sub(patience), self.unanswered.wait()).await;
        }
    }
}
