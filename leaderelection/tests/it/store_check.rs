//! `store_check`: no candidacy before the store has passed.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::clock::TokioClock;
use leaderelection::implement::{
    Candidacy, ConditionalStore as _, ConditionalStoreExt, ListedObject, StoreCheck, StoreFitness,
};
use leaderelection::{
    DefaultLeaderElector, ElectionError, Elector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore,
    RunError, RunOutcome, Session,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{Journal, LEASE, RETRY, TestLock, builder, spawn_run, stored};

/// A check with a prepared answer, which remembers the id of each check.
#[derive(Clone, Debug)]
struct Answering {
    key: &'static str,
    answer: Arc<Mutex<Option<StoreFitness>>>,
    ids: Arc<Mutex<Vec<String>>>,
}

impl Answering {
    /// A check that never ends if there is no answer.
    fn new(answer: Option<StoreFitness>) -> Self {
        Self { key: "lock", answer: Arc::new(Mutex::new(answer)), ids: Arc::default() }
    }

    fn ids(&self) -> Vec<String> {
        self.ids.lock().unwrap().clone()
    }
}

#[async_trait]
impl StoreCheck for Answering {
    async fn check(&self, candidacy: Candidacy<'_>) -> StoreFitness {
        assert_eq!((candidacy.key, candidacy.pause), (self.key, LEASE));
        assert_eq!(candidacy.store.describe(candidacy.key), format!("memory:{}", self.key));
        self.ids.lock().unwrap().push(candidacy.id);
        let answer = self.answer.lock().unwrap().clone();
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn elector(store: &MemoryStore, check: &Answering, journal: &Journal) -> DefaultLeaderElector {
    let lock = MemoryLock::new(store.clone(), "lock", "a");
    DefaultLeaderElector::new(builder(lock, journal.callbacks()).store_check(check.clone()).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn nobody_is_elected_on_a_store_that_fails() {
    let unfit = StoreFitness::Unfit { why: "two writers won".to_owned() };
    let (store, check, journal) = (MemoryStore::new(), Answering::new(Some(unfit)), Journal::default());
    let elector = elector(&store, &check, &journal);

    let unfit = timeout(LEASE, elector.run(pending())).await.unwrap().unwrap_err();
    assert!(unfit.to_string().contains("two writers won"), "{unfit}");
    assert_eq!(elector.campaign(pending()).await, Err(unfit));
    let work = |_| async { panic!("the work was started") };
    let error = elector.run_while_leading(pending(), work).await.unwrap_err();
    assert!(matches!(error, RunError::Election(ElectionError::StoreUnfit { .. })), "{error:?}");
    assert!(error.to_string().ends_with("the store failed the probe: two writers won; use another store"));

    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
    assert_eq!(journal.entries(), Vec::<String>::new());
    assert_eq!(check.ids().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_passes_is_checked_once() {
    let (store, check, journal) = (MemoryStore::new(), Answering::new(Some(StoreFitness::Fit)), Journal::default());
    let elector = elector(&store, &check, &journal);
    for token in 1..3 {
        let cancel = CancellationToken::new();
        let lead_for_a_while = async {
            sleep(LEASE * 2).await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(elector.run(cancel.clone().cancelled_owned()), lead_for_a_while);
        assert_eq!(outcome.unwrap().fencing_token(), Some((token).into()));
    }
    assert_eq!(check.ids().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_inconclusive_check_is_repeated_after_a_lease_duration() {
    let inconclusive = StoreFitness::Inconclusive { why: "denied".to_owned() };
    let (store, check) = (MemoryStore::new(), Answering::new(Some(inconclusive)));
    let (cancel, running) = spawn_run(elector(&store, &check, &Journal::default()));
    sleep(LEASE * 3 + RETRY).await;
    let ids = check.ids();
    assert_eq!(ids.len(), 4);
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
    assert!((1..4).all(|n| ids[n] != ids[n - 1]), "{ids:?}");

    *check.answer.lock().unwrap() = Some(StoreFitness::Fit);
    sleep(LEASE).await;
    assert_eq!(stored(&store).await.record.holder_identity, "a");
    cancel.cancel();
    assert_eq!(running.await.unwrap().fencing_token(), Some(1.into()));
}

#[tokio::test(start_paused = true)]
async fn cancelling_interrupts_a_check_and_the_pause_after_it() {
    for answer in [None, Some(StoreFitness::Inconclusive { why: "denied".to_owned() })] {
        let (store, check) = (MemoryStore::new(), Answering::new(answer));
        let (cancel, running) = spawn_run(elector(&store, &check, &Journal::default()));
        sleep(RETRY).await;
        assert_eq!(check.ids().len(), 1);
        cancel.cancel();
        let outcome = timeout(Duration::from_millis(1), running).await.unwrap().unwrap();
        assert_eq!(outcome, RunOutcome::NeverLed);
    }
}

#[test]
fn a_lock_that_names_no_store_cannot_be_checked() {
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).store_check(Answering::new(None));
    let error = config.build().unwrap_err();
    assert_eq!(error.field(), "store_check");
    let text = error.to_string();
    assert!(text.starts_with("store_check (Answering {"), "{text}");
    assert!(text.ends_with(") needs a lock that names its store, such as ObjectLock; memory:lock does not"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn no_session_opens_on_a_store_that_fails() {
    let unfit = StoreFitness::Unfit { why: "two writers won".to_owned() };
    let check = Answering { key: "fleet/sessions", ..Answering::new(Some(unfit)) };
    let store = MemoryStore::new();
    let session = Session::builder(store.clone(), "fleet", "a")
        .clock(TokioClock::new())
        .store_check(check.clone())
        .build()
        .unwrap();
    let elector = session.elector("lock", LeaderCallbacks::new()).unwrap();
    let slots = session.slots("slot", 2).unwrap();

    // The elector competes before the session runs, the slots afterwards.
    let (campaign, run) = tokio::join!(elector.campaign(pending()), session.run(pending()));
    assert!(run.unwrap_err().to_string().contains("two writers won"));
    assert!(campaign.unwrap_err().to_string().contains("two writers won"));
    let work = |_| async { panic!("the work was started") };
    let error = slots.run_while_leading(pending(), work).await.unwrap_err();
    assert!(matches!(error, RunError::Election(ElectionError::StoreUnfit { .. })), "{error:?}");
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());

    // A later run checks again.
    *check.answer.lock().unwrap() = Some(StoreFitness::Fit);
    let cancel = CancellationToken::new();
    let work = {
        let cancel = cancel.clone();
        elector.run_while_leading(cancel.clone().cancelled_owned(), |leadership| async move {
            cancel.cancel();
            leadership.fencing_token()
        })
    };
    let (run, token) = tokio::join!(session.run(cancel.cancelled_owned()), async {
        tokio::task::yield_now().await;
        work.await
    });
    run.unwrap();
    assert_eq!(token, Ok(1.into()));
    assert_eq!(check.ids().len(), 2);
}
