//! Candidates of client-go and of this library on one Lease.

use leaderelection::ObjectStoreBasedLock;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::implement::ConditionalStoreExt;
use leaderelection_backends::kubernetes::KubernetesLeaseLock;
use leaderelection_integration_tests::servers::unique_name;
use tokio::time::timeout;

use super::go_candidate::{GoCandidate, View};
use super::ours::Ours;
use super::{LEASE, PATIENCE, RETRY};
use crate::cloud::kube::Kube;

pub(super) fn theirs(kube: &Kube, name: &str) -> GoCandidate {
    GoCandidate::start(kube.config(), name, "theirs", LEASE, RETRY)
}

/// Waits for a view of a candidate of client-go, and returns the moment since which the candidate has had it.
pub(super) async fn until(candidate: &GoCandidate, holds: impl FnMut(&View) -> bool) -> LocalInstant {
    let mut view = candidate.view.clone();
    timeout(PATIENCE, view.wait_for(holds)).await.expect("it happens").expect("it runs").since
}

/// Lets candidates of both kinds take the Lease `name` from each other, after a release and after a crash of each. The
/// tokens of all terms follow each other without a gap, so there are no other terms. Our first one has the token `first`.
pub(super) async fn take_turns<L: ObjectStoreBasedLock>(kube: &Kube, name: &str, ours: impl Fn() -> L, first: u64) {
    // They create the Lease, and release it.
    let they = theirs(kube, name);
    until(&they, |view| view.leads == Some(0)).await;
    let we = Ours::start(ours());
    we.follows("theirs").await;
    let released = SystemClock.now();
    they.release().await;
    let term = we.leads(first).await;
    assert!(term.began >= released, "{term:?} began before {released:?}");

    // We release it.
    let they = theirs(kube, name);
    until(&they, |view| view.leader == "ours").await;
    assert!(they.view.borrow().leads.is_none(), "we lead");
    let last = we.release().await;
    let taken = until(&they, |view| view.leads == Some(first + 1)).await;
    assert!(last.token == first && last.until <= taken, "{last:?} reaches beyond {taken:?}");

    // They crash.
    let we = Ours::start(ours());
    we.follows("theirs").await;
    let crashed = SystemClock.now();
    drop(they);
    let term = we.leads(first + 2).await;
    assert!(term.began >= crashed + LEASE - RETRY * 2, "{term:?} began too soon after {crashed:?}");

    // We crash.
    let they = theirs(kube, name);
    until(&they, |view| view.leader == "ours").await;
    assert!(they.view.borrow().leads.is_none(), "we lead");
    let last = we.crash();
    let taken = until(&they, |view| view.leads == Some(first + 3)).await;
    assert!(last.token == first + 2 && last.until <= taken, "{last:?} reaches beyond {taken:?}");
    they.release().await;

    let store = kube.lease_store();
    let record = KubernetesLeaseLock::new(store.clone(), name, "observer").get().await.expect("read").expect("a Lease");
    assert_eq!((record.record.holder_identity.as_str(), record.record.leader_transitions), ("", first + 3));
    store.discard(name).await.expect("deleted");
}

/// A leader of ours renews several times in each second, for longer than a lease: a candidate of client-go must see all
/// of it, although it compares times by the second.
pub(super) async fn renew_before_their_eyes(kube: &Kube, name: &str, ours: impl ObjectStoreBasedLock) {
    let we = Ours::start(ours);
    we.leads(1).await;
    let they = theirs(kube, name);
    until(&they, |view| view.leader == "ours").await;
    we.leads_on().await;
    assert!(they.view.borrow().leads.is_none(), "we lead");
    drop(they);
    we.release().await;
    kube.lease_store().discard(name).await.expect("deleted");
}

/// A leader of client-go is frozen beyond its lease, and releases when it goes on what one of our two candidates holds by
/// then. Our leader goes on, and the other one waits.
pub(super) async fn survive_a_late_release<L: ObjectStoreBasedLock>(kube: &Kube, name: &str, ours: impl Fn(&str) -> L) {
    let they = theirs(kube, name);
    until(&they, |view| view.leads == Some(0)).await;
    let they = they.freeze().await;
    let we = Ours::start(ours("ours"));
    we.leads(1).await;
    let other = Ours::start(ours("another"));
    other.follows("ours").await;
    they.goes_on_and_releases().await;
    we.leads_on().await;
    assert!(other.terms.borrow().is_empty(), "two of ours lead: {:?}", other.terms.borrow());
    we.release().await;
    other.leads(2).await;
    other.release().await;
    kube.lease_store().discard(name).await.expect("deleted");
}

fn lease_lock(kube: &Kube, name: &str, identity: &str) -> KubernetesLeaseLock {
    KubernetesLeaseLock::new(kube.lease_store(), name, identity)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_takes_over_from_the_other_and_there_are_never_two() {
    let (kube, name) = (Kube::new().await, unique_name());
    take_turns(&kube, &name, || lease_lock(&kube, &name, "ours"), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_of_client_go_waits_while_we_renew() {
    let (kube, name) = (Kube::new().await, unique_name());
    renew_before_their_eyes(&kube, &name, lease_lock(&kube, &name, "ours")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_release_of_client_go_does_not_make_two_of_ours_lead() {
    let (kube, name) = (Kube::new().await, unique_name());
    survive_a_late_release(&kube, &name, |identity| lease_lock(&kube, &name, identity)).await;
}
