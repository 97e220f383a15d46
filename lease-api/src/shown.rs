//! The Leases and the changes that the listings of a server have shown.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use crate::object::{Object, Place};
use crate::query::Selector;

/// The number of changes that a watch may be behind, and the most that they take together, in bytes.
const REMEMBERED: usize = 4096;
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// The number of places whose last listing is remembered.
const MOST_LISTED: usize = 1024;

/// The namespace that somebody asks about; `None` for all.
pub(crate) type Scope = Option<String>;

/// A change of one Lease.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    before: Option<Arc<Object>>,
    after: Option<Arc<Object>>,
    /// The number of changes before the listing that has shown it; `None` if that was the first one of its place.
    since: Option<u64>,
}

impl Change {
    pub(crate) fn is_in(&self, scope: &Scope) -> bool {
        let object = self.after.as_ref().or(self.before.as_ref());
        object.is_some_and(|object| scope.as_ref().is_none_or(|namespace| *namespace == object.place().namespace))
    }

    /// The event of a watch with this selector.
    pub(crate) fn event(&self, selector: &Selector) -> Option<(&'static str, &Object)> {
        let before = self.before.as_deref().filter(|object| selector.matches(object));
        let after = self.after.as_deref().filter(|object| selector.matches(object));
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(("ADDED", after)),
            (Some(_), Some(after)) => Some(("MODIFIED", after)),
            (Some(before), None) => Some(("DELETED", before)),
        }
    }

    fn size(&self) -> usize {
        self.before.iter().chain(&self.after).map(|object| object.size()).sum()
    }
}

/// The Leases and the changes that the listings of this server have shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    leases: BTreeMap<Place, Arc<Object>>,
    changes: VecDeque<Change>,
    /// The size of all changes.
    bytes: usize,
    /// The number of all changes so far.
    revision: u64,
    /// The time of the last listing of a place for watches, and whether one of them has succeeded.
    listed: HashMap<Scope, (Instant, bool)>,
}

impl Shown {
    pub(crate) fn at(&self, place: &Place) -> Option<&Arc<Object>> {
        self.leases.get(place)
    }

    /// The time of the last listing for watches.
    pub(crate) fn listed(&self, scope: &Scope) -> Option<Instant> {
        self.listed.get(scope).map(|(time, _)| *time)
    }

    fn has_shown(&self, scope: &Scope) -> bool {
        self.listed.get(scope).is_some_and(|(_, has_shown)| *has_shown)
    }

    /// Notes that a listing has failed, so that nobody tries again at once.
    pub(crate) fn note_failure(&mut self, scope: &Scope) {
        self.note_listing(scope, self.has_shown(scope));
    }

    fn note_listing(&mut self, scope: &Scope, has_shown: bool) {
        if self.listed.len() >= MOST_LISTED {
            self.listed.clear();
        }
        self.listed.insert(scope.clone(), (Instant::now(), has_shown));
    }

    /// Shows a listing, and returns the number of changes.
    pub(crate) fn show(&mut self, scope: &Scope, found: &[Arc<Object>]) -> u64 {
        let since = (self.has_shown(scope) || self.has_shown(&None)).then_some(self.revision);
        self.note_listing(scope, true);
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
                self.note(Change { before: earlier, after: Some(Arc::clone(object)), since });
            }
            self.leases.insert(object.place().clone(), Arc::clone(object));
        }
        for (_, gone) in before {
            self.note(Change { before: Some(gone), after: None, since });
        }
        self.revision
    }

    fn note(&mut self, change: Change) {
        self.revision = self.revision.saturating_add(1);
        self.bytes = self.bytes.saturating_add(change.size());
        self.changes.push_back(change);
        while self.changes.len() > REMEMBERED || self.bytes > MOST_BYTES {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.size());
        }
    }

    /// The change behind a revision, if there is one yet. Fails if it is not known any more.
    pub(crate) fn after(&self, revision: u64) -> Result<Option<Change>, Forgotten> {
        let behind = self.revision.checked_sub(revision).and_then(|behind| usize::try_from(behind).ok());
        let first = behind.and_then(|behind| self.changes.len().checked_sub(behind)).ok_or(Forgotten)?;
        Ok(self.changes.get(first).cloned())
    }

    /// The revision from which on a watch misses nothing that came after a version of a Lease: the one before the listing that
    /// has shown the version first. A deletion before the first listing of a place is not known.
    pub(crate) fn revision_before(&self, version: &str) -> Option<u64> {
        let is_it = |change: &&Change| change.after.as_ref().is_some_and(|after| after.resource_version() == version);
        self.changes.iter().rfind(is_it)?.since
    }
}

/// The answer to one who wants to know changes that are not remembered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Forgotten;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lease::{Draft, Spec};
    use crate::leases::Leases;

    #[test]
    fn a_watch_goes_on_behind_what_is_remembered_and_nothing_older() {
        let mut shown = Shown::default();
        for _ in 0..=REMEMBERED {
            assert!(shown.after(0).is_ok());
            shown.note(Change { before: None, after: None, since: None });
        }
        assert!(matches!(shown.after(0), Err(Forgotten)));
        assert!(shown.after(1).is_ok_and(|change| change.is_some()));
        assert!(shown.after(shown.revision).is_ok_and(|change| change.is_none()));
        assert!(shown.after(shown.revision + 1).is_err(), "of another server");
    }

    #[test]
    fn changes_of_large_leases_take_no_more_memory_than_those_of_small_ones() {
        let place = Place { namespace: "default".to_owned(), name: "web".to_owned() };
        let metadata = json!({"annotations": {"note": "x".repeat(30_000)}});
        let metadata = metadata.as_object().cloned().unwrap_or_default();
        let draft = Draft { uid: None, resource_version: None, metadata, spec: Spec::default() };
        let mut shown = Shown::default();
        for number in 1..=1_000 {
            let written = Object::wanted(&place, None, &draft, Leases::now());
            assert_eq!(shown.show(&None, &[Arc::new(written)]), number);
            assert_eq!(shown.bytes, shown.changes.iter().map(Change::size).sum::<usize>());
            assert!(shown.bytes <= MOST_BYTES, "{}", shown.bytes);
        }
        assert!((100..200).contains(&shown.changes.len()), "{}", shown.changes.len());
    }

    #[test]
    fn places_that_nobody_asks_about_any_more_are_forgotten() {
        let mut shown = Shown::default();
        for number in 0..3 * MOST_LISTED {
            shown.show(&Some(number.to_string()), &[]);
            assert!(shown.listed.len() <= MOST_LISTED);
        }
    }
}
