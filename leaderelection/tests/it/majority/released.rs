//! Parts that nobody holds: enough of them are free, whoever holds another (M4).

use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::LockParts;
use leaderelection::majority::parts::PollAnswers;
use leaderelection::majority::view::View;

use crate::support::{LEASE, RETRY, record};

fn names() -> Vec<String> {
    ["x", "y", "z"].map(str::to_owned).into()
}

fn view() -> View {
    View::new("candidate", names(), 2)
}

/// A write, with an id of its own.
fn write(holder: &str, token: u64, id: &str) -> LeaderElectionRecord {
    let mut record = record(holder, if holder.is_empty() { RETRY } else { LEASE }, token);
    record.write_id = Some(id.to_owned());
    record.parts = Some(LockParts::new(2, names(), token));
    record
}

fn answers<'a>(writes: impl IntoIterator<Item = (usize, &'a LeaderElectionRecord)>) -> PollAnswers {
    let version = |record: &LeaderElectionRecord| Version::new(record.write_id.as_deref().unwrap());
    let found = |record: &LeaderElectionRecord| VersionedRecord::new(record.clone(), version(record));
    writes.into_iter().map(|(part, record)| (part, Some(found(record)))).collect()
}

#[test]
fn the_last_held_part_blocks_nobody_beside_released_ones() {
    let (held, released, again) = (write("a", 7, "a-1"), write("", 7, "a-2"), write("", 7, "a-3"));
    let rolled_back = write("", 8, "b-1");
    for other in [&again, &rolled_back] {
        let mut view = view();
        view.show(&answers([(0, &held), (1, &held), (2, &held)])).expect("enough answers");
        let (shown, _) = view.show(&answers([(0, &held), (1, &released), (2, other)])).expect("enough answers");
        assert!(shown.unwrap().record.is_released(), "{other:?}");
    }
    let mut view = view();
    view.show(&answers([(0, &held), (1, &held), (2, &held)])).expect("enough answers");
    let (shown, _) = view.show(&answers([(0, &held), (1, &released)])).expect("enough answers");
    assert_eq!(shown.unwrap().record.holder_identity, "a");
}

#[test]
fn a_rolled_back_part_does_not_block_even_its_writer() {
    let (held, released, taken) = (write("a", 7, "a-1"), write("", 7, "a-2"), write("candidate", 8, "b-1"));
    let mut view = view();
    view.show(&answers([(0, &held), (1, &held), (2, &held)])).expect("enough answers");
    let rolled_back = write("", 8, "b-1-returned");
    view.plan(&taken, None).unwrap();
    view.plan(&rolled_back, None).unwrap();
    view.show(&answers([(0, &held), (1, &rolled_back), (2, &held)])).expect("enough answers");
    let (shown, _) = view.show(&answers([(0, &held), (1, &rolled_back), (2, &released)])).expect("enough answers");
    assert!(shown.unwrap().record.is_released());
}

#[test]
fn a_poll_of_unchanged_parts_waits_for_one_that_may_free_the_lock() {
    let (held, taken, released) = (write("a", 7, "a-1"), write("b", 8, "b-1"), write("", 7, "a-2"));
    let mut view = view();
    view.show(&answers([(0, &held), (1, &taken), (2, &released)])).expect("enough answers");
    let unchanged = answers([(0, &held), (2, &released)]);
    assert!(!view.is_enough(&unchanged, true));
    assert!(view.is_enough(&unchanged, false));
    // Nobody waits for more where enough parts show one write.
    view.show(&answers([(0, &held), (1, &held), (2, &released)])).expect("enough answers");
    assert!(view.is_enough(&answers([(0, &held), (1, &held)]), true));
}

/// The release carries the mark of a job, and has reached one part so far.
#[test]
fn a_mark_being_written_is_known_whichever_part_a_poll_misses() {
    let (held, mut released) = (write("a", 7, "a-1"), write("", 7, "a-2"));
    released.unknown.set("completedJobs", &["today"]);
    let mut view = view();
    for in_between in [[(0, &held), (1, &held)], [(0, &held), (1, &released)], [(0, &held), (2, &held)]] {
        view.show(&answers(in_between)).expect("enough answers");
    }
    let (shown, _) = view.show(&answers([(0, &held), (1, &released)])).expect("enough answers");
    assert_eq!(shown.unwrap().record.completed_jobs(), ["today"]);
}

/// Beside a part of an earlier term, one that is silent at times begins no second wait for the lease.
#[test]
fn a_part_that_is_silent_at_times_blocks_one_lease_at_most() {
    let (held, behind) = (write("a", 7, "a-1"), write("x", 6, "x-1"));
    let all = answers([(0, &held), (1, &held), (2, &behind)]);
    let mut view = view();
    view.show(&all).expect("enough answers");
    let (silent, _) = view.show(&answers([(0, &held), (2, &behind)])).expect("enough answers");
    for again in [&all, &answers([(0, &held), (2, &behind)]), &all] {
        let (shown, _) = view.show(again).expect("enough answers");
        assert_eq!(shown.unwrap().version, silent.as_ref().unwrap().version);
    }
    let renewed = write("a", 7, "a-2");
    let (shown, _) = view.show(&answers([(0, &held), (1, &renewed), (2, &behind)])).expect("enough answers");
    assert_ne!(shown.unwrap().version, silent.unwrap().version);
}
