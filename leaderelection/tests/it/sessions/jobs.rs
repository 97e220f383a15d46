//! Jobs that have to succeed only once, under a lock of a session.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use leaderelection::lock::{JobId, JobOutcome, REMEMBERED_JOBS};
use leaderelection::{Elector, LeaderCallbacks, RunError, Session, StoreErrorKind};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::single::{record, run, session};
use super::{BOUND, LEASE, RETRY};
use crate::support::{Call, Fault, Faulty};

const KEY: &str = "fleet/locks/nightly";

type Outcome = Result<JobOutcome<u64, &'static str>, RunError>;

fn id(name: &str) -> JobId {
    name.parse().unwrap()
}

/// Runs the job `name` in a session, with work that takes a while.
async fn work(session: &Session, name: &str, result: Result<(), &'static str>) -> Outcome {
    let elector = session.elector("nightly", LeaderCallbacks::new()).unwrap();
    let id = id(name);
    let job = elector.run_once(pending(), &id, move |leadership| async move {
        sleep(RETRY * 3).await;
        result.map(|()| leadership.fencing_token().into())
    });
    timeout(BOUND, job).await.expect("a job that ends")
}

/// Runs the job `name` in a process of its own, until the end of the process.
async fn host(store: &Faulty, identity: &str, name: &str, result: Result<(), &'static str>) -> Outcome {
    let (session, stop) = (session(store, identity), CancellationToken::new());
    let running = run(&session, &stop);
    let outcome = work(&session, name, result).await;
    stop.cancel();
    running.await.unwrap();
    outcome
}

/// A store in which the writes of the lock fail by their numbers.
fn failing(fault: impl Fn(u32) -> Option<Fault> + Send + Sync + 'static) -> Faulty {
    let writes = AtomicU32::new(0);
    Faulty::new(
        move |call, key, _| {
            if call == Call::Put && key == KEY { fault(writes.fetch_add(1, Ordering::Relaxed)) } else { None }
        },
    )
}

async fn marks(store: &Faulty) -> Vec<String> {
    record(store, KEY).await.unwrap().completed_jobs()
}

#[tokio::test(start_paused = true)]
async fn ten_members_do_a_job_once() {
    let (store, stop, runs) = (Faulty::default(), CancellationToken::new(), Arc::new(AtomicU32::new(0)));
    let sessions: Vec<_> = (0..10).map(|member| session(&store, &format!("member-{member}"))).collect();
    let _running: Vec<_> = sessions.iter().map(|session| run(session, &stop)).collect();
    for day in 0..20 {
        let mut members = JoinSet::new();
        for session in sessions.clone() {
            let (runs, id) = (Arc::clone(&runs), id(&format!("day-{day}")));
            members.spawn(async move {
                let elector = session.elector("nightly", LeaderCallbacks::new()).unwrap();
                let work = |_| async move {
                    runs.fetch_add(1, Ordering::Relaxed);
                    sleep(RETRY / 10).await;
                    Ok::<_, ()>(())
                };
                timeout(BOUND, elector.run_once(pending(), &id, work)).await.expect("a job that ends")
            });
        }
        let outcomes = members.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(JobOutcome::Done(()))).count(), 1, "{outcomes:?}");
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(JobOutcome::AlreadyDone)).count(), 9);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 20);
    let done = marks(&store).await;
    assert!((REMEMBERED_JOBS..=20).contains(&done.len()) && done[0] == "day-19", "{done:?}");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_done_by_the_next_host() {
    let store = Faulty::default();
    assert_eq!(host(&store, "a", "today", Err("no")).await, Ok(JobOutcome::Failed("no")));
    assert!(marks(&store).await.is_empty());
    assert_eq!(host(&store, "b", "today", Ok(())).await, Ok(JobOutcome::Done(2)));
    assert_eq!(host(&store, "a", "today", Ok(())).await, Ok(JobOutcome::AlreadyDone));
    assert_eq!(record(&store, KEY).await.unwrap().leader_transitions, 2);
}

#[tokio::test(start_paused = true)]
async fn a_mark_outlives_later_terms() {
    let (store, stop) = (Faulty::default(), CancellationToken::new());
    let session = session(&store, "a");
    let _running = run(&session, &stop);
    assert_eq!(work(&session, "monday", Ok(())).await, Ok(JobOutcome::Done(1)));
    // The next record follows from its own release, without a read.
    let plain = session.elector("nightly", LeaderCallbacks::new()).unwrap();
    plain.run_while_leading(pending(), |_| sleep(RETRY * 4)).await.unwrap();
    drop(plain);
    assert_eq!(marks(&store).await, ["monday"]);
    assert_eq!(work(&session, "tuesday", Err("no")).await, Ok(JobOutcome::Failed("no")));
    assert_eq!(work(&session, "monday", Ok(())).await, Ok(JobOutcome::AlreadyDone));
    assert_eq!(work(&session, "tuesday", Ok(())).await, Ok(JobOutcome::Done(4)));
    assert_eq!(marks(&store).await, ["tuesday", "monday"]);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_another_job_does_not_keep_a_done_job_waiting() {
    let (store, stop) = (Faulty::default(), CancellationToken::new());
    assert_eq!(host(&store, "a", "monday", Ok(())).await, Ok(JobOutcome::Done(1)));
    let (b, c) = (session(&store, "b"), session(&store, "c"));
    let _running = [run(&b, &stop), run(&c, &stop)];
    let long = b.elector("nightly", LeaderCallbacks::new()).unwrap();
    let mut handle = long.handle();
    let cancel = stop.clone();
    tokio::spawn(async move { long.run_while_leading(cancel.cancelled_owned(), |_| pending::<()>()).await });
    handle.elected().await.unwrap();
    sleep(LEASE).await;
    let began = Instant::now();
    assert_eq!(work(&c, "monday", Ok(())).await, Ok(JobOutcome::AlreadyDone));
    assert!(began.elapsed() < RETRY);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_mark_whose_answer_was_lost_counts() {
    // The writes of the lock are: the creation, and the release with the mark.
    for fault in [Fault::ApplyThen(StoreErrorKind::Ambiguous), Fault::ApplyThenHang, Fault::Hang] {
        let store = failing(move |write| (write == 1).then_some(fault));
        assert_eq!(host(&store, "a", "today", Ok(())).await, Ok(JobOutcome::Done(1)), "{fault:?}");
        assert_eq!(marks(&store).await, ["today"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_mark_is_told_and_done_again() {
    let store = failing(|write| (write >= 1).then_some(Fault::Refuse(StoreErrorKind::Rejected)));
    assert_eq!(host(&store, "a", "today", Ok(())).await, Ok(JobOutcome::Unmarked(1)));
    store.recover();
    assert_eq!(host(&store, "b", "today", Ok(())).await, Ok(JobOutcome::Done(2)));
}

/// The one write that ends a session frees its locks and marks none.
#[tokio::test(start_paused = true)]
async fn a_job_that_ends_with_its_session_is_told_to_have_no_mark() {
    let (store, stop) = (Faulty::default(), CancellationToken::new());
    let session = session(&store, "a");
    let running = run(&session, &stop);
    let elector = session.elector("nightly", LeaderCallbacks::new()).unwrap();
    let (end, today) = (stop.clone(), id("today"));
    let outcome = elector.run_once(pending(), &today, |leadership| async move {
        end.cancel();
        leadership.lost().await;
        Ok::<_, ()>(())
    });
    assert_eq!(outcome.await, Ok(JobOutcome::Unmarked(())));
    running.await.unwrap();
    assert_eq!(host(&store, "b", "today", Ok(())).await, Ok(JobOutcome::Done(2)));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_that_succeeds_is_marked() {
    let (store, stop, cancel) = (Faulty::default(), CancellationToken::new(), CancellationToken::new());
    let session = session(&store, "a");
    let _running = run(&session, &stop);
    let elector = session.elector("nightly", LeaderCallbacks::new()).unwrap();
    let (canceller, today) = (cancel.clone(), id("today"));
    let outcome = elector.run_once(cancel.cancelled_owned(), &today, |leadership| async move {
        sleep(RETRY).await;
        canceller.cancel();
        leadership.lost().await;
        Ok::<_, ()>("finished")
    });
    assert_eq!(outcome.await, Ok(JobOutcome::Done("finished")));
    assert_eq!(marks(&store).await, ["today"]);
    stop.cancel();
}
