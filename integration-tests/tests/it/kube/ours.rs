//! A candidate of this library in the test's process.

use std::sync::{Arc, LazyLock};

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectStoreBasedLock, Timings,
};
use leaderelection_integration_tests::timings;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, RETRY};

/// A term of one of our candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) token: u64,
    pub(super) began: LocalInstant,
    /// The last known end of its validity, or the end of its work.
    pub(super) until: LocalInstant,
}

/// A candidate of this library in a task. Dropping it is a crash.
pub(super) struct Ours {
    elector: Arc<DefaultLeaderElector>,
    pub(super) terms: watch::Receiver<Vec<Term>>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Ours {
    pub(super) fn start(lock: impl ObjectStoreBasedLock) -> Self {
        let (told, terms) = watch::channel(Vec::new());
        let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| note(leadership, told.clone()));
        let builder = LeaderElectionConfig::builder(lock, callbacks).timings(our_timings()).release_on_cancel(true);
        let elector = Arc::new(DefaultLeaderElector::new(builder.build().expect("timings that fit")));
        let cancel = CancellationToken::new();
        let (running, token) = (Arc::clone(&elector), cancel.clone());
        let task =
            tokio::spawn(async move { running.campaign(token.cancelled_owned()).await.expect("the store is fit") });
        Self { elector, terms, cancel, task }
    }

    /// Waits until this candidate leads with this token.
    pub(super) async fn leads(&self, token: u64) -> Term {
        let mut terms = self.terms.clone();
        let led = |terms: &Vec<Term>| terms.iter().any(|term| term.token == token);
        let found = timeout(PATIENCE, terms.wait_for(led)).await.expect("a leader in time").expect("it runs");
        *found.iter().find(|term| term.token == token).expect("it was found")
    }

    /// Waits until this candidate knows that another one leads. It has never led itself.
    pub(super) async fn follows(&self, leader: &str) {
        let mut handle = self.elector.handle();
        let waiting = async {
            while handle.leader().as_deref() != Some(leader) {
                handle.changed().await.expect("it runs");
            }
        };
        timeout(PATIENCE, waiting).await.expect("it learns who leads");
        assert!(self.terms.borrow().is_empty(), "{leader} leads");
    }

    /// Waits until this candidate has renewed its first term for more than a lease from now on.
    pub(super) async fn leads_on(&self) {
        let (lease, deadline) = (our_timings().lease_duration(), our_timings().renew_deadline());
        let last = SystemClock.now() + lease * 5 / 4;
        let long_enough = |terms: &Vec<Term>| terms.first().is_some_and(|term| term.until >= last + deadline);
        let mut terms = self.terms.clone();
        timeout(PATIENCE, terms.wait_for(long_enough)).await.expect("it renews").expect("it runs");
        assert_eq!(terms.borrow().len(), 1, "one term");
    }

    /// Ends this candidate, and returns its last term after the release.
    pub(super) async fn release(mut self) -> Term {
        self.end().await;
        self.last_term()
    }

    /// Ends this candidate, which may never have led.
    pub(super) async fn end(&mut self) {
        self.cancel.cancel();
        (&mut self.task).await.expect("no panic");
    }

    /// Crashes, and returns the last term as it was before.
    pub(super) fn crash(self) -> Term {
        let last = self.last_term();
        self.task.abort();
        last
    }

    fn last_term(&self) -> Term {
        *self.terms.borrow().last().expect("a term")
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The timings of all candidates, which are not those of a later moment.
fn our_timings() -> Timings {
    static TIMINGS: LazyLock<Timings> = LazyLock::new(|| timings(5000, 3400, 300));
    *TIMINGS
}

/// The work of a term, which writes the term down.
async fn note(leadership: Leadership, told: watch::Sender<Vec<Term>>) {
    let began = SystemClock.now();
    let term = Term { token: leadership.fencing_token().into(), began, until: leadership.valid_until() };
    told.send_modify(|terms| terms.push(term));
    let until = |moment| {
        told.send_modify(|terms| {
            if let Some(term) = terms.last_mut() {
                term.until = moment;
            }
        });
    };
    loop {
        tokio::select! {
            _ = leadership.lost() => break,
            () = tokio::time::sleep(RETRY / 10) => until(leadership.valid_until()),
        }
    }
    until(SystemClock.now());
}
