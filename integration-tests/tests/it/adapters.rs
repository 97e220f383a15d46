//! The adapters for stores of other crates, on these crates' own clients.

mod credentials;
mod object_store;
mod opendal;

use std::sync::Arc;

use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject, Precondition};
use leaderelection_conformance::{Effort, check_store};
use leaderelection_integration_tests::adapted::{Adapted, By, Place};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer};
use leaderelection_integration_tests::servers::unique_name;

use crate::cloud::adapted::Through;
use crate::cloud::azure::azurite;

/// A few rounds suffice, because the stores of the clouds' own crates have raced on these servers already.
const EFFORT: Effort = Effort { rounds: 2, racers: 16 };

fn open(by: By, place: &Place, retries: bool) -> Arc<dyn ConditionalStore> {
    Adapted { by, place: place.clone(), retries, key: String::new() }.open()
}

/// A folder below one that only these tests use. `object_store` lists the folder above a prefix and filters the result, and
/// it fails at a key that it cannot spell, such as one that a test of another store writes into the same container.
fn own_folder() -> String {
    format!("adapters/{}", unique_name())
}

fn scripted(server: &ScriptedServer) -> Place {
    let [bucket, access_key, secret_key] = ["bucket", "key", "secret"].map(str::to_owned);
    Place::S3 { endpoint: server.url(), bucket, access_key, secret_key }
}

/// Every crate on every server. On Azurite by the account's key, because `object_store` deletes in batches, which Azurite
/// refuses with a SAS.
async fn places() -> Vec<(By, Place)> {
    let mut places = Vec::new();
    for by in [By::ObjectStore, By::Opendal] {
        places.push((by, Through::s3(by, false).await.place().clone()));
        let mut place = Through::azure(by, false).await.place().clone();
        if let Place::Azure { key_or_sas, .. } = &mut place {
            azurite().await.account_key().1.clone_into(key_or_sas);
        }
        places.push((by, place));
    }
    places
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_store_keeps_its_contract() {
    let check = |(by, place)| async move { check_store(open(by, &place, false), &own_folder(), EFFORT).await };
    let checks: Vec<_> = places().await.into_iter().map(|place| tokio::spawn(check(place))).collect();
    for check in checks {
        check.await.expect("it keeps its contract");
    }
}

#[tokio::test]
async fn keys_come_back_the_same_from_a_listing() {
    for (by, place) in places().await {
        let (store, folder) = (open(by, &place, false), own_folder());
        let keys = ["a b", "a%20b", "a&b=c", "a+b", "a~b", "b/c", "ä"].map(|name| format!("{folder}/{name}"));
        for key in &keys {
            store.put(key, "{}".into(), &Precondition::Absent).await.expect("written");
        }
        for (prefix, expected) in
            [(format!("{folder}/"), &keys[..]), (folder.clone(), &keys[..]), (format!("{folder}/a%"), &keys[1..2])]
        {
            let listed = store.list(&prefix).await.expect("a listing");
            assert_eq!(ListedObject::keys(listed), expected, "{by:?}, {place:?}");
        }
    }
}

#[tokio::test]
async fn a_missing_bucket_or_container_is_fatal() {
    for (by, mut place) in places().await {
        if let Place::S3 { bucket: name, .. } | Place::Azure { container: name, .. } = &mut place {
            *name = format!("no-such-{}", unique_name());
        }
        let store = open(by, &place, false);
        let errors = [
            store.get("folder/key").await.expect_err("nowhere"),
            store.put("folder/key", "{}".into(), &Precondition::Absent).await.expect_err("nowhere"),
            store.list("folder/").await.expect_err("nowhere"),
        ];
        for error in errors {
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{by:?}: {error:?}");
            assert!(error.to_string().contains("there is no such bucket or container"), "{by:?}: {error}");
        }
    }
}

/// The status is in the words of the error alone.
#[tokio::test]
async fn own_retries_turn_a_success_into_a_conflict() {
    let cases = [(false, StoreErrorKind::Ambiguous, 1), (true, StoreErrorKind::Conflict, 2)];
    for (by, (retries, kind, requests)) in
        [By::ObjectStore, By::Opendal].into_iter().flat_map(|by| cases.map(|case| (by, case)))
    {
        let server = ScriptedServer::start([Answer::new(500), Answer::new(412)].map(Into::into)).await;
        let store = open(by, &scripted(&server), retries);
        let error = store.put("key", "{}".into(), &Precondition::Absent).await.expect_err("an error");
        assert_eq!(error.kind(), kind, "{by:?}: {error:?}");
        assert_eq!(server.requests().len(), requests, "{by:?}");
        assert!(server.requests().iter().all(|request| request.header("if-none-match") == Some("*")));
    }
}
