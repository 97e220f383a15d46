//! `ProbeFirst`: no leader is elected on a store that fails, and the probe is repeated on a store that does not
//! answer.

use std::future::pending;
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject};
use leaderelection::{
    DefaultLeaderElector, ElectionError, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectLock, RunError,
    RunOutcome, StoreErrorKind, TermEndReason,
};
use leaderelection_conformance::ProbeFirst;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::broken_store::{Breakage, Broken};
use leaderelection_test_support::faulty::{Fault, Faulty};

const KEY: &str = "locks/scheduler";
/// The lease of the default configuration.
const LEASE: Duration = Duration::from_secs(15);

fn elector_with<S: ConditionalStore>(store: S, callbacks: LeaderCallbacks) -> DefaultLeaderElector {
    let config = LeaderElectionConfig::builder(ObjectLock::new(store, KEY, "a"), callbacks);
    let config = config.clock(TokioClock::new()).store_check(ProbeFirst::new());
    DefaultLeaderElector::new(config.build().unwrap())
}

fn elector<S: ConditionalStore>(store: S) -> DefaultLeaderElector {
    elector_with(store, LeaderCallbacks::new())
}

/// Runs an elector on a task of its own; returns the token that cancels it.
fn spawn_run(elector: DefaultLeaderElector) -> (CancellationToken, JoinHandle<RunOutcome>) {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    (cancel, tokio::spawn(async move { elector.run(token.cancelled_owned()).await.unwrap() }))
}

#[tokio::test(start_paused = true)]
async fn nobody_is_elected_on_a_store_that_fails() {
    for (breakage, failing) in
        [(Breakage::NoPreconditions, "create twice: a second"), (Breakage::CheckThenAct, "racing creators: 64 of 64")]
    {
        let store = Broken::new(breakage);
        let never = || panic!("a callback was called");
        let callbacks = LeaderCallbacks::new().on_start_leading(move |_| async move { never() });
        let callbacks = callbacks.on_stop_leading(never).on_new_leader(move |_| never());
        let elector = elector_with(store.clone(), callbacks);

        let unfit = timeout(LEASE, elector.run(pending())).await.unwrap().unwrap_err();
        assert!(unfit.to_string().contains(failing), "{breakage:?}: {unfit}");
        elector.campaign(pending()).await.unwrap_err();

        let work = |_| async { panic!("the work was started") };
        let error = elector.run_while_leading(pending(), work).await.unwrap_err();
        assert!(matches!(error, RunError::Election(ElectionError::StoreUnfit { .. })), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("the work was not started: no leader is elected: the store failed the probe: "));

        assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
        assert_eq!(elector.handle().leader(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_passes_is_probed_once() {
    let store = Faulty::default();
    let elector = elector(store.clone());
    let mut spent = Vec::new();
    for _ in 0..2 {
        let (before, cancel) = (store.requests(), CancellationToken::new());
        let handle = elector.handle();
        let lead_for_a_while = async {
            sleep(LEASE * 2).await;
            assert!(handle.is_leader());
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(elector.run(cancel.clone().cancelled_owned()), lead_for_a_while);
        assert_eq!(outcome.unwrap().reason(), Some(&TermEndReason::Cancelled));
        spent.push(store.requests() - before);
    }
    assert!(spent[0] > 200 && spent[1] < 50, "{spent:?}");
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), [KEY]);
}

#[tokio::test(start_paused = true)]
async fn an_inconclusive_probe_is_run_again_slowly() {
    // Only the probe prevents this elector from using the lock.
    let store = Faulty::new(|_, key, _| (key != KEY).then_some(Fault::Refuse(StoreErrorKind::Fatal)));
    let elector = elector(store.clone());
    let handle = elector.handle();
    let (cancel, running) = spawn_run(elector);
    sleep(LEASE * 10).await;
    assert!(!handle.is_leader());
    assert!((10..50).contains(&store.requests()), "{} requests", store.requests());
    assert_eq!(ListedObject::keys(store.inner.list("").await.unwrap()), Vec::<String>::new());

    store.recover();
    sleep(LEASE * 2).await;
    assert!(handle.is_leader());
    cancel.cancel();
    assert_eq!(running.await.unwrap().fencing_token(), Some(1.into()));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_probe_at_once() {
    for fault in [Fault::Hang, Fault::Refuse(StoreErrorKind::Rejected), Fault::Refuse(StoreErrorKind::Fatal)] {
        for patience in [Duration::from_millis(1), LEASE] {
            let store = Faulty::new(move |_, _, _| Some(fault));
            let (cancel, running) = spawn_run(elector(store.clone()));
            sleep(patience).await;
            let (requests, cancelled) = (store.requests(), Instant::now());
            cancel.cancel();
            let outcome = timeout(Duration::from_millis(1), running).await.unwrap().unwrap();
            assert_eq!(outcome, RunOutcome::NeverLed);
            assert_eq!(cancelled.elapsed(), Duration::ZERO);
            sleep(LEASE * 10).await;
            assert_eq!(store.requests(), requests, "{fault:?}: it went on in the background");
        }
    }
}
