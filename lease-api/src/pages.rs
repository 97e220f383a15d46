//! Listings of the store, of which all pages are asked for at the same time.
//!
//! A store answers a page after the other, so a listing of ten pages takes as long as ten requests. Where an earlier listing had
//! its pages, the next one has about the same: each is asked for by the key in front of it. Keys say nothing about objects, so no
//! answer is older than its request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use leaderelection::StoreError;
use leaderelection::implement::{ConditionalStore, ListedObject, Listing, PageToken};

/// The number of pages that are asked for at a time.
const AT_A_TIME: usize = 16;

/// The last key of each page of the last listing, by the prefix. One page needs none.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<HashMap<String, Vec<String>>>);

/// The objects of a part of a listing.
#[derive(Debug)]
struct Part {
    objects: Vec<ListedObject>,
    /// The number of objects in the largest page.
    largest: usize,
    is_ordered: bool,
}

impl Pages {
    /// Returns all objects whose keys start with `prefix`, sorted by key.
    pub(crate) async fn list(
        &self,
        store: &dyn ConditionalStore,
        prefix: &str,
    ) -> Result<Vec<ListedObject>, StoreError> {
        let ends = self.change(|ends| ends.get(prefix).cloned().unwrap_or_default());
        let begins = std::iter::once(None).chain(ends.iter().cloned().map(Some));
        let parts = begins.zip(ends.iter().cloned().map(Some).chain([None]));
        let parts: Vec<_> = parts.map(|(after, until)| part(store, prefix, after, until)).collect();
        let parts: Vec<Option<Part>> = stream::iter(parts).buffered(AT_A_TIME).try_collect().await?;
        let parts = match parts.into_iter().collect() {
            Some(parts) => parts,
            // It does not begin where it was asked to.
            None => Vec::from_iter(part(store, prefix, None, None).await?),
        };
        let (mut listing, mut largest, mut is_ordered) = (Listing::new(store.describe(prefix)), 1, true);
        for part in parts {
            (largest, is_ordered) = (largest.max(part.largest), is_ordered && part.is_ordered);
            part.objects.into_iter().try_for_each(|object| listing.add(object))?;
        }
        let listed = listing.sorted();
        let last_of_pages = listed.chunks_exact(largest).filter_map(|page| page.last());
        let is_last = |object: &&ListedObject| listed.last().is_some_and(|last| last.key == object.key);
        let keys = last_of_pages.filter(|object| is_ordered && !is_last(object)).map(|object| object.key.clone());
        let keys: Vec<String> = keys.collect();
        self.change(|ends| if keys.is_empty() { ends.remove(prefix) } else { ends.insert(prefix.to_owned(), keys) });
        Ok(listed)
    }

    fn change<T>(&self, change: impl FnOnce(&mut HashMap<String, Vec<String>>) -> T) -> T {
        // No change can panic half-way.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Lists what is behind a key, up to another one and with it. Returns `None` if the store does not begin there: then what
/// is behind may be missing.
async fn part(
    store: &dyn ConditionalStore,
    prefix: &str,
    after: Option<String>,
    until: Option<String>,
) -> Result<Option<Part>, StoreError> {
    let (mut listing, mut largest, mut is_ordered) = (Listing::new(store.describe(prefix)), 0, true);
    let mut token = after.as_deref().map(PageToken::behind);
    loop {
        let page = store.list_page(prefix, token.as_ref(), None).await?;
        (largest, is_ordered) = (largest.max(page.objects.len()), is_ordered && page.is_ordered);
        let is_cut = after.is_some() || until.is_some();
        if is_cut && !is_ordered
            || page.objects.iter().any(|object| after.as_ref().is_some_and(|after| object.key <= *after))
        {
            return Ok(None);
        }
        let is_over = page.objects.iter().any(|object| until.as_ref().is_some_and(|until| object.key >= *until));
        let within = page.objects.into_iter().filter(|object| until.as_ref().is_none_or(|until| object.key <= *until));
        within.into_iter().try_for_each(|object| listing.add(object))?;
        match page.next.filter(|_| !is_over) {
            Some(next) => listing.turn_to(&next).map(|()| token = Some(next))?,
            None => return Ok(Some(Part { objects: listing.sorted(), largest, is_ordered })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;
    use bytes::Bytes;
    use leaderelection::MemoryStore;
    use leaderelection::implement::{ConditionalStoreExt as _, ListedPage, Precondition, Version, VersionedObject};

    use super::*;

    /// A store with pages of three objects, which counts them.
    #[derive(Debug, Default)]
    struct Paged {
        inner: MemoryStore,
        pages: AtomicUsize,
        /// It begins at its first page, wherever it should.
        ignores_keys: AtomicBool,
    }

    impl Paged {
        async fn create(&self, key: impl Into<String>) {
            let _ = self.inner.put(&key.into(), "x".into(), &Precondition::Absent).await;
        }
    }

    #[async_trait]
    impl ConditionalStore for Paged {
        async fn get(&self, _: &str) -> Result<Option<VersionedObject>, StoreError> {
            unreachable!("a listing reads no object")
        }

        async fn put(&self, _: &str, _: Bytes, _: &Precondition) -> Result<Version, StoreError> {
            unreachable!("a listing writes no object")
        }

        async fn delete(&self, _: &str, _: Option<&Version>) -> Result<(), StoreError> {
            unreachable!("a listing deletes no object")
        }

        async fn list_page(
            &self,
            prefix: &str,
            token: Option<&PageToken>,
            _: Option<u16>,
        ) -> Result<ListedPage, StoreError> {
            self.pages.fetch_add(1, Ordering::Relaxed);
            let is_heard = |token: &&PageToken| token.key().is_none() || !self.ignores_keys.load(Ordering::Relaxed);
            self.inner.list_page(prefix, token.filter(is_heard), Some(3)).await
        }

        fn describe(&self, key: &str) -> String {
            key.to_owned()
        }

        fn min_write_interval(&self) -> Option<Duration> {
            None
        }
    }

    #[tokio::test]
    async fn pages_that_are_asked_for_at_the_same_time_have_what_those_one_by_one_have() {
        let (store, pages) = (Paged::default(), Pages::default());
        let mut random = 1_u64;
        for round in 0..500 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = format!("{}/{}", ["a", "a-b", "a.b", "b"][(random >> 33) as usize % 4], (random >> 40) % 40);
            if round % 200 < 100 && !random.is_multiple_of(4) {
                store.create(key).await;
            } else {
                store.inner.discard(&key).await.unwrap();
            }
            store.ignores_keys.store(round % 7 == 0, Ordering::Relaxed);
            for prefix in ["", "a", "a/", "b/1"] {
                let found = pages.list(&store, prefix).await.unwrap();
                assert_eq!(found, store.inner.list(prefix).await.unwrap(), "{round} {prefix:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_listing_costs_no_more_pages_than_before_and_a_new_key_costs_one_more_once() {
        let (store, pages) = (Paged::default(), Pages::default());
        for number in 10..22 {
            store.create(number.to_string()).await;
        }
        let list = async || {
            store.pages.store(0, Ordering::Relaxed);
            let found = pages.list(&store, "").await.unwrap().len();
            (found, store.pages.load(Ordering::Relaxed))
        };
        assert_eq!((list().await, list().await), ((12, 4), (12, 4)));
        store.create("105").await;
        assert_eq!((list().await, list().await), ((13, 5), (13, 5)));
        store.ignores_keys.store(true, Ordering::Relaxed);
        assert_eq!(list().await.0, 13);
    }
}
