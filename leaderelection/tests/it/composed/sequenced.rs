//! The features of a lock on a sequenced store, beside those that every kind of store has by one test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use leaderelection::history::{self, Retention};
use leaderelection::implement::ConditionalStore as _;
use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfigBuilder, LeaderHandle, Majority, ObjectLock};
use leaderelection_sequenced::{MemoryCreateOnlyStore, SequencedStore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{is_led_by, shows};
use crate::metrics::recorded;
use crate::support::{Journal, LEASE, RETRY, builder};

const KEY: &str = "locks/x";
/// The longest delay of a takeover by the spread of takeovers.
const SPREAD: Duration = Duration::from_millis(100);

type Lock = ObjectLock<SequencedStore<MemoryCreateOnlyStore>>;

fn lock(objects: &MemoryCreateOnlyStore, identity: &str) -> Lock {
    ObjectLock::new(SequencedStore::new(objects.clone()), KEY, identity)
}

/// A process that campaigns.
struct Node {
    handle: LeaderHandle,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Node {
    fn of(config: LeaderElectionConfigBuilder) -> Self {
        let elector = DefaultLeaderElector::new(config.name("x").release_on_cancel(true).build().unwrap());
        let (handle, stop) = (elector.handle(), CancellationToken::new());
        let token = stop.clone();
        Self {
            handle,
            stop,
            task: tokio::spawn(async move { elector.campaign(token.cancelled_owned()).await.unwrap() }),
        }
    }

    fn start(
        objects: &MemoryCreateOnlyStore,
        identity: &str,
        set: impl FnOnce(LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder,
    ) -> Self {
        Self::of(set(builder(lock(objects, identity), Journal::default().callbacks())))
    }

    /// Waits until the process leads, and returns the time that this took.
    async fn leads(&mut self) -> Duration {
        let since = Instant::now();
        shows(&mut self.handle, LeaderHandle::is_leader).await;
        since.elapsed()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_rank_waits_its_retry_periods_longer() {
    assert_eq!(Node::start(&MemoryCreateOnlyStore::new(), "a", |config| config.rank(3)).leads().await, RETRY * 3);
}

#[tokio::test(start_paused = true)]
async fn a_better_candidate_takes_the_lease_back() {
    let objects = MemoryCreateOnlyStore::new();
    let mut worse = Node::start(&objects, "b", |config| config.rank(1));
    worse.leads().await;
    let took = Node::start(&objects, "a", |config| config.failback(true)).leads().await;
    assert!((LEASE..=LEASE + RETRY * 4).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_follower_reads_once_per_interval() {
    let mut hourly = Vec::new();
    for interval in [RETRY, RETRY * 4] {
        let (objects, requests) = (MemoryCreateOnlyStore::new(), Arc::new(AtomicUsize::new(0)));
        Node::start(&objects, "a", |config| config).leads().await;
        let count = Arc::clone(&requests);
        let counted = objects.with_hook(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }.boxed()
        });
        let mut follower = Node::start(&counted, "b", |config| config.follower_interval(interval));
        shows(&mut follower.handle, is_led_by("a")).await;
        let before = requests.load(Ordering::Relaxed);
        sleep(Duration::from_secs(3600)).await;
        hourly.push(requests.load(Ordering::Relaxed) - before);
    }
    // Reads 2 to 4.4 s apart, and 8 to 10.4 s apart.
    assert!(hourly[1] * 2 < hourly[0], "{hourly:?}");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_beside_a_dead_leader_trusts_the_clock_of_the_store() {
    let objects = MemoryCreateOnlyStore::new();
    let mut dead = Node::start(&objects, "a", |config| config);
    dead.leads().await;
    dead.task.abort();
    sleep(LEASE * 2).await;
    let took = Node::start(&objects, "b", |config| config.trust_store_clock(RETRY)).leads().await;
    assert!(took <= SPREAD, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_has_a_history() {
    let objects = MemoryCreateOnlyStore::new();
    for identity in ["a", "b"] {
        let mut node = Node::start(&objects, identity, |config| config.keep_history(Retention::terms(10)));
        node.leads().await;
        node.stop().await;
    }
    let kept = SequencedStore::new(objects).get(&history::key_of(KEY)).await.unwrap().unwrap();
    let kept = history::parse(&kept.body).unwrap();
    let kept: Vec<_> = kept.iter().map(|term| (term.holder.as_str(), term.fencing_token)).collect();
    assert_eq!(kept, [("a", 1.into()), ("b", 2.into())]);
}

#[test]
fn a_lock_is_told_in_the_figures() {
    recorded(|figures| async move {
        Node::start(&MemoryCreateOnlyStore::new(), "a", |config| config).leads().await;
        let seen = figures.take();
        assert_eq!(seen.get("leader_election_master_status{name=x}"), Some(&1.0), "{seen:?}");
        assert_eq!(seen.get("leader_election_terms_total{name=x}"), Some(&1.0), "{seen:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn one_lock_is_made_of_several_sequenced_ones() {
    let stores = [0, 1, 2].map(|_| MemoryCreateOnlyStore::new());
    let node = |identity: &str| {
        let majority = Majority::of(stores.each_ref().map(|objects| lock(objects, identity))).unwrap();
        Node::of(builder(majority, Journal::default().callbacks()))
    };
    let mut a = node("a");
    a.leads().await;
    let mut b = node("b");
    shows(&mut b.handle, is_led_by("a")).await;
    a.stop().await;
    b.leads().await;
    assert_eq!(b.handle.fencing_token(), Some(2.into()));
}
