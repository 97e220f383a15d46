//! The Leases and the changes that the listings of a server have shown.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::listed::Listed;
use crate::object::Place;
use crate::pace::BYTES_AT_ONCE;
use crate::selector::Selector;

/// The number of changes that a watch may be behind, and the most that they take together, in bytes. A listing of 10,000 Leases
/// may show that all have been renewed.
const REMEMBERED: usize = 32 * 1024;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The number of changes that are read in one go, of no more than [`BYTES_AT_ONCE`], because a selector of labels reads each
/// Lease.
const AT_ONCE: usize = 1024;

/// The number of places whose last listing is remembered.
const MOST_LISTED: usize = 1024;

/// The namespace that somebody asks about; `None` for all.
pub(crate) type Scope = Option<String>;

fn has(scope: &Scope, place: &Place) -> bool {
    scope.as_ref().is_none_or(|namespace| *namespace == place.namespace)
}

/// A change of one Lease.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    before: Option<Arc<Listed>>,
    after: Option<Arc<Listed>>,
    /// The number of changes before the listing that has shown it; `None` if that was the first one of its place.
    since: Option<u64>,
}

impl Change {
    /// The event of a watch, if it is one.
    pub(crate) fn event(&self, scope: &Scope, selector: &Selector) -> Option<(&'static str, Arc<Listed>)> {
        let shown = |listed: &&Arc<Listed>| !listed.is_deleted() && selector.matches(listed);
        self.place().filter(|place| has(scope, place))?;
        match (self.before.as_ref().filter(shown), self.after.as_ref().filter(shown)) {
            (None, None) => None,
            (None, Some(after)) => Some(("ADDED", Arc::clone(after))),
            (Some(_), Some(after)) => Some(("MODIFIED", Arc::clone(after))),
            (Some(before), None) => Some(("DELETED", Arc::clone(before))),
        }
    }

    fn place(&self) -> Option<&Arc<Place>> {
        self.after.as_ref().or(self.before.as_ref()).map(|listed| listed.place())
    }

    /// What only this keeps in memory: the Lease behind the change is shown, or in the next change.
    fn size(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.size()).saturating_add(size_of::<Self>())
    }
}

/// The listings of one place.
#[derive(Debug)]
struct Listing {
    /// The time at which the last one has ended.
    at: Instant,
    /// The last one that has succeeded.
    number: Option<u64>,
}

/// The Leases and the changes that the listings of this server have shown. What is left of deleted Leases is among them.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    leases: BTreeMap<Arc<Place>, Arc<Listed>>,
    changes: VecDeque<Change>,
    /// The size of all changes.
    bytes: usize,
    /// The number of all changes so far.
    revision: u64,
    /// The number of listings that have begun.
    begun: u64,
    listings: HashMap<Scope, Listing>,
    /// The right to list a place, which one call has at a time.
    turns: HashMap<Scope, Arc<Mutex<()>>>,
}

impl Shown {
    pub(crate) fn at(&self, place: &Place) -> Option<&Arc<Listed>> {
        self.leases.get(place)
    }

    pub(crate) fn turn(&mut self, scope: &Scope) -> Arc<Mutex<()>> {
        if self.turns.len() >= MOST_LISTED {
            // Whoever has the turn, or waits for it, has a clone.
            self.turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(self.turns.entry(scope.clone()).or_default())
    }

    /// The number of listings that have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Begins a listing, and returns its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.begun = self.begun.saturating_add(1);
        self.begun
    }

    /// Returns `true` if a listing of the place that has begun behind so many others has succeeded.
    pub(crate) fn is_listed_behind(&self, scope: &Scope, begun: u64) -> bool {
        [scope, &None].into_iter().any(|scope| self.number(scope) > Some(begun))
    }

    /// The time at which the last listing of the place has ended.
    pub(crate) fn listed(&self, scope: &Scope) -> Option<Instant> {
        [scope, &None].into_iter().filter_map(|scope| self.listings.get(scope)).map(|listing| listing.at).max()
    }

    /// The last listing of exactly this place.
    fn number(&self, scope: &Scope) -> Option<u64> {
        self.listings.get(scope).and_then(|listing| listing.number)
    }

    /// Notes that a listing has failed, so that nobody tries again at once.
    pub(crate) fn note_failure(&mut self, scope: &Scope) {
        self.note_listing(scope, self.number(scope));
    }

    fn note_listing(&mut self, scope: &Scope, number: Option<u64>) {
        if self.listings.len() >= MOST_LISTED {
            self.listings.clear();
        }
        self.listings.insert(scope.clone(), Listing { at: Instant::now(), number });
    }

    fn within<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = &'a Arc<Listed>> {
        let first = Place { namespace: scope.clone().unwrap_or_default(), name: String::new() };
        let behind = self.leases.range::<Place, _>((Bound::Included(&first), Bound::Unbounded));
        behind.map(|(_, listed)| listed).take_while(move |listed| has(scope, listed.place()))
    }

    /// The Leases of a place that a selector of names matches, sorted, what is left of deleted ones included; and the number of
    /// changes until then. Each watch of one Lease would have all of them in memory for a moment.
    pub(crate) fn view_by_name(&self, scope: &Scope, selector: &Selector) -> (Vec<Arc<Listed>>, u64) {
        let is_wanted = |listed: &&Arc<Listed>| selector.needs_labels() || selector.matches(listed);
        (self.within(scope).filter(is_wanted).cloned().collect(), self.revision)
    }

    /// The Leases of a place, sorted, what is left of deleted ones included; and the number of changes until then.
    pub(crate) fn view(&self, scope: &Scope) -> (Vec<Arc<Listed>>, u64) {
        (self.within(scope).cloned().collect(), self.revision)
    }

    /// The Leases of a place as they were after so many changes; `None` if that is not known any more.
    pub(crate) fn view_at(&self, scope: &Scope, revision: u64) -> Option<Vec<Arc<Listed>>> {
        self.is_listed_behind(scope, 0).then_some(())?;
        let first = self.first_behind(revision).ok()?;
        let mut undone: BTreeMap<&Place, Option<&Arc<Listed>>> = BTreeMap::new();
        for change in self.changes.range(first..).rev() {
            if let Some(place) = change.place().filter(|place| has(scope, place)) {
                undone.insert(place, change.before.as_ref());
            }
        }
        let kept = self.within(scope).filter(|listed| !undone.contains_key(&**listed.place()));
        let mut found: Vec<_> = kept.chain(undone.values().filter_map(|before| *before)).cloned().collect();
        found.sort_by(|one, other| one.place().cmp(other.place()));
        Some(found)
    }

    /// Shows a listing. What a listing has shown that has begun later stays.
    pub(crate) fn show(&mut self, scope: &Scope, number: u64, found: &[Arc<Listed>]) {
        let since = self.is_listed_behind(scope, 0).then_some(self.revision);
        let later = self.listings.iter().filter(|(_, listing)| listing.number > Some(number));
        let later: HashSet<Scope> = later.map(|(scope, _)| scope.clone()).collect();
        if later.contains(&None) || later.contains(scope) {
            return;
        }
        let is_shown =
            |listed: &&Arc<Listed>| later.is_empty() || !later.contains(&Some(listed.place().namespace.clone()));
        let mut gone: BTreeMap<Arc<Place>, Arc<Listed>> = self
            .within(scope)
            .filter(is_shown)
            .map(|listed| (Arc::clone(listed.place()), Arc::clone(listed)))
            .collect();
        for listed in found.iter().filter(is_shown) {
            let before = gone.remove(listed.place());
            self.leases.insert(Arc::clone(listed.place()), Arc::clone(listed));
            if before.as_ref().is_none_or(|before| before.resource_version() != listed.resource_version()) {
                self.note(Change { before, after: Some(Arc::clone(listed)), since });
            }
        }
        for (place, before) in gone {
            self.leases.remove(&place);
            self.note(Change { before: Some(before), after: None, since });
        }
        self.note_listing(scope, Some(number));
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

    /// The place of the change behind a revision. Fails if it is not known any more.
    fn first_behind(&self, revision: u64) -> Result<usize, Forgotten> {
        let behind = self.revision.checked_sub(revision).and_then(|behind| usize::try_from(behind).ok());
        behind.and_then(|behind| self.changes.len().checked_sub(behind)).ok_or(Forgotten)
    }

    /// Looks for the first of the next changes of which `find` makes something. Returns the number of changes until then.
    pub(crate) fn next<T>(
        &self,
        revision: u64,
        find: impl FnMut(&Change) -> Option<T>,
    ) -> Result<(u64, Option<T>), Forgotten> {
        let (mut find, mut position, mut bytes) = (find, revision, 0_usize);
        for change in self.changes.range(self.first_behind(revision)?..).take(AT_ONCE) {
            if bytes > BYTES_AT_ONCE {
                break;
            }
            bytes = bytes.saturating_add(change.size());
            position = position.saturating_add(1);
            if let Some(found) = find(change) {
                return Ok((position, Some(found)));
            }
        }
        Ok((position, None))
    }

    /// The number of all changes.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
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
    use leaderelection::implement::{Version, VersionedObject};
    use serde_json::json;

    use super::*;
    use crate::lease::{Draft, Spec};
    use crate::leases::Leases;
    use crate::object::Object;

    /// The Lease of a namespace with a note, as a listing shows it.
    fn listed(namespace: &str, note: &str) -> Arc<Listed> {
        let place = Place { namespace: namespace.to_owned(), name: "web".to_owned() };
        let metadata = json!({"annotations": {"note": note}});
        let metadata = metadata.as_object().cloned().unwrap_or_default();
        let draft = Draft { uid: None, resource_version: None, metadata, spec: Spec::default() };
        let body = Object::wanted(&place, None, &draft, Leases::now()).body();
        Arc::new(Listed::read(Arc::new(place), VersionedObject::new(body, Version::new("1"))).unwrap())
    }

    fn names(listed: &[Arc<Listed>]) -> Vec<&str> {
        listed.iter().map(|listed| listed.resource_version()).collect()
    }

    #[test]
    fn a_watch_goes_on_behind_what_is_remembered_and_nothing_older() {
        let mut shown = Shown::default();
        let behind = |shown: &Shown, revision| shown.next(revision, |_| Some(())).map(|(_, found)| found.is_some());
        for _ in 0..=REMEMBERED {
            assert!(behind(&shown, 0).is_ok());
            shown.note(Change { before: None, after: None, since: None });
        }
        assert_eq!(behind(&shown, 0), Err(Forgotten));
        assert_eq!(behind(&shown, 1), Ok(true));
        assert_eq!(behind(&shown, shown.revision), Ok(false));
        assert_eq!(behind(&shown, shown.revision + 1), Err(Forgotten), "of another server");
        assert_eq!(shown.next(1, |_| None::<()>), Ok((1 + AT_ONCE as u64, None)), "so many in one go");
    }

    #[test]
    fn changes_of_large_leases_take_no_more_memory_than_those_of_small_ones() {
        let mut shown = Shown::default();
        for number in 1..=1_000 {
            shown.show(&None, number, &[listed("a", &"x".repeat(30_000))]);
            assert_eq!(shown.revision, number);
            assert_eq!(shown.bytes, shown.changes.iter().map(Change::size).sum::<usize>());
            assert!(shown.bytes <= MOST_BYTES, "{}", shown.bytes);
        }
        let first = shown.revision - shown.changes.len() as u64;
        let (position, _) = shown.next(first, |_| None::<()>).unwrap();
        assert!((4..8).contains(&(position - first)), "so many large ones in one go: {}", position - first);
        assert!((400..600).contains(&shown.changes.len()), "{}", shown.changes.len());
    }

    #[test]
    fn a_listing_that_ends_late_takes_nothing_back() {
        let mut shown = Shown::default();
        let [one, two, other] = [listed("a", "1"), listed("a", "2"), listed("b", "1")];
        let place = |name: &str| Some(name.to_owned());
        shown.show(&place("a"), 2, &[Arc::clone(&two)]);
        shown.show(&None, 1, &[Arc::clone(&one), Arc::clone(&other)]);
        assert_eq!(
            names(&shown.view(&None).0),
            names(&[Arc::clone(&two), Arc::clone(&other)]),
            "of the other place only"
        );
        shown.show(&None, 4, &[Arc::clone(&two)]);
        shown.show(&place("b"), 3, &[other]);
        assert_eq!(names(&shown.view(&None).0), names(&[two]), "of all places");
    }

    #[test]
    fn the_leases_of_a_listing_stay_until_its_changes_are_forgotten() {
        let mut shown = Shown::default();
        let [first, second, other] = [listed("a", "1"), listed("a", "2"), listed("b", "1")];
        assert!(shown.view_at(&None, 0).is_none(), "nothing was listed");
        shown.show(&None, 1, &[Arc::clone(&first), Arc::clone(&other)]);
        let begun = shown.revision;
        shown.show(&None, 2, &[Arc::clone(&second), Arc::clone(&other)]);
        shown.show(&None, 3, &[listed("c", "1")]);
        assert_eq!(names(&shown.view_at(&None, begun).unwrap()), names(&[Arc::clone(&first), other]));
        assert_eq!(names(&shown.view_at(&Some("a".to_owned()), begun).unwrap()), names(&[first]));
        assert_eq!(names(&shown.view_at(&Some("a".to_owned()), begun + 1).unwrap()), names(&[second]));
        assert_eq!(shown.view_at(&None, shown.revision).unwrap().len(), 1);
        assert!(shown.view_at(&None, shown.revision + 1).is_none(), "of another server");
    }

    #[test]
    fn places_that_nobody_asks_about_any_more_are_forgotten() {
        let mut shown = Shown::default();
        for number in 0..3 * MOST_LISTED {
            let scope = Some(number.to_string());
            drop(shown.turn(&scope));
            shown.show(&scope, number as u64 + 1, &[]);
            assert!(shown.listings.len() <= MOST_LISTED && shown.turns.len() <= MOST_LISTED);
        }
    }
}
