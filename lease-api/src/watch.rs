//! Listings and watches: the differences between one listing of the store and the next.
//!
//! Nobody polls while nobody watches. All watches of one place share its listings.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream;
use leaderelection::Version;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::leases::{Leases, patience};
use crate::object::{Object, Place};
use crate::query::{Query, Selector};
use crate::status::{API_VERSION, Failure, KIND};

/// The number of changes that a watch may be behind.
const REMEMBERED: usize = 4096;

/// The number of watches at a time. Each is a connection that others do not get.
pub(crate) const MOST_WATCHES: usize = 1000;

/// The longest watch. A client begins a new one afterwards.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The namespace that somebody asks about; `None` for all.
type Scope = Option<String>;

/// A change of one Lease.
#[derive(Clone, Debug)]
struct Change {
    before: Option<Arc<Object>>,
    after: Option<Arc<Object>>,
}

impl Change {
    fn is_in(&self, scope: &Scope) -> bool {
        let object = self.after.as_ref().or(self.before.as_ref());
        object.is_some_and(|object| scope.as_ref().is_none_or(|namespace| *namespace == object.place().namespace))
    }

    /// The event of a watch with this selector.
    fn event(&self, selector: &Selector) -> Option<Event> {
        let before = self.before.as_ref().filter(|object| selector.matches(object));
        let after = self.after.as_ref().filter(|object| selector.matches(object));
        let (what, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => ("ADDED", after),
            (Some(_), Some(after)) => ("MODIFIED", after),
            (Some(before), None) => ("DELETED", before),
        };
        Some(Event::Of(what, Arc::clone(object)))
    }
}

/// An event that a watch has still to tell. Its text is made when it is told, so that a slow reader costs no memory.
#[derive(Clone, Debug)]
enum Event {
    Of(&'static str, Arc<Object>),
    Bookmark(Value),
}

/// The Leases and the changes that the listings of this server have shown.
#[derive(Debug, Default)]
struct Shown {
    leases: BTreeMap<Place, Arc<Object>>,
    changes: VecDeque<Change>,
    /// The number of all changes so far.
    revision: u64,
    listed: HashMap<Scope, Instant>,
}

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
        let known = |place: &Place, version: &Version| {
            let shown = self.shown();
            shown.leases.get(place).filter(|object| object.version == *version).cloned()
        };
        let found = self.leases.list(scope.as_deref(), known, deadline).await?;
        let revision = self.shown().show(scope, &found);
        self.changed.send_replace(());
        Ok((found, revision))
    }

    /// Lists the store for watches, unless one of them has just done it.
    async fn refresh(&self, scope: &Scope) {
        {
            let _turn = self.turn.lock().await;
            let last = self.shown().listed.get(scope).copied();
            if last.is_some_and(|last| last.elapsed() < self.pause) {
                return;
            }
        }
        let deadline = Instant::now() + patience(None, None);
        if let Err(failure) = self.list(scope, deadline).await {
            tracing::warn!(problem = failure.message(), "cannot list the Leases for those who watch them");
            // Nobody asks a store again at once that has just failed.
            self.shown().listed.insert(scope.clone(), Instant::now());
        }
    }

    /// Answers a listing.
    pub(crate) async fn answer(
        &self,
        scope: Scope,
        selector: &Selector,
        deadline: Instant,
    ) -> Result<(Vec<Arc<Object>>, String), Failure> {
        let (mut found, revision) = self.list(&scope, deadline).await?;
        found.retain(|object| selector.matches(object));
        Ok((found, self.version(revision)))
    }

    /// Begins a watch.
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
    ) -> Result<Watcher, Failure> {
        let seat = Arc::clone(&self.seats).try_acquire_owned().map_err(|_| Failure::crowded(MOST_WATCHES))?;
        let mut events = VecDeque::new();
        let begins_now = query.resource_version.is_empty() || query.resource_version == "0";
        let position = if begins_now || query.sends_initial_events {
            let (found, version) = self.answer(scope.clone(), &query.selector, deadline).await?;
            events.extend(found.into_iter().map(|object| Event::Of("ADDED", object)));
            if query.sends_initial_events {
                let annotations = json!({"k8s.io/initial-events-end": "true"});
                let metadata = json!({"resourceVersion": version, "annotations": annotations});
                let bookmark = json!({"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata});
                events.push_back(Event::Bookmark(bookmark));
            }
            self.revision(&version)
        } else {
            self.revision(&query.resource_version)
        };
        let end = query.timeout_seconds.map_or(LONGEST, Duration::from_secs).min(LONGEST);
        Ok(Watcher {
            changed: self.changed.subscribe(),
            listings: Arc::clone(self),
            scope,
            selector: query.selector,
            shape,
            events,
            position,
            end: Instant::now() + end,
            _seat: seat,
        })
    }

    /// The number of changes until a version of this server; `None` for another server's.
    fn revision(&self, version: &str) -> Option<u64> {
        version.strip_prefix(&self.server)?.strip_prefix('-')?.parse().ok()
    }
}

impl Shown {
    /// Shows a listing, and returns the number of changes.
    fn show(&mut self, scope: &Scope, found: &[Arc<Object>]) -> u64 {
        self.listed.insert(scope.clone(), Instant::now());
        let mut before = BTreeMap::new();
        self.leases.retain(|place, object| {
            let is_listed = scope.as_ref().is_none_or(|namespace| *namespace == place.namespace);
            if is_listed {
                before.insert(place.clone(), Arc::clone(object));
            }
            !is_listed
        });
        for object in found {
            let earlier = before.remove(object.place());
            if earlier.as_ref().is_none_or(|earlier| earlier.resource_version() != object.resource_version()) {
                self.note(Change { before: earlier, after: Some(Arc::clone(object)) });
            }
            self.leases.insert(object.place().clone(), Arc::clone(object));
        }
        for (_, gone) in before {
            self.note(Change { before: Some(gone), after: None });
        }
        self.revision
    }

    fn note(&mut self, change: Change) {
        self.revision += 1;
        self.changes.push_back(change);
        if self.changes.len() > REMEMBERED {
            self.changes.pop_front();
        }
    }

    /// The changes behind a revision; `None` if they are not known any more.
    fn after(&self, revision: u64) -> Option<impl Iterator<Item = &Change>> {
        let behind = usize::try_from(self.revision.checked_sub(revision)?).ok()?;
        let first = self.changes.len().checked_sub(behind)?;
        Some(self.changes.range(first..))
    }
}

/// One watch.
#[derive(Debug)]
pub(crate) struct Watcher {
    listings: Arc<Listings>,
    changed: watch::Receiver<()>,
    scope: Scope,
    selector: Selector,
    shape: fn(&Object) -> Value,
    events: VecDeque<Event>,
    /// The number of changes that this watch has told; `None` if it cannot go on.
    position: Option<u64>,
    end: Instant,
    _seat: OwnedSemaphorePermit,
}

impl Watcher {
    /// Answers with the events, one per line.
    pub(crate) fn lines(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut watcher| async move {
            let line = watcher.next().await?;
            Some((Ok(line), watcher))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.events.pop_front() {
                Some(Event::Of(what, object)) => return Some(line(what, &(self.shape)(&object))),
                Some(Event::Bookmark(bookmark)) => return Some(line("BOOKMARK", &bookmark)),
                None => {}
            }
            let now = Instant::now();
            if now >= self.end {
                return None;
            }
            self.changed.borrow_and_update();
            if !self.read_changes() {
                // One more event, and then the end.
                self.end = now;
                return Some(line("ERROR", &Failure::gone().object()));
            }
            if !self.events.is_empty() {
                continue;
            }
            let last = self.listings.shown().listed.get(&self.scope).copied();
            let due = last.map_or(now, |last| last + self.listings.pause).min(self.end);
            tokio::select! {
                _ = self.changed.changed() => {}
                () = sleep_until(due) => self.listings.refresh(&self.scope).await,
            }
        }
    }

    /// Makes events of the changes. Returns `false` if the changes are not known any more.
    fn read_changes(&mut self) -> bool {
        let shown = self.listings.shown();
        let Some(changes) = self.position.and_then(|position| shown.after(position)) else { return false };
        let changes = changes.filter(|change| change.is_in(&self.scope));
        self.events.extend(changes.filter_map(|change| change.event(&self.selector)));
        self.position = Some(shown.revision);
        true
    }
}

fn line(what: &str, object: &Value) -> Bytes {
    format!("{}\n", json!({"type": what, "object": object})).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_goes_on_behind_what_is_remembered_and_nothing_older() {
        let mut shown = Shown::default();
        for number in 0..=REMEMBERED {
            let behind = shown.after(0).map(Iterator::count);
            assert_eq!(behind, Some(number));
            shown.note(Change { before: None, after: None });
        }
        assert!(shown.after(0).is_none());
        assert_eq!(shown.after(1).unwrap().count(), REMEMBERED);
        assert!(shown.after(shown.revision + 1).is_none(), "of another server");
    }
}
