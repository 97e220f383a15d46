//! A request for the lease, which keeps the write id of the leader's record.

use std::time::Duration;

use leaderelection::majority::view::View;
use leaderelection::{LeaderElectionRecord, Version, VersionedRecord};

const LEASE: Duration = Duration::from_secs(15);

fn names() -> Vec<String> {
    vec!["old".to_owned(), "new".to_owned()]
}

fn record(holder: &str, write_id: &str) -> LeaderElectionRecord {
    let mut record = LeaderElectionRecord::new(holder, LEASE);
    (record.leader_transitions, record.write_id) = (3, Some(write_id.to_owned()));
    record
}

fn found(record: &LeaderElectionRecord, version: &str) -> Option<VersionedRecord> {
    Some(VersionedRecord::new(record.clone(), Version::new(version)))
}

/// The candidate that asks dies between the two halves, or the answer to the second half is lost.
#[test]
fn a_request_that_has_reached_one_lock_is_obeyed_and_counted() {
    let record = record("leader", "first");
    let mut request = record.clone();
    (request.preferred_holder, request.take_backs) = (Some("better".to_owned()), 1);
    for [old, new] in [[&request, &record], [&record, &request]] {
        let mut leader = View::new("leader", names(), 2);
        leader.writes(&record);
        leader.show(&[(0, found(&record, "old 1")), (1, found(&record, "new 1"))].into());
        let (shown, _) = leader.show(&[(0, found(old, "old 2")), (1, found(new, "new 2"))].into());
        let shown = shown.unwrap().record;
        assert_eq!((shown.preferred_holder.as_deref(), shown.take_backs), (Some("better"), 1));
    }
}

/// Half of a renewal lands, then the second half of a request that is late, and then an operator releases the other lock.
#[test]
fn the_half_of_a_leader_that_was_asked_for_the_lease_bars_both_locks() {
    let mut view = View::new("better", names(), 2);
    let (first, second) = (record("leader", "first"), record("leader", "second"));
    let mut request = first.clone();
    request.preferred_holder = Some("better".to_owned());
    view.show(&[(0, found(&first, "old 1")), (1, found(&first, "new 1"))].into());
    view.writes(&request);
    view.show(&[(0, found(&second, "old 2")), (1, found(&first, "new 1"))].into());
    let (shown, _) = view.show(&[(0, found(&record("", "by hand"), "old 3")), (1, found(&request, "new 2"))].into());
    let shown = shown.unwrap().record;
    assert_eq!((&*shown.holder_identity, shown.lease_duration), ("leader", LEASE));
}
