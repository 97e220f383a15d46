//! Listings, which a store returns page by page.

use std::sync::Arc;
use std::time::Duration;

use super::{StoreError, StoreErrorKind, Version};
use crate::clock::{Clock as _, LocalInstant, SystemClock};

/// The largest sum of objects and pages in one listing: ten times the most locks that were measured under one prefix.
const MOST: usize = 100_000;

/// The most bytes of a key. S3, Google Cloud Storage and Azure allow no more.
const LONGEST_KEY: usize = 1024;

/// The most bytes of all keys and versions of one listing.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The longest time for all pages of one listing.
const LONGEST: Duration = Duration::from_secs(120);

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
/// A token is valid only for the prefix of its listing. It can be used twice, because a page may be requested again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageToken {
    text: Arc<str>,
    is_key: bool,
}

impl PageToken {
    /// Wraps a token in the store's own spelling.
    #[must_use]
    pub fn new(token: impl Into<Arc<str>>) -> Self {
        Self { text: token.into(), is_key: false }
    }

    /// Creates the token of a page that begins after `key`. This must not be the folder of another key, as `a` is of
    /// `a/b`. Use the token only if the store's pages are [seekable](ListedPage::seekable): any other store would take
    /// the key for one of its own tokens.
    #[must_use]
    pub fn behind(key: impl Into<Arc<str>>) -> Self {
        Self { text: key.into(), is_key: true }
    }

    /// Returns the token in the store's own spelling, or the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the key if this token was made by [`behind`](Self::behind).
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.is_key.then_some(&*self.text)
    }
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedPage {
    /// The objects of the page, in any order. There may be none.
    pub objects: Vec<ListedObject>,
    /// The token of the next page; `None` after the last page.
    pub next: Option<PageToken>,
    /// Whether a page can begin [after any key](Self::seekable).
    pub is_seekable: bool,
}

impl ListedPage {
    /// Combines the objects of a page and the token of the next one.
    #[must_use]
    pub fn new(objects: Vec<ListedObject>, next: Option<PageToken>) -> Self {
        Self { objects, next, is_seekable: false }
    }

    /// Promises that a page can begin [after any key](PageToken::behind), and that this page has the objects that
    /// follow this key in a whole listing, in the store's own order. So a caller that knows some keys of a long listing
    /// can request several of its pages at the same time.
    #[must_use]
    pub fn seekable(mut self) -> Self {
        self.is_seekable = true;
        self
    }
}

/// Collects the pages of a listing, and limits their cost, whatever the store answers.
///
/// A listing fails if it has more than 100,000 objects and pages or 64 MiB of keys and versions, or takes more than two
/// minutes. It also fails at a key of more than 1,024 bytes, and at a page token that repeats.
#[derive(Debug)]
pub struct Listing {
    described: String,
    objects: Vec<ListedObject>,
    bytes: usize,
    pages: usize,
    /// An earlier token, for Brent's cycle detection. After 1, 2, 4, 8… pages, the newest token replaces this
    /// one. So if tokens repeat in a cycle of any length, a later token equals this one at some time.
    earlier: Option<PageToken>,
    began: LocalInstant,
}

impl Listing {
    /// Begins a listing. `described` names it in errors.
    #[must_use]
    pub fn new(described: impl Into<String>) -> Self {
        let described = described.into();
        Self { described, objects: Vec::new(), bytes: 0, pages: 0, earlier: None, began: SystemClock.now() }
    }

    /// Adds the next object.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if the key is too long, or the listing is too large or takes too long.
    pub fn add(&mut self, object: ListedObject) -> Result<(), StoreError> {
        if object.key.len() > LONGEST_KEY {
            return Err(self.failure(format_args!("a key of more than {LONGEST_KEY} bytes, which no object has")));
        }
        self.bytes += object.key.len() + object.version.as_ref().map_or(0, |version| version.as_str().len());
        self.objects.push(object);
        self.check()
    }

    /// Counts a page, and checks the token of the next one.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if the token repeats an earlier one, or the listing is too large or takes too long.
    pub fn turn_to(&mut self, next: &PageToken) -> Result<(), StoreError> {
        if self.earlier.as_ref() == Some(next) {
            return Err(self.failure(format_args!("a place that comes again, so no end")));
        }
        self.pages += 1;
        if self.pages.is_power_of_two() {
            self.earlier = Some(next.clone());
        }
        self.check()
    }

    /// Returns all objects, in the order in which they came.
    #[must_use]
    pub fn objects(self) -> Vec<ListedObject> {
        self.objects
    }

    /// Returns all objects, sorted by key. Directory buckets of S3 return keys in no particular order.
    #[must_use]
    pub fn sorted(mut self) -> Vec<ListedObject> {
        self.objects.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        self.objects
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.objects.len() + self.pages > MOST || self.bytes > MOST_BYTES {
            return Err(self.failure(format_args!("more than {MOST} objects; name a longer prefix")));
        }
        if SystemClock.now().saturating_since(self.began) > LONGEST {
            let seconds = LONGEST.as_secs();
            return Err(self.failure(format_args!("no end after {seconds} seconds; name a longer prefix")));
        }
        Ok(())
    }

    fn failure(&self, problem: std::fmt::Arguments<'_>) -> StoreError {
        StoreError::new(StoreErrorKind::Fatal, format!("{}: the listing has {problem}", self.described))
    }
}
