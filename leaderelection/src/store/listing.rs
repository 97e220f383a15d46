//! Listings, which a store gives page by page.

use std::sync::Arc;

use super::{ConditionalStore, StoreError, Version};

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedObject {
    /// The key of the object.
    pub key: String,
    /// The version of the object, spelled as in all other answers of the store; `None` if only a read can show it.
    pub version: Option<Version>,
}

impl ListedObject {
    /// Combines a key and a version; both must come from the same response.
    #[must_use]
    pub fn new(key: impl Into<String>, version: Option<Version>) -> Self {
        Self { key: key.into(), version }
    }

    /// Returns the keys of a listing.
    #[must_use]
    pub fn keys(listing: Vec<Self>) -> Vec<String> {
        listing.into_iter().map(|object| object.key).collect()
    }
}

/// The place in a listing at which the next page begins, in the store's own spelling.
///
/// A token is valid for the prefix of its listing, and more than once: a page that was not answered is asked for again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageToken(Arc<str>);

impl PageToken {
    /// Wraps a token in the store's own spelling.
    #[must_use]
    pub fn new(token: impl Into<Arc<str>>) -> Self {
        Self(token.into())
    }

    /// Returns the token in the store's own spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedPage {
    /// The objects of the page, which may be none, in any order.
    pub objects: Vec<ListedObject>,
    /// The place of the next page; `None` after the last page.
    pub next: Option<PageToken>,
}

impl ListedPage {
    /// Combines the objects of a page and the place of the next one.
    #[must_use]
    pub fn new(objects: Vec<ListedObject>, next: Option<PageToken>) -> Self {
        Self { objects, next }
    }

    /// Returns all pages of a listing as one, sorted by key: the [`list`](ConditionalStore::list) of a store that has pages.
    ///
    /// # Errors
    ///
    /// The first error of a page.
    pub async fn all(store: &impl ConditionalStore, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        let (mut objects, mut token) = (Vec::new(), None);
        loop {
            let page = store.list_page(prefix, token.as_ref(), None).await?;
            objects.extend(page.objects);
            token = page.next;
            if token.is_none() {
                // Directory buckets of S3 return keys in no particular order.
                objects.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                return Ok(objects);
            }
        }
    }
}
