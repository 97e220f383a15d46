//! The marks of jobs (rule 18) in the parts of a lock.

use std::future::pending;

use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::{JobOutcome, REMEMBERED_JOBS};
use leaderelection::majority::view::View;
use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionRecord, Majority, MemoryStore, StoreErrorKind};

use crate::support::{Fault, Journal, LEASE, RETRY, TestLock, builder, plant, record, stored};

/// Runs a job as a new process, without the part that is away. Returns `true` if the job was done before.
async fn is_done(stores: &[MemoryStore; 3], needed: usize, job: &str, away: Option<usize>) -> bool {
    let locks = [0, 1, 2].map(|part| TestLock::new(&stores[part], job));
    if let Some(away) = away {
        locks[away].set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
    }
    let lock = Majority::of(locks).unwrap().needing(needed).unwrap();
    let elector = DefaultLeaderElector::new(builder(lock, Journal::default().callbacks()).build().unwrap());
    let job = job.parse().unwrap();
    match elector.run_once(pending(), &job, |_| async { Ok::<_, ()>(()) }).await.unwrap() {
        JobOutcome::AlreadyDone => true,
        JobOutcome::Done(()) => false,
        other => panic!("{job}: {other:?}"),
    }
}

/// Every job is asked for again when fifteen others were done since. Each time, another part may be away.
#[tokio::test(start_paused = true)]
async fn a_mark_outlives_fifteen_other_jobs_whichever_parts_are_away() {
    let in_turn = |job: usize| Some(job % 3);
    let for_long = |job: usize| Some(job / 20 % 3);
    let for_a_while = |job: usize| (job % 7 < 4).then_some(job / 7 % 3);
    let by_chance = |job: usize| [None, Some(0), Some(1), Some(2)][job * job * 31 % 101 % 4];
    let patterns: [fn(usize) -> Option<usize>; 4] = [in_turn, for_long, for_a_while, by_chance];
    for (pattern, away) in patterns.into_iter().enumerate() {
        let stores = <[MemoryStore; 3]>::default();
        for job in 0..70 {
            assert!(!is_done(&stores, 2, &format!("job-{job}"), away(job)).await, "{pattern}: {job}");
            for again in job.saturating_sub(REMEMBERED_JOBS - 1)..job {
                // One of the parts that were there is away now.
                let gone = Some((job + again) % 3);
                assert!(is_done(&stores, 2, &format!("job-{again}"), gone).await, "{pattern}: {again} after {job}");
            }
        }
    }
}

/// Each lock has a full list when three become one. The token of the lock that was in use is not the highest.
#[tokio::test(start_paused = true)]
async fn a_rollout_from_one_lock_to_three_keeps_full_lists() {
    let stores = <[MemoryStore; 3]>::default();
    for (part, token) in [(0, 41), (1, 60), (2, 7)] {
        let mut full = record("", RETRY, token);
        let jobs: Vec<_> = (0..REMEMBERED_JOBS).map(|job| format!("{part}-{job}")).collect();
        full.unknown.set("completedJobs", &jobs);
        plant(&stores[part], &full).await;
    }
    for job in 0..REMEMBERED_JOBS {
        let (needed, away) = if job < 3 { (3, None) } else { (2, Some(job % 3)) };
        for part in 0..3 {
            for before in 0..REMEMBERED_JOBS - job {
                assert!(
                    is_done(&stores, needed, &format!("{part}-{before}"), away).await,
                    "{part}-{before} after {job}"
                );
            }
        }
        assert!(!is_done(&stores, needed, &format!("new-{job}"), away).await, "{job}");
    }
}

/// The list of a part that was away for long is behind that of the others, and is the first to be forgotten.
#[tokio::test(start_paused = true)]
async fn old_marks_of_a_part_that_was_away_push_out_no_newer_ones() {
    let stores = <[MemoryStore; 3]>::default();
    for job in 0..40 {
        let away = if job < 16 { None } else { Some(2) };
        assert!(!is_done(&stores, 2, &format!("job-{job}"), away).await);
    }
    assert!(is_done(&stores, 2, "job-39", Some(0)).await);
    assert!(!is_done(&stores, 2, "next", Some(0)).await);
    let jobs = stored(&stores[1]).await.record.completed_jobs();
    let newest: Vec<_> =
        std::iter::once("next".to_owned()).chain((40 - 16..40).rev().map(|job| format!("job-{job}"))).collect();
    assert_eq!(jobs[..REMEMBERED_JOBS], newest);
}

/// A leader has seen the mark. Then one part shows what it had before.
#[test]
fn a_read_that_is_out_of_date_takes_no_mark_away() {
    let mut view = View::new("leader", ["a", "b", "c"].map(str::to_owned).into(), 2);
    let before = record("leader", LEASE, 3);
    let mut marked = before.clone();
    marked.write_id = Some("second".to_owned());
    marked.unknown.set("completedJobs", &["today"]);
    let found =
        |record: &LeaderElectionRecord, version| Some(VersionedRecord::new(record.clone(), Version::new(version)));
    view.plan(&before, None).unwrap();
    view.show(&[(0, found(&before, "0")), (1, found(&before, "1")), (2, found(&before, "2"))].into()).unwrap();
    view.plan(&marked, None).unwrap();
    view.show(&[(0, found(&marked, "3")), (1, found(&marked, "4")), (2, found(&before, "2"))].into()).unwrap();
    let (shown, _) = view.show(&[(0, found(&before, "0")), (2, found(&before, "2"))].into()).unwrap();
    assert_eq!(shown.unwrap().record.completed_jobs(), ["today"]);
}

/// Two parts share no mark, because one of them was away for long.
#[test]
fn the_list_of_the_newest_term_stands_first() {
    let found = |token: u64, jobs: &[&str]| {
        let mut released = record("", RETRY, token);
        released.write_id = Some(token.to_string());
        released.unknown.set("completedJobs", &jobs);
        Some(VersionedRecord::new(released, Version::new(token.to_string())))
    };
    for (newest, oldest) in [(0, 1), (1, 0)] {
        let mut view = View::new("candidate", ["a", "b", "c"].map(str::to_owned).into(), 2);
        let polled = [(newest, found(9, &["new-2", "new-1"])), (oldest, found(8, &["old-2", "old-1"]))];
        let (shown, _) = view.show(&polled.into()).unwrap();
        assert_eq!(shown.unwrap().record.completed_jobs(), ["new-2", "new-1", "old-2", "old-1"]);
    }
}

/// Two of three parts hide a mark in one poll, the second of them by a false answer. In the next one, which has the same versions,
/// the mark counts again.
#[test]
fn a_poll_that_counts_other_parts_has_another_version() {
    let mut view = View::new("candidate", ["a", "b", "c"].map(str::to_owned).into(), 2);
    let found =
        |record: &LeaderElectionRecord, version| Some(VersionedRecord::new(record.clone(), Version::new(version)));
    let mut marked = record("", RETRY, 3);
    marked.unknown.set("completedJobs", &["today"]);
    let mut own = record("candidate", LEASE, 4);
    own.write_id = Some("own".to_owned());
    own.unknown.set("completedJobs", &["today"]);
    view.show(&[(0, found(&marked, "0")), (1, found(&marked, "1"))].into()).unwrap();
    view.plan(&own, None).unwrap();
    let (without, _) = view.show(&[(0, found(&own, "2")), (1, None), (2, None)].into()).unwrap();
    let without = without.unwrap();
    assert_eq!(without.record.completed_jobs(), [""; 0]);
    let (with, _) = view.show(&[(0, found(&own, "2")), (2, None)].into()).unwrap();
    let with = with.unwrap();
    assert_eq!(with.record.completed_jobs(), ["today"]);
    assert_ne!(without.version, with.version);
    // A write by the earlier poll replaces no part that was set aside there.
    let mut plan = view.plan(&own, Some(&without.version)).unwrap();
    assert!(plan.puts().iter().all(|put| put.part() != 0), "{plan:?}");
}

/// Fields of other versions of the library.
#[tokio::test(start_paused = true)]
async fn a_term_keeps_the_unknown_fields_of_the_parts() {
    let stores = <[MemoryStore; 3]>::default();
    for store in &stores {
        let mut free = record("", RETRY, 7);
        free.unknown.set("ofAnotherVersion", &"kept");
        plant(store, &free).await;
    }
    assert!(!is_done(&stores, 2, "today", None).await);
    for store in &stores {
        assert_eq!(stored(store).await.record.unknown.get("ofAnotherVersion"), Some("\"kept\""));
    }
}
