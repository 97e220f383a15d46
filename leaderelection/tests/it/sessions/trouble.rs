//! Stores that fail, and the graceful end of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leaderelection::{Elector, LeaderCallbacks, RunOutcome, StoreErrorKind, TermEndReason};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::single::{record, run, session};
use super::{BOUND, LEASE, RETRY, campaigns, led, until};
use crate::support::{Call, DEADLINE, Fault, Faulty, Journal, logged};

fn quiet(_lock: usize) -> LeaderCallbacks {
    LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await })
}

#[tokio::test(start_paused = true)]
async fn only_an_outage_longer_than_the_deadline_ends_leadership() {
    for kind in [StoreErrorKind::Ambiguous, StoreErrorKind::Rejected, StoreErrorKind::Fatal] {
        let store = Faulty::default();
        let session = session(&store, "a");
        let cancel = CancellationToken::new();
        let _running = run(&session, &cancel);
        let journal = Journal::default();
        let (electors, _tasks) = campaigns(&session, 20, &cancel, |_| journal.callbacks());
        until(|| led(&electors) == 20).await;
        sleep(RETRY * 3).await;
        let leadership = electors[0].handle().leadership().unwrap();
        store.begin_outage(kind);
        sleep(Duration::from_secs(5)).await;
        store.recover();
        sleep(LEASE).await;
        assert!(leadership.is_valid() && led(&electors) == 20, "{kind:?}");

        store.begin_outage(kind);
        let began = Instant::now();
        timeout(BOUND, leadership.lost()).await.unwrap();
        let took = began.elapsed();
        assert!(took > DEADLINE - RETRY * 2 && took <= DEADLINE, "{kind:?}: {took:?}");
        assert!(!leadership.is_valid());
        sleep(Duration::from_secs(12).saturating_sub(took)).await;
        assert_eq!(led(&electors), 0);
        let stops = journal.entries().iter().filter(|entry| *entry == "stop").count();
        assert_eq!(stops, 20);
        store.recover();
        until(|| led(&electors) == 20).await;
        cancel.cancel();
    }
}

#[test]
fn an_outage_is_told_in_a_few_lines_however_many_locks_there_are() {
    let lines = logged(Level::INFO, async || outage_of_many_locks().await);
    assert!(lines.len() <= 12, "{} lines: {:#?}", lines.len(), &lines[..20.min(lines.len())]);
    assert!(lines.iter().any(|line| line.contains("locks=300")), "{lines:#?}");
    let lines = logged(Level::WARN, async || outage_of_many_locks().await);
    assert!((1..=20).contains(&lines.len()), "{} lines: {:#?}", lines.len(), &lines[..20.min(lines.len())]);
    let lines = logged(Level::ERROR, async || outage_of_many_locks().await);
    assert!(lines.is_empty(), "{lines:#?}");
}

/// An outage that ends a session, while another session waits for the locks and cannot take them.
async fn outage_of_many_locks() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let cancel = CancellationToken::new();
    let _running = run(&session, &cancel);
    let (electors, _tasks) = campaigns(&session, 300, &cancel, quiet);
    until(|| led(&electors) == 300).await;
    store.begin_outage(StoreErrorKind::Ambiguous);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(led(&electors), 0);
    // Only the session can be written, and the locks cannot.
    store.fail(|call, key, _| {
        (call == Call::Put && key.contains("/locks/")).then_some(Fault::Refuse(StoreErrorKind::Ambiguous))
    });
    sleep(Duration::from_secs(60)).await;
    store.recover();
    until(|| led(&electors) == 300).await;
}

#[tokio::test(start_paused = true)]
async fn a_graceful_stop_waits_for_all_work_and_is_one_write() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let cancel = CancellationToken::new();
    let running = run(&session, &cancel);
    let ended = Arc::new(AtomicUsize::new(0));
    let winding_down = |_| {
        let ended = Arc::clone(&ended);
        LeaderCallbacks::new().on_start_leading(move |leadership| {
            let ended = Arc::clone(&ended);
            async move {
                leadership.lost().await;
                sleep(Duration::from_secs(3)).await;
                ended.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let (electors, tasks) = campaigns(&session, 50, &cancel, winding_down);
    until(|| led(&electors) == 50).await;
    sleep(RETRY / 2).await;
    drop(store.take_calls());
    cancel.cancel();
    sleep(Duration::from_millis(2_900)).await;
    assert_eq!((store.take_writes().len(), ended.load(Ordering::SeqCst), led(&electors)), (0, 0, 0));
    timeout(BOUND, running).await.unwrap().unwrap();
    for task in tasks {
        timeout(BOUND, task).await.unwrap().unwrap();
    }
    assert_eq!(ended.load(Ordering::SeqCst), 50);
    let writes = store.take_writes();
    assert!(writes.len() == 1 && writes[0].starts_with("fleet/sessions/"), "{writes:?}");
}

/// The work ends by the same token as the session, and each elector wants to release its lock at that moment.
#[test]
fn a_stop_by_one_token_is_one_write_on_many_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Faulty::default();
        let session = leaderelection::Session::builder(store.clone(), "fleet", "a").build().unwrap();
        let cancel = CancellationToken::new();
        let running = run(&session, &cancel);
        let (locks, begun) = (200, Arc::new(tokio::sync::Semaphore::new(0)));
        let tasks: Vec<_> = (0..locks)
            .map(|lock| {
                let elector = session.elector(lock.to_string(), LeaderCallbacks::new()).unwrap();
                let (token, work, begun) = (cancel.clone(), cancel.clone(), Arc::clone(&begun));
                let work = move |_| async move {
                    begun.add_permits(1);
                    work.cancelled().await;
                };
                tokio::spawn(async move { elector.run_while_leading(token.cancelled_owned(), work).await })
            })
            .collect();
        timeout(BOUND, begun.acquire_many(locks)).await.unwrap().unwrap().forget();
        drop(store.take_calls());
        cancel.cancel();
        timeout(BOUND, running).await.unwrap().unwrap();
        for task in tasks {
            assert_eq!(timeout(BOUND, task).await.unwrap().unwrap(), Ok(()));
        }
        let writes = store.take_writes();
        let of_locks = writes.iter().filter(|key| key.contains("/locks/")).count();
        assert_eq!(of_locks, 0, "the end of the session frees the locks");
        // A renewal may be in flight.
        assert!((1..=2).contains(&writes.len()), "{writes:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn an_elector_whose_lock_cannot_be_released_ends_all_the_same() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let _running = run(&session, &CancellationToken::new());
    let elector = session.elector("x", quiet(0)).unwrap();
    let cancel = CancellationToken::new();
    let mut leading = Box::pin(elector.run(cancel.clone().cancelled_owned()));
    assert!(timeout(LEASE, &mut leading).await.is_err());
    store.fail(|call, key, _| {
        (call == Call::Put && key.contains("/locks/")).then_some(Fault::Refuse(StoreErrorKind::Fatal))
    });
    cancel.cancel();
    let began = Instant::now();
    let outcome = timeout(BOUND, leading).await.expect("an end").clone();
    assert!(matches!(outcome, Ok(RunOutcome::Led { reason: TermEndReason::Cancelled, .. })), "{outcome:?}");
    assert!(began.elapsed() <= LEASE, "{:?}", began.elapsed());
    // The lock is released when that is possible again.
    store.recover();
    let record = async || record(&store, "fleet/locks/x").await.unwrap();
    let released = async {
        while !record().await.is_released() {
            sleep(RETRY).await;
        }
    };
    timeout(BOUND, released).await.unwrap();
}

#[test]
fn a_lock_with_the_key_of_the_history_of_another_says_so() {
    let lines = logged(Level::ERROR, async || {
        let (store, cancel) = (Faulty::default(), CancellationToken::new());
        let history = bytes::Bytes::from_static(br#"{"terms":[]}"#);
        let absent = leaderelection::implement::Precondition::Absent;
        leaderelection::implement::ConditionalStore::put(&store.inner, "fleet/locks/0.history", history, &absent)
            .await
            .unwrap();
        let session = session(&store, "a");
        let _running = run(&session, &cancel);
        let elector = session.elector("0.history", ()).unwrap();
        assert!(timeout(LEASE, elector.next_term(cancel.clone().cancelled_owned())).await.is_err());
    });
    assert!(
        lines.iter().any(|line| line.contains("fleet/locks/0.history") && line.contains("history of another lock")),
        "{lines:#?}"
    );
}

#[test]
fn one_object_that_may_not_be_read_ends_no_fleet_and_is_named() {
    let lines = logged(Level::ERROR, async || {
        let (store, cancel) = (Faulty::default(), CancellationToken::new());
        let other = session(&store, "other");
        let (others, _others) = campaigns(&other, 1, &cancel, quiet);
        let running = run(&other, &cancel);
        until(|| led(&others) == 1).await;
        running.abort();
        let objects =
            leaderelection::implement::ConditionalStoreExt::list(&store.inner, "fleet/sessions/").await.unwrap();
        let denied = objects[0].key.clone();
        let deny = |store: &Faulty, key: String| {
            store.fail(move |call, of, _| {
                (call == Call::Get && of == key).then_some(Fault::Refuse(StoreErrorKind::Fatal))
            });
        };
        deny(&store, denied.clone());
        let session = session(&store, "a");
        let _running = run(&session, &cancel);
        let (electors, _tasks) = campaigns(&session, 20, &cancel, quiet);
        until(|| led(&electors) == 19).await;
        // The denial outlives an outage that ends the session.
        store.begin_outage(StoreErrorKind::Ambiguous);
        until(|| led(&electors) == 0).await;
        sleep(LEASE).await;
        deny(&store, denied.clone());
        until(|| led(&electors) == 19).await;
        sleep(LEASE * 10).await;
        assert_eq!(led(&electors), 19, "the lock of the session that nobody can read is blocked");
        store.recover();
        until(|| led(&electors) == 20).await;
    });
    let is_named = |line: &&String| line.contains("fleet/sessions/") && line.contains("cannot be read");
    assert!(lines.iter().filter(is_named).count() >= 2, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("the store cannot be used")), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_is_cancelled_in_an_outage_ends() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let stop = CancellationToken::new();
    let running = run(&session, &stop);
    let elector = session.elector("x", quiet(0)).unwrap();
    let cancel = CancellationToken::new();
    let mut leading = Box::pin(elector.run(cancel.clone().cancelled_owned()));
    assert!(timeout(LEASE, &mut leading).await.is_err());
    store.fail(|_, _, _| Some(Fault::Hang));
    cancel.cancel();
    timeout(LEASE, leading).await.expect("an end").unwrap();
    stop.cancel();
    timeout(LEASE, running).await.expect("an end").unwrap();
}

#[tokio::test(start_paused = true)]
async fn lost_answers_of_every_kind_of_request_are_resolved() {
    // Of each kind of request, the n-th has its effect, and its answer is lost.
    for kind in ["sessions", "locks"] {
        for nth in 0..4 {
            let store = Faulty::default();
            let seen = AtomicUsize::new(0);
            store.fail(move |call, key, _| {
                let is_meant = call == Call::Put && key.contains(kind);
                (is_meant && seen.fetch_add(1, Ordering::SeqCst) == nth).then_some(Fault::ApplyThenHang)
            });
            let session = session(&store, "a");
            let cancel = CancellationToken::new();
            let running = run(&session, &cancel);
            let (electors, tasks) = campaigns(&session, 2, &cancel, quiet);
            until(|| led(&electors) == 2).await;
            sleep(RETRY * 4).await;
            assert_eq!(led(&electors), 2, "{kind} {nth}");
            // The answer to the last write is lost as well.
            store.fail(|call, _, _| (call == Call::Put).then_some(Fault::ApplyThenHang));
            cancel.cancel();
            for task in tasks.into_iter().chain([running]) {
                timeout(LEASE, task).await.unwrap().unwrap();
            }
            let other = super::single::session(&store, "b");
            store.recover();
            let _other = run(&other, &cancel.clone());
            let began = Instant::now();
            let cancel = CancellationToken::new();
            let _other = run(&other, &cancel);
            let (others, _tasks) = campaigns(&other, 2, &cancel, quiet);
            until(|| led(&others) == 2).await;
            // The first creation of a session may have been committed although another ID was used.
            assert!(began.elapsed() < RETRY * 3, "{kind} {nth}: {:?}", began.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_every_session_is_asked_less_and_less_often() {
    for kind in [StoreErrorKind::Rejected, StoreErrorKind::Ambiguous, StoreErrorKind::Conflict] {
        let store = Faulty::default();
        store.fail(move |call, _, _| (call == Call::Put).then_some(Fault::Refuse(kind)));
        let session = session(&store, "a");
        let cancel = CancellationToken::new();
        let _running = run(&session, &cancel);
        sleep(RETRY * 10).await;
        let _ = store.take_calls();
        sleep(RETRY * 100).await;
        // The pauses are up to a retry period long, half of that in the mean.
        let creations = store.take_writes().len();
        assert!((50..=300).contains(&creations), "{creations} creations in {:?}, {kind:?}", RETRY * 100);
        store.recover();
        let (electors, _tasks) = campaigns(&session, 1, &cancel, quiet);
        until(|| led(&electors) == 1).await;
        cancel.cancel();
    }
}
