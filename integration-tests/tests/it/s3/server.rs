//! The store on a real server: SeaweedFS, or the bucket that `LEADERELECTION_TEST_S3_URL` names.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::Credentials;
use bytes::Bytes;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, ListedObject, Precondition};
use leaderelection::{ObjectStoreBasedLock as _, StoreErrorKind};
use leaderelection_backends::s3::{S3Lock, S3Store};
use leaderelection_backends::url::S3Location;
use leaderelection_conformance::{Effort, check_lock, check_store};
use leaderelection_integration_tests::servers::unique_name;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::calls::Call::{Create, Get, List};
use crate::calls::{CALLS, assert_error, assert_fails};
use crate::cloud::beneath;
use crate::cloud::s3::{S3, seaweedfs};
use crate::rounds;

/// SeaweedFS delays the losers of a race by about a second, so a few rounds have to suffice.
const EFFORT: Effort = Effort { rounds: rounds(2), racers: 16 };

/// A bucket, and a prefix in it that belongs to one test.
struct Place {
    client: Client,
    bucket: String,
    prefix: String,
    is_seaweedfs: bool,
}

impl Place {
    async fn new() -> Self {
        let s3 = S3::new().await;
        let prefix = beneath(s3.folder.as_deref(), &unique_name());
        Self { is_seaweedfs: s3.folder.is_none(), client: s3.client, bucket: s3.bucket, prefix }
    }

    fn store(&self) -> S3Store {
        S3Store::new(self.client.clone(), &self.bucket)
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    async fn put_with_the_sdk(&self, key: &str, body: &[u8]) {
        let request = self.client.put_object().bucket(&self.bucket).key(key).body(body.to_vec().into());
        request.send().await.expect("written");
    }

    async fn get_with_the_sdk(&self, key: &str) -> Bytes {
        let answer = self.client.get_object().bucket(&self.bucket).key(key).send().await.expect("read");
        answer.body.collect().await.expect("read to its end").into_bytes()
    }

    /// Deletes the objects of the test, because a real bucket belongs to others.
    async fn clear(&self) {
        for key in ListedObject::keys(self.store().list(&self.prefix).await.expect("a listing")) {
            self.client.delete_object().bucket(&self.bucket).key(key).send().await.expect("deleted");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let place = Place::new().await;
    check_store(place.store(), &place.key("conformance"), EFFORT).await;
    place.clear().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lock_keeps_its_contract() {
    let place = Place::new().await;
    let (client, bucket, folder) = (place.client.clone(), place.bucket.clone(), place.key("lock"));
    let store = move || S3Store::new(client.clone(), &bucket);
    check_lock(move |key, identity| S3Lock::new(store(), format!("{folder}/{key}"), identity), EFFORT).await;
    place.clear().await;
}

#[tokio::test]
async fn an_unknown_bucket_is_fatal() {
    let place = Place::new().await;
    let store = S3Store::new(place.client, format!("no-such-bucket-{}", unique_name()));
    // These calls need no version. For a call with a version, SeaweedFS checks the condition first.
    assert_fails(&store, &[Get, Create, List], StoreErrorKind::Fatal, "no such bucket; create it").await;
}

#[tokio::test]
async fn wrong_credentials_are_fatal() {
    let place = Place::new().await;
    let wrong = Credentials::new("nobody", "a-wrong-secret", None, None, "test");
    let config = place.client.config().to_builder().credentials_provider(wrong).build();
    let store = S3Store::new(Client::from_conf(config), &place.bucket);
    for call in CALLS {
        let error = call.on(&store).await.expect_err("denied");
        assert_error(&error, &store, StoreErrorKind::Fatal, "check the access key", format!("{call:?}"));
        assert!(!format!("{error:?}").contains("a-wrong-secret"), "{call:?}");
    }
}

#[tokio::test]
async fn somebodys_photo_is_neither_read_nor_overwritten() {
    let place = Place::new().await;
    for (name, size) in [("large", 1 << 20), ("small", 1000)] {
        let (key, photo) = (place.key(name), vec![0xff; size]);
        place.put_with_the_sdk(&key, &photo).await;
        let lock = S3Lock::new(place.store(), &key, "candidate");
        let error = lock.get().await.expect_err("a photo is no record");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error:?}");
        assert!(error.to_string().contains(&key), "{error}");

        let store = place.store();
        let error = store.put(&key, "{}".into(), &Precondition::Absent).await.expect_err("there is a photo");
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error:?}");
        assert_eq!(place.get_with_the_sdk(&key).await, photo, "{name}");
    }
    place.clear().await;
}

#[cfg(feature = "all-tests")]
#[tokio::test]
async fn a_listing_goes_on_where_a_page_ends() {
    let place = Place::new().await;
    let directory = place.key("list/");
    // A page contains a thousand keys.
    let mut expected: Vec<_> = (0..1005).map(|number| format!("{directory}{number:04}")).collect();
    expected.extend(["a b", "a+b", "a%20b", "a/b", "a&b=c", "ä"].map(|name| format!("{directory}{name}")));
    expected.sort_unstable();
    let mut writes = JoinSet::new();
    for key in expected.iter().cloned().chain([place.key("lis"), place.key("listing")]) {
        let store = place.store();
        writes.spawn(async move { store.put(&key, "{}".into(), &Precondition::Absent).await });
        if writes.len() == 32 {
            writes.join_next().await.expect("one of many").expect("no panic").expect("written");
        }
    }
    while let Some(written) = writes.join_next().await {
        written.expect("no panic").expect("written");
    }
    let store = place.store();
    assert_eq!(ListedObject::keys(store.list(&directory).await.expect("a listing")), expected);
    assert_eq!(ListedObject::keys(store.list(&place.key("nothing")).await.expect("a listing")), Vec::<String>::new());
    place.clear().await;
}

#[tokio::test]
async fn a_key_may_be_above_others() {
    let place = Place::new().await;
    let store = place.store();
    let (above, below) = (place.key("locks"), place.key("locks/scheduler"));
    store.put(&below, "{}".into(), &Precondition::Absent).await.expect("written");
    match store.put(&above, "{}".into(), &Precondition::Absent).await {
        Ok(_) => {
            assert!(!place.is_seaweedfs, "fixed? then say so in the docs");
            assert_eq!(ListedObject::keys(store.list(&above).await.expect("a listing")), [above, below]);
        }
        // SeaweedFS mistakes the directory for the object. No writer wins wrongly, but such a lock cannot be
        // created.
        Err(error) => {
            assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error:?}");
            assert_eq!(store.get(&above).await.expect("read"), None);
        }
    }
    place.clear().await;
}

/// Runs in a process of its own, because the SDK reads credentials from the environment.
#[tokio::test]
async fn a_url_opens_the_store() {
    const OPENED: &str = "LEADERELECTION_TEST_OPENED_URL";
    if let Ok(url) = std::env::var(OPENED) {
        let location: S3Location = url.parse().expect("a URL");
        let store = location.open().await.expect("a store");
        assert_eq!(store.describe(&location.key), "s3://bucket/opened by URL");
        store.put(&location.key, "{}".into(), &Precondition::Absent).await.expect("written");
        return;
    }
    let server = seaweedfs().await;
    let output = Command::new(std::env::current_exe().expect("this test's program"))
        .args(["--exact", "s3::server::a_url_opens_the_store"])
        .env(OPENED, format!("s3://bucket/opened%20by%20URL?endpoint={}", server.url()))
        .envs(server.environment())
        .output()
        .await
        .expect("another test process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let store = S3Store::new(server.client(), "bucket");
    assert!(store.get("opened by URL").await.expect("read").is_some());
}
