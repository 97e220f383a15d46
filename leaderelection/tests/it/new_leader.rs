//! The calls of `on_new_leader`: on a thread of their own, in order, one at a time, and never in the way.

use std::future::pending;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderHandle, MemoryStore};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::support::{LEASE, RETRY, TestLock, elector, logged, plant, record, spawn_run};

/// A time that is far longer than any step of these tests.
const BOUND: Duration = Duration::from_secs(60);

/// The number of calls that wait at most.
const MOST_WAITING: usize = 16;

/// Callbacks whose calls are told to the receiver. The first call ends when `first` does.
fn told(first: impl FnOnce() + Send + 'static) -> (LeaderCallbacks, Receiver<String>) {
    let (tell, calls) = mpsc::channel();
    let first = Mutex::new(Some(first));
    let callbacks = LeaderCallbacks::new().on_new_leader(move |leader| {
        tell.send(format!("{leader} begins")).unwrap();
        let first = first.lock().unwrap().take();
        first.into_iter().for_each(|first| first());
        tell.send(format!("{leader} ends")).unwrap();
    });
    (callbacks, calls)
}

/// An elector on real time, because simulated time does not stand still for the thread of a callback.
fn quick(lock: TestLock, callbacks: LeaderCallbacks) -> DefaultLeaderElector {
    let config = LeaderElectionConfig::builder(lock, callbacks)
        .lease_duration(Duration::from_secs(30))
        .renew_deadline(Duration::from_secs(20))
        .retry_period(Duration::from_millis(10))
        .build();
    DefaultLeaderElector::new(config.unwrap())
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// Lets the elector see these leaders, one after the other.
async fn let_lead(store: &MemoryStore, handle: &mut LeaderHandle, leaders: &[String]) {
    for (token, leader) in (1..).zip(leaders) {
        plant(store, &record(leader, LEASE, token)).await;
        let known = async { while handle.leader().as_ref() != Some(leader) && handle.changed().await.is_ok() {} };
        timeout(BOUND, known).await.unwrap();
    }
}

fn both_ends(leaders: &[String]) -> Vec<String> {
    leaders.iter().flat_map(|leader| [format!("{leader} begins"), format!("{leader} ends")]).collect()
}

#[tokio::test(start_paused = true)]
async fn new_leaders_are_told_in_order_and_never_an_empty_one() {
    let store = MemoryStore::new();
    let (callbacks, calls) = told(|| ());
    let elector = elector(TestLock::new(&store, "a"), callbacks);
    let _campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    sleep(RETRY).await;
    for (token, holder) in [(1, "b"), (2, "c"), (3, "c"), (4, "")] {
        plant(&store, &record(holder, LEASE, token)).await;
        sleep(RETRY * 3).await;
    }
    let calls: Vec<_> = (0..8).map(|_| calls.recv_timeout(BOUND).unwrap()).collect();
    assert_eq!(calls, both_ends(&["a", "b", "c", "a"].map(str::to_owned)));
}

/// Has one leader after another come during the first call, and returns all calls.
fn calls_with_a_slow_first(leaders: &[String]) -> Vec<String> {
    one_thread().block_on(async {
        let store = MemoryStore::new();
        let (let_go, held) = mpsc::channel::<()>();
        let (callbacks, calls) = told(move || held.recv_timeout(BOUND).unwrap());
        let elector = quick(TestLock::new(&store, "a"), callbacks);
        let mut handle = elector.handle();
        let cancel = CancellationToken::new();
        let campaign = tokio::spawn({
            let cancel = cancel.clone();
            async move { elector.campaign(cancel.cancelled_owned()).await }
        });
        timeout(BOUND, handle.elected()).await.unwrap().unwrap();
        let mut all = vec![calls.recv_timeout(BOUND).unwrap()];
        let_lead(&store, &mut handle, leaders).await;
        // Another call would be here by now if it did not wait for the first.
        assert_eq!(calls.try_recv().ok(), None);
        let_go.send(()).unwrap();
        cancel.cancel();
        timeout(BOUND, campaign).await.unwrap().unwrap().unwrap();
        let last = format!("{} ends", leaders.last().unwrap());
        while *all.last().unwrap() != last {
            all.push(calls.recv_timeout(BOUND).unwrap());
        }
        all
    })
}

/// The simulation cannot show this, because simulated time does not pass while a thread is blocked.
#[test]
fn new_leaders_during_a_slow_call_are_reported_in_order() {
    let leaders = ["b", "c", "d"].map(str::to_owned);
    assert_eq!(calls_with_a_slow_first(&leaders), both_ends(&["a", "b", "c", "d"].map(str::to_owned)));
}

#[test]
fn of_more_new_leaders_than_can_wait_the_newest_are_told() {
    let leaders: Vec<_> = (0..MOST_WAITING + 5).map(|number| format!("leader-{number}")).collect();
    let newest = leaders.iter().skip(5).cloned();
    let told: Vec<_> = ["a".to_owned()].into_iter().chain(newest).collect();
    assert_eq!(calls_with_a_slow_first(&leaders), both_ends(&told));
}

#[test]
fn one_warning_says_that_calls_are_left_out() {
    let (let_go, held) = mpsc::channel::<()>();
    let warnings = logged(Level::WARN, async || {
        let store = MemoryStore::new();
        let (callbacks, _calls) = told(move || held.recv_timeout(BOUND).unwrap_or_default());
        let elector = elector(TestLock::new(&store, "a"), callbacks);
        let mut handle = elector.handle();
        let _campaign = tokio::spawn(async move { elector.campaign(pending()).await });
        handle.elected().await.unwrap();
        let leaders: Vec<_> = (0..MOST_WAITING + 5).map(|number| format!("leader-{number}")).collect();
        let_lead(&store, &mut handle, &leaders).await;
    });
    drop(let_go);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("on_new_leader is too slow"), "{warnings:?}");
}

#[test]
fn a_hanging_call_delays_neither_shutdown_nor_runtime_end() {
    let runtime = one_thread();
    let (let_go, held) = mpsc::channel::<()>();
    let (callbacks, calls) = told(move || held.recv().unwrap_or_default());
    runtime.block_on(async {
        let store = MemoryStore::new();
        let elector = quick(TestLock::new(&store, "a"), callbacks);
        let mut handle = elector.handle();
        let (cancel, running) = spawn_run(elector);
        timeout(BOUND, handle.elected()).await.unwrap().unwrap();
        while calls.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        timeout(BOUND, running).await.unwrap().unwrap();
    });
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || {
        drop(runtime);
        tell.send(()).unwrap();
    });
    ended.recv_timeout(BOUND).expect("the end of the runtime");
    drop(let_go);
}

#[test]
fn a_call_may_spawn_tasks() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    one_thread().block_on(async {
        let store = MemoryStore::new();
        let callbacks = LeaderCallbacks::new().on_new_leader(move |leader| {
            let (tell, leader) = (tell.clone(), leader.to_owned());
            drop(tokio::spawn(async move { tell.send(leader) }));
        });
        let (_cancel, _running) = spawn_run(quick(TestLock::new(&store, "a"), callbacks));
        assert_eq!(timeout(BOUND, told.recv()).await.unwrap().as_deref(), Some("a"));
    });
}

#[tokio::test(flavor = "current_thread")]
async fn a_slow_call_delays_no_renewal() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (let_go, held) = mpsc::channel::<()>();
    let (callbacks, _calls) = told(move || held.recv_timeout(BOUND).unwrap());
    let (cancel, running) = spawn_run(quick(lock.clone(), callbacks));
    // On one thread with a callback that blocks, renewals arrive all the same.
    while lock.ops().len() < 10 {
        tokio::task::yield_now().await;
    }
    let_go.send(()).unwrap();
    cancel.cancel();
    running.await.unwrap();
}
