//! The store on the fake, or in the bucket that `LEADERELECTION_TEST_GCS_URL` names.

use bytes::Bytes;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, ListedObject, Precondition, Version};
use leaderelection::{ObjectStoreBasedLock as _, StoreErrorKind};
use leaderelection_backends::gcs::{GcsLock, GcsStore};
use leaderelection_conformance::{Effort, check_lock, check_store};
use leaderelection_integration_tests::servers::unique_name;

use crate::cloud::gcs::Gcs;
use crate::cloud::{beneath, clear, delete};
use crate::rounds;

/// A bucket, and a prefix in it that belongs to one test.
struct Place {
    gcs: Gcs,
    prefix: String,
    effort: Effort,
}

impl Place {
    async fn new() -> Self {
        let gcs = Gcs::new().await;
        let prefix = beneath(gcs.folder.as_deref(), &unique_name());
        // A real bucket accepts one write per second to an object.
        let effort = match gcs.folder.is_some() {
            true => Effort { rounds: 2, racers: 16 },
            false => Effort { rounds: rounds(16), racers: 64 },
        };
        Self { gcs, prefix, effort }
    }

    fn store(&self) -> &GcsStore {
        &self.gcs.store
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    /// Deletes the objects of the test, because a real bucket belongs to others.
    async fn clear(&self) {
        clear(self.store(), &self.prefix).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let place = Place::new().await;
    check_store(place.store().clone(), &place.key("conformance"), place.effort).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lock_keeps_its_contract() {
    let place = Place::new().await;
    let (store, folder) = (place.store().clone(), place.key("lock"));
    let new_lock = move |key: &str, identity: &str| GcsLock::new(store.clone(), format!("{folder}/{key}"), identity);
    check_lock(new_lock, place.effort).await;
    place.clear().await;
}

#[tokio::test]
async fn every_key_is_written_where_it_is_read() {
    let place = Place::new().await;
    for name in ["plain", "a b", "a+b", "a%20b", "a/b", "a&b=c;d", "ä\"<>", "a?b#c", "../x", "a//b", "'", "a\tb"] {
        let key = place.key(name);
        let created = place.store().put(&key, "1".into(), &Precondition::Absent).await.expect("created");
        let read = place.store().get(&key).await.expect("read").expect("an object");
        assert_eq!((&read.body[..], &read.version), (&b"1"[..], &created), "{key}");
        assert_eq!(ListedObject::keys(place.store().list(&key).await.expect("listed")), std::slice::from_ref(&key));
        delete(place.store(), &key, &created).await;
    }
}

#[tokio::test]
async fn somebodys_photo_is_neither_read_nor_overwritten() {
    let place = Place::new().await;
    let (store, client) = (place.store(), place.gcs.client().await);
    let bucket = format!("projects/_/buckets/{}", store.bucket());
    for size in [1 << 20, 1000, 0] {
        let (key, photo) = (place.key(&size.to_string()), Bytes::from(vec![0xff; size]));
        let write = client
            .write_object(&bucket, &key, photo.clone())
            .set_content_type("image/jpeg")
            .set_cache_control("no-store");
        let generation = write.send_unbuffered().await.expect("written").generation;
        let lock = GcsLock::new(store.clone(), &key, "candidate");
        let error = lock.get().await.expect_err("a photo is no record");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{size}: {error:?}");
        assert!(error.to_string().contains(&key), "{error}");

        let error = store.put(&key, "{}".into(), &Precondition::Absent).await.expect_err("there is a photo");
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{size}: {error:?}");
        let mut found = client.read_object(&bucket, &key).send().await.expect("read");
        let mut content = Vec::new();
        while let Some(part) = found.next().await {
            content.extend(part.expect("read to its end"));
        }
        assert_eq!(content, photo, "{size}");
        delete(store, &key, &Version::new(generation.to_string())).await;
    }
}
