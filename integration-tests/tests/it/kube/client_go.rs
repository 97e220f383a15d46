//! Candidates of client-go and of this library on one Lease.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::{
    ConditionalStore as _, DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, ObjectStoreBasedLock as _,
    Timings,
};
use leaderelection_backends::kubernetes::KubernetesLeaseLock;
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_integration_tests::timings;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::go_candidate::{GoCandidate, View};
use crate::cloud::kube::Kube;

const PATIENCE: Duration = Duration::from_secs(120);

/// The lease of both kinds of candidates.
const LEASE: Duration = Duration::from_secs(3);

const RETRY: Duration = Duration::from_millis(300);

/// A term of one of our candidates: its token, its beginning, and the last known end of its validity.
#[derive(Clone, Copy, Debug)]
struct Term {
    token: u64,
    began: LocalInstant,
    valid_until: LocalInstant,
}

/// A candidate of this library in a task. Dropping it is a crash.
struct Ours {
    elector: Arc<DefaultLeaderElector>,
    terms: watch::Receiver<Vec<Term>>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Ours {
    fn start(kube: &Kube, name: &str) -> Self {
        let (told, terms) = watch::channel(Vec::new());
        let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| {
            let told = told.clone();
            async move {
                let (token, began) = (leadership.fencing_token(), SystemClock.now());
                told.send_modify(|terms: &mut Vec<Term>| {
                    terms.push(Term { token, began, valid_until: leadership.valid_until() });
                });
                loop {
                    tokio::select! {
                        () = leadership.lost() => break,
                        () = tokio::time::sleep(RETRY / 10) => {}
                    }
                    let valid_until = leadership.valid_until();
                    told.send_modify(|terms| {
                        if let Some(term) = terms.last_mut() {
                            term.valid_until = valid_until;
                        }
                    });
                }
            }
        });
        let lock = KubernetesLeaseLock::new(kube.lease_store(), name, "ours");
        let builder = LeaderElectionConfig::builder(lock, callbacks).timings(our_timings()).release_on_cancel(true);
        let elector = Arc::new(DefaultLeaderElector::new(builder.build().expect("timings that fit")));
        let cancel = CancellationToken::new();
        let (running, token) = (Arc::clone(&elector), cancel.clone());
        let task = tokio::spawn(async move { running.campaign(token).await.expect("the store is fit") });
        Self { elector, terms, cancel, task }
    }

    /// Waits until this candidate leads with this token.
    async fn leads(&self, token: u64) -> Term {
        let mut terms = self.terms.clone();
        let led = |terms: &Vec<Term>| terms.iter().any(|term| term.token == token);
        let found = timeout(PATIENCE, terms.wait_for(led)).await.expect("a leader in time").expect("it runs");
        *found.iter().find(|term| term.token == token).expect("it was found")
    }

    async fn knows(&self, leader: &str) {
        let mut handle = self.elector.handle();
        let waiting = async {
            while handle.leader().as_deref() != Some(leader) {
                handle.changed().await.expect("it runs");
            }
        };
        timeout(PATIENCE, waiting).await.expect("it hears of the leader");
    }

    async fn release(mut self) {
        self.cancel.cancel();
        (&mut self.task).await.expect("no panic");
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn our_timings() -> Timings {
    timings(3000, 2000, 300)
}

fn theirs(kube: &Kube, name: &str) -> GoCandidate {
    GoCandidate::start(kube.config(), name, "theirs", LEASE, RETRY)
}

/// Waits for a view of a candidate of client-go, and returns the time at which it was there.
async fn until(candidate: &GoCandidate, holds: impl FnMut(&View) -> bool) -> LocalInstant {
    let mut view = candidate.view.clone();
    timeout(PATIENCE, view.wait_for(holds)).await.expect("it happens").expect("it runs");
    SystemClock.now()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_takes_over_from_the_other_and_there_are_never_two() {
    let (kube, name) = (Kube::new().await, unique_name());

    // They create the Lease, and release it.
    let they = theirs(&kube, &name);
    until(&they, |view| view.leads == Some(0)).await;
    let we = Ours::start(&kube, &name);
    we.knows("theirs").await;
    assert!(we.terms.borrow().is_empty(), "they lead");
    let released = SystemClock.now();
    they.release().await;
    let term = we.leads(1).await;
    assert!(term.began >= released, "{term:?} began before {released:?}");

    // We release it.
    let they = theirs(&kube, &name);
    until(&they, |view| view.leader == "ours").await;
    let terms = we.terms.clone();
    assert!(they.view.borrow().leads.is_none(), "we lead");
    we.release().await;
    until(&they, |view| view.leads == Some(2)).await;
    assert_eq!(terms.borrow().len(), 1, "one term of ours");

    // They crash.
    let we = Ours::start(&kube, &name);
    we.knows("theirs").await;
    let crashed = SystemClock.now();
    drop(they);
    let term = we.leads(3).await;
    assert!(term.began >= crashed + LEASE - RETRY * 2, "{term:?} began too soon after {crashed:?}");

    // We crash.
    let they = theirs(&kube, &name);
    until(&they, |view| view.leader == "ours").await;
    let terms = we.terms.clone();
    drop(we);
    let taken = until(&they, |view| view.leads == Some(4)).await;
    let last = *terms.borrow().last().expect("a term");
    assert!(last.valid_until <= taken, "{last:?} reaches beyond {taken:?}");
    they.release().await;

    let store = kube.lease_store();
    let record =
        KubernetesLeaseLock::new(store.clone(), &name, "observer").get().await.expect("read").expect("a Lease");
    assert_eq!((record.record.holder_identity.as_str(), record.record.leader_transitions), ("", 4));
    store.discard(&name).await.expect("deleted");
}

/// A leader of ours renews several times in each second, for longer than a lease: a candidate of client-go must see all
/// of it, although it compares times by the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_of_client_go_waits_while_we_renew() {
    let (kube, name) = (Kube::new().await, unique_name());
    let we = Ours::start(&kube, &name);
    let term = we.leads(0).await;
    let they = theirs(&kube, &name);
    until(&they, |view| view.leader == "ours").await;
    let mut terms = we.terms.clone();
    let long_enough = |terms: &Vec<Term>| terms[0].valid_until >= term.began + LEASE * 3;
    timeout(PATIENCE, terms.wait_for(long_enough)).await.expect("it renews").expect("it runs");
    assert!(they.view.borrow().leads.is_none() && we.terms.borrow().len() == 1, "we lead");
    drop(they);
    we.release().await;
    kube.lease_store().discard(&name).await.expect("deleted");
}
