//! A move from a Lease to another lock: a [`Majority`] of both beside candidates of client-go, which use the Lease only,
//! and beside candidates of the new lock only.

use std::time::Duration;

use leaderelection::implement::{ConditionalStoreExt, ListedObject};
use leaderelection::{LeaderElectionRecord, Majority, MemoryLock, MemoryStore, ObjectStoreBasedLock as _};
use leaderelection_backends::kubernetes::KubernetesLeaseLock;
use leaderelection_conformance::{Effort, check_lock};
use leaderelection_integration_tests::servers::unique_name;

use super::client_go::{renew_before_their_eyes, survive_a_late_release, take_turns, theirs, until};
use super::ours::Ours;
use crate::cloud::kube::Kube;

/// The key of the new lock.
const NEW: &str = "locks/scheduler";

fn both(kube: &Kube, name: &str, new: &MemoryStore, identity: &str) -> Majority {
    let old = KubernetesLeaseLock::new(kube.lease_store(), name, identity);
    Majority::both(old, new_lock(new, identity)).expect("one identity")
}

fn new_lock(new: &MemoryStore, identity: &str) -> MemoryLock {
    MemoryLock::new(new.clone(), NEW, identity)
}

async fn stored(new: &MemoryStore) -> LeaderElectionRecord {
    new_lock(new, "observer").get().await.expect("read").expect("a record").record
}

/// The new lock begins with a higher token than the Lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_of_both_locks_and_client_go_take_over_mutually() {
    let (kube, name, new) = (Kube::new().await, unique_name(), MemoryStore::new());
    let mut before = LeaderElectionRecord::new("", Duration::from_secs(1));
    before.leader_transitions = 41;
    new_lock(&new, "before").create(&before).await.expect("created");
    take_turns(&kube, &name, || both(&kube, &name, &new, "ours"), 42).await;
    assert_eq!(stored(&new).await.leader_transitions, 44, "the token of our last term");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_of_client_go_waits_while_a_leader_of_both_locks_renews() {
    let (kube, name) = (Kube::new().await, unique_name());
    renew_before_their_eyes(&kube, &name, both(&kube, &name, &MemoryStore::new(), "ours")).await;
}

/// The three rollouts and the way back. Each term has the token of the term before plus one, so there are no other terms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_moves_from_client_go_to_the_new_lock_and_back() {
    let (kube, name, new) = (Kube::new().await, unique_name(), MemoryStore::new());
    let they = theirs(&kube, &name);
    until(&they, |view| view.leads == Some(0)).await;
    let we = Ours::start(both(&kube, &name, &new, "both"));
    we.follows("theirs").await;
    they.release().await;
    we.leads(1).await;
    assert_eq!((stored(&new).await.holder_identity.as_str(), stored(&new).await.leader_transitions), ("both", 1));

    // A candidate of the new lock only waits while a leader of both renews, and takes over after a crash.
    let newest = Ours::start(new_lock(&new, "new"));
    newest.follows("both").await;
    we.leads_on().await;
    newest.follows("both").await;
    let last = we.crash();
    let term = newest.leads(2).await;
    assert!(term.began >= last.until, "{term:?} began before the end of {last:?}");

    // The way back. The Lease still names the process that has crashed.
    let we = Ours::start(both(&kube, &name, &new, "again"));
    we.follows("new").await;
    newest.leads_on().await;
    we.follows("new").await;
    let last = newest.release().await;
    let term = we.leads(3).await;
    assert!(term.began >= last.until, "{term:?} began before the end of {last:?}");

    let they = theirs(&kube, &name);
    until(&they, |view| view.leader == "again").await;
    let last = we.release().await;
    let taken = until(&they, |view| view.leads == Some(4)).await;
    assert!(last.until <= taken, "{last:?} reaches beyond {taken:?}");
    assert!(stored(&new).await.is_released(), "the new lock is released as well");
    they.release().await;
    kube.lease_store().discard(&name).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_release_of_client_go_ends_no_term_of_both_locks() {
    let (kube, name, new) = (Kube::new().await, unique_name(), MemoryStore::new());
    survive_a_late_release(&kube, &name, |identity| both(&kube, &name, &new, identity)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lock_made_of_a_lease_and_another_lock_keeps_its_contract() {
    let (kube, prefix) = (Kube::new().await, unique_name());
    let (leases, other) = (kube.lease_store(), MemoryStore::new());
    for lease_is_old in [true, false] {
        let (leases, other, prefix) = (leases.clone(), other.clone(), prefix.clone());
        let new_lock = move |key: &str, identity: &str| {
            let key = format!("{prefix}-{lease_is_old}-{key}");
            let lease = KubernetesLeaseLock::new(leases.clone(), &key, identity);
            let other = MemoryLock::new(other.clone(), &key, identity);
            let both = if lease_is_old { Majority::both(lease, other) } else { Majority::both(other, lease) };
            both.expect("one identity")
        };
        check_lock(new_lock, Effort { rounds: 4, racers: 16 }).await;
    }
    for key in ListedObject::keys(leases.list(&prefix).await.expect("a listing")) {
        leases.discard(&key).await.expect("deleted");
    }
}
