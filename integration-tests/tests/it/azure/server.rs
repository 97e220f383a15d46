//! The store on a real server: Azurite, or the container that `LEADERELECTION_TEST_AZURE_URL` names.

use azure_core::credentials::Secret;
use azure_storage_blob::BlobContainerClient;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, ListedObject, Precondition};
use leaderelection::{ObjectStoreBasedLock as _, StoreErrorKind};
use leaderelection_backends::azure::{AzureCredential, AzureLock, AzureStore};
use leaderelection_conformance::{Effort, check_lock, check_store};
use leaderelection_integration_tests::servers::unique_name;

use crate::calls::Call::{Create, Get, List};
use crate::calls::{CALLS, assert_fails};
use crate::cloud::azure::{Azure, azurite};
use crate::cloud::{beneath, clear};
use crate::rounds;

const EFFORT: Effort = Effort { rounds: rounds(4), racers: 64 };

/// A container, and a prefix in it that belongs to one test.
struct Place {
    store: AzureStore,
    client: BlobContainerClient,
    prefix: String,
}

impl Place {
    async fn new() -> Self {
        let azure = Azure::new().await;
        let prefix = beneath(azure.folder.as_deref(), &unique_name());
        Self { client: azure.client(), store: azure.store, prefix }
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    /// Deletes the objects of the test, because a real container belongs to others.
    async fn clear(&self) {
        clear(&self.store, &self.prefix).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let place = Place::new().await;
    check_store(place.store.clone(), &place.key("conformance"), EFFORT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lock_keeps_its_contract() {
    let place = Place::new().await;
    let (store, folder) = (place.store.clone(), place.key("lock"));
    check_lock(move |key, identity| AzureLock::new(store.clone(), format!("{folder}/{key}"), identity), EFFORT).await;
    place.clear().await;
}

#[tokio::test]
async fn every_kind_of_key_is_let_in() {
    let server = azurite().await;
    let (account, key) = server.account_key();
    let key = Secret::new(key.to_owned());
    let credential = AzureCredential::AccountKey { account: account.to_owned(), key };
    let url = server.container_url("container");
    for (index, store) in [
        AzureStore::new(&url, credential),
        AzureStore::new(&format!("{url}/?{}", server.sas("rwdlc")), AzureCredential::InUrl),
        AzureStore::from_connection_string(&server.connection_string(), "container"),
    ]
    .into_iter()
    .enumerate()
    {
        let (store, prefix) = (store.expect("a store"), unique_name());
        // These names contain characters that URLs, signatures and XML must escape.
        for name in ["plain", "a b", "a+b", "a%20b", "a/b", "a&b=c;d", "ä\"<>", "a?b#c", "../x", "a//b", "'"] {
            let key = format!("{prefix}/{name}");
            let created = store.put(&key, "1".into(), &Precondition::Absent).await.expect("created");
            let updated = store.put(&key, "2".into(), &Precondition::Matches(created)).await.expect("updated");
            let read = store.get(&key).await.expect("read").expect("an object");
            assert_eq!((&read.body[..], &read.version), (&b"2"[..], &updated), "{index}: {key}");
            assert_eq!(
                ListedObject::keys(store.list(&key).await.expect("listed")),
                std::slice::from_ref(&key),
                "{index}"
            );
            store.delete(&key, Some(&updated)).await.expect("deleted");
        }
    }
}

#[tokio::test]
async fn an_unknown_container_is_fatal() {
    let server = azurite().await;
    let store = AzureStore::from_connection_string(&server.connection_string(), "unknown").expect("a store");
    assert_fails(&store, CALLS, StoreErrorKind::Fatal, "no such container; create it").await;
}

#[tokio::test]
async fn wrong_credentials_are_fatal() {
    let server = azurite().await;
    let (account, _) = server.account_key();
    let wrong = AzureCredential::AccountKey { account: account.to_owned(), key: Secret::new("d3Jvbmc=") };
    let url = server.container_url("container");
    let wrong_sas = format!("{url}?{}x", server.sas("rwdlc"));
    for store in [AzureStore::new(&url, wrong), AzureStore::new(&wrong_sas, AzureCredential::InUrl)] {
        assert_fails(&store.expect("a store"), CALLS, StoreErrorKind::Fatal, "access denied; check the key or SAS")
            .await;
    }
    let read_only = format!("{url}?{}", server.sas("r"));
    let read_only = AzureStore::new(&read_only, AzureCredential::InUrl).expect("a store");
    assert_eq!(read_only.get("nothing").await.expect("may read"), None);
    assert_fails(&read_only, &[Create], StoreErrorKind::Fatal, "access denied; allow to create and write blobs").await;
    assert_fails(&read_only, &[List], StoreErrorKind::Fatal, "access denied; allow to list blobs").await;
}

#[tokio::test]
async fn nobody_is_let_in_without_credentials() {
    let store = AzureStore::new(&azurite().await.container_url("container"), AzureCredential::InUrl).expect("a store");
    assert_fails(&store, &[Get, Create, List], StoreErrorKind::Fatal, "").await;
}

#[tokio::test]
async fn somebodys_photo_is_neither_read_nor_overwritten() {
    let place = Place::new().await;
    let store = &place.store;
    // The sizes: more than the SDK fetches in one piece, more than the store reads, less, and nothing.
    for size in [5 << 20, 1 << 20, 1000, 0] {
        let (key, photo) = (place.key(&size.to_string()), vec![0xff; size]);
        let blob = place.client.blob_client(&key);
        blob.upload(bytes::Bytes::from(photo.clone()).into(), None).await.expect("written");
        let lock = AzureLock::new(store.clone(), &key, "candidate");
        let error = lock.get().await.expect_err("a photo is no record");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{size}: {error:?}");
        assert!(error.to_string().contains(&key), "{error}");

        let error = store.put(&key, "{}".into(), &Precondition::Absent).await.expect_err("there is a photo");
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{size}: {error:?}");
        let found = blob.download(None).await.expect("read").body.collect().await.expect("read to its end");
        assert_eq!(found, photo, "{size}");
        blob.delete(None).await.expect("deleted");
    }
}

#[tokio::test]
async fn a_leased_blob_is_not_written() {
    use azure_storage_blob::models::BlobClientAcquireLeaseOptions;

    let place = Place::new().await;
    let (store, key) = (&place.store, place.key("leased"));
    let version = store.put(&key, "{}".into(), &Precondition::Absent).await.expect("created");
    let blob = place.client.blob_client(&key);
    blob.acquire_lease(-1, None::<BlobClientAcquireLeaseOptions<'_>>).await.expect("leased");
    let error = store.put(&key, "{}".into(), &Precondition::Matches(version)).await.expect_err("leased");
    assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error:?}");
    assert!(error.to_string().contains("break that lease"), "{error}");
    blob.break_lease(None).await.expect("broken");
    place.clear().await;
}
