//! Connections that stay open and silent, as behind a firewall that has forgotten them, beside good new ones.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject};
use leaderelection::lock::TimeLimit;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Majority, MemoryStore, ObjectLock, Session,
    Timings,
};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::relay::Relay;
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs, Options};
use leaderelection_integration_tests::{address, peers, timings};
use leaderelection_peers::DEFAULT_PATH;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::calls::Call::{self, Get, List};
use crate::cloud::Cloud;

/// The calls at a time, each of which has a connection of its own in HTTP/1.1.
const AT_ONCE: usize = 8;

/// The later calls, one by one.
const LATER: usize = 5;

/// The time that a call may take over a silent connection. A fresh one has the store's own limit.
const SHORT: Duration = Duration::from_millis(300);

/// The locks of a session.
const LOCKS: usize = 60;
const MANY_LOCKS: usize = 300;

/// The time for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks that one call without an answer is enough: the next one takes a new connection, and those after it the same.
async fn one_loss_is_enough(relay: &Relay, store: &dyn ConditionalStore, call: Call, connections: usize) {
    for answer in join_all((0..AT_ONCE).map(|_| call.on(store))).await {
        answer.expect("an answer");
    }
    let kept = relay.accepted();
    assert!(kept >= connections, "{kept} connections");
    relay.forget();
    // As an elector gives a call up, and not the store.
    TimeLimit::new(SHORT).answer(call.on(store)).await.expect_err("a silent connection");
    for _ in 0..LATER {
        call.on(store).await.expect("a new connection");
    }
    let new = relay.accepted() - kept;
    assert!((1..LATER).contains(&new), "{new} connections for {LATER} calls");
}

async fn on(cloud: Arc<Cloud>) {
    if let Some(relay) = cloud.relay().await {
        one_loss_is_enough(&relay, &*cloud.store_at(relay.url()).await, Get, 2).await;
    }
}

/// A term at the default timings ends if the time is over before the elector has a connection that answers. It competes with
/// the connections of other requests of its process.
async fn a_term_goes_on(cloud: Arc<Cloud>) {
    let Some(relay) = cloud.relay().await else { return };
    let (key, store) = (cloud.key(), cloud.store_at(relay.url()).await);
    let lock = ObjectLock::new(Arc::clone(&store), &key, "node-1");
    let callbacks = LeaderCallbacks::new().on_start_leading(async |leadership| leadership.lost().await);
    let elector =
        DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, callbacks).build().expect("timings that fit"));
    let mut handle = elector.handle();
    let mut running = JoinSet::new();
    running.spawn(async move { elector.campaign(pending()).await });
    let term = timeout(PATIENCE, handle.elected()).await.expect("in vain").expect("it runs");
    for answer in join_all((0..AT_ONCE).map(|_| Get.on(&*store))).await {
        answer.expect("an answer");
    }
    relay.forget();
    let forgotten = Instant::now();
    timeout(PATIENCE, handle.next_error()).await.expect("in vain").expect("it runs");
    // Straight from the server, where a renewal is another version.
    let direct = cloud.store().await;
    let version = async || direct.get(&key).await.expect("a read").map(|found| found.version);
    for renewal in ["the first", "another"] {
        let last = version().await;
        eventually(async || version().await != last).await;
        println!("{}: {renewal} good renewal after {:.1?}", store.describe(&key), forgotten.elapsed());
    }
    assert!(term.is_valid(), "the term ended: {:?}", handle.last_error());
    cloud.clear().await;
}

macro_rules! on_each_store {
    ($($cloud:ident)*) => { $(
        mod $cloud {
            #[tokio::test]
            async fn one_loss_of_several_connections_is_enough() {
                super::on(crate::cloud::Cloud::$cloud().await).await;
            }

            #[cfg(feature = "all-tests")]
            #[tokio::test]
            async fn a_term_at_the_default_timings_goes_on() {
                super::a_term_goes_on(crate::cloud::Cloud::$cloud().await).await;
            }
        }
    )* };
}

on_each_store! {
    s3 express azure gcs kube object_store_s3 object_store_azure opendal_s3 opendal_azure opendal_oss
}

#[tokio::test]
async fn control_of_gcs() {
    let fake = FakeGcs::start(Options::default()).await;
    let relay = Relay::start(&fake.url()).await;
    let (control, url) = (fake.control(), relay.url().to_owned());
    let store = GcsStore::new(fake.client().await, BUCKET).with_control(move || control().with_endpoint(&url).build());
    one_loss_is_enough(&relay, &store, List, 1).await;
}

/// A session has several requests in flight, and so several connections that are forgotten at once. `led` of its `locks` are
/// led when it happens. Returns the time until a renewal is committed.
async fn a_session_keeps_its_locks(timings: Timings, locks: usize, led: usize) -> Duration {
    let cloud = Cloud::s3().await;
    let Some(relay) = cloud.relay().await else { return Duration::ZERO };
    let prefix = format!("{}/", cloud.key());
    let builder = Session::builder(cloud.store_at(relay.url()).await, &prefix, "node-1");
    let session = builder.timings(timings).build().expect("a session");
    let (cancel, lost) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let (mut handles, mut running) = (Vec::new(), JoinSet::new());
    for number in 0..locks {
        let lost = Arc::clone(&lost);
        let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| {
            let lost = Arc::clone(&lost);
            async move {
                leadership.lost().await;
                lost.fetch_add(1, Ordering::SeqCst);
            }
        });
        let elector = session.elector(format!("lock-{number}"), callbacks).expect("an elector");
        handles.push(elector.handle());
        let cancel = cancel.clone();
        running.spawn(async move { elector.campaign(cancel.cancelled_owned()).await.expect("it competes") });
    }
    let cancelled = cancel.clone();
    running.spawn(async move { session.run(cancelled.cancelled_owned()).await.expect("it runs") });

    let leading = || handles.iter().filter(|handle| handle.is_leader()).count();
    eventually(async || leading() >= led).await;
    relay.forget();
    let (began, mut took) = (Instant::now(), None);
    // Straight from the server: another write of the session is another version.
    let store = cloud.store().await;
    let version = async || {
        let listed = ListedObject::keys(store.list(&format!("{prefix}sessions/")).await.expect("a listing"));
        let found = store.get(listed.first().expect("a session")).await.expect("a read");
        found.map(|session| session.version)
    };
    for _ in 0..3 {
        let last = version().await;
        eventually(async || version().await != last).await;
        took.get_or_insert(began.elapsed());
    }
    eventually(async || leading() == locks).await;
    assert_eq!(lost.load(Ordering::SeqCst), 0, "a term ended");
    cancel.cancel();
    while let Some(ended) = running.join_next().await {
        ended.expect("no panic");
    }
    cloud.clear().await;
    took.unwrap_or_default()
}

async fn eventually(holds: impl AsyncFn() -> bool) {
    let holding = async {
        while !holds().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, holding).await.expect("in vain");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_leads_all_keeps_its_locks() {
    a_session_keeps_its_locks(timings(9000, 6000, 400), LOCKS, LOCKS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_has_just_begun_keeps_its_locks() {
    a_session_keeps_its_locks(timings(9000, 6000, 400), LOCKS, 1).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_many_locks_at_the_default_timings_keeps_them() {
    for led in [MANY_LOCKS, 1] {
        let took = a_session_keeps_its_locks(timings(15_000, 10_000, 2000), MANY_LOCKS, led).await;
        println!("{led} of {MANY_LOCKS} locks were led: a renewal was committed after {took:?}");
    }
}

/// A leader of a majority asks all of its parts at once, each over a connection of its own. Returns the time until a renewal
/// is committed.
async fn a_majority_keeps_its_term(timings: Timings) -> Duration {
    let cloud = Cloud::s3().await;
    let (key, mut relays, mut parts) = (cloud.key(), Vec::new(), Vec::new());
    let keys = [0, 1, 2].map(|number| format!("{key}-{number}"));
    for key in &keys {
        let Some(relay) = cloud.relay().await else { return Duration::ZERO };
        parts.push(ObjectLock::new(cloud.store_at(relay.url()).await, key, "node-1"));
        relays.push(relay);
    }
    let lock = Majority::of(parts).expect("three parts");
    let callbacks = LeaderCallbacks::new().on_start_leading(async |leadership| leadership.lost().await);
    let config = LeaderElectionConfig::builder(lock, callbacks).timings(timings);
    let elector = DefaultLeaderElector::new(config.build().expect("timings that fit"));
    let mut handle = elector.handle();
    let mut running = JoinSet::new();
    running.spawn(async move { elector.campaign(pending()).await });
    let term = timeout(PATIENCE, handle.elected()).await.expect("in vain").expect("it runs");
    relays.iter().for_each(Relay::forget);
    let forgotten = Instant::now();
    timeout(PATIENCE, handle.next_error()).await.expect("in vain").expect("it runs");
    // Straight from the server, where a renewal is another version.
    let direct = cloud.store().await;
    let versions = async || {
        let found = join_all(keys.iter().map(|key| direct.get(key))).await.into_iter();
        found.map(|found| found.expect("a read").map(|found| found.version)).collect::<Vec<_>>()
    };
    let mut took = None;
    for _ in 0..2 {
        let last = versions().await;
        let renewed = async || versions().await.iter().zip(&last).filter(|(now, last)| now != last).count();
        eventually(async || renewed().await >= 2).await;
        took.get_or_insert(forgotten.elapsed());
    }
    assert!(term.is_valid(), "the term ended: {:?}", handle.last_error());
    cloud.clear().await;
    took.unwrap_or_default()
}

#[tokio::test]
async fn a_majority_whose_parts_are_all_forgotten_keeps_its_term() {
    a_majority_keeps_its_term(timings(9000, 6000, 400)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test]
async fn a_majority_at_the_default_timings_keeps_its_term() {
    let took = a_majority_keeps_its_term(timings(15_000, 10_000, 2000)).await;
    println!("three parts: a renewal was committed after {took:.1?}");
}

/// Each call of a follower has a connection of its own, and a silent stream ends. Returns the time until the follower gets
/// a message again.
async fn messages_come_again(timings: Timings) -> Duration {
    let (key, store) = ("a key that is long enough for all peers", Arc::new(MemoryStore::new()));
    let [leading, following] = [peers(key), peers(key)].map(|made| made.expect("peers"));
    let address = address(&leading).expect("a server");
    let relay = Relay::start(address.trim_end_matches(DEFAULT_PATH)).await;
    let advertised = format!("{}{DEFAULT_PATH}", relay.url());
    let candidate = |identity: &str| {
        let lock = ObjectLock::new(Arc::clone(&store), "key", identity);
        let callbacks = LeaderCallbacks::new().on_start_leading(async |leadership| leadership.lost().await);
        let config = LeaderElectionConfig::builder(lock, callbacks).timings(timings);
        DefaultLeaderElector::new(config.advertise(&advertised).build().expect("a configuration"))
    };
    let (leader, follower) = (candidate("leader"), candidate("follower"));
    let (leads, _attached) = (leader.handle(), leading.attach(&leader).expect("attached"));
    let follows = following.attach(&follower).expect("attached");
    let mut running = JoinSet::new();
    running.spawn(async move { leader.campaign(pending()).await });
    eventually(async || leads.is_leader()).await;
    running.spawn(async move { follower.campaign(pending()).await });
    let gets = async |words| {
        let before = follows.status().messages;
        eventually(async || follows.status().messages >= before + words).await;
    };
    gets(3).await;
    relay.forget();
    let forgotten = Instant::now();
    gets(1).await;
    let took = forgotten.elapsed();
    gets(2).await;
    took
}

#[tokio::test]
async fn messages_come_again_at_short_timings() {
    messages_come_again(timings(60_000, 40_000, 200)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test]
async fn messages_come_again_at_the_default_timings() {
    let took = messages_come_again(timings(15_000, 10_000, 2000)).await;
    println!("peers: a follower got a message after {took:.1?}");
}
