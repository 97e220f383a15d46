//! Sessions: many locks of one process, led through one renewal.

mod attempts;
mod callbacks;
mod drops;
mod jobs;
mod single;
mod trouble;
mod views;
mod watches;

use leaderelection::implement::ConditionalStoreExt;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::implement::ConditionalStore as _;
use leaderelection::sessions::LockNameError;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore, Session,
    SessionElector,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{Call, Faulty};

const LEASE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);
/// Longer than anything that has to happen takes.
const BOUND: Duration = Duration::from_secs(600);

/// A process: a session and its electors, each of which campaigns.
struct Process {
    session: Session,
    electors: Vec<Arc<SessionElector>>,
    shutdown: CancellationToken,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    events: Arc<Mutex<Vec<String>>>,
}

impl Process {
    fn start(store: &Faulty, identity: &str, locks: usize, balance: bool) -> Self {
        let session = Session::builder(store.clone(), "fleet", identity)
            .clock(TokioClock::new())
            .balance(balance)
            .build()
            .unwrap();
        let (shutdown, events) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
        let (mut electors, mut tasks) = (Vec::new(), Vec::new());
        for lock in 0..locks {
            let (begun, stopped) = (Arc::clone(&events), Arc::clone(&events));
            let callbacks = LeaderCallbacks::new()
                .on_start_leading(move |leadership| {
                    let begun = Arc::clone(&begun);
                    async move {
                        assert!(leadership.is_valid());
                        begun.lock().unwrap().push(format!("start {lock}"));
                        leadership.lost().await;
                    }
                })
                .on_stop_leading(move || stopped.lock().unwrap().push(format!("stop {lock}")));
            let elector = Arc::new(session.elector(format!("lock-{lock}"), callbacks).unwrap());
            let (candidate, token) = (Arc::clone(&elector), shutdown.clone());
            tasks.push(tokio::spawn(async move { candidate.campaign(token.cancelled_owned()).await.unwrap() }));
            electors.push(elector);
        }
        let (running, token) = (session.clone(), shutdown.clone());
        tasks.push(tokio::spawn(async move { running.run(token.cancelled_owned()).await.unwrap() }));
        Self { session, electors, shutdown, tasks, events }
    }

    fn leads(&self) -> usize {
        self.electors.iter().filter(|elector| elector.handle().is_leader()).count()
    }

    async fn led(&self, count: usize) {
        until(|| self.leads() == count).await;
    }

    async fn stop(self) {
        self.shutdown.cancel();
        for task in self.tasks {
            timeout(BOUND, task).await.expect("a task that ends").unwrap();
        }
    }

    fn kill(self) {
        self.tasks.iter().for_each(|task| task.abort());
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {BOUND:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Listings of three processes in an hour, with and without balance: docs/performance.md has the difference.
#[tokio::test(start_paused = true)]
async fn balance_costs_one_more_listing_per_process_in_30_s() {
    let mut of_an_hour = Vec::new();
    for balance in [false, true] {
        let store = Faulty::default();
        let processes = ["a", "b", "c"].map(|identity| Process::start(&store, identity, 20, balance));
        sleep(LEASE * 20).await;
        let before = store.count(Call::List);
        sleep(Duration::from_secs(3600)).await;
        of_an_hour.push(store.count(Call::List) - before);
        processes.into_iter().for_each(Process::kill);
    }
    let more = of_an_hour[1] - of_an_hour[0];
    assert!((340..=370).contains(&more), "{more} more listings than {}", of_an_hour[0]);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_locks_cost_one_renewal_per_period() {
    let store = Faulty::default();
    let process = Process::start(&store, "a", 100, false);
    process.led(100).await;
    let before = store.count(Call::Put);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(process.leads(), 100);
    let writes = store.count(Call::Put) - before;
    assert!((1_790..=1_810).contains(&writes), "{writes} writes in an hour");
    let reads = store.count(Call::Get);
    assert!(reads < 200, "{reads} reads");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_write_at_the_end_frees_all_locks_after_all_work_has_ended() {
    let store = Faulty::default();
    let first = Process::start(&store, "a", 20, false);
    first.led(20).await;
    let second = Process::start(&store, "b", 20, false);
    sleep(LEASE).await;
    assert_eq!((first.leads(), second.leads()), (20, 0));
    let (before, stopped_at) = (store.count(Call::Put), Instant::now());
    let events = Arc::clone(&first.events);
    first.stop().await;
    let stops = events.lock().unwrap().iter().filter(|event| event.starts_with("stop")).count();
    assert_eq!(stops, 20);
    second.led(20).await;
    // One poll of the session, and one retry period per rank.
    assert!(stopped_at.elapsed() < RETRY * 4, "{:?}", stopped_at.elapsed());
    let writes = store.count(Call::Put) - before;
    assert!(writes <= 1 + 20 + 4, "{writes} writes for the end and the takeovers");
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_locks_of_a_killed_process_are_taken_after_one_lease() {
    let store = Faulty::default();
    let first = Process::start(&store, "a", 20, false);
    first.led(20).await;
    let second = Process::start(&store, "b", 20, false);
    sleep(LEASE).await;
    let tokens: Vec<_> = first.electors.iter().map(|elector| elector.handle().fencing_token().unwrap()).collect();
    let killed_at = Instant::now();
    let handles: Vec<_> = first.electors.iter().map(|elector| elector.handle()).collect();
    first.kill();
    second.led(20).await;
    assert!(handles.iter().all(|handle| !handle.is_leader()));
    let took = killed_at.elapsed();
    assert!(took >= LEASE - RETRY && took < LEASE + RETRY * 4, "{took:?}");
    for (elector, token) in second.electors.iter().zip(tokens) {
        assert!(elector.handle().fencing_token().unwrap() > token);
    }
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_joins_gets_its_share() {
    let store = Faulty::default();
    let first = Process::start(&store, "a", 60, true);
    first.led(60).await;
    let second = Process::start(&store, "b", 60, true);
    sleep(LEASE * 3).await;
    assert_eq!(first.leads() + second.leads(), 60);
    assert!((15..=45).contains(&second.leads()), "{}", second.leads());
    second.stop().await;
    first.led(60).await;
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_transferred_alone() {
    let store = Faulty::default();
    let (first, second) = (Process::start(&store, "a", 3, false), Process::start(&store, "b", 3, false));
    until(|| first.leads() + second.leads() == 3).await;
    let (from, to, name) = if first.leads() > 0 { (&first, &second, "b") } else { (&second, &first, "a") };
    let lock = from.electors.iter().position(|elector| elector.handle().is_leader()).unwrap();
    let before = from.leads();
    from.electors[lock].handle().transfer_to(name).unwrap();
    until(|| to.electors[lock].handle().is_leader()).await;
    assert_eq!(from.leads(), before - 1);
    until(|| from.electors[lock].handle().leader().as_deref() == Some(name)).await;
    first.stop().await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_output_of_work_is_returned_and_the_lock_is_released() {
    let session = Session::builder(MemoryStore::new(), "fleet", "a").clock(TokioClock::new()).build().unwrap();
    let elector = session.elector("job", LeaderCallbacks::new()).unwrap();
    let shutdown = CancellationToken::new();
    let (running, token) = (session.clone(), shutdown.clone());
    let run = tokio::spawn(async move { running.run(token.cancelled_owned()).await });
    let work = |leadership: leaderelection::Leadership| async move { leadership.fencing_token() };
    let first = elector.run_while_leading(pending(), work).await.unwrap();
    let second = elector.run_while_leading(pending(), work).await.unwrap();
    assert!(second > first);
    shutdown.cancel();
    timeout(BOUND, run).await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_plain_elector_leaves_the_lock_of_a_session_alone() {
    let store = Faulty::default();
    let process = Process::start(&store, "a", 1, false);
    process.led(1).await;
    let key = "fleet/locks/lock-0";
    let before = store.inner.get(key).await.unwrap().unwrap();
    let lock = MemoryLock::new(store.inner.clone(), key, "plain");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).clock(TokioClock::new()).build().unwrap();
    let elector = DefaultLeaderElector::new(config);
    let mut handle = elector.handle();
    let campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    let error = timeout(BOUND, handle.next_error()).await.unwrap().unwrap();
    assert!(error.message.contains("session"), "{}", error.message);
    sleep(LEASE * 4).await;
    let after = store.inner.get(key).await.unwrap().unwrap();
    assert_eq!((after.body, after.version), (before.body, before.version));
    campaign.abort();
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_leaves_a_plain_lease_alone() {
    let store = Faulty::default();
    let key = "fleet/locks/lock-0";
    let lock = MemoryLock::new(store.inner.clone(), key, "plain");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).clock(TokioClock::new()).build().unwrap();
    let elector = DefaultLeaderElector::new(config);
    let mut handle = elector.handle();
    let campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    handle.elected().await.unwrap();
    let process = Process::start(&store, "a", 1, false);
    let mut lock = process.electors[0].handle();
    let error = timeout(BOUND, lock.next_error()).await.unwrap().unwrap();
    assert!(error.message.contains("a lease of its own"), "{}", error.message);
    sleep(LEASE * 4).await;
    assert!(handle.is_leader() && process.leads() == 0);
    campaign.abort();
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_sessions_of_one_identity_do_not_both_lead() {
    let store = Faulty::default();
    let first = Process::start(&store, "a", 2, false);
    first.led(2).await;
    let second = Process::start(&store, "a", 2, false);
    sleep(LEASE * 4).await;
    assert_eq!((first.leads(), second.leads()), (2, 0));
    let sessions = store.inner.list("fleet/sessions/").await.unwrap();
    assert_eq!(sessions.len(), 1, "the second session writes nothing");
    second.kill();
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn names_are_checked_and_given_once() {
    let session = Session::builder(MemoryStore::new(), "fleet", "a").build().unwrap();
    let _elector = session.elector("x", LeaderCallbacks::new()).unwrap();
    let taken = session.elector("x", LeaderCallbacks::new()).unwrap_err();
    assert_eq!(taken, LockNameError::Taken { name: "x".to_owned() });
    let bad = session.elector("", LeaderCallbacks::new()).unwrap_err();
    assert_eq!(bad.to_string(), "no lock can be called \"\": the name is empty");
    let error = Session::builder(MemoryStore::new(), "fleet", "a").weight(65).build().unwrap_err();
    assert_eq!(error.to_string(), "weight (65) must be from 1 to 64");
}

#[tokio::test(start_paused = true)]
async fn an_elector_whose_future_is_dropped_stops_and_releases_its_lock() {
    let store = Faulty::default();
    let process = Process::start(&store, "a", 2, false);
    process.led(2).await;
    process.tasks[0].abort();
    until(|| process.events.lock().unwrap().contains(&"stop 0".to_owned())).await;
    assert!(!process.electors[0].handle().is_leader() && process.electors[1].handle().is_leader());
    let second = Process::start(&store, "b", 1, false);
    second.led(1).await;
    assert!(process.session.to_string().contains("fleet"));
    second.stop().await;
    process.kill();
}

/// The electors of `locks` locks, each of which campaigns with these callbacks.
fn campaigns(
    session: &Session,
    locks: usize,
    cancel: &CancellationToken,
    callbacks: impl Fn(usize) -> LeaderCallbacks,
) -> (Vec<Arc<SessionElector>>, Vec<JoinHandle<()>>) {
    let electors: Vec<_> =
        (0..locks).map(|lock| Arc::new(session.elector(lock.to_string(), callbacks(lock)).unwrap())).collect();
    let campaign = |elector: &Arc<SessionElector>| {
        let (elector, cancel) = (Arc::clone(elector), cancel.clone());
        tokio::spawn(async move { elector.campaign(cancel.cancelled_owned()).await.unwrap() })
    };
    let tasks = electors.iter().map(campaign).collect();
    (electors, tasks)
}

fn led(electors: &[Arc<SessionElector>]) -> usize {
    electors.iter().filter(|elector| elector.handle().is_leader()).count()
}
