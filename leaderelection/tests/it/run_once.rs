//! Jobs that have to succeed only once.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leaderelection::implement::MAX_BODY_BYTES;
use leaderelection::lock::{JobId, JobOutcome, REMEMBERED_JOBS};
use leaderelection::{
    Elector, LeaderCallbacks, LeaderElectionRecord, MemoryStore, RunError, RunOutcome, StoreErrorKind,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{DEADLINE, Fault, LEASE, Op, RETRY, TestLock, elector, logged, plant, record, stored};

type Outcome = Result<JobOutcome<u64, &'static str>, RunError>;

fn id(name: &str) -> JobId {
    name.parse().unwrap()
}

/// Runs the job `name` as `identity`, with work that takes a while.
async fn run(lock: TestLock, name: &str, result: Result<(), &'static str>) -> Outcome {
    let elector = elector(lock, LeaderCallbacks::new());
    elector
        .run_once(pending(), &id(name), move |leadership| async move {
            sleep(RETRY * 3).await;
            result.map(|()| leadership.fencing_token().into())
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn ten_hosts_do_a_job_once() {
    let (store, runs) = (MemoryStore::new(), Arc::new(AtomicU32::new(0)));
    for day in 0..20_u64 {
        let mut hosts = JoinSet::new();
        for host in 0..10 {
            let elector = elector(TestLock::new(&store, &format!("host-{host}")), LeaderCallbacks::new());
            let (runs, id) = (Arc::clone(&runs), id(&format!("day-{day}")));
            hosts.spawn(async move {
                sleep(Duration::from_millis(300) * host).await;
                elector
                    .run_once(pending(), &id, |_| async move {
                        runs.fetch_add(1, Ordering::Relaxed);
                        sleep(Duration::from_millis(200)).await;
                        Ok::<_, ()>(())
                    })
                    .await
            });
        }
        let outcomes: Vec<_> = hosts.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(JobOutcome::Done(()))).count(), 1);
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(JobOutcome::AlreadyDone)).count(), 9);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 20);
    let done = stored(&store).await.record.completed_jobs();
    assert_eq!((done.len(), &*done[0]), (REMEMBERED_JOBS, "day-19"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_done_by_the_next_host() {
    let store = MemoryStore::new();
    assert_eq!(run(TestLock::new(&store, "a"), "today", Err("no")).await, Ok(JobOutcome::Failed("no")));
    assert!(stored(&store).await.record.completed_jobs().is_empty());
    assert_eq!(run(TestLock::new(&store, "b"), "today", Ok(())).await, Ok(JobOutcome::Done(2)));
    assert_eq!(run(TestLock::new(&store, "a"), "today", Ok(())).await, Ok(JobOutcome::AlreadyDone));
    assert_eq!(stored(&store).await.record.leader_transitions, 2);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_host_died_is_done_by_the_next_host() {
    let store = MemoryStore::new();
    let first = tokio::spawn(run(TestLock::new(&store, "a"), "today", Ok(())));
    sleep(RETRY * 2).await;
    first.abort();
    assert_eq!(run(TestLock::new(&store, "b"), "today", Ok(())).await, Ok(JobOutcome::Done(2)));
}

#[tokio::test(start_paused = true)]
async fn a_mark_outlives_later_terms() {
    let store = MemoryStore::new();
    assert_eq!(run(TestLock::new(&store, "a"), "monday", Ok(())).await, Ok(JobOutcome::Done(1)));
    assert_eq!(run(TestLock::new(&store, "a"), "tuesday", Err("no")).await, Ok(JobOutcome::Failed("no")));
    // A candidate without a job keeps what it does not need.
    let plain = elector(TestLock::new(&store, "b"), LeaderCallbacks::new());
    plain.run_while_leading(pending(), |_| sleep(RETRY * 4)).await.unwrap();
    assert_eq!(run(TestLock::new(&store, "c"), "monday", Ok(())).await, Ok(JobOutcome::AlreadyDone));
    assert_eq!(run(TestLock::new(&store, "c"), "tuesday", Ok(())).await, Ok(JobOutcome::Done(4)));
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_another_job_does_not_keep_a_done_job_waiting() {
    let store = MemoryStore::new();
    assert_eq!(run(TestLock::new(&store, "a"), "monday", Ok(())).await, Ok(JobOutcome::Done(1)));
    let long = elector(TestLock::new(&store, "b"), LeaderCallbacks::new());
    let long = tokio::spawn(async move { long.run_while_leading(pending(), |_| pending::<()>()).await });
    sleep(LEASE).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(run(TestLock::new(&store, "c"), "monday", Ok(())).await, Ok(JobOutcome::AlreadyDone));
    assert!(begun.elapsed() < RETRY);
    long.abort();
}

#[tokio::test(start_paused = true)]
async fn a_mark_whose_answer_was_lost_counts() {
    // The writes are: creation, renewals after 2 s and 4 s, and the release with the mark.
    for fault in [Fault::ApplyThen(StoreErrorKind::Ambiguous), Fault::ApplyThenHang, Fault::Hang] {
        let store = MemoryStore::new();
        let lock = TestLock::new(&store, "a").with_fault(Op::Update, 2, fault);
        assert_eq!(run(lock, "today", Ok(())).await, Ok(JobOutcome::Done(1)), "{fault:?}");
        assert_eq!(stored(&store).await.record.completed_jobs(), ["today"]);
    }
}

/// The answer to the release is lost, and before the host reads the lock, somebody else leads.
#[tokio::test(start_paused = true)]
async fn a_mark_that_the_record_of_a_later_term_shows_counts() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a").with_fault(Op::Update, 2, Fault::ApplyThenHang);
    let job = tokio::spawn(run(lock, "today", Ok(())));
    sleep(RETRY).await;
    let mut next = loop {
        let found = stored(&store).await.record;
        if found.is_released() {
            break found;
        }
        sleep(RETRY / 10).await;
    };
    (next.holder_identity, next.leader_transitions) = ("b".to_owned(), 1);
    (next.lease_duration, next.write_id) = (LEASE, Some("b-1".to_owned()));
    plant(&store, &next).await;
    assert_eq!(job.await.unwrap(), Ok(JobOutcome::Done(1)));
    assert_eq!(stored(&store).await.record.holder_identity, "b");
}

/// A record that somebody has filled but for `room` bytes.
fn full(room: usize) -> LeaderElectionRecord {
    let large = "x".repeat(MAX_BODY_BYTES - 200 - room);
    let json = format!(
        r#"{{"holderIdentity":"old","leaseDuration":"15s","leaderTransitions":7,"writeId":"w","zone":1,"large":"{large}"}}"#
    );
    LeaderElectionRecord::from_json(json.as_bytes(), LEASE).unwrap()
}

#[test]
fn what_is_left_out_of_a_full_record_is_logged_once() {
    let events = logged(tracing::Level::WARN, async || {
        let store = MemoryStore::new();
        plant(&store, &full(0)).await;
        let job = run(TestLock::new(&store, "a"), "today", Ok(()));
        assert_eq!(timeout(LEASE * 3, job).await.unwrap(), Ok(JobOutcome::Done(8)));
    });
    let told = events.iter().filter(|event| event.contains("too large") && event.contains(r#"fields=["large"]"#));
    assert_eq!((told.count(), events.len()), (1, 1), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_leaves_no_room_is_taken_over() {
    let store = MemoryStore::new();
    // The second leaves room for a takeover, and not for a mark.
    for (room, name, token) in [(0, "monday", 8), (150, "a-name-of-a-job-that-is-".repeat(10).as_str(), 8)] {
        plant(&store, &full(room)).await;
        let job = run(TestLock::new(&store, "a"), name, Ok(()));
        assert_eq!(timeout(LEASE * 3, job).await.unwrap(), Ok(JobOutcome::Done(token)), "{room}");
        let found = stored(&store).await.record;
        assert_eq!(found.completed_jobs(), [name]);
        assert_eq!((found.unknown.get("zone"), found.unknown.get("large")), (Some("1"), None), "{room}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_mark_is_told() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (away, job) = (lock.clone(), tokio::spawn(run(lock, "today", Ok(()))));
    sleep(RETRY * 2 + RETRY / 2).await;
    away.set_outage(Some(Fault::Hang));
    assert_eq!(job.await.unwrap(), Ok(JobOutcome::Unmarked(1)));
    assert_eq!(run(TestLock::new(&store, "b"), "today", Ok(())).await, Ok(JobOutcome::Done(2)));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_that_succeeds_is_marked() {
    let store = MemoryStore::new();
    // The lease is not released on cancellation, and yet the mark is written.
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    let outcome = elector
        .run_once(cancel.cancelled_owned(), &id("today"), |leadership| async move {
            sleep(RETRY).await;
            canceller.cancel();
            leadership.lost().await;
            Ok::<_, ()>("finished")
        })
        .await;
    assert_eq!(outcome, Ok(JobOutcome::Done("finished")));
    assert_eq!(stored(&store).await.record.completed_jobs(), ["today"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_lease_was_taken_away_leaves_no_mark() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let usurp = async {
        sleep(RETRY).await;
        plant(&store, &record("b", LEASE, 9)).await;
    };
    let work = |_| async {
        sleep(RETRY * 2).await;
        Ok::<_, ()>(())
    };
    let today = id("today");
    let (outcome, ()) = tokio::join!(elector.run_once(pending(), &today, work), usurp);
    assert!(matches!(outcome, Err(RunError::Lost { .. })), "{outcome:?}");
    assert_eq!(stored(&store).await.record.holder_identity, "b");
    assert!(stored(&store).await.record.completed_jobs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_is_cancelled_before_it_begins() {
    let store = MemoryStore::new();
    plant(&store, &record("b", LEASE, 9)).await;
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let cancel = CancellationToken::new();
    let work = |_| async { Ok::<_, ()>(()) };
    let today = id("today");
    let stop = async {
        sleep(DEADLINE).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(elector.run_once(cancel.clone().cancelled_owned(), &today, work), stop);
    assert_eq!(outcome, Err(RunError::Cancelled));
    assert_eq!(RunOutcome::JobDone { fencing_token: None }.reason(), None);
}

#[test]
fn bad_jobs_are_refused() {
    assert_eq!("".parse::<JobId>().unwrap_err().to_string(), "job (\"\") is empty");
    assert!("a\nb".parse::<JobId>().is_err());
    assert!("x".repeat(100_000).parse::<JobId>().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_has_done_a_job_does_not_do_it_again() {
    let (store, runs) = (MemoryStore::new(), Arc::new(AtomicU32::new(0)));
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    for expected in [JobOutcome::Done(()), JobOutcome::AlreadyDone] {
        let runs = Arc::clone(&runs);
        let work = |_| async move {
            runs.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ()>(())
        };
        assert_eq!(elector.run_once(pending(), &id("today"), work).await, Ok(expected));
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert_eq!(stored(&store).await.record.leader_transitions, 1);
}
