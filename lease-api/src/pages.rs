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
