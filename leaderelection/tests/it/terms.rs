//! Leading without callbacks: terms in the hands of their callers, and single attempts.

mod of_sessions;
mod try_lead;

use std::future::pending;
use std::time::Duration;

use leaderelection::handle::Change;
use leaderelection::implement::{Version, VersionedRecord, async_trait};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionRecord, LeaderHandle, LockError, MemoryStore,
    ObjectStoreBasedLock, RunOutcome, TermEndReason,
};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{DEADLINE, Fault, Journal, LEASE, RETRY, TestLock, builder, elector, stored};

const MOMENT: Duration = Duration::from_millis(1);

/// A lock whose calls are in flight for some polls, before and after they take effect.
#[derive(Debug)]
struct Slow(TestLock);

impl Slow {
    async fn through<T>(call: impl Future<Output = T>) -> T {
        yield_now().await;
        let answer = call.await;
        yield_now().await;
        answer
    }
}

#[async_trait]
impl ObjectStoreBasedLock for Slow {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        Self::through(self.0.get()).await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        Self::through(self.0.create(record)).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        Self::through(self.0.update(record, expected)).await
    }

    fn identity(&self) -> &str {
        self.0.identity()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

fn last_end(handle: &LeaderHandle) -> Option<TermEndReason> {
    handle.transitions().into_iter().rev().find_map(|transition| match transition.change {
        Change::StoppedLeading { reason, .. } => Some(reason),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_dropped_term_ends_at_once_and_the_lease_is_released_afterwards() {
    let (store, journal, never) = (MemoryStore::new(), Journal::default(), CancellationToken::new());
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), journal.stops());
    let handle = elector.handle();
    let mut ended = None::<Instant>;
    for token in 1..4 {
        let term = elector.next_term(never.clone().cancelled_owned()).await.unwrap().expect("nobody cancels");
        assert_eq!((term.fencing_token(), handle.fencing_token()), (token.into(), Some(token.into())));
        assert!(ended.is_none_or(|ended| ended.elapsed() >= LEASE), "others go first after a term that was given up");
        sleep(LEASE * 2).await;
        assert!(term.is_valid(), "the term is renewed meanwhile");
        let view = term.clone();
        lock.take_ops();
        drop(term);
        ended = Some(Instant::now());
        assert!(!view.is_valid() && !handle.is_leader(), "leadership is over when the drop returns");
        assert_eq!(lock.ops(), [], "nothing is sent before the end");
        sleep(MOMENT).await;
        assert!(stored(&store).await.record.is_released());
        assert_eq!(last_end(&handle), Some(TermEndReason::SteppedDown));
    }
    assert_eq!(journal.entries(), ["stop", "stop", "stop"], "on_stop_leading is called, and on_start_leading is not");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_waited_for_and_ends_the_program_gracefully() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let never = CancellationToken::new();
    let term = elector.next_term(never.clone().cancelled_owned()).await.unwrap().expect("nobody cancels");
    term.release().await;
    assert!(stored(&store).await.record.is_released());
}

#[tokio::test(start_paused = true)]
async fn no_further_term_is_told_before_the_last_one_is_released() {
    let store = MemoryStore::new();
    let config = builder(TestLock::new(&store, "a"), LeaderCallbacks::new()).release_on_cancel(true).build().unwrap();
    let (elector, cancel) = (DefaultLeaderElector::new(config), CancellationToken::new());
    let mut terms = 0;
    while let Some(term) = elector.next_term(cancel.clone().cancelled_owned()).await.unwrap() {
        terms += 1;
        cancel.cancel();
        term.lost().await;
        assert!(!stored(&store).await.record.is_released(), "the work has not ended");
    }
    assert!(stored(&store).await.record.is_released(), "a program that ends here keeps no lease");
    assert_eq!((terms, last_end(&elector.handle())), (1, Some(TermEndReason::Cancelled)));
    assert!(elector.next_term(cancel.clone().cancelled_owned()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kept_lost_term_keeps_its_elector_from_leading() {
    let (store, journal, never) = (MemoryStore::new(), Journal::default(), CancellationToken::new());
    let lock = TestLock::new(&store, "a");
    let config = builder(lock.clone(), journal.stops()).release_on_cancel(true).build().unwrap();
    let elector = DefaultLeaderElector::new(config);
    let term = elector.next_term(never.clone().cancelled_owned()).await.unwrap().expect("nobody cancels");
    lock.set_outage(Some(Fault::Hang));
    timeout(DEADLINE + MOMENT, term.lost()).await.expect("lost at the renew deadline");
    assert_eq!(journal.entries(), [""; 0], "the work goes on");
    lock.set_outage(None);
    sleep(LEASE).await;
    assert_eq!(journal.entries(), ["stop"], "called before another candidate may lead");
    assert!(!stored(&store).await.record.is_released(), "the work may still go on");
    let hurried = CancellationToken::new();
    let mut next = Box::pin(elector.next_term(never.clone().cancelled_owned()));
    assert!(timeout(LEASE * 4, &mut next).await.is_err(), "one work at a time");
    drop(next);
    let mut waits = Box::pin(elector.next_term(hurried.clone().cancelled_owned()));
    assert!(timeout(RETRY, &mut waits).await.is_err());
    hurried.cancel();
    assert!(timeout(MOMENT, waits).await.expect("gets its token").unwrap().is_none());
    drop(term);
    let next =
        timeout(LEASE * 2, elector.next_term(never.clone().cancelled_owned())).await.expect("competes again").unwrap();
    assert_eq!(next.expect("nobody cancels").fencing_token(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_at_any_moment_loses_no_term() {
    let never = CancellationToken::new();
    for polls in 1.. {
        let elector = elector(Slow(TestLock::new(&MemoryStore::new(), "a")), LeaderCallbacks::new());
        let handle = elector.handle();
        let mut next = Box::pin(elector.next_term(never.clone().cancelled_owned()));
        for _ in 0..polls {
            let term = futures_util::poll!(&mut next);
            assert_eq!(term.is_ready(), handle.is_leader(), "a term begins in the poll that returns it");
            if term.is_ready() {
                return assert!(polls > 4, "each request took two polls");
            }
            yield_now().await;
        }
        drop(next);
        let term = timeout(LEASE * 2, elector.next_term(never.clone().cancelled_owned()))
            .await
            .expect("competes again")
            .unwrap();
        assert!(term.is_some_and(|term| term.is_valid()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_term_of_its_caller_as_it_ends_work() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let elector = elector(TestLock::new(&store, "a"), journal.stops());
    let handle = elector.handle();
    let panicked = tokio::spawn(async move {
        let _term = elector.next_term(pending()).await.unwrap().expect("nobody cancels");
        panic!("the work is broken");
    });
    assert!(panicked.await.is_err() && !handle.is_leader());
    sleep(MOMENT).await;
    assert_eq!((last_end(&handle), journal.entries()), (Some(TermEndReason::WorkPanicked), vec!["stop".to_owned()]));
    assert!(!stored(&store).await.record.is_released(), "as with work that panics");
}

#[tokio::test(start_paused = true)]
async fn a_term_outlives_its_elector_and_ends_with_its_token() {
    let store = MemoryStore::new();
    let config = builder(TestLock::new(&store, "a"), LeaderCallbacks::new()).release_on_cancel(true).build().unwrap();
    let (elector, cancel) = (DefaultLeaderElector::new(config), CancellationToken::new());
    let term = elector.next_term(cancel.clone().cancelled_owned()).await.unwrap().expect("nobody cancels");
    drop(elector);
    sleep(LEASE * 2).await;
    assert!(term.is_valid());
    cancel.cancel();
    term.lost().await;
    term.release().await;
    assert!(stored(&store).await.record.is_released());
}

#[tokio::test(start_paused = true)]
async fn a_spawned_elector_releases_before_its_task_ends() {
    let store = MemoryStore::new();
    let config = builder(TestLock::new(&store, "a"), LeaderCallbacks::new()).release_on_cancel(true).build().unwrap();
    let cancel = CancellationToken::new();
    let (mut handle, task) = DefaultLeaderElector::new(config).spawn(cancel.clone().cancelled_owned());
    assert_eq!(handle.elected().await.unwrap().fencing_token(), 1);
    cancel.cancel();
    assert_eq!(task.await.unwrap(), Ok(()));
    assert!(stored(&store).await.record.is_released());
}

#[tokio::test(start_paused = true)]
async fn a_caller_does_not_lead_beside_a_callback_that_would_lead_too() {
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let elector = elector(lock.clone(), Journal::default().callbacks());
    let refused = elector.next_term(pending()).await.unwrap_err().to_string();
    assert!(refused.contains("on_start_leading") && refused.contains("next_term"), "{refused}");
    let refused = elector.try_lead().await.unwrap_err().to_string();
    assert!(refused.contains("on_start_leading") && refused.contains("try_lead"), "{refused}");
    assert_eq!(lock.ops(), []);
}

#[tokio::test(start_paused = true)]
async fn a_run_beside_a_hanging_release_gets_its_order_to_stop() {
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let term = elector.try_lead().await.unwrap();
    lock.set_outage(Some(Fault::Hang));
    drop(term);
    let cancel = CancellationToken::new();
    let mut waits = Box::pin(elector.run(cancel.clone().cancelled_owned()));
    assert!(timeout(RETRY, &mut waits).await.is_err(), "the release goes on");
    cancel.cancel();
    let outcome = timeout(MOMENT, waits).await.expect("gets its order").unwrap();
    assert_eq!(outcome, RunOutcome::NeverLed);
}

#[tokio::test(start_paused = true)]
async fn others_go_first_from_the_end_of_a_term_on() {
    let elector = elector(TestLock::new(&MemoryStore::new(), "a"), LeaderCallbacks::new());
    drop(elector.next_term(pending()).await.unwrap());
    // The caller does other things meanwhile.
    sleep(LEASE + MOMENT).await;
    let next = timeout(RETRY, elector.next_term(pending())).await.expect("others have had their time").unwrap();
    assert_eq!(next.expect("nobody cancels").fencing_token(), 2);
}

#[test]
fn a_release_waits_for_no_runtime_that_is_gone() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let elector = elector(TestLock::new(&MemoryStore::new(), "a"), LeaderCallbacks::new());
    let of_term = runtime();
    let term = of_term.block_on(elector.try_lead()).unwrap();
    drop(of_term);
    let waits = async { timeout(LEASE, term.release()).await };
    runtime().block_on(waits).expect("nothing carries out the release");
}
