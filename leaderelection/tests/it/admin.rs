//! The interventions of operators: by compare-and-swap, without lowering a token.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::admin::{AdminError, force_release, recreate, request_transfer};
use leaderelection::causes::with_causes;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::MAX_LEADER_TRANSITIONS;
use leaderelection::{LeaderElectionRecord, LockError, MemoryLock, MemoryStore, ObjectStoreBasedLock, StoreErrorKind};
use tokio::time::sleep;

use crate::support::{Fault, Journal, LEASE, Op, RETRY, TestLock, elector, plant, record, spawn_run, stored};

fn held() -> LeaderElectionRecord {
    let body = br#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":7,"writeId":"w","zone":"north"}"#;
    LeaderElectionRecord::from_json(body, LEASE).unwrap()
}

/// A lock that others write in between.
#[derive(Debug)]
struct Busy {
    lock: TestLock,
    store: MemoryStore,
    /// The record that another writer writes after each call.
    others: Mutex<VecDeque<Option<LeaderElectionRecord>>>,
}

impl Busy {
    fn new(
        store: &MemoryStore,
        lock: TestLock,
        others: impl IntoIterator<Item = Option<LeaderElectionRecord>>,
    ) -> Self {
        Self { lock, store: store.clone(), others: Mutex::new(others.into_iter().collect()) }
    }

    async fn others_go_on(&self) {
        let next = self.others.lock().unwrap().pop_front().flatten();
        if let Some(record) = next {
            plant(&self.store, &record).await;
        }
    }
}

#[async_trait]
impl ObjectStoreBasedLock for Busy {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        let result = self.lock.get().await;
        self.others_go_on().await;
        result
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        let result = self.lock.create(record).await;
        self.others_go_on().await;
        result
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        let result = self.lock.update(record, expected).await;
        self.others_go_on().await;
        result
    }

    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        self.lock.describe()
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_is_out_of_reach() {
    let successor = record("b", LEASE, 8);
    let store = MemoryStore::new();
    for transfer in [false, true] {
        plant(&store, &held()).await;
        let lock = Busy::new(&store, TestLock::new(&store, "operator"), [Some(successor.clone())]);
        let result = match transfer {
            true => request_transfer(&lock, &held(), "c").await,
            false => force_release(&lock, &held()).await,
        };
        let error = result.unwrap_err();
        assert!(matches!(error, AdminError::MovedOn { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            r#"memory:lock was held by "a" with fencing token 7, and is held by "b" with fencing token 8 now; check who leads, and decide again"#
        );
        assert_eq!(stored(&store).await.record, successor);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_has_had_its_effect_before_it_was_seen_is_told_as_done() {
    let fault = Fault::ApplyThen(StoreErrorKind::Ambiguous);
    for (next, transfer) in [("b", true), ("b", false), ("c", false)] {
        let store = MemoryStore::new();
        plant(&store, &held()).await;
        let lock = TestLock::new(&store, "operator").with_fault(Op::Update, 0, fault);
        let lock = Busy::new(&store, lock, [None, Some(record(next, LEASE, 8))]);
        let done = match transfer {
            true => request_transfer(&lock, &held(), "b").await,
            false => force_release(&lock, &held()).await,
        };
        let done = done.unwrap();
        assert_eq!((done.before, done.after), (held(), record(next, LEASE, 8)));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_that_nothing_was_changed_if_that_is_not_known() {
    let fault = Fault::ApplyThen(StoreErrorKind::Ambiguous);
    let store = MemoryStore::new();
    plant(&store, &held()).await;
    let lock = TestLock::new(&store, "operator").with_fault(Op::Update, 0, fault);
    let lock = Busy::new(&store, lock, [None, Some(record("c", LEASE, 8))]);
    let error = request_transfer(&lock, &held(), "b").await.unwrap_err();
    assert!(matches!(error, AdminError::Unknown { .. }), "{error}");

    plant(&store, &held()).await;
    let lock = TestLock::new(&store, "operator").with_fault(Op::Update, 0, fault);
    let lock = lock.with_fault(Op::Get, 1, Fault::Refuse(StoreErrorKind::Fatal));
    let error = force_release(&lock, &held()).await.unwrap_err();
    assert!(matches!(error, AdminError::Unknown { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_transfer_followed_before_it_was_seen_is_reported_as_done() {
    let store = MemoryStore::new();
    plant(&store, &held()).await;
    let fault = Fault::ApplyThen(StoreErrorKind::Ambiguous);
    let lock = TestLock::new(&store, "operator").with_fault(Op::Update, 0, fault);
    let mut obeyed = record("", Duration::from_secs(1), 7);
    obeyed.preferred_holder = Some("b".to_owned());
    let lock = Busy::new(&store, lock, [None, Some(obeyed.clone())]);
    let done = request_transfer(&lock, &held(), "b").await.unwrap();
    assert_eq!((done.before, done.after), (held(), obeyed));
}

#[tokio::test(start_paused = true)]
async fn a_creation_on_which_a_candidate_has_built_already_is_told_as_done() {
    let store = MemoryStore::new();
    let fault = Fault::ApplyThen(StoreErrorKind::Ambiguous);
    let lock = TestLock::new(&store, "operator").with_fault(Op::Create, 0, fault);
    let lock = Busy::new(&store, lock, [Some(record("a", LEASE, 42))]);
    assert_eq!(recreate(&lock, 41).await.unwrap(), record("a", LEASE, 42));
}

#[tokio::test(start_paused = true)]
async fn a_forced_release_keeps_the_token_and_the_unknown_fields() {
    let store = MemoryStore::new();
    plant(&store, &held()).await;
    let done = force_release(&TestLock::new(&store, "operator"), &stored(&store).await.record).await.unwrap();
    assert_eq!(done.before, held());
    let now = stored(&store).await.record;
    assert!(now.is_released());
    assert_eq!((now.leader_transitions, now.lease_duration), (7, Duration::from_secs(1)));
    assert_eq!(now.unknown.get("zone"), Some(r#""north""#));
    assert_eq!(now.write_id, done.after.write_id);
    assert_ne!(now.write_id, held().write_id);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_taken_away_stops_and_the_next_token_is_larger() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let (_cancel, running) = spawn_run(elector(lock, journal.callbacks()));
    sleep(RETRY / 2).await;
    force_release(&TestLock::new(&store, "operator"), &stored(&store).await.record).await.unwrap();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.reason(), Some(&leaderelection::TermEndReason::Emptied));
    assert_eq!(journal.entries(), ["start 1", "work ended", "stop"]);
    let (_cancel, _running) = spawn_run(elector(TestLock::new(&store, "b"), Journal::default().callbacks()));
    sleep(RETRY / 2).await;
    assert_eq!(stored(&store).await.record.leader_transitions, 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_released_already_is_left_alone() {
    let store = MemoryStore::new();
    plant(&store, &record("", LEASE, 7)).await;
    let lock = TestLock::new(&store, "operator");
    let done = force_release(&lock, &held()).await.unwrap();
    assert_eq!(done.before, done.after);
    assert_eq!(lock.ops(), [Op::Get]);
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_is_lost_is_told_as_it_was() {
    for fault in [Fault::ApplyThen(StoreErrorKind::Ambiguous), Fault::ApplyThen(StoreErrorKind::Conflict)] {
        let store = MemoryStore::new();
        plant(&store, &held()).await;
        let lock = TestLock::new(&store, "operator").with_fault(Op::Update, 0, fault);
        let done = force_release(&lock, &held()).await.unwrap();
        assert_eq!(done.before, held());
        assert!(done.after.is_released());

        plant(&store, &held()).await;
        let lock = TestLock::new(&store, "operator").with_fault(Op::Update, 0, fault);
        let done = request_transfer(&lock, &held(), "b").await.unwrap();
        assert_eq!(done.before.preferred_holder, None);
        assert_eq!(done.after.preferred_holder.as_deref(), Some("b"));
        assert_eq!(lock.ops(), [Op::Get, Op::Update, Op::Get]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_not_made_is_made_again_or_reported() {
    let store = MemoryStore::new();
    plant(&store, &held()).await;
    let lock = TestLock::new(&store, "operator").with_fault(Op::Update, 0, Fault::Refuse(StoreErrorKind::Ambiguous));
    assert!(force_release(&lock, &held()).await.unwrap().after.is_released());
    assert!(stored(&store).await.record.is_released());

    plant(&store, &held()).await;
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Fatal)));
    let error = force_release(&lock, &held()).await.unwrap_err();
    assert!(matches!(error, AdminError::Lock(_)), "{error}");
    assert_eq!(stored(&store).await.record, held());
}

#[tokio::test(start_paused = true)]
async fn requests_that_make_no_sense_are_refused() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "operator");
    let error = request_transfer(&lock, &held(), "b").await.unwrap_err();
    assert_eq!(error.to_string(), "memory:lock does not exist; check the name, or start a candidate to create it");
    plant(&store, &held()).await;
    let error = request_transfer(&lock, &held(), "a").await.unwrap_err();
    assert_eq!(error.to_string(), "\"a\" holds memory:lock already; name another candidate");
    let error = request_transfer(&lock, &held(), "").await.unwrap_err();
    assert!(error.to_string().contains("it is empty; name the candidate"), "{error}");
    assert_eq!(stored(&store).await.record, held());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_deleted_is_made_anew_with_its_token() {
    let store = MemoryStore::new();
    let lock = MemoryLock::new(store.clone(), "lock", "operator");
    assert!(matches!(recreate(&lock, MAX_LEADER_TRANSITIONS).await, Err(AdminError::BadToken { .. })));
    recreate(&lock, 41).await.unwrap();
    assert!(matches!(recreate(&lock, 99).await, Err(AdminError::Exists { token, .. }) if token == 41));
    let (_cancel, _running) = spawn_run(elector(TestLock::new(&store, "a"), Journal::default().callbacks()));
    sleep(RETRY).await;
    assert_eq!(stored(&store).await.record.leader_transitions, 42);
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_is_found() {
    let store = MemoryStore::new();
    let fault = Fault::ApplyThen(StoreErrorKind::Ambiguous);
    recreate(&TestLock::new(&store, "operator").with_fault(Op::Create, 0, fault), 41).await.unwrap();
    let fault = Fault::Refuse(StoreErrorKind::Ambiguous);
    let empty = MemoryStore::new();
    let error = recreate(&TestLock::new(&empty, "operator").with_fault(Op::Create, 0, fault), 41).await.unwrap_err();
    assert!(matches!(error, AdminError::Unknown { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_what_it_has_to_accept_is_named_as_such() {
    let store = MemoryStore::new();
    plant(&store, &held()).await;
    let lock = TestLock::new(&store, "operator").with_every(Op::Update, Fault::Refuse(StoreErrorKind::Conflict));
    for error in
        [force_release(&lock, &held()).await.unwrap_err(), request_transfer(&lock, &held(), "b").await.unwrap_err()]
    {
        let AdminError::Lock(error) = error else { panic!("{error}") };
        let text = with_causes(&error);
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{text}");
        assert!(text.contains("the store rejected the condition of 3 writes in a row"), "{text}");
        assert!(text.contains("run `leaderelect probe`"), "{text}");
    }
    assert_eq!(stored(&store).await.record, held());
}
