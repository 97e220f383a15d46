//! The beginning and the end of terms, for every behaviour of the work and every use of the elector.

use std::future::pending;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, Leadership, MemoryStore, StoreErrorKind, TermEndReason,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{DEADLINE, Fault, Journal, LEASE, Op, RETRY, TestLock, builder, elector, spawn_run, stored};

const MOMENT: Duration = Duration::from_millis(1);

fn releasing(lock: &TestLock, callbacks: LeaderCallbacks) -> DefaultLeaderElector {
    DefaultLeaderElector::new(builder(lock.clone(), callbacks).release_on_cancel(true).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_ends_the_term_and_releases() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let stop = journal.clone();
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(|_| async {
            sleep(RETRY).await;
            panic!("a bug in the controller");
        })
        .on_stop_leading(move || stop.write("stop"));
    let elector = releasing(&lock, callbacks);
    let handle = elector.handle();
    let outcome = elector.run(pending()).await.unwrap();

    assert_eq!(outcome.reason(), Some(&TermEndReason::WorkPanicked));
    assert_eq!(journal.entries(), ["stop"]);
    assert!(!handle.is_leader());
    assert!(stored(&store).await.record.is_released());
}

#[tokio::test(start_paused = true)]
async fn callbacks_that_panic_do_not_end_the_election() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (tell, calls) = mpsc::channel();
    let callbacks =
        LeaderCallbacks::new().on_stop_leading(|| panic!("a bug in on_stop_leading")).on_new_leader(move |_| {
            tell.send(()).unwrap();
            panic!("a bug in on_new_leader");
        });
    let elector = Arc::new(releasing(&lock, callbacks));
    for _ in 0..3 {
        let cancel = CancellationToken::new();
        let running = tokio::spawn({
            let (elector, cancel) = (Arc::clone(&elector), cancel.clone());
            async move { elector.run(cancel.cancelled_owned()).await }
        });
        sleep(RETRY * 3).await;
        cancel.cancel();
        assert_eq!(running.await.unwrap().unwrap().reason(), Some(&TermEndReason::Cancelled));
        assert!(stored(&store).await.record.is_released());
        calls.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    assert_eq!(calls.try_recv().ok(), None);
}

#[tokio::test(start_paused = true)]
async fn release_waits_for_the_work_and_the_stop_callback() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let (work, stop) = (journal.clone(), journal.clone());
    let seen = lock.clone();
    let at_stop = lock.clone();
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership: Leadership| {
            let (journal, lock) = (work.clone(), seen.clone());
            async move {
                leadership.lost().await;
                assert!(!leadership.is_valid());
                sleep(RETRY).await;
                journal.write(format!("work ended after {} operations", lock.ops().len()));
            }
        })
        .on_stop_leading(move || stop.write(format!("stopped after {} operations", at_stop.ops().len())));
    let (cancel, running) = spawn_run(releasing(&lock, callbacks));
    sleep(MOMENT).await;
    cancel.cancel();
    running.await.unwrap();

    assert_eq!(journal.entries(), ["work ended after 2 operations", "stopped after 2 operations"]);
    assert_eq!(lock.ops(), [Op::Get, Op::Create, Op::Update]);
    assert!(stored(&store).await.record.is_released());
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_stop_is_dropped_before_the_lease_runs_out() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let stop = journal.clone();
    struct OnDrop(Journal);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.write("work dropped");
        }
    }
    let work = journal.clone();
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |_| {
            let guard = OnDrop(work.clone());
            async move {
                pending::<()>().await;
                drop(guard);
            }
        })
        .on_stop_leading(move || stop.write("stop"));
    let start = Instant::now();
    let (cancel, running) = spawn_run(releasing(&lock, callbacks));
    sleep(MOMENT).await;
    cancel.cancel();
    running.await.unwrap();

    assert_eq!(journal.entries(), ["work dropped", "stop"]);
    let took = start.elapsed();
    assert!(DEADLINE < took && took < LEASE, "{took:?}");
    // The work ended in time, so the lease could still be released.
    assert!(stored(&store).await.record.is_released());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_never_awaits_is_reported_and_the_lease_not_released() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (let_go, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let begun = CancellationToken::new();
    let begins = begun.clone();
    let journal = Journal::default();
    let stop = journal.clone();
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |_| {
            let (blocked, begins) = (Arc::clone(&blocked), begins.clone());
            async move {
                begins.cancel();
                blocked.lock().unwrap().recv().unwrap()
            }
        })
        .on_stop_leading(move || stop.write("stop"));
    let ms = Duration::from_millis;
    let config = leaderelection::LeaderElectionConfig::builder(lock.clone(), callbacks)
        .lease_duration(ms(300))
        .renew_deadline(ms(200))
        .retry_period(ms(40))
        .release_on_cancel(true)
        .build()
        .unwrap();
    let elector = Arc::new(DefaultLeaderElector::new(config));
    let cancel = CancellationToken::new();
    let running = tokio::spawn({
        let (elector, cancel) = (Arc::clone(&elector), cancel.clone());
        async move { elector.run(cancel.cancelled_owned()).await }
    });
    let bound = Duration::from_secs(60);
    timeout(bound, begun.cancelled()).await.expect("the work begins");
    cancel.cancel();
    timeout(bound, running).await.expect("does not wait forever").unwrap().unwrap();
    assert_eq!(journal.entries(), ["stop"]);
    assert_eq!(stored(&store).await.record.holder_identity, "a");
    let health = elector.health_check(ms(1));
    let until = async |is_healthy: bool| {
        while health.check().is_ok() != is_healthy {
            tokio::task::yield_now().await;
        }
    };
    timeout(bound, until(false)).await.expect("work that outlives its lease is unhealthy");

    // No new term begins beside work that still runs.
    let again = CancellationToken::new();
    again.cancel();
    lock.take_ops();
    assert_eq!(elector.run(again.cancelled_owned()).await.unwrap().fencing_token(), None);
    assert_eq!(lock.ops(), []);
    let_go.send(()).unwrap();
    timeout(bound, until(true)).await.expect("healthy when the work has ended");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_leaves_nothing_running() {
    // At any point: every drop falls somewhere else in the election's life.
    for (millis, hanging) in [
        (0, None),
        (1, None),
        (500, None),
        (1_999, None),
        (2_000, None),
        (2_001, None),
        (3_000, None),
        (10_000, None),
        // While a request is in flight.
        (100, Some((Op::Get, Fault::Hang))),
        (100, Some((Op::Create, Fault::Hang))),
        (100, Some((Op::Create, Fault::ApplyThenHang))),
        (2_100, Some((Op::Update, Fault::Hang))),
        (2_100, Some((Op::Update, Fault::ApplyThenHang))),
    ] {
        let store = MemoryStore::new();
        let mut lock = TestLock::new(&store, "a");
        if let Some((op, fault)) = hanging {
            lock = lock.with_fault(op, 0, fault);
        }
        let journal = Journal::default();
        let work = journal.clone();
        let stop = journal.clone();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let callbacks = LeaderCallbacks::new()
            .on_start_leading(move |_| {
                work.write("start");
                let held = Arc::clone(&held);
                async move {
                    pending::<()>().await;
                    drop(held);
                }
            })
            .on_stop_leading(move || stop.write("stop"));
        let elector = releasing(&lock, callbacks);
        let handle = elector.handle();
        let run = timeout(Duration::from_millis(millis), elector.run(pending()));
        assert!(run.await.is_err());
        assert!(!handle.is_leader());
        tokio::task::yield_now().await;

        let starts = journal.entries().iter().filter(|entry| *entry == "start").count();
        assert_eq!(journal.entries().len(), starts * 2, "{:?}", journal.entries());
        lock.take_ops();
        sleep(LEASE * 10).await;
        assert_eq!(lock.ops(), [], "requests after the drop at {millis} ms");
        drop(elector);
        assert_eq!(Arc::strong_count(&alive), 1, "work is alive after the drop at {millis} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn an_elector_whose_future_was_dropped_can_run_again_as_a_new_term() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let elector = releasing(&lock, journal.callbacks());
    assert!(timeout(RETRY * 2, elector.run(pending())).await.is_err());
    let (cancel, running) = spawn_run(elector);
    sleep(RETRY).await;
    cancel.cancel();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.fencing_token(), Some(2.into()));
    let terms: Vec<_> = journal.entries().into_iter().filter(|entry| entry.starts_with("start")).collect();
    assert_eq!(terms, ["start 1", "start 2"]);
}

#[tokio::test(start_paused = true)]
async fn step_down_is_immediate_and_lets_the_others_go_first() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let elector = elector(lock.clone(), journal.callbacks());
    let mut handle = elector.handle();
    let _campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    assert!(!handle.step_down(), "nothing to give up");
    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    let stepped_down_at = Instant::now();
    lock.take_ops();
    assert!(handle.step_down());
    assert!(!handle.is_leader(), "before anything was sent");
    assert_eq!(lock.ops(), []);
    sleep(MOMENT).await;
    assert!(stored(&store).await.record.is_released(), "released although release_on_cancel is off");
    assert_eq!(journal.entries(), ["start 1", "work ended", "stop"]);

    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    assert!(stepped_down_at.elapsed() >= LEASE, "came back after {:?}", stepped_down_at.elapsed());
    assert_eq!(handle.fencing_token(), Some(2.into()));
}

#[tokio::test(start_paused = true)]
async fn campaign_leads_again_after_it_lost() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let elector = elector(lock.clone(), journal.callbacks());
    let handle = elector.handle();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let campaign = tokio::spawn(async move { elector.campaign(token.cancelled_owned()).await });
    sleep(MOMENT).await;
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
    sleep(DEADLINE * 3).await;
    assert!(!handle.is_leader());
    lock.set_outage(None);
    sleep(LEASE + RETRY).await;
    assert_eq!(handle.fencing_token(), Some(2.into()));
    cancel.cancel();
    campaign.await.unwrap().unwrap();
    assert_eq!(journal.entries(), ["start 1", "work ended", "stop", "start 2", "work ended", "stop"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_crosses_the_acquisition_gives_the_lease_back() {
    for fault in [Fault::ApplyThenHang, Fault::ApplyThen(StoreErrorKind::Ambiguous)] {
        let store = MemoryStore::new();
        let lock = TestLock::new(&store, "a").with_fault(Op::Create, 0, fault).with_fault(
            Op::Get,
            1,
            Fault::Refuse(StoreErrorKind::Rejected),
        );
        let (cancel, running) = spawn_run(releasing(&lock, Journal::default().callbacks()));
        tokio::task::yield_now().await;
        cancel.cancel();
        let outcome = running.await.unwrap();
        assert_eq!(outcome.fencing_token(), None);
        assert!(stored(&store).await.record.is_released(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_delays_the_end_by_a_few_requests_however_long_the_lease_is() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    for fault in [Fault::Hang, Fault::Refuse(StoreErrorKind::Rejected), Fault::Refuse(StoreErrorKind::Ambiguous)] {
        for outage_before_acquisition in [false, true] {
            let store = MemoryStore::new();
            let lock = TestLock::new(&store, "a");
            let config = builder(lock.clone(), Journal::default().callbacks()).lease_duration(DAY);
            let elector = DefaultLeaderElector::new(config.release_on_cancel(true).build().unwrap());
            let mut handle = elector.handle();
            if outage_before_acquisition {
                lock.set_outage(Some(fault));
            }
            let (cancel, running) = spawn_run(elector);
            if !outage_before_acquisition {
                handle.elected().await.unwrap();
                lock.set_outage(Some(fault));
            }
            sleep(RETRY / 2).await;
            let cancelled = Instant::now();
            cancel.cancel();
            running.await.unwrap();
            let request_timeout = DEADLINE / 4;
            assert!(cancelled.elapsed() <= request_timeout * 5, "{fault:?}: {:?}", cancelled.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_a_release_that_was_begun_before() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let config = builder(lock.clone(), Journal::default().callbacks()).lease_duration(DAY);
    let elector = DefaultLeaderElector::new(config.build().unwrap());
    let mut handle = elector.handle();
    let (cancel, running) = spawn_run(elector);
    handle.elected().await.unwrap();
    lock.set_outage(Some(Fault::Hang));
    assert!(handle.step_down());
    sleep(DAY / 2).await;
    assert!(!running.is_finished(), "a release that nobody waits for is tried for as long as the lease lasts");
    let cancelled = Instant::now();
    cancel.cancel();
    running.await.unwrap();
    assert!(cancelled.elapsed() <= DEADLINE / 4 * 5, "{:?}", cancelled.elapsed());
}
