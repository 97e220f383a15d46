//! Rule S8: a listing, which is a stream of pages.

use std::time::Duration;

use crate::clock::LocalInstant;
use crate::store::{PageToken, Version};

/// A listing ends after this many failures of one page in a row.
const MAX_FAILURES: u8 = 2;

/// One page of a listing of sessions or locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Page<K> {
    /// The listed objects. Some stores do not list versions.
    pub listed: Vec<(K, Option<Version>)>,
    /// The place of the next page; `None` after the last page.
    pub next: Option<PageToken>,
}

impl<K> Page<K> {
    /// The only page of a listing.
    #[must_use]
    pub fn only(listed: Vec<(K, Option<Version>)>) -> Self {
        Self { listed, next: None }
    }
}

/// A listing of all sessions or of all locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Listing {
    /// The moment of the first page's request, while a listing is in flight.
    pub(super) began_at: Option<LocalInstant>,
    /// The place of the page that comes next; `None` for the first.
    token: Option<PageToken>,
    pub(super) in_flight: bool,
    /// The number of failures of this page in a row.
    failures: u8,
}

impl Listing {
    /// Begins a listing, or continues the current one. Returns the place of the page to request, `Some(None)` for the
    /// first; `None` if a page is in flight.
    pub(super) fn ask(&mut self, now: LocalInstant) -> Option<Option<PageToken>> {
        if std::mem::replace(&mut self.in_flight, true) {
            return None;
        }
        self.began_at.get_or_insert(now);
        Some(self.token.clone())
    }

    /// Notes the answer to a request for a page. Returns `false` if none was in flight.
    pub(super) fn answered(&mut self) -> bool {
        std::mem::take(&mut self.in_flight)
    }

    /// Goes to the next page. If there is none, returns how long the whole listing took.
    pub(super) fn go_on(&mut self, now: LocalInstant, next: Option<PageToken>) -> Option<Duration> {
        (self.failures, self.token) = (0, next);
        if self.token.is_some() {
            return None;
        }
        Some(now.saturating_since(self.began_at.take()?))
    }

    /// Counts a failure of a page. Returns `true` if the page should be requested again. Otherwise the listing is over.
    pub(super) fn failed(&mut self) -> bool {
        self.failures += 1;
        let tries_again = self.failures < MAX_FAILURES;
        if !tries_again {
            self.end();
        }
        tries_again
    }

    /// Ends the listing. The next one begins with the first page.
    pub(super) fn end(&mut self) {
        (self.began_at, self.token, self.failures) = (None, None, 0);
    }
}
