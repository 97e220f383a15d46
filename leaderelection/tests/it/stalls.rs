//! Processes that are stopped at the worst moment, and go on.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant, TokioClock};
use leaderelection::handle::Change;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, MemoryStore, RunError, StoreErrorKind, TermEndReason,
};
use tokio::task::yield_now;
use tokio::time::{advance, sleep, timeout};
use tracing::Level;

use crate::support::{DEADLINE, Fault, Journal, LEASE, RETRY, TestLock, builder, elector, logged, spawn_run, stored};

/// A clock that jumps once, when nothing else happens, as if the process had been stopped.
#[derive(Clone, Debug)]
struct StallingClock {
    inner: TokioClock,
    stall: Duration,
    /// The reads of the wall clock, and of the monotonic one, until the jump; 0 for no jump.
    looks_left: Arc<[AtomicUsize; 2]>,
    stalled: Arc<AtomicU64>,
}

impl StallingClock {
    fn at_wall_time(look: usize) -> Self {
        Self::new(DEADLINE, [look, 0])
    }

    fn new(stall: Duration, looks: [usize; 2]) -> Self {
        let looks_left = Arc::new(looks.map(AtomicUsize::new));
        Self { inner: TokioClock::new(), stall, looks_left, stalled: Arc::default() }
    }

    fn stalled(&self) -> Duration {
        Duration::from_nanos(self.stalled.load(Ordering::SeqCst))
    }

    fn look(&self, clock: usize) {
        if self.looks_left[clock].fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stalled.store(u64::try_from(self.stall.as_nanos()).unwrap(), Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl Clock for StallingClock {
    fn now(&self) -> LocalInstant {
        self.look(1);
        self.inner.now() + self.stalled()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        self.look(0);
        self.inner.wall_time()
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        self.inner.sleep_until(deadline - self.stalled()).await;
        self.now()
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_stopped_between_the_win_and_the_work_goes_on_competing() {
    // At the write, at what is remembered of its answer (twice); and later.
    for look in 1..7 {
        let store = MemoryStore::new();
        let clock = StallingClock::at_wall_time(look);
        let config = builder(TestLock::new(&store, "a"), LeaderCallbacks::new()).clock(clock.clone()).build().unwrap();
        let elector = DefaultLeaderElector::new(config);
        let worked = elector.run_while_leading(pending(), |leadership| async move {
            sleep(LEASE).await;
            leadership.fencing_token()
        });
        let worked = worked.await;
        assert!(!clock.stalled().is_zero(), "look {look} never came");
        match worked {
            Ok(token) => assert_eq!(token, stored(&store).await.record.leader_transitions),
            // The work had begun.
            Err(RunError::Lost { reason: TermEndReason::RenewDeadline, .. }) if look > 3 => {}
            Err(error) => panic!("stopped at look {look}: {error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_term_is_returned_gives_no_term_that_is_over() {
    let mut tried_again = 0;
    for (look, waits) in (1..9).flat_map(|look| [(look, true), (look, false)]) {
        let clock = StallingClock::at_wall_time(look);
        let lock = TestLock::new(&MemoryStore::new(), "a");
        let journal = Journal::default();
        let config = builder(lock, journal.stops()).clock(clock.clone()).build().unwrap();
        let elector = DefaultLeaderElector::new(config);
        let term = match waits {
            true => elector.next_term(pending()).await.unwrap(),
            false => elector.try_lead().await.ok(),
        };
        assert!(!waits || term.is_some());
        assert!(term.as_ref().is_none_or(|term| term.is_valid()), "stopped at look {look}, waits: {waits}");
        assert_eq!(journal.entries(), [""; 0], "`on_stop_leading` follows only work that has begun");
        tried_again += usize::from(term.is_some_and(|term| term.fencing_token() > 1.into()));
    }
    assert!(tried_again > 0, "no term was over before it could be returned");
}

#[tokio::test(start_paused = true)]
async fn a_term_that_a_stop_ends_is_noticed_as_late_as_it_is() {
    let (mut ends, mut look, mut has_stalled) = (0, 0, true);
    while has_stalled {
        look += 1;
        let clock = StallingClock::new(LEASE * 2, [0, look]);
        let config = builder(TestLock::new(&MemoryStore::new(), "a"), LeaderCallbacks::new()).clock(clock.clone());
        let elector = DefaultLeaderElector::new(config.build().unwrap());
        let handle = elector.handle();
        // The last renewal is the second one.
        timeout(RETRY * 5 / 2, elector.run(pending())).await.ok();
        has_stalled = !clock.stalled().is_zero();
        for transition in handle.transitions() {
            if let (Change::StoppedLeading { reason: TermEndReason::RenewDeadline, .. }, Some(loss)) =
                (&transition.change, &transition.loss)
            {
                assert!(loss.noticed_after >= LEASE, "stopped at look {look}: {loss:?}");
                ends += 1;
            }
        }
    }
    assert!(ends > 0, "no stop has ended a term");
}

#[test]
fn dropped_work_is_not_blamed_for_a_stop_of_the_process() {
    for (is_stopped, told) in [(true, "this process stood still"), (false, "the leader's work did not stop in time")] {
        let errors = logged(Level::ERROR, async || {
            let lock = TestLock::new(&MemoryStore::new(), "a");
            let elector = elector(lock.clone(), LeaderCallbacks::new().on_start_leading(|_| pending::<()>()));
            let mut handle = elector.handle();
            let (_cancel, running) = spawn_run(elector);
            handle.elected().await.unwrap();
            if is_stopped {
                advance(LEASE * 2).await;
            } else {
                lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
            }
            running.await.unwrap();
        });
        assert!(errors.len() == 1 && errors[0].contains(told), "{errors:#?}");
    }
}

/// The process is stopped after the elector has started the work, and before anything of the work has run.
#[tokio::test(start_paused = true)]
async fn work_whose_first_poll_comes_after_the_window_never_begins() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let mut running =
        Box::pin(elector.run_while_leading(pending(), |leadership| async move {
            (leadership.fencing_token(), leadership.is_valid())
        }));
    assert!(futures_util::poll!(&mut running).is_pending());
    assert_eq!(handle.fencing_token(), Some(1.into()), "the term has started, and its work waits for the thread");
    advance(LEASE * 2).await;
    assert_eq!(running.await, Ok((2.into(), true)), "the work begins in the next term");
}

#[tokio::test(start_paused = true)]
async fn the_output_of_work_complete_in_time_is_returned() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let mut running = Box::pin(elector.run_while_leading(pending(), |_| async { "complete" }));
    assert!(futures_util::poll!(&mut running).is_pending());
    // The work runs on a task of its own, while the elector is not polled.
    yield_now().await;
    advance(LEASE * 2).await;
    assert_eq!(running.await, Ok("complete"));
}
