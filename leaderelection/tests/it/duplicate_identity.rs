//! The watch for a second process that uses the elector's identity.

use leaderelection::LeaderElectionRecord;
use leaderelection::election::DuplicateIdentityDetector;
use leaderelection::implement::Version;

use crate::support::{LEASE, record};

/// The watch of the elector whose write ids begin with `a-`, over an object.
struct Watched {
    watch: DuplicateIdentityDetector,
    versions: usize,
    object: LeaderElectionRecord,
}

impl Watched {
    /// A watch that has seen the object once.
    fn new(holder: &str, write_id: &str) -> Self {
        let mut object = record(holder, LEASE, 7);
        object.write_id = Some(write_id.to_owned());
        let mut watched = Self { watch: DuplicateIdentityDetector::new("a"), versions: 0, object };
        assert!(!watched.poll(), "nobody can tell whether a lease is alive that was seen once");
        watched
    }

    /// Returns `true` if a poll of the object shows a duplicate identity.
    fn poll(&mut self) -> bool {
        let version = Version::new(self.versions.to_string());
        let is_ours = self.object.write_id.as_deref().is_some_and(|write_id| write_id.starts_with("a-"));
        self.watch.saw(Some((&self.object, &version)), is_ours)
    }

    /// Returns `true` if a poll shows a duplicate identity after a write with this id.
    fn after(&mut self, write_id: Option<&str>) -> bool {
        self.versions += 1;
        self.object.write_id = write_id.map(str::to_owned);
        self.poll()
    }
}

#[test]
fn a_lease_that_lives_without_us_is_reported_once() {
    for first in ["a-1", "twin-0"] {
        let mut watched = Watched::new("a", first);
        assert!(!watched.poll(), "we may have left it behind before we were restarted");
        assert!(watched.after(Some("twin-1")), "{first}");
        assert!(!watched.after(Some("twin-2")), "{first}");
    }
}

#[test]
fn a_duplicate_stays_until_the_lease_is_ours_or_anothers() {
    let mut watched = Watched::new("a", "a-1");
    assert!(!watched.watch.goes_on(true));
    watched.after(Some("twin-1"));
    assert!(watched.watch.goes_on(false));
    watched.after(Some("twin-2"));
    assert!(watched.watch.goes_on(false));
    watched.after(Some("a-2"));
    assert!(!watched.watch.goes_on(true));
    watched.after(Some("twin-3"));
    assert!(watched.watch.goes_on(false));
    watched.object.holder_identity = "b".to_owned();
    watched.after(Some("b-1"));
    assert!(!watched.watch.goes_on(false));
}

#[test]
fn a_twin_without_write_ids_is_reported() {
    let mut watched = Watched::new("a", "a-1");
    assert!(watched.after(None));
}

#[test]
fn our_own_writes_are_not_reported_however_late_they_commit() {
    let mut watched = Watched::new("a", "a-9");
    assert!(!watched.after(Some("a-10")));
    assert!(!watched.after(Some("a-2")));
    assert!(watched.after(Some("twin-1")), "a twin is reported all the same");
}

#[test]
fn a_request_to_hand_over_what_we_left_behind_is_not_reported() {
    let mut watched = Watched::new("a", "before-the-restart");
    watched.versions += 1;
    watched.object.preferred_holder = Some("b".to_owned());
    assert!(!watched.poll());
}

#[test]
fn a_duplicate_is_reported_anew_after_another_has_led() {
    let mut watched = Watched::new("a", "a-1");
    assert!(watched.after(Some("twin-1")));
    watched.object.holder_identity = "b".to_owned();
    assert!(!watched.after(Some("b-1")));
    watched.object.holder_identity = "a".to_owned();
    assert!(!watched.after(Some("twin-2")), "it may be what we left behind");
    assert!(watched.after(Some("twin-3")));
}

#[test]
fn nothing_is_reported_of_what_came_after_a_deletion() {
    let mut watched = Watched::new("a", "a-1");
    assert!(!watched.watch.saw(None, false));
    assert!(!watched.after(Some("twin-1")));
    assert!(watched.after(Some("twin-2")));
}
