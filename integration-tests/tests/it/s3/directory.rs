//! The store on a directory bucket: its listings, and sessions that end, are lost and are slow to open.

use std::time::Duration;

use chrono::TimeDelta;
use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, ListedObject, Precondition};
use leaderelection_backends::s3::{S3Lock, S3Store};
use leaderelection_conformance::{Effort, check_lock, check_store};
use leaderelection_integration_tests::servers::express::{BUCKET, Express, Opening};
use leaderelection_integration_tests::servers::unique_name;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::calls::{CALLS, assert_fails};
use crate::cloud::s3::seaweedfs;
use crate::rounds;

const EFFORT: Effort = Effort { rounds: rounds(2), racers: 16 };

/// The life of a session at Amazon.
const FIVE_MINUTES: Duration = Duration::from_secs(300);

/// A bound that only a failure reaches.
const BOUND: Duration = Duration::from_secs(120);

async fn gateway(lifetime: Duration) -> (Express, S3Store) {
    let gateway = Express::start(seaweedfs().await, lifetime).await;
    let store = S3Store::new(gateway.client(), BUCKET);
    (gateway, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let (gateway, store) = gateway(FIVE_MINUTES).await;
    check_store(store, &format!("{}/conformance", unique_name()), EFFORT).await;
    assert_eq!(gateway.opened(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lock_keeps_its_contract() {
    let (gateway, _) = gateway(FIVE_MINUTES).await;
    let (client, folder) = (gateway.client(), unique_name());
    let store = move || S3Store::new(client.clone(), BUCKET);
    check_lock(move |key, identity| S3Lock::new(store(), format!("{folder}/{key}"), identity), EFFORT).await;
}

#[tokio::test]
async fn a_listing_by_half_a_name_leaves_the_other_keys_of_the_folder_out() {
    let (_gateway, store) = gateway(FIVE_MINUTES).await;
    let folder = unique_name();
    for name in ["list/b", "list/ab", "list/aa", "listing"] {
        store.put(&format!("{folder}/{name}"), "{}".into(), &Precondition::Absent).await.expect("written");
    }
    let expected = ["list/aa", "list/ab"].map(|name| format!("{folder}/{name}"));
    assert_eq!(ListedObject::keys(store.list(&format!("{folder}/list/a")).await.expect("a listing")), expected);
}

#[tokio::test]
async fn a_session_is_renewed_with_requests_shorter_than_its_opening() {
    let (gateway, store) = gateway(Duration::from_secs(16)).await;
    gateway.set_opening(Opening { delay: Duration::from_secs(1), refusal: None });
    let store = store.with_request_timeout(Duration::from_millis(900));
    let error = store.get("key").await.expect_err("the session opens more slowly");
    assert!(error.to_string().contains("the credentials were not loaded within 900ms"), "{error}");
    timeout(BOUND, async {
        while store.get("key").await.is_err() {}
        // From now on, no request waits for a session. A busy server may still answer too late.
        while gateway.opened() < 3 {
            if let Err(error) = store.get("key").await {
                assert!(!error.to_string().contains("the credentials were not loaded"), "{error}");
            }
        }
    })
    .await
    .expect("two renewals");
}

#[tokio::test]
async fn any_number_of_requests_shares_one_session() {
    let (gateway, store) = gateway(FIVE_MINUTES).await;
    gateway.set_opening(Opening { delay: Duration::from_millis(100), refusal: None });
    let mut reads = JoinSet::new();
    for _ in 0..10 {
        let store = store.clone();
        reads.spawn(async move { store.get("key").await });
    }
    while let Some(read) = reads.join_next().await {
        read.expect("no panic").expect("read");
    }
    assert_eq!((gateway.opened(), gateway.others()), (1, 10));
}

#[tokio::test]
async fn a_session_is_measured_by_the_servers_clock() {
    for ahead in [-1, 1] {
        let gateway = Express::with_clock(seaweedfs().await, FIVE_MINUTES, TimeDelta::hours(ahead)).await;
        let store = S3Store::new(gateway.client(), BUCKET);
        for _ in 0..5 {
            store.get("key").await.expect("read");
        }
        assert_eq!(gateway.opened(), 1, "{ahead} h");
    }
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_opened_anew() {
    let (gateway, store) = gateway(FIVE_MINUTES).await;
    store.get("key").await.expect("read");
    gateway.forget_sessions();
    let error = store.get("key").await.expect_err("the session is unknown");
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error:?}");
    assert!(error.to_string().contains("a later request opens another"), "{error}");
    // A session that was opened less than a second ago is kept.
    timeout(BOUND, async { while store.get("key").await.is_err() {} }).await.expect("another session");
    assert_eq!(gateway.opened(), 2);
}

#[tokio::test]
async fn a_renewal_that_fails_leaves_the_session_as_it_is() {
    let (gateway, store) = gateway(Duration::from_secs(16)).await;
    store.get("key").await.expect("read");
    let down = Opening { delay: Duration::ZERO, refusal: Some((503, "SlowDown")) };
    gateway.set_opening(down);
    let read_until = async |opened: usize| {
        let end = tokio::time::Instant::now() + BOUND;
        while gateway.opened() < opened && tokio::time::Instant::now() < end {
            store.get("key").await.expect("read");
            if gateway.refused() > 1 {
                gateway.set_opening(Opening::default());
            }
        }
    };
    read_until(2).await;
    assert_eq!(gateway.opened(), 2);
}

#[tokio::test]
async fn a_bucket_without_a_session_gets_no_request_and_says_why() {
    for (status, code, kind, advice) in [
        (403, "AccessDenied", StoreErrorKind::Fatal, "allow s3express:CreateSession on the bucket (403 AccessDenied)"),
        (403, "InvalidAccessKeyId", StoreErrorKind::Fatal, "check the access key"),
        (404, "NoSuchBucket", StoreErrorKind::Fatal, "no such bucket; create it"),
        (503, "SlowDown", StoreErrorKind::Rejected, "throttled"),
        (500, "InternalError", StoreErrorKind::Rejected, "the store failed"),
    ] {
        let (gateway, store) = gateway(FIVE_MINUTES).await;
        gateway.set_opening(Opening { delay: Duration::ZERO, refusal: Some((status, code)) });
        assert_fails(&store, CALLS, kind, advice).await;
        assert_eq!(gateway.others(), 0, "{status} {code}");
    }
}
