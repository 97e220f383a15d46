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
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::leases::{Leases, after, patience};
use crate::object::{Object, Place};
use crate::parts::{self, Parts};
use crate::query::{Query, Selector};
use crate::shares::Share;
use crate::shown::{Scope, Shown};
use crate::status::{API_VERSION, Failure, KIND};

/// The number of watches at a time. Each is a connection that others do not get.
pub(crate) const MOST_WATCHES: usize = 1000;

/// The longest watch. A client begins a new one afterwards.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The time in which a client takes a whole listing, or one event. Until then, the Leases of that moment are in memory.
pub(crate) const SLOWEST: Duration = Duration::from_secs(60);

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
    /// The right to list, which one call has at a time, so that no listing goes back in time.
    turn: tokio::sync::Mutex<()>,
    changed: watch::Sender<()>,
    seats: Arc<Semaphore>,
}

impl Listings {
    pub(crate) fn new(leases: Arc<Leases>, pause: Duration) -> Self {
        let server = format!("l{}", &Uuid::new_v4().simple().to_string()[..12]);
        let (shown, turn, changed) = (Mutex::default(), tokio::sync::Mutex::default(), watch::Sender::default());
        Self { leases, pause, server, shown, turn, changed, seats: Arc::new(Semaphore::new(MOST_WATCHES)) }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // No change can panic half-way.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn version(&self, revision: u64) -> String {
        format!("{}-{revision}", self.server)
    }

    /// Lists the store. Returns the Leases and the number of changes until then.
    async fn list(&self, scope: &Scope, deadline: Instant) -> Result<(Vec<Arc<Object>>, u64), Failure> {
        let _turn = self.turn.lock().await;
        let known = |place: &Place| self.shown().at(place).cloned();
        let found = self.leases.list(scope.as_deref(), known, deadline).await?;
        let revision = self.shown().show(scope, &found);
        self.changed.send_replace(());
        Ok((found, revision))
    }

    /// Lists the store for watches, unless one of them has just done it.
    async fn refresh(&self, scope: &Scope) {
        {
            let _turn = self.turn.lock().await;
            let last = self.shown().listed(scope);
            if last.is_some_and(|last| last.elapsed() < self.pause) {
                return;
            }
        }
        let deadline = after(Instant::now(), patience(None, None));
        if let Err(failure) = self.list(scope, deadline).await {
            tracing::warn!(problem = failure.message(), "cannot list the Leases for those who watch them");
            // Nobody asks a store again at once that has just failed.
            self.shown().note_failure(scope);
        }
    }

    /// Answers a listing.
    pub(crate) async fn answer(
        &self,
        scope: Scope,
        selector: &Selector,
        deadline: Instant,
    ) -> Result<(Vec<Arc<Object>>, String), Failure> {
        let (listed, revision) = self.list(&scope, deadline).await?;
        let mut found = Vec::new();
        for object in listed {
            consume_budget().await;
            if selector.matches(&object) {
                found.push(object);
            }
        }
        Ok((found, self.version(revision)))
    }

    /// Begins a watch, with its share, and that of a listing if it begins with one. Returns its events, one per line.
    ///
    /// # Errors
    ///
    /// If the store cannot be listed for the first events.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        scope: Scope,
        query: Query,
        deadline: Instant,
        shape: fn(&Object) -> Value,
        (watch, listing): (Share, Option<Share>),
    ) -> Result<Body, Failure> {
        let seat = Arc::clone(&self.seats).try_acquire_owned().map_err(|_| {
            let most = MOST_WATCHES;
            Failure::crowded(format!(
                "{most} watches go on, and no more are possible; try again, or ask another server"
            ))
        })?;
        let mut first = First { added: VecDeque::new(), bookmark: None, _share: listing };
        let position = if query.begins_with_listing() {
            let (found, version) = self.answer(scope.clone(), &query.selector, deadline).await?;
            first.added = found.into();
            first.bookmark = query.sends_initial_events.then(|| version.clone());
            self.revision(&version)
        } else {
            self.revision(&query.resource_version)
        };
        let end = query.timeout_seconds.map_or(LONGEST, Duration::from_secs).min(LONGEST);
        let watcher = Watcher {
            changed: self.changed.subscribe(),
            listings: Arc::clone(self),
            scope,
            selector: query.selector,
            shape,
            position,
            bookmark_at: query.allows_bookmarks.then(|| after(Instant::now(), BOOKMARKS)),
            end: after(Instant::now(), end),
        };
        Ok(parts::body((seat, watch), |parts| watcher.tell(first, parts)))
    }

    /// The number of changes until a version of a listing of this server, or before a version of a Lease; `None` if it is not
    /// known, as those of other servers are not.
    fn revision(&self, version: &str) -> Option<u64> {
        let of_listing = || version.strip_prefix(&self.server)?.strip_prefix('-')?.parse().ok();
        of_listing().or_else(|| self.shown().revision_before(version))
    }
}

/// The first events of a watch.
#[derive(Debug)]
struct First {
    added: VecDeque<Arc<Object>>,
    /// The version of the bookmark that ends them, if one does.
    bookmark: Option<String>,
    _share: Option<Share>,
}

/// One watch.
#[derive(Debug)]
struct Watcher {
    listings: Arc<Listings>,
    changed: watch::Receiver<()>,
    scope: Scope,
    selector: Selector,
    shape: fn(&Object) -> Value,
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
        while let Some(object) = first.added.pop_front() {
            parts.send(line("ADDED", &(self.shape)(&object)), limit).await?;
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
            consume_budget().await;
            let now = Instant::now();
            if now >= self.end {
                // The next watch goes on from the last one.
                return self.bookmark_at.take().and_then(|_| self.bookmark());
            }
            self.changed.borrow_and_update();
            let Some(change) = self.position.and_then(|position| self.listings.shown().after(position).ok()) else {
                // One more event, and then the end.
                self.end = now;
                return Some(line("ERROR", &Failure::gone().object()));
            };
            if let Some(change) = change {
                self.position = self.position.map(|position| position.saturating_add(1));
                let event = change.is_in(&self.scope).then(|| change.event(&self.selector)).flatten();
                if let Some((what, object)) = event {
                    return Some(line(what, &(self.shape)(object)));
                }
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
