//! The leader's address in the record: bound to its term, kept by everything but the end of that term.

use leaderelection::admin::{force_release, request_transfer};
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection::lock::PeerAddress;
use leaderelection::{
    ConfigError, DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderHandle, MemoryLock,
    MemoryStore, ObjectStoreBasedLock, StoreErrorKind,
};
use tokio::time::sleep;

use crate::support::{Fault, Journal, LEASE, RETRY, TestLock, builder, elector, plant, record, spawn_run, stored};

const URL: &str = "https://10.0.1.42:8443/health/leadership";
const OTHER: &str = "https://10.0.1.43:8443/health/leadership";

fn advertising(store: &MemoryStore, identity: &str, url: &str) -> DefaultLeaderElector {
    let config = builder(TestLock::new(store, identity), Journal::default().callbacks()).advertise(url);
    DefaultLeaderElector::new(config.release_on_cancel(true).build().unwrap())
}

async fn address(store: &MemoryStore) -> Option<String> {
    stored(store).await.record.leader_address().map(str::to_owned)
}

async fn until_leading(handle: &mut LeaderHandle) {
    handle.elected().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_shows_its_address_to_everyone_until_it_releases_its_lease() {
    let store = MemoryStore::new();
    let (leader, follower) =
        (advertising(&store, "a", URL), elector(TestLock::new(&store, "b"), LeaderCallbacks::new()));
    let (mut handle, watcher) = (leader.handle(), follower.handle());
    assert_eq!(handle.leader_address(), None);
    let (stop, leading) = spawn_run(leader);
    until_leading(&mut handle).await;
    let _following = spawn_run(follower);
    sleep(RETRY * 3).await;
    let json = String::from_utf8(store.get("lock").await.unwrap().unwrap().body.to_vec()).unwrap();
    assert!(json.contains(&format!(r#""peer":{{"url":"{URL}","term":1,"retryPeriodMillis":2000}}"#)), "{json}");
    assert_eq!(handle.leader_address().as_deref(), Some(URL), "of a renewal");
    assert_eq!(watcher.status().leader_address.as_deref(), Some(URL));

    stop.cancel();
    leading.await.unwrap();
    assert_eq!(stored(&store).await.record.peer, None);
    assert_eq!(handle.leader_address(), None);
}

#[tokio::test(start_paused = true)]
async fn no_leader_carries_the_address_of_another_along() {
    for (url, after) in [(None, None), (Some(OTHER), Some(OTHER))] {
        let store = MemoryStore::new();
        let mut dead = record("a", LEASE, 7);
        dead.peer = Some(PeerAddress::new(URL, 7).into());
        plant(&store, &dead).await;
        let next = match url {
            None => elector(TestLock::new(&store, "b"), LeaderCallbacks::new()),
            Some(url) => advertising(&store, "b", url),
        };
        let mut handle = next.handle();
        let _running = spawn_run(next);
        sleep(RETRY).await;
        assert_eq!(handle.leader_address().as_deref(), Some(URL));
        until_leading(&mut handle).await;
        assert_eq!(address(&store).await.as_deref(), after);
        assert_eq!(handle.leader_address().as_deref(), after);
    }
}

/// The record as a version of the library without the field writes it: that version keeps fields that it does not know.
#[tokio::test(start_paused = true)]
async fn an_address_carried_over_by_another_version_does_not_count() {
    let store = MemoryStore::new();
    let mut carried = record("old", LEASE, 8);
    carried.peer = Some(PeerAddress::new(URL, 7).into());
    plant(&store, &carried).await;
    let follower = elector(TestLock::new(&store, "b"), LeaderCallbacks::new());
    let handle = follower.handle();
    let _running = spawn_run(follower);
    sleep(RETRY).await;
    let status = handle.status();
    assert_eq!((status.leader.as_deref(), status.leader_address), (Some("old"), None));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_named_by_an_address_after_the_lease_expired() {
    let store = MemoryStore::new();
    let mut dead = record("a", LEASE, 7);
    dead.peer = Some(PeerAddress::new(URL, 7).into());
    plant(&store, &dead).await;
    let lock = TestLock::new(&store, "b");
    let follower = elector(lock.clone(), LeaderCallbacks::new());
    let handle = follower.handle();
    let _running = spawn_run(follower);
    sleep(RETRY).await;
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
    sleep(LEASE).await;
    let status = handle.status();
    assert_eq!((status.holder.as_deref(), status.leader_address), (Some("a"), None));
}

#[tokio::test(start_paused = true)]
async fn an_operator_who_writes_within_a_term_keeps_the_address() {
    let store = MemoryStore::new();
    let operator = MemoryLock::new(store.clone(), "lock", "operator");
    let body = format!(
        r#"{{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":7,"writeId":"w","peer":{{"url":"{URL}","term":7,"zone":"x"}}}}"#
    );
    store.put("lock", body.into(), &Precondition::Absent).await.unwrap();
    request_transfer(&operator, &stored(&store).await.record, "b").await.unwrap();
    let asked = stored(&store).await.record;
    assert_eq!(asked.leader_address(), Some(URL));
    assert_eq!(asked.peer.as_ref().and_then(|peer| peer.unknown.get("zone")), Some(r#""x""#));
    force_release(&operator, &asked).await.unwrap();
    assert_eq!(stored(&store).await.record.peer, None);
}

#[tokio::test(start_paused = true)]
async fn a_leader_keeps_its_address_over_a_request_that_dropped_it() {
    let store = MemoryStore::new();
    let leader = advertising(&store, "a", URL);
    let mut handle = leader.handle();
    let _running = spawn_run(leader);
    until_leading(&mut handle).await;
    let operator = MemoryLock::new(store.clone(), "lock", "operator");
    let found = operator.get().await.unwrap().unwrap();
    // A request that names the leader itself ends no term.
    let mut dropped = found.record.clone();
    (dropped.peer, dropped.preferred_holder) = (None, Some("a".to_owned()));
    operator.update(&dropped, &found.version).await.unwrap();
    assert_eq!(address(&store).await, None);
    sleep(RETRY * 2).await;
    assert_eq!(address(&store).await.as_deref(), Some(URL));
}

#[tokio::test(start_paused = true)]
async fn the_client_address_changes_with_the_next_renewal() {
    const CLIENTS: &str = "https://10.0.1.42/api";
    const NEW: &str = "https://10.0.1.42:9443/api";
    let store = MemoryStore::new();
    let config = builder(TestLock::new(&store, "a"), Journal::default().callbacks()).advertise(URL);
    let leader = DefaultLeaderElector::new(config.advertise_to_clients(CLIENTS).build().unwrap());
    let follower = elector(TestLock::new(&store, "b"), LeaderCallbacks::new());
    let (mut handle, watcher) = (leader.handle(), follower.handle());
    let (_leading, _following) = (spawn_run(leader), spawn_run(follower));
    until_leading(&mut handle).await;
    // Between two renewals.
    sleep(RETRY * 7 / 2).await;
    let seen = watcher.status();
    assert_eq!((seen.leader_address.as_deref(), seen.client_address.as_deref()), (Some(URL), Some(CLIENTS)));

    let shown = async || stored(&store).await.record.client_address().map(str::to_owned);
    for (told, address) in [(Some(NEW), NEW), (None, URL)] {
        let before = stored(&store).await.record;
        handle.advertise_to_clients(told.map(str::to_owned)).unwrap();
        tokio::task::yield_now().await;
        assert_eq!(stored(&store).await.record, before, "the next renewal writes it, and not before");
        sleep(RETRY).await;
        assert_eq!(shown().await.as_deref(), Some(address));
        assert_eq!(handle.client_address().as_deref(), Some(address));
        assert_eq!((handle.leader_address().as_deref(), handle.fencing_token()), (Some(URL), Some(1.into())));
        sleep(RETRY * 3).await;
        assert_eq!(watcher.client_address().as_deref(), Some(address));
    }
    let error = handle.advertise_to_clients(Some("10.0.1.42".to_owned())).unwrap_err();
    assert_eq!(error.to_string(), "advertise_to_clients (\"10.0.1.42\") must begin with https:// or http://");
}

#[tokio::test(start_paused = true)]
async fn an_address_for_clients_alone_is_none_for_peers() {
    let store = MemoryStore::new();
    let config = builder(TestLock::new(&store, "a"), Journal::default().callbacks()).advertise_to_clients(OTHER);
    let leader = DefaultLeaderElector::new(config.build().unwrap());
    let mut handle = leader.handle();
    let _running = spawn_run(leader);
    until_leading(&mut handle).await;
    sleep(RETRY * 2).await;
    let record = stored(&store).await.record;
    assert_eq!((record.leader_address(), record.client_address()), (None, Some(OTHER)));
    let status = handle.status();
    assert_eq!((status.leader_address, status.client_address.as_deref()), (None, Some(OTHER)));
}

#[test]
fn an_address_that_nobody_could_reach_is_refused_by_name_and_value() {
    let refusal = |url: &str| -> ConfigError {
        let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
        LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).advertise(url).build().unwrap_err()
    };
    let error = refusal("10.0.1.42:8443");
    assert_eq!(error.field(), "advertise");
    assert_eq!(error.to_string(), "advertise (\"10.0.1.42:8443\") must begin with https:// or http://");
    let error = refusal("https://user:secret@node-1/x").to_string();
    assert!(error.contains("no user name") && !error.contains("secret"), "{error}");
}
