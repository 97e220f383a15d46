//! Listings that a server makes as long as it likes.

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt, ListedObject, ListedPage, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{StoreError, StoreErrorKind};
use std::time::Duration;

/// A store whose listing answers `page`, by the number of the place that was asked for.
#[derive(Debug)]
struct Lists(fn(usize) -> ListedPage);

#[async_trait]
impl ConditionalStore for Lists {
    async fn get(&self, _: &str) -> Result<Option<VersionedObject>, StoreError> {
        unreachable!("a listing reads and writes no object")
    }

    async fn put(&self, _: &str, _: Bytes, _: &Precondition) -> Result<Version, StoreError> {
        unreachable!("a listing reads and writes no object")
    }

    async fn delete(&self, _: &str, _: Option<&Version>) -> Result<(), StoreError> {
        unreachable!("a listing reads and writes no object")
    }

    async fn list_page(&self, _: &str, at: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
        Ok((self.0)(at.map_or(0, |place| place.as_str().parse().unwrap())))
    }

    fn describe(&self, key: &str) -> String {
        format!("lists:{key}")
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

fn page(keys: impl IntoIterator<Item = String>, next: Option<usize>) -> ListedPage {
    let objects = keys.into_iter().map(|key| ListedObject::new(key, Some(Version::new("1"))));
    ListedPage::new(objects.collect(), next.map(|next| PageToken::new(next.to_string())))
}

#[tokio::test]
async fn a_listing_without_an_end_is_an_error_and_a_long_one_is_not() {
    let full = |at: usize| (0..1000).map(move |number| format!("{at:05}/{number:03}"));
    type Page = fn(usize) -> ListedPage;
    let endless: [(&str, Page); 7] = [
        ("more than 100000 objects", |at| page((0..1000).map(|number| format!("{at}/{number}")), Some(at + 1))),
        ("more than 100000 objects", |at| page([], Some(at + 1))),
        ("more than 100000 objects", |_| page((0..100_001).map(|number| number.to_string()), None)),
        ("a place that comes again", |_| page(["lock".to_owned()], Some(1))),
        ("a place that comes again", |at| page(["lock".to_owned()], Some((at + 1) % 977))),
        ("a key of more than 1024 bytes", |_| page(["x".repeat(1025)], None)),
        ("more than 100000 objects", |at| {
            let version = Version::new("v".repeat(1 << 20));
            ListedPage::new(vec![ListedObject::new("lock", Some(version))], Some(PageToken::new((at + 1).to_string())))
        }),
    ];
    for (problem, answers) in endless {
        let error = Lists(answers).list("locks/").await.unwrap_err();
        let text = error.to_string();
        assert!(
            error.kind() == StoreErrorKind::Fatal && text.contains("lists:locks/") && text.contains(problem),
            "{text}"
        );
    }
    let listed = Lists(|at| {
        page((0..1000).map(|number| format!("{at:05}/{number:03}")), Some(at + 1).filter(|next| *next < 99))
    });
    let keys = ListedObject::keys(listed.list("").await.unwrap());
    assert_eq!(keys, (0..99).flat_map(full).collect::<Vec<_>>());
}
