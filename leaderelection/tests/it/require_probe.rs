//! `require_probe`: nobody is elected on a store that fails, and nothing is left to chance on one that
//! does not answer.

use std::time::Duration;

use leaderelection::{
    ConditionalStore, DefaultLeaderElector, EndReason, LeaderCallbacks, LeaderElectionConfig, MemoryStore, ObjectLock,
    RunError, StoreErrorKind,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::broken_store::{Broken, Fault as Breakage};
use crate::support::{Fault, Journal, LEASE, RETRY, TestLock, builder, spawn_run};
use crate::troubled_store::Troubled;

const KEY: &str = "locks/scheduler";

fn elector<S: ConditionalStore>(store: S, journal: &Journal) -> DefaultLeaderElector {
    let lock = ObjectLock::new(store, KEY, "a");
    DefaultLeaderElector::new(builder(lock, journal.callbacks()).require_probe(true).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn nobody_is_elected_on_a_store_that_fails() {
    for (breakage, failing) in
        [(Breakage::NoPreconditions, "create twice: a second"), (Breakage::CheckThenAct, "racing creators: 16 of 16")]
    {
        let (store, journal) = (Broken::new(breakage), Journal::default());
        let elector = elector(store.clone(), &journal);

        let outcome = timeout(LEASE, elector.run(CancellationToken::new())).await.unwrap();
        assert_eq!(outcome.fencing_token, None);
        let EndReason::StoreUnfit { why } = &outcome.reason else { panic!("{breakage:?}: {outcome:?}") };
        assert!(why.starts_with(failing), "{why}");

        let reason = elector.campaign(CancellationToken::new()).await;
        assert!(matches!(reason, EndReason::StoreUnfit { .. }), "{reason:?}");

        let work = |_| async { panic!("the work was started") };
        let error = elector.run_while_leading(CancellationToken::new(), work).await.unwrap_err();
        assert!(matches!(error, RunError::StoreUnfit { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("no leader is elected, and the work was not started: the store failed the probe: "));

        assert_eq!(store.list("").await.unwrap(), Vec::<String>::new());
        assert_eq!(journal.entries(), Vec::<String>::new());
        assert_eq!(elector.handle().leader(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_passes_is_probed_once() {
    let (store, journal) = (Troubled::new(|_, _, _| None), Journal::default());
    let elector = elector(store.clone(), &journal);
    let mut spent = Vec::new();
    for _ in 0..2 {
        let (before, cancel) = (store.requests(), CancellationToken::new());
        let handle = elector.handle();
        let lead_for_a_while = async {
            sleep(LEASE * 2).await;
            assert!(handle.is_leader());
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(elector.run(cancel.clone()), lead_for_a_while);
        assert_eq!(outcome.reason, EndReason::Cancelled);
        spent.push(store.requests() - before);
    }
    assert!(spent[0] > 200 && spent[1] < 50, "{spent:?}");
    assert_eq!(store.list("").await.unwrap(), [KEY]);
    assert_eq!(journal.entries(), ["start 0", "work ended", "stop", "start 1", "work ended", "stop"]);
}

#[tokio::test(start_paused = true)]
async fn without_it_a_store_is_not_probed() {
    let store = Troubled::new(|_, _, _| None);
    let config = builder(ObjectLock::new(store.clone(), KEY, "a"), LeaderCallbacks::new()).build().unwrap();
    let (cancel, running) = spawn_run(DefaultLeaderElector::new(config));
    sleep(RETRY).await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().fencing_token, Some(0));
    assert!(store.requests() < 5);
}

#[tokio::test(start_paused = true)]
async fn an_inconclusive_probe_is_run_again_slowly() {
    // Nothing but the probe keeps us from the lock.
    let store = Troubled::new(|_, key, _| (key != KEY).then_some(Fault::Refuse(StoreErrorKind::Fatal)));
    let journal = Journal::default();
    let elector = elector(store.clone(), &journal);
    let handle = elector.handle();
    let (cancel, running) = spawn_run(elector);
    sleep(LEASE * 10).await;
    assert!(!handle.is_leader());
    assert!((10..50).contains(&store.requests()), "{} requests", store.requests());
    assert_eq!(store.list("").await.unwrap(), Vec::<String>::new());

    store.heal();
    sleep(LEASE * 2).await;
    assert!(handle.is_leader());
    cancel.cancel();
    assert_eq!(running.await.unwrap().fencing_token, Some(0));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_probe_at_once() {
    for fault in [Fault::Hang, Fault::Refuse(StoreErrorKind::Rejected), Fault::Refuse(StoreErrorKind::Fatal)] {
        for patience in [Duration::from_millis(1), LEASE] {
            let store = Troubled::always(fault);
            let (cancel, running) = spawn_run(elector(store.clone(), &Journal::default()));
            sleep(patience).await;
            let (requests, cancelled) = (store.requests(), Instant::now());
            cancel.cancel();
            let outcome = timeout(Duration::from_millis(1), running).await.unwrap().unwrap();
            assert_eq!((outcome.fencing_token, outcome.reason), (None, EndReason::Cancelled));
            assert_eq!(cancelled.elapsed(), Duration::ZERO);
            sleep(LEASE * 10).await;
            assert_eq!(store.requests(), requests, "{fault:?}: it went on in the background");
        }
    }
}

#[test]
fn a_lock_that_names_no_store_cannot_be_probed() {
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).require_probe(true);
    assert_eq!(
        config.build().unwrap_err().to_string(),
        "require_probe (true) needs a lock that names its store, such as ObjectLock; memory:lock does not"
    );
}
