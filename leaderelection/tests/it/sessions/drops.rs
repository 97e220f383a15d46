//! Futures, electors and sessions that are dropped at a bad moment, or never polled.

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocation_counter::measure;
use futures_util::poll;
use leaderelection::handle::ElectorDropped;
use leaderelection::implement::ConditionalStoreExt;
use leaderelection::{
    ElectionError, Elector, LeaderCallbacks, MemoryStore, RunError, RunOutcome, Session, SessionElector,
};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{advance, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::single::{record, run, session};
use super::{BOUND, LEASE, until};
use crate::support::{Call, Fault, Faulty};

fn campaign(elector: &Arc<SessionElector>) -> JoinHandle<()> {
    let elector = Arc::clone(elector);
    tokio::spawn(async move { elector.campaign(pending()).await.unwrap() })
}

fn callbacks() -> LeaderCallbacks {
    LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await })
}

#[tokio::test(start_paused = true)]
async fn a_candidacy_dropped_while_it_waited_never_leads() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let cancel = CancellationToken::new();
    let running = run(&session, &cancel);
    let elector = Arc::new(session.elector("x", callbacks()).unwrap());
    let first = campaign(&elector);
    until(|| elector.handle().is_leader()).await;
    store.fail(|call, key, _| (call == Call::Put && key == "fleet/locks/x").then_some(Fault::Hang));
    first.abort();
    sleep(Duration::from_millis(100)).await;
    let second = campaign(&elector);
    sleep(Duration::from_millis(100)).await;
    second.abort();
    sleep(Duration::from_millis(100)).await;
    store.recover();
    sleep(LEASE * 2).await;
    assert!(!elector.handle().is_leader(), "nobody competes, and somebody leads");
    assert!(record(&store, "fleet/locks/x").await.unwrap().is_released());
    cancel.cancel();
    timeout(BOUND, running).await.unwrap().unwrap();
}

/// Counts how often a future is polled.
async fn counted<F: Future>(polls: Arc<AtomicUsize>, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        polls.fetch_add(1, Ordering::SeqCst);
        future.as_mut().poll(context)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_campaign_without_its_session_waits_until_it_is_cancelled() {
    let session = session(&Faulty::default(), "a");
    let elector = session.elector("x", callbacks()).unwrap();
    let (cancel, polls) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let (token, counter) = (cancel.clone(), Arc::clone(&polls));
    let campaign =
        tokio::spawn(async move { counted(counter, elector.campaign(token.cancelled_owned())).await.unwrap() });
    let stopped = CancellationToken::new();
    let running = run(&session, &stopped);
    drop(session);
    sleep(LEASE).await;
    stopped.cancel();
    running.await.unwrap();
    let before = polls.load(Ordering::SeqCst);
    for _ in 0..100 {
        yield_now().await;
    }
    let polled = polls.load(Ordering::SeqCst) - before;
    cancel.cancel();
    timeout(BOUND, campaign).await.unwrap().unwrap();
    assert!(polled <= 3, "polled {polled} times while nothing happened");
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_is_dropped_frees_its_name_and_ends_its_handles() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let _running = run(&session, &CancellationToken::new());
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let elector = Arc::new(session.elector("x", callbacks()).unwrap());
        let mut handle = elector.handle();
        let campaigning = campaign(&elector);
        tokens.push(timeout(BOUND, handle.elected()).await.unwrap().unwrap().fencing_token());
        drop(elector);
        campaigning.abort();
        let dropped = timeout(BOUND, async { while handle.changed().await.is_ok() {} }).await;
        assert!(dropped.is_ok(), "the handle outlives its elector");
        assert_eq!(handle.changed().await, Err(ElectorDropped));
        assert!(!handle.is_leader());
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_elector_for_the_lock_of_a_dropped_one_knows_the_leader() {
    let store = Faulty::default();
    let (other, own) = (session(&store, "b"), session(&store, "a"));
    let (_of_b, _of_a) = (run(&other, &CancellationToken::new()), run(&own, &CancellationToken::new()));
    let leader = Arc::new(other.elector("x", callbacks()).unwrap());
    let _campaign = campaign(&leader);
    until(|| leader.handle().is_leader()).await;
    for _ in 0..2 {
        let follower = Arc::new(own.elector("x", callbacks()).unwrap());
        let campaigning = campaign(&follower);
        let handle = follower.handle();
        until(|| handle.leader().as_deref() == Some("b")).await;
        drop(follower);
        campaigning.abort();
        let _ = campaigning.await;
    }
}

#[test]
fn electors_that_come_and_go_leave_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let store = MemoryStore::new();
    let session =
        Session::builder(store, "fleet", "a").clock(leaderelection::clock::TokioClock::new()).build().unwrap();
    let rounds = |rounds: usize| {
        runtime.block_on(async {
            for _ in 0..rounds {
                let elector = session.elector("x", LeaderCallbacks::new()).unwrap();
                let led = elector.run_while_leading(pending(), |_| async {});
                timeout(BOUND, led).await.unwrap().unwrap();
            }
            sleep(LEASE).await;
        });
    };
    let (running, forever) = (session.clone(), CancellationToken::new());
    let _running = runtime.spawn(async move { running.run(forever.cancelled_owned()).await });
    rounds(200);
    let left = measure(|| rounds(1_000)).bytes_current;
    assert!(left < 20_000, "{left} bytes for 1,000 electors that are gone");
}

#[test]
fn candidacies_without_a_running_session_leave_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let session = session(&Faulty::default(), "a");
    let elector = session.elector("x", LeaderCallbacks::new()).unwrap();
    let rounds = |rounds: usize| {
        runtime.block_on(async {
            for _ in 0..rounds {
                let led = elector.run_while_leading(pending(), |_| async {});
                assert!(timeout(Duration::from_secs(1), led).await.is_err());
            }
        });
    };
    rounds(100);
    let left = measure(|| rounds(1_000)).bytes_current;
    assert!(left < 10_000, "{left} bytes for 1,000 candidacies that are gone");
}

#[tokio::test(start_paused = true)]
async fn work_whose_first_poll_comes_after_the_window_begins_in_the_next_term() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let elector = session.elector("x", LeaderCallbacks::new()).unwrap();
    let handle = elector.handle();
    let cancel = CancellationToken::new();
    let mut running = Box::pin(session.run(cancel.clone().cancelled_owned()));
    let mut led =
        Box::pin(elector.run_while_leading(pending(), |leadership| async move {
            (leadership.fencing_token(), leadership.is_valid())
        }));
    while !handle.is_leader() {
        assert!(poll!(&mut running).is_pending() && poll!(&mut led).is_pending());
    }
    // The work is spawned, and waits for this thread.
    advance(LEASE * 2).await;
    assert!(!handle.is_leader());
    let output = tokio::select! {
        _ = &mut running => panic!("the session ended"),
        output = timeout(BOUND, led) => output.unwrap(),
    };
    assert_eq!(output, Ok((2.into(), true)), "the work begins in the next term");
    cancel.cancel();
    timeout(BOUND, running).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn candidates_wait_for_the_next_run_when_the_session_ends() {
    let store = Faulty::default();
    let (first, second) = (session(&store, "a"), session(&store, "b"));
    let (stop, none) = (CancellationToken::new(), CancellationToken::new());
    let (_of_a, of_b) = (run(&first, &none), run(&second, &stop));
    let leader = Arc::new(first.elector("x", callbacks()).unwrap());
    let _campaign = campaign(&leader);
    until(|| leader.handle().is_leader()).await;
    let follower = second.elector("x", callbacks()).unwrap();
    {
        let mut candidacy = Box::pin(follower.run(pending()));
        assert!(timeout(LEASE, &mut candidacy).await.is_err());
        stop.cancel();
        of_b.await.unwrap();
        assert_eq!(timeout(BOUND, candidacy).await.unwrap(), Ok(RunOutcome::NeverLed));
    }
    // Without a session, a candidate waits, and listens to its own cancellation.
    let cancel = CancellationToken::new();
    let mut candidacy = Box::pin(follower.run_while_leading(cancel.clone().cancelled_owned(), |_| async {}));
    assert!(timeout(LEASE, &mut candidacy).await.is_err());
    cancel.cancel();
    assert_eq!(timeout(BOUND, candidacy).await.unwrap(), Err(RunError::Cancelled));
    // The next run takes the candidates up.
    let _of_b = run(&second, &none);
    let candidacy = follower.run_while_leading(pending(), |leadership| async move { leadership.is_valid() });
    assert!(leader.handle().step_down());
    assert_eq!(timeout(BOUND, candidacy).await.unwrap(), Ok(true));
}

#[tokio::test(start_paused = true)]
async fn leadership_ends_with_the_run_of_its_session_however_that_ends() {
    for drops in [false, true] {
        let store = Faulty::default();
        let session = session(&store, "a");
        let cancel = CancellationToken::new();
        let running = run(&session, &cancel);
        let elector = Arc::new(session.elector("x", callbacks()).unwrap());
        let campaigning = campaign(&elector);
        let leadership = timeout(BOUND, elector.handle().elected()).await.unwrap().unwrap();
        if drops {
            running.abort();
            let _ = running.await;
            // The abort has taken effect, and nothing else has run since.
            assert!(!leadership.is_valid());
        } else {
            cancel.cancel();
            timeout(BOUND, running).await.unwrap().unwrap();
            assert!(record(&store, "fleet/locks/x").await.unwrap().session.is_some());
        }
        assert!(!leadership.is_valid() && leadership.remaining().is_zero());
        timeout(Duration::from_secs(1), leadership.lost()).await.unwrap();
        sleep(LEASE * 2).await;
        assert!(!leadership.is_valid() && !elector.handle().is_leader());
        // A second run of the session leads again, by a larger token.
        let _running = run(&session, &CancellationToken::new());
        let next = timeout(BOUND, elector.handle().elected()).await.unwrap().unwrap();
        assert!(next.fencing_token() > leadership.fencing_token() && !leadership.is_valid());
        campaigning.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_call_beside_the_first_is_refused_at_once() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let first = CancellationToken::new();
    let running = run(&session, &first);
    let elector = session.elector("x", callbacks()).unwrap();
    let mut leading = Box::pin(elector.run(pending()));
    assert!(timeout(LEASE, &mut leading).await.is_err());
    assert!(elector.handle().is_leader());
    assert_eq!(session.run(pending()).await, Err(ElectionError::AlreadyRunning));
    assert_eq!(elector.run(pending()).await, Err(ElectionError::AlreadyRunning));
    first.cancel();
    running.await.unwrap();
    assert_eq!(timeout(BOUND, leading).await.unwrap().unwrap().reason().unwrap().name(), "cancelled");
    // The lock, and the session of the first run.
    assert_eq!(store.inner.list("fleet/").await.unwrap().len(), 2);
}

/// Work that blocks its thread cannot be dropped.
#[test]
fn no_second_work_begins_beside_work_that_a_dropped_session_left_behind() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Faulty::default();
        let session = Session::builder(store.clone(), "fleet", "a")
            .lease_duration(Duration::from_millis(600))
            .renew_deadline(Duration::from_millis(400))
            .retry_period(Duration::from_millis(50))
            .build()
            .unwrap();
        let (unblock, blocked) = std::sync::mpsc::channel::<()>();
        let (blocked, at_work) = (Arc::new(Mutex::new(Some(blocked))), Arc::new(AtomicUsize::new(0)));
        let (most, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let callbacks = {
            let (at_work, most, begun) = (Arc::clone(&at_work), Arc::clone(&most), Arc::clone(&begun));
            LeaderCallbacks::new().on_start_leading(move |_| {
                most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                begun.fetch_add(1, Ordering::SeqCst);
                let blocks = blocked.lock().unwrap().take();
                let at_work = Arc::clone(&at_work);
                async move {
                    if let Some(blocks) = blocks {
                        let _ = blocks.recv();
                    }
                    at_work.fetch_sub(1, Ordering::SeqCst);
                    pending::<()>().await;
                }
            })
        };
        let stuck = Arc::new(session.elector("stuck", callbacks).unwrap());
        let other = Arc::new(session.elector("other", self::callbacks()).unwrap());
        let _campaigns = (campaign(&stuck), campaign(&other));
        let running = run(&session, &CancellationToken::new());
        let mut handles = (stuck.handle(), other.handle());
        timeout(BOUND, handles.0.elected()).await.unwrap().unwrap();
        timeout(BOUND, handles.1.elected()).await.unwrap().unwrap();
        let begins = async |times: usize| {
            let begins = async {
                while begun.load(Ordering::SeqCst) < times {
                    yield_now().await;
                }
            };
            timeout(BOUND, begins).await.unwrap();
        };
        begins(1).await;
        running.abort();
        let _ = running.await;
        let _running = run(&session, &CancellationToken::new());
        // The other lock is led again, and handed on and taken again, so the stuck one had its turn as well.
        for _ in 0..2 {
            timeout(BOUND, handles.1.elected()).await.unwrap().unwrap();
            handles.1.step_down();
        }
        timeout(BOUND, handles.1.elected()).await.unwrap().unwrap();
        assert_eq!(begun.load(Ordering::SeqCst), 1, "two works of one lock run at once");
        unblock.send(()).unwrap();
        // Now the lock may be led again.
        begins(2).await;
        assert_eq!(most.load(Ordering::SeqCst), 1);
    });
}
