//! The pages of a listing, which are asked for at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt as _, ListedPage, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{LeaderElectionRecord, StoreError};
use leaderelection_test_support::faulty::{Call, Faulty};

use crate::api::{LEASES, Server};
use crate::people::ALL;

/// A store with pages of three objects. Like SeaweedFS, it lists folder by folder, so `a/b` before `a-b`, and leaves out the folder
/// with the name of the object behind which a page begins.
#[derive(Clone, Debug, Default)]
struct Paged {
    inner: Faulty,
    /// It begins at its first page, wherever it should.
    ignores_keys: Arc<AtomicBool>,
}

impl Paged {
    /// Creates a Lease, unless it is there.
    async fn create(&self, place: &str) {
        let body = LeaderElectionRecord::new("a", Duration::from_secs(15)).to_json();
        let _ = self.inner.inner.put(&format!("leases/{place}"), body.into(), &Precondition::Absent).await;
    }

    /// The places of all Leases below a folder.
    async fn places(&self, folder: &str) -> Vec<String> {
        let listed = self.inner.inner.list(&format!("leases/{folder}")).await.unwrap();
        let places = listed.iter().map(|object| object.key["leases/".len()..].to_owned());
        let mut places: Vec<_> = places.filter(|place| place.matches('/').count() == 1).collect();
        places.sort();
        places
    }
}

#[async_trait]
impl ConditionalStore for Paged {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.inner.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, condition: &Precondition) -> Result<Version, StoreError> {
        self.inner.put(key, body, condition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.inner.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        _: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let ignores_keys = self.ignores_keys.load(Ordering::Relaxed);
        let token = token.filter(|token| token.key().is_none() || !ignores_keys);
        let mut objects = self.inner.list_page(prefix, None, None).await?.objects;
        let place = |key: &str| key.replace('/', "\0");
        objects.sort_by_key(|object| place(&object.key));
        objects.retain(|object| token.is_none_or(|token| place(&object.key) > place(token.as_str())));
        let folder = token.and_then(PageToken::key).map(|key| format!("{key}/"));
        objects.retain(|object| folder.as_ref().is_none_or(|folder| !object.key.starts_with(folder)));
        let next = objects.get(2).filter(|_| objects.len() > 3).map(|last| PageToken::new(&*last.key));
        objects.truncate(3);
        Ok(ListedPage::new(objects, next).seekable())
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

/// The places of the Leases that a server lists.
async fn listed(server: &Server, target: &str) -> Vec<String> {
    let list = server.send("GET", target, "", "").await.is(200);
    let place = |lease: &serde_json::Value| {
        let text = |field: &str| lease["metadata"][field].as_str().unwrap().to_owned();
        format!("{}/{}", text("namespace"), text("name"))
    };
    let mut places: Vec<_> = list["items"].as_array().unwrap().iter().map(place).collect();
    places.sort();
    places
}

#[tokio::test]
async fn pages_that_are_asked_for_at_the_same_time_have_what_those_one_by_one_have() {
    let store = Paged::default();
    let server = Server::on(store.clone());
    let mut random = 1_u64;
    // No Leases, but in the same folder.
    for key in ["leases/a", "leases/a-b", "leases/a.b", "leases/b", "leases/a/1/part"] {
        store.inner.inner.put(key, "{}".into(), &Precondition::Absent).await.unwrap();
    }
    for round in 0..400 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = format!("{}/{}", ["a", "a-b", "a.b", "b"][(random >> 33) as usize % 4], (random >> 40) % 40);
        if round % 200 < 100 && !(random >> 50).is_multiple_of(4) {
            store.create(&place).await;
        } else {
            store.inner.inner.discard(&format!("leases/{place}")).await.unwrap();
        }
        store.ignores_keys.store(round >= 300, Ordering::Relaxed);
        assert_eq!(listed(&server, ALL).await, store.places("").await, "{round}");
        let of_a = LEASES.replace("default", "a");
        assert_eq!(listed(&server, &of_a).await, store.places("a/").await, "{round}");
    }
}

#[tokio::test]
async fn a_listing_costs_no_more_pages_than_before_and_a_new_lease_costs_one_more_once() {
    let store = Paged::default();
    let server = Server::on(store.clone());
    for number in 10..22 {
        store.create(&format!("default/{number}")).await;
    }
    let list = async || {
        drop(store.inner.take_calls());
        let found = listed(&server, LEASES).await.len();
        (found, store.inner.count(Call::List))
    };
    assert_eq!((list().await, list().await), ((12, 4), (12, 4)));
    store.create("default/105").await;
    assert_eq!((list().await, list().await), ((13, 5), (13, 5)));
    store.ignores_keys.store(true, Ordering::Relaxed);
    assert_eq!(list().await.0, 13);
    assert_eq!((list().await, list().await), ((13, 5), (13, 5)), "one page after the other");
}
