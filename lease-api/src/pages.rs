//! Listings of the store, of which all pages are asked for at the same time.
//!
//! A store answers a page after the other, so a listing of ten pages takes as long as ten requests. Where an earlier listing had
//! its pages, the next one has about the same: each is asked for by the object in front of it, and goes on until the one in front of
//! the next. So the parts have every object once, in whatever order the store lists. What was listed before is not in an answer.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use leaderelection::StoreError;
use leaderelection::implement::{ConditionalStore, ListedObject, Listing, PageToken};

/// The number of pages that are asked for at a time.
const AT_A_TIME: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// The last key of each page of the last listing, by the prefix. One page needs none.
    ends: Mutex<HashMap<String, Vec<String>>>,
    /// The store has begun a page elsewhere than it was asked to, so parts would only add requests.
    is_unseekable: AtomicBool,
}

/// The objects of a part of a listing, in the order of the store.
#[derive(Debug)]
struct KeyRange {
    objects: Vec<ListedObject>,
    /// The number of objects in the largest page.
    largest: usize,
    is_seekable: bool,
}

impl Pages {
    /// Returns all objects whose keys start with `prefix`, sorted by key. A part ends with a Lease only: a store may leave out a
    /// folder with the name of the object behind which it begins, and no Lease is below another one.
    pub(crate) async fn list(
        &self,
        store: &dyn ConditionalStore,
        prefix: &str,
        is_lease: impl Fn(&str) -> bool,
    ) -> Result<Vec<ListedObject>, StoreError> {
        let ends = self.change(|ends| ends.get(prefix).cloned().unwrap_or_default());
        let begins = std::iter::once(None).chain(ends.iter().cloned().map(Some));
        let parts = begins.zip(ends.iter().cloned().map(Some).chain([None]));
        let parts: Vec<_> = parts.map(|(after, until)| part(store, prefix, after, until)).collect();
        let parts: Vec<Option<KeyRange>> = stream::iter(parts).buffered(AT_A_TIME).try_collect().await?;
        let parts = match parts.into_iter().collect::<Option<Vec<_>>>() {
            Some(parts) if has_each_once(&parts) => parts,
            parts => {
                self.is_unseekable.fetch_or(parts.is_some(), Relaxed);
                Vec::from_iter(part(store, prefix, None, None).await?)
            }
        };
        let largest = parts.iter().map(|part| part.largest).max().unwrap_or_default().max(1);
        let is_seekable = parts.iter().all(|part| part.is_seekable) && !self.is_unseekable.load(Relaxed);
        let mut listing = Listing::new(store.describe(prefix));
        let (mut ends, mut is_full) = (Vec::new(), false);
        for (number, object) in (1_usize..).zip(parts.into_iter().flat_map(|part| part.objects)) {
            is_full |= number.is_multiple_of(largest);
            if is_seekable && is_full && is_lease(&object.key) {
                ends.push(object.key.clone());
                is_full = false;
            }
            listing.add(object)?;
        }
        let listed = listing.sorted();
        if listed.len().is_multiple_of(largest) {
            // Nothing is behind the last page.
            ends.pop();
        }
        self.change(|all| if ends.is_empty() { all.remove(prefix) } else { all.insert(prefix.to_owned(), ends) });
        Ok(listed)
    }

    fn change<T>(&self, change: impl FnOnce(&mut HashMap<String, Vec<String>>) -> T) -> T {
        // No change can panic half-way.
        change(&mut self.ends.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns `false` if a part has not begun where it should.
fn has_each_once(parts: &[KeyRange]) -> bool {
    let mut seen = HashSet::new();
    parts.len() == 1 || parts.iter().flat_map(|part| &part.objects).all(|object| seen.insert(&*object.key))
}

/// Lists what is behind an object, until another one and with it. Returns `None` if that is not there any more: then nobody knows
/// where this part ends.
async fn part(
    store: &dyn ConditionalStore,
    prefix: &str,
    after: Option<String>,
    until: Option<String>,
) -> Result<Option<KeyRange>, StoreError> {
    let (mut listing, mut largest, mut is_seekable) = (Listing::new(store.describe(prefix)), 0, true);
    let mut token = after.map(PageToken::behind);
    loop {
        let page = store.list_page(prefix, token.as_ref(), None).await?;
        (largest, is_seekable) = (largest.max(page.objects.len()), is_seekable && page.is_seekable);
        let mut is_over = false;
        for object in page.objects {
            is_over = until.as_ref() == Some(&object.key);
            listing.add(object)?;
            if is_over {
                break;
            }
        }
        match page.next.filter(|_| !is_over) {
            Some(next) => listing.turn_to(&next).map(|()| token = Some(next))?,
            None if until.is_some() && !is_over => return Ok(None),
            None => return Ok(Some(KeyRange { objects: listing.objects(), largest, is_seekable })),
        }
    }
}
