//! Clients of the Lease API and candidates of this library on one object: the former send their requests to a server of the
//! API, and the latter use the store.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt};
use leaderelection::{MemoryStore, ObjectLock, StoreErrorKind};
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_test_support::faulty::{Call, Fault, Faulty};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::api::Api;
use super::client_go::{renew_before_their_eyes, survive_a_late_release, take_turns};
use super::ours::Ours;
use super::stock::{Stock, held_by, program, spec};
use super::{LEASE, RETRY};
use crate::cloud::Service as _;
use crate::cloud::kube::Kube;
use crate::cloud::s3::S3;

type Store = Arc<dyn ConditionalStore>;

/// A folder of Leases in a store, and a server of them.
struct Place {
    store: Store,
    folder: String,
    kube: Kube,
    name: String,
}

impl Place {
    /// A folder behind a server whose store is `wrap`ped.
    async fn on<S: ConditionalStore>(store: Store, folder: String, wrap: impl FnOnce(Store) -> S) -> Self {
        let server = KubeApi::start_on(wrap(Arc::clone(&store)), &folder).await;
        Self { store, folder, kube: Kube::own(server).await, name: unique_name() }
    }

    async fn in_memory() -> Self {
        Self::on(Arc::new(MemoryStore::new()), String::new(), |store| store).await
    }

    async fn on_s3() -> Self {
        Self::on_s3_through(|store| store).await
    }

    async fn on_s3_through<S: ConditionalStore>(wrap: impl FnOnce(Store) -> S) -> Self {
        let s3 = S3::new().await;
        let folder = s3.folder().map(|folder| format!("{folder}/")).unwrap_or_default();
        Self::on(s3.store().await, format!("{folder}leases/"), wrap).await
    }

    /// The lock of the Lease.
    fn lock(&self, identity: &str) -> ObjectLock<Store> {
        let key = format!("{}default/{}", self.folder, self.name);
        ObjectLock::new(Arc::clone(&self.store), key, identity)
    }

    /// Erases what a deleted Lease leaves.
    async fn erase(self) {
        self.store.discard(self.lock("").key()).await.expect("deleted");
    }
}

/// Takes turns, renews, and survives a late release, at the same time.
async fn share(place: impl AsyncFn() -> Place) {
    let [turns, renewed, late] = [place().await, place().await, place().await];
    tokio::join!(
        take_turns(&turns.kube, &turns.name, || turns.lock("ours"), 1),
        renew_before_their_eyes(&renewed.kube, &renewed.name, renewed.lock("ours")),
        survive_a_late_release(&late.kube, &late.name, |identity| late.lock(identity)),
    );
    for place in [turns, renewed, late] {
        place.erase().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_takes_over_from_the_other_in_memory() {
    share(Place::in_memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_takes_over_from_the_other_on_s3() {
    share(Place::on_s3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stock_client_go_takes_over_is_killed_and_comes_back_on_s3() {
    let Some(program) = program() else { return };
    let here = Place::on_s3().await;
    let api = Api::of(&here.kube);
    for round in 0..3 {
        let they = Stock::start(&program, &here.kube, &here.name);
        let token = held_by(&api, &here.name, "theirs").await;
        assert_eq!(token, round * 3);
        let we = Ours::start(here.lock("ours"));
        we.follows("theirs").await;
        let killed = SystemClock.now();
        they.signal(Signal::KILL);
        let term = we.leads(token + 1).await;
        assert!(term.began >= killed + LEASE - RETRY * 2, "{term:?} began too soon after {killed:?}");
        drop(they);

        // It waits while ours renews, and leads at once when ours has released.
        let they = Stock::start(&program, &here.kube, &here.name);
        we.leads_on().await;
        assert_eq!(spec(&api, &here.name).await["holderIdentity"], "ours");
        let last = we.release().await;
        assert_eq!(held_by(&api, &here.name, "theirs").await, token + 2);
        assert!(last.until <= SystemClock.now());
        they.signal(Signal::TERM);
        held_by(&api, &here.name, "").await;
    }
    here.erase().await;
}

/// Every third write is committed and its answer is lost: one way or the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stock_client_go_loses_no_term_when_the_store_loses_answers() {
    let Some(program) = program() else { return };
    let writes = Arc::new(AtomicUsize::new(0));
    let here = Place::on_s3_through(|store| {
        let (faulty, writes) = (Faulty::around(store), Arc::clone(&writes));
        faulty.fail(move |call, _, _| match (call == Call::Put).then(|| writes.fetch_add(1, Relaxed) % 9)? {
            2 | 5 => Some(Fault::ApplyThen(StoreErrorKind::Ambiguous)),
            8 => Some(Fault::ApplyThenHang),
            _ => None,
        });
        faulty
    })
    .await;
    let api = Api::of(&here.kube);
    let they = Stock::start(&program, &here.kube, &here.name);
    held_by(&api, &here.name, "theirs").await;
    let acquired = spec(&api, &here.name).await["acquireTime"].take();
    let we = Ours::start(here.lock("ours"));
    we.follows("theirs").await;
    let began = Instant::now();
    while began.elapsed() < LEASE * 3 {
        let spec = spec(&api, &here.name).await;
        assert_eq!((&spec["holderIdentity"], &spec["acquireTime"]), (&"theirs".into(), &acquired), "{spec}");
        sleep(RETRY / 2).await;
    }
    assert!(writes.load(Relaxed) > 9, "each fault has happened");
    assert!(we.terms.borrow().is_empty(), "two lead: {:?}", we.terms.borrow());
    drop(they);
    we.leads(1).await;
    we.release().await;
    here.erase().await;
}
