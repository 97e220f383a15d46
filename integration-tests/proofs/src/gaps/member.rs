//! One process of the fleet, as a task.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::{LeaderCallbacks, Session};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::watch::{Cause, Watch};
use crate::counted::Client;
use crate::switchboard::Switchboard;

/// A running process. Dropping it is a crash.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) number: usize,
    client: Client,
    cause: Arc<Mutex<Cause>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Member {
    /// Starts a process that competes for all locks of the watch.
    pub(super) fn start(
        number: usize,
        (client, prefix): (Client, &str),
        locks: usize,
        watch: &Watch,
        board: Option<&Switchboard>,
        balances: bool,
    ) -> Self {
        let session = Session::builder(client.clone(), prefix, format!("node-{number}"));
        let session = session.clock(TokioClock::new()).seed(number as u64).balance(balances).build().expect("settings");
        if let Some(board) = board {
            // The task ends by itself when the session does.
            drop(board.connect(&session));
        }
        let (stop, cause) = (CancellationToken::new(), Arc::new(Mutex::new(Cause::HandOver)));
        let callbacks = {
            let (watch, cause) = (watch.clone(), Arc::clone(&cause));
            move |lock: &str| {
                let (watch, cause) = (watch.clone(), Arc::clone(&cause));
                let lock = lock.parse().expect("a number");
                LeaderCallbacks::new().on_start_leading(move |leadership| {
                    let term = watch.lead(lock, number, &leadership, &cause);
                    async move {
                        leadership.lost().await;
                        drop(term);
                    }
                })
            }
        };
        let token = stop.clone();
        let task = tokio::spawn(async move {
            let names = (0..locks).map(|lock| lock.to_string());
            session.lead_all(names, callbacks, token.cancelled_owned()).await.expect("good names");
        });
        Self { number, client, cause, stop, task }
    }

    /// Stops the process gracefully.
    pub(super) async fn stop(mut self) {
        self.will_end_by(Cause::Stop);
        self.stop.cancel();
        (&mut self.task).await.expect("no panic");
    }

    /// Kills the process just after a renewal of its session.
    pub(super) async fn crash(self) -> Instant {
        let renewed_at = || self.client.renewals().committed_at.expect("an open session");
        let before = renewed_at();
        while renewed_at() == before {
            sleep(Duration::from_millis(1)).await;
        }
        self.will_end_by(Cause::Crash);
        renewed_at()
    }

    fn will_end_by(&self, cause: Cause) {
        *self.cause.lock().expect("no panic under the lock") = cause;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.task.abort();
    }
}
