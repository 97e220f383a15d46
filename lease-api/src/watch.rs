//! Listings and watches: the differences between one listing of the store and the next.
//!
//! Nobody polls while nobody watches. All watches of one place share its listings.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use uuid::Uuid;

use crate::form::Form;
use crate::leases::{Leases, after, patience};
use crate::listed::Listed;
use crate::object::Place;
use crate::pace::Pace;
use crate::parts::{self, Parts};
use crate::query::Query;
use crate::selector::Selector;
use crate::shares::{Share, Shares, Tenant, Work};
use crate::shown::{Change, Scope, Shown};
use crate::status::{API_VERSION, Failure, KIND};

/// The number of watches at a time. Each is a connection that others do not get.
pub(crate) const MOST_WATCHES: usize = 1000;

/// The longest watch. A client begins a new one afterwards.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The time in which a client takes a whole listing, or one event. Until then, the Leases of that moment are in memory.
pub(crate) const SLOWEST: Duration = Duration::from_secs(60);

/// The largest answer, in bytes, of which any number may be read slowly at a time.
const SMALL: usize = 32 * 1024;

/// The pause between two bookmarks, as in an API server.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// The listings and the watches of one server.
#[derive(Debug)]
pub(crate) struct Listings {
    leases: Arc<Leases>,
    /// The pause between two listings for watches.
    pause: Duration,
    /// The beginning of the versions of this server's listings: those of another server count other changes.
    server: String,
    shown: Mutex<Shown>,
    changed: watch::Sender<()>,
    seats: Arc<Semaphore>,
}

impl Listings {
    pub(crate) fn new(leases: Arc<Leases>, pause: Duration) -> Self {
        let server = format!("l{}", &Uuid::new_v4().simple().to_string()[..12]);
        let (shown, changed) = (Mutex::default(), watch::Sender::default());
        Self { leases, pause, server, shown, changed, seats: Arc::new(Semaphore::new(MOST_WATCHES)) }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // No change can panic half-way.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn version(&self, revision: u64) -> String {
        format!("{}-{revision}", self.server)
    }

    /// Lists the store, unless `is_enough` is true of what is shown when this call has its turn. Those that wait for a listing
    /// share the next one.
    async fn list(&self, scope: &Scope, deadline: Instant, is_enough: impl Fn(&Shown) -> bool) -> Result<(), Failure> {
        let turn = self.shown().turn(scope);
        let late =
            |_| Failure::internal("the store has not listed the Leases in time; check how long its requests take");
        let _turn = timeout_at(deadline, turn.lock()).await.map_err(late)?;
        let number = {
            let mut shown = self.shown();
            if is_enough(&shown) {
                return Ok(());
            }
            shown.begin()
        };
        let known = |place: &Place| self.shown().at(place).cloned();
        // Only one listing goes on at a time, and the many calls that wait for their turn keep no room for it.
        let found = Box::pin(self.leases.list(scope.as_deref(), known, deadline)).await?;
        self.shown().show(scope, number, &found);
        self.changed.send_replace(());
        Ok(())
    }

    /// Lists the store for watches, unless one of them has just done it.
    async fn refresh(&self, scope: &Scope) {
        let deadline = after(Instant::now(), patience(None, None));
        if let Err(failure) = self.list(scope, deadline, |shown| self.is_fresh(shown, scope)).await {
            tracing::warn!(problem = failure.message(), "cannot list the Leases for those who watch them");
            // Nobody asks a store again at once that has just failed.
            self.shown().note_failure(scope);
        }
    }

    /// Returns `true` if the place was listed within the pause of watches.
    fn is_fresh(&self, shown: &Shown, scope: &Scope) -> bool {
        shown.listed(scope).is_some_and(|last| last.elapsed() < self.pause)
    }

    /// The number of Leases of a namespace, deleted ones included, and about the bytes that they take.
    pub(crate) async fn count(&self, namespace: &str, deadline: Instant) -> Result<(usize, usize), Failure> {
        let scope = Some(namespace.to_owned());
        let begun = self.shown().begun();
        self.list(&scope, deadline, |shown| shown.is_listed_behind(&scope, begun)).await?;
        let (listed, _) = self.shown().view(&scope);
        Ok((listed.len(), listed.iter().map(|listed| listed.size()).sum()))
    }

    /// Answers a listing, or a part of one. A part is cut from the listing that its `continue` names, as long as that is known.
    pub(crate) async fn answer(
        &self,
        scope: &Scope,
        query: &Query,
        tenant: (&Shares, &Tenant),
        deadline: Instant,
    ) -> Result<Page, Failure> {
        let begun = self.shown().begun();
        // Before any work, and behind the moment of which it has to be.
        let share = tenant.0.take(tenant.1, Work::Listing, deadline).await?;
        let exact = query.exact_version().filter(|_| query.next.is_none());
        let named = query.next.as_ref().map(|next| &*next.version).or(exact);
        let part = match named.and_then(|version| self.revision_of_listing(version)) {
            Some(revision) => {
                let listed = self.shown().view_at(scope, revision);
                listed.map(|listed| (listed, self.version(revision)))
            }
            None => None,
        };
        let (listed, version) = match part {
            Some(part) => part,
            None if exact.is_some() => return Err(Failure::gone()),
            None => {
                // Whoever asks for any version gets one that is no older than a watch's.
                let is_any = query.resource_version == "0";
                let is_enough = |shown: &Shown| {
                    shown.is_listed_behind(scope, begun)
                        || is_any && shown.is_listed_behind(scope, 0) && self.is_fresh(shown, scope)
                };
                self.list(scope, deadline, is_enough).await?;
                let (listed, revision) = self.shown().view_by_name(scope, &query.selector);
                (listed, self.version(revision))
            }
        };
        let (version, behind) = match &query.next {
            Some(next) => (next.version.clone(), Some(&next.behind)),
            None => (version, None),
        };
        let (mut found, mut size, mut pace) = (Vec::new(), 0_usize, Pace::default());
        for listed in listed {
            pace.spend(query.selector.cost(&listed)).await;
            let is_wanted = behind.is_none_or(|behind| **listed.place() > *behind);
            if is_wanted && !listed.is_deleted() && query.selector.matches(&listed) {
                size = size.saturating_add(listed.size());
                found.push(listed);
            }
        }
        Ok(Page { found, version, share, is_small: size <= SMALL })
    }

    /// Begins a watch, with its share. Returns its events, one per line.
    ///
    /// # Errors
    ///
    /// If the store cannot be listed for the first events.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        scope: Scope,
        query: Query,
        deadline: Instant,
        form: Form,
        (shares, tenant): (&Shares, &Tenant),
    ) -> Result<Body, Failure> {
        let watch = shares.try_take(tenant, Work::Watch)?;
        let seat = Arc::clone(&self.seats).try_acquire_owned().map_err(|_| {
            let most = MOST_WATCHES;
            Failure::crowded(format!(
                "{most} watches go on, and no more are possible; try again, or ask another server"
            ))
        })?;
        let mut first = First::default();
        let mut position = self.revision(&query.resource_version);
        if query.begins_with_listing() {
            let page = self.answer(&scope, &query, (shares, tenant), deadline).await?;
            position = self.revision_of_listing(&page.version);
            if query.sends_initial_events != Some(false) {
                first.told = page.found.into_iter().map(|listed| ("ADDED", listed)).collect();
                first.bookmark = query.sends_initial_events.map(|_| page.version);
                first.share = Some(page.share).filter(|_| !page.is_small);
            }
        } else if position.is_none() && !query.selector.needs_labels() {
            (first, position) = self.go_on(&scope, &query, (shares, tenant), deadline).await?;
        }
        let end = query.timeout_seconds.map_or(LONGEST, Duration::from_secs).min(LONGEST);
        let watcher = Watcher {
            changed: self.changed.subscribe(),
            listings: Arc::clone(self),
            turns: shares.of(tenant, Work::Changes),
            scope,
            selector: query.selector,
            form,
            position,
            bookmark_at: query.allows_bookmarks.then(|| after(Instant::now(), BOOKMARKS)),
            end: after(Instant::now(), end),
        };
        Ok(parts::body((seat, watch), |parts| watcher.tell(first, parts)))
    }

    /// Goes on from a version of a Lease that no listing of this server has shown. If it is the last of its Lease, or the one
    /// before, all others that are there may have come since, and all that were deleted. A client gets some of it again.
    async fn go_on(
        &self,
        scope: &Scope,
        query: &Query,
        (shares, tenant): (&Shares, &Tenant),
        deadline: Instant,
    ) -> Result<(First, Option<u64>), Failure> {
        let begun = self.shown().begun();
        let share = shares.take(tenant, Work::Listing, deadline).await?;
        self.list(scope, deadline, |shown| shown.is_listed_behind(scope, begun)).await?;
        let (listed, revision) = self.shown().view(scope);
        let (mut first, mut is_known) = (First { share: Some(share), ..First::default() }, false);
        let mut pace = Pace::default();
        for listed in listed {
            // Each is read, to see what it has replaced.
            pace.spend(listed.size()).await;
            is_known = is_known || listed.goes_on_from(&query.resource_version);
            if listed.resource_version() != query.resource_version && query.selector.matches(&listed) {
                first.told.push_back((if listed.is_deleted() { "DELETED" } else { "MODIFIED" }, listed));
            }
        }
        Ok(if is_known { (first, Some(revision)) } else { (First::default(), None) })
    }

    /// The number of changes until a version of a listing of this server, or before a version of a Lease; `None` if it is not
    /// known, as those of other servers are not.
    fn revision(&self, version: &str) -> Option<u64> {
        self.revision_of_listing(version).or_else(|| self.shown().revision_before(version))
    }

    fn revision_of_listing(&self, version: &str) -> Option<u64> {
        version.strip_prefix(&self.server)?.strip_prefix('-')?.parse().ok()
    }
}

/// The Leases that answer a listing, or a part of one.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) found: Vec<Arc<Listed>>,
    pub(crate) version: String,
    pub(crate) share: Share,
    /// The share need not be kept while the client reads.
    pub(crate) is_small: bool,
}

/// The first events of a watch.
#[derive(Debug, Default)]
struct First {
    told: VecDeque<(&'static str, Arc<Listed>)>,
    /// The version of the bookmark that ends them, if one does.
    bookmark: Option<String>,
    share: Option<Share>,
}

/// One watch.
#[derive(Debug)]
struct Watcher {
    listings: Arc<Listings>,
    /// The share of its tenant in the reading of changes.
    turns: Arc<Semaphore>,
    changed: watch::Receiver<()>,
    scope: Scope,
    selector: Selector,
    form: Form,
    /// The number of changes that this watch has told; `None` if it cannot go on.
    position: Option<u64>,
    /// The time of the next bookmark, if the client wants any.
    bookmark_at: Option<Instant>,
    end: Instant,
}

impl Watcher {
    /// Sends the events until the client is gone, too slow, or has waited for long enough.
    async fn tell(mut self, mut first: First, parts: Parts) -> Option<()> {
        let limit = after(Instant::now(), SLOWEST);
        while let Some((what, listed)) = first.told.pop_front() {
            parts.send(self.line(what, &listed)?, limit).await?;
        }
        if let Some(version) = first.bookmark.take() {
            parts.send(bookmark(&version, true), limit).await?;
        }
        drop(first);
        loop {
            let line = tokio::select! {
                line = self.next() => line,
                () = parts.closed() => return None,
            };
            let Some(line) = line else { return parts.end().await };
            parts.send(line, after(Instant::now(), SLOWEST)).await?;
        }
    }

    /// Waits for the next event. Cancellation safe.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let now = Instant::now();
            if now >= self.end {
                // The next watch goes on from the last one.
                return self.bookmark_at.take().and_then(|_| self.bookmark());
            }
            self.changed.borrow_and_update();
            let turn = match self.position.is_some_and(|position| position < self.listings.shown().revision()) {
                true => self.turns.acquire().await.ok(),
                false => None,
            };
            if turn.is_some() {
                // All others wait for no more watches of one tenant at a time than have a turn.
                tokio::task::yield_now().await;
            }
            let event = |change: &Change| change.event(&self.scope, &self.selector);
            let (found, last) = {
                let shown = self.listings.shown();
                (self.position.and_then(|position| shown.next(position, event).ok()), shown.revision())
            };
            let Some((position, event)) = found else {
                // One more event, and then the end.
                self.end = now;
                return Some(line("ERROR", &Failure::gone().object()));
            };
            self.position = Some(position);
            if let Some((what, listed)) = event {
                return self.line(what, &listed);
            }
            drop(turn);
            if position < last {
                continue;
            }
            if self.bookmark_at.is_some_and(|at| now >= at) {
                self.bookmark_at = Some(after(now, BOOKMARKS));
                return self.bookmark();
            }
            let last = self.listings.shown().listed(&self.scope);
            let due = last.and_then(|last| last.checked_add(self.listings.pause)).unwrap_or(now);
            tokio::select! {
                _ = self.changed.changed() => {}
                () = sleep_until(due.min(self.end).min(self.bookmark_at.unwrap_or(due))) => {
                    if Instant::now() >= due {
                        self.listings.refresh(&self.scope).await;
                    }
                }
            }
        }
    }

    fn line(&self, what: &str, listed: &Listed) -> Option<Bytes> {
        listed.object().map(|object| line(what, &self.form.alone(&object)))
    }

    fn bookmark(&self) -> Option<Bytes> {
        self.position.map(|position| bookmark(&self.listings.version(position), false))
    }
}

fn line(what: &str, object: &Value) -> Bytes {
    format!("{}\n", json!({"type": what, "object": object})).into()
}

fn bookmark(version: &str, ends_first_events: bool) -> Bytes {
    let mut metadata = json!({"resourceVersion": version});
    if ends_first_events {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    line("BOOKMARK", &json!({"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata}))
}

#[cfg(test)]
mod tests;
