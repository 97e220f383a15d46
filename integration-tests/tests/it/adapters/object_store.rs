//! The adapter for `object_store`, on that crate's own clients.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::{ConditionalStore as _, ListedObject, Precondition, StoreErrorKind, Version, with_causes};
use leaderelection_backends::object_store::ObjectStoreAdapter;
use leaderelection_conformance::{Effort, check_store};
use leaderelection_integration_tests::adapted::{By, Place, object_store};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};
use leaderelection_integration_tests::servers::unique_name;
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;

use crate::cloud::adapted::Through;
use crate::cloud::azure::azurite;

/// A few rounds suffice, because the stores of the clouds' own crates have raced on these servers already.
const EFFORT: Effort = Effort { rounds: 2, racers: 16 };

fn on(place: &Place, retries: bool) -> ObjectStoreAdapter {
    ObjectStoreAdapter::new(object_store(place, retries))
}

fn scripted(server: &ScriptedServer) -> Place {
    let [bucket, access_key, secret_key] = ["bucket", "key", "secret"].map(str::to_owned);
    Place::S3 { endpoint: server.url(), bucket, access_key, secret_key }
}

/// The same container, by the account's key.
async fn with_key(place: &Place) -> Place {
    let mut place = place.clone();
    if let Place::Azure { key_or_sas, .. } = &mut place {
        azurite().await.account_key().1.clone_into(key_or_sas);
    }
    place
}

async fn places() -> [(&'static str, Place); 2] {
    [
        ("SeaweedFS", Through::s3(By::ObjectStore, false).await.place().clone()),
        ("Azurite", with_key(Through::azure(By::ObjectStore, false).await.place()).await),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let checks = places()
        .await
        .map(|(_, place)| tokio::spawn(async move { check_store(on(&place, false), &unique_name(), EFFORT).await }));
    for check in checks {
        check.await.expect("it keeps its contract");
    }
}

#[tokio::test]
async fn keys_come_back_the_same_from_a_listing() {
    for (server, place) in places().await {
        let (store, folder) = (on(&place, false), unique_name());
        let names = ["a b", "a%20b", "a&b=c", "a+b", "a~b", "b/c", "ä"];
        let keys = names.map(|name| format!("{folder}/{name}"));
        for key in &keys {
            store.put(key, "{}".into(), &Precondition::Absent).await.expect("written");
        }
        let listed = store.list(&format!("{folder}/")).await.expect("a listing");
        assert_eq!(ListedObject::keys(listed), keys, "{server}");
        assert_eq!(ListedObject::keys(store.list(&folder).await.expect("a listing")), keys, "{server}");
        let begun = store.list(&format!("{folder}/a%")).await.expect("a listing");
        assert_eq!(ListedObject::keys(begun), keys[1..2], "{server}");
    }
}

#[tokio::test]
async fn a_missing_bucket_or_container_is_fatal() {
    for (server, mut place) in places().await {
        let (Place::S3 { bucket: name, .. } | Place::Azure { container: name, .. }) = &mut place;
        *name = format!("no-such-{}", unique_name());
        let store = on(&place, false);
        let errors = [
            store.get("folder/key").await.expect_err("nowhere"),
            store.put("folder/key", "{}".into(), &Precondition::Absent).await.expect_err("nowhere"),
            store.list("folder/").await.expect_err("nowhere"),
        ];
        for error in errors {
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{server}: {error:?}");
            assert!(error.to_string().contains("there is no such bucket or container"), "{server}: {error}");
        }
    }
}

/// The status is in the words of the error alone.
#[tokio::test]
async fn own_retries_turn_a_success_into_a_conflict() {
    let written_but = || [Answer::new(500), Answer::new(412)];
    for (retries, kind, requests) in [(false, StoreErrorKind::Ambiguous, 1), (true, StoreErrorKind::Conflict, 2)] {
        let server = ScriptedServer::start(written_but().map(Into::into)).await;
        let store = on(&scripted(&server), retries);
        let error = store.put("key", "{}".into(), &Precondition::Absent).await.expect_err("an error");
        assert_eq!(error.kind(), kind, "{error:?}");
        assert_eq!(server.requests().len(), requests);
        assert!(server.requests().iter().all(|request| request.header("if-none-match") == Some("*")));
    }
}

#[tokio::test]
async fn a_409_is_a_conflict_and_a_500_is_ambiguous_for_every_write() {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal};
    for (status, kind) in [(409, Conflict), (412, Conflict), (500, Ambiguous), (503, Ambiguous), (403, Fatal)] {
        for condition in [Precondition::Absent, Precondition::Matches(Version::new("\"etag\""))] {
            let server = ScriptedServer::start([Answer::new(status).into()]).await;
            let error = on(&scripted(&server), false).put("key", "{}".into(), &condition).await.expect_err("an error");
            assert_eq!(error.kind(), kind, "{status}, {condition:?}: {error:?}");
            assert!(with_causes(&error).to_string().contains(&status.to_string()), "{error:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let server = ScriptedServer::start([Step::Hang]).await;
    let store = on(&scripted(&server), true).with_request_timeout(Duration::from_millis(100));
    let error = store.get("key").await.expect_err("no answer");
    assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn stores_without_conditions_are_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let local = LocalFileSystem::new_with_prefix(directory.path()).expect("a directory");
    let server = ScriptedServer::start([]).await;
    let http = HttpBuilder::new().with_url(server.url().replace("http:", "https:")).build().expect("a URL");
    for store in [ObjectStoreAdapter::new(Arc::new(local)), ObjectStoreAdapter::new(Arc::new(http))] {
        for condition in [Precondition::Absent, Precondition::Matches(Version::new("\"etag\""))] {
            let error = store.put("key", "{}".into(), &condition).await.expect_err("no conditions");
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error:?}");
            assert!(error.to_string().contains("use one that can, such as S3, Azure"), "{error}");
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    assert_eq!(server.requests().len(), 0);
}
