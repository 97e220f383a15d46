//! Rule 14: the leader hands over, the named candidate goes first, the others wait, but not forever.

use std::future::pending;
use std::time::Duration;

use leaderelection::admin::{AdminError, Intervention, request_transfer};
use leaderelection::handle::{BeginReason, Change, TransferError};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderElectionRecord, LeaderHandle, MemoryLock, MemoryStore, ObjectLock,
    ObjectStoreBasedLock as _, StoreErrorKind, TermEndReason,
};
use leaderelection_test_support::faulty::{Call, Faulty};
use tokio::time::{Instant, sleep};

use crate::support::{
    DEADLINE, Fault, Journal, LEASE, Op, RETRY, TestLock, builder, elector, plant, record, spawn_run, stored,
};

/// The longest pause between two polls of a candidate.
const LONGEST_POLL: Duration = RETRY.saturating_mul(11).checked_div(5).unwrap();

/// Campaigns on a task of its own, until the runtime of the test is gone.
fn campaign(elector: DefaultLeaderElector) -> LeaderHandle {
    let handle = elector.handle();
    drop(tokio::spawn(async move { elector.campaign(pending()).await }));
    handle
}

async fn until_leading(handle: &LeaderHandle) {
    until("it leads", || handle.is_leader()).await;
}

/// Waits in simulated time, far longer than anything here takes.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LEASE * 10, "waited in vain until {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A leader `a` and two candidates, `b` and `c`.
async fn three(store: &MemoryStore) -> [LeaderHandle; 3] {
    let a = campaign(elector(TestLock::new(store, "a"), Journal::default().callbacks()));
    until_leading(&a).await;
    let [b, c] = ["b", "c"].map(|name| campaign(elector(TestLock::new(store, name), Journal::default().callbacks())));
    [a, b, c]
}

fn operator(store: &MemoryStore) -> MemoryLock {
    MemoryLock::new(store.clone(), "lock", "operator")
}

/// Asks the leader of the moment to hand over.
async fn ask(store: &MemoryStore, to: &str) -> Result<Intervention, AdminError> {
    request_transfer(&operator(store), &stored(store).await.record, to).await
}

#[tokio::test(start_paused = true)]
async fn the_named_candidate_leads_next() {
    // Often enough that chance alone would let the other one win.
    for named in ["b", "c"].into_iter().cycle().take(10) {
        let store = MemoryStore::new();
        let [a, b, c] = three(&store).await;
        sleep(RETRY * 3).await;
        a.transfer_to(named).unwrap();
        assert!(!a.is_leader());
        let start = Instant::now();
        let next = if named == "b" { &b } else { &c };
        until_leading(next).await;
        assert!(start.elapsed() <= LONGEST_POLL, "{:?}", start.elapsed());
        let now = stored(&store).await.record;
        assert_eq!((now.holder_identity.as_str(), now.leader_transitions), (named, 2));
        assert_eq!(now.preferred_holder, None, "the request is fulfilled");
        let end = Change::StoppedLeading {
            fencing_token: 1.into(),
            reason: TermEndReason::Transferred { to: named.to_owned() },
        };
        assert!(a.transitions().iter().any(|transition| transition.change == end));
        let begin = Change::StartedLeading { fencing_token: 2.into(), reason: BeginReason::Transferred };
        assert!(next.transitions().iter().any(|transition| transition.change == begin));
    }
}

#[tokio::test(start_paused = true)]
async fn the_release_names_the_next_leader_and_waits_for_the_work() {
    let store = MemoryStore::new();
    let journal = Journal::default();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), journal.callbacks());
    let handle = elector.handle();
    let running = tokio::spawn(async move { elector.run(pending()).await });
    until_leading(&handle).await;
    handle.transfer_to("b").unwrap();
    let outcome = running.await.unwrap().unwrap();

    assert_eq!(outcome.reason(), Some(&TermEndReason::Transferred { to: "b".to_owned() }));
    assert_eq!(journal.entries(), ["start 1", "work ended", "stop"]);
    assert_eq!(lock.ops(), [Op::Get, Op::Create, Op::Update]);
    let left = stored(&store).await.record;
    assert!(left.is_released());
    assert_eq!((left.leader_transitions, left.preferred_holder.as_deref()), (1, Some("b")));
}

#[tokio::test(start_paused = true)]
async fn if_the_named_candidate_never_comes_another_takes_over_after_one_lease() {
    let store = MemoryStore::new();
    let [a, b, c] = three(&store).await;
    sleep(RETRY * 3).await;
    let start = Instant::now();
    a.transfer_to("nobody").unwrap();
    sleep(LEASE / 2).await;
    for handle in [&a, &b, &c] {
        assert_eq!(handle.observed().unwrap().preferred_holder.as_deref(), Some("nobody"), "{}", handle.identity());
    }
    until("somebody leads", || a.is_leader() || b.is_leader() || c.is_leader()).await;
    assert!(start.elapsed() >= LEASE, "everybody waits a lease for the named candidate: {:?}", start.elapsed());
    assert!(start.elapsed() <= LEASE + LONGEST_POLL + RETRY, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_leader_follows_a_request_that_an_operator_wrote() {
    let store = MemoryStore::new();
    let [a, b, c] = three(&store).await;
    sleep(RETRY * 3).await;
    let start = Instant::now();
    let done = ask(&store, "c").await.unwrap();
    assert_eq!((done.before.preferred_holder, done.after.preferred_holder), (None, Some("c".to_owned())));
    assert_eq!(done.after.holder_identity, "a", "the leader goes on until it has seen it");
    until_leading(&c).await;

    assert!(start.elapsed() <= RETRY + LONGEST_POLL, "{:?}", start.elapsed());
    assert!(!a.is_leader() && !b.is_leader());
    assert_eq!(c.fencing_token(), Some(2.into()));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_meets_an_unanswered_renewal_is_followed() {
    let store = MemoryStore::new();
    // The second renewal is committed, its answer is lost, and the request is written before it is read back.
    let lock = TestLock::new(&store, "a").with_fault(Op::Update, 1, Fault::ApplyThenHang);
    let journal = Journal::default();
    let a = campaign(elector(lock.clone(), journal.callbacks()));
    until_leading(&a).await;
    until("the second renewal is sent", || lock.ops().iter().filter(|op| **op == Op::Update).count() == 2).await;
    ask(&store, "b").await.unwrap();
    until("the term is over", || journal.entries().len() == 3).await;
    sleep(Duration::from_millis(10)).await;
    assert_eq!(stored(&store).await.record.preferred_holder.as_deref(), Some("b"));
    assert_eq!(journal.entries(), ["start 1", "work ended", "stop"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_the_leader_itself_changes_nothing() {
    let store = MemoryStore::new();
    let [a, ..] = three(&store).await;
    let mut annotated = stored(&store).await.record;
    annotated.preferred_holder = Some("a".to_owned());
    plant(&store, &annotated).await;
    sleep(LEASE * 2).await;

    assert!(a.is_leader());
    assert_eq!(a.fencing_token(), Some(1.into()));
    assert_eq!(stored(&store).await.record.preferred_holder, None);
}

#[tokio::test(start_paused = true)]
async fn a_dead_leaders_lease_runs_out_and_the_named_candidate_goes_first() {
    for named in ["b", "c"].into_iter().cycle().take(10) {
        let store = MemoryStore::new();
        plant(&store, &record("dead", LEASE, 4)).await;
        ask(&store, named).await.unwrap();
        let start = Instant::now();
        let [b, c] =
            ["b", "c"].map(|name| campaign(elector(TestLock::new(&store, name), Journal::default().callbacks())));
        let next = if named == "b" { &b } else { &c };
        until_leading(next).await;
        assert!(start.elapsed() >= LEASE, "the lease is not cut short");
        assert!(start.elapsed() <= LEASE + RETRY, "{:?}", start.elapsed());
        assert_eq!(next.fencing_token(), Some(5.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_write_is_not_taken_for_a_request() {
    let store = MemoryStore::new();
    let journal = Journal::default();
    let a = campaign(elector(TestLock::new(&store, "a"), journal.callbacks()));
    until_leading(&a).await;
    // The record has the leader's name and token, but comes from another process with the same identity.
    let mut twin = record("a", LEASE, 0);
    twin.preferred_holder = Some("b".to_owned());
    plant(&store, &twin).await;
    sleep(RETRY * 2).await;

    assert!(!a.is_leader());
    assert_eq!(stored(&store).await.record.write_id.as_deref(), Some("a-0"), "nothing is written over it");
}

#[tokio::test(start_paused = true)]
async fn who_cannot_hand_over_is_told_why() {
    let store = MemoryStore::new();
    let [a, b, _] = three(&store).await;
    assert_eq!(b.transfer_to("a"), Err(TransferError::NotLeading));
    assert_eq!(a.transfer_to("a"), Err(TransferError::ToOurselves { identity: "a".to_owned() }));
    assert!(matches!(a.transfer_to(""), Err(TransferError::BadIdentity { .. })));
    let error = a.transfer_to("b\n").unwrap_err().to_string();
    assert!(error.contains(r#"identity "b\n""#) && error.contains("ends with U+000A"), "{error}");
    assert!(a.is_leader(), "a refused transfer changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_is_lost_still_names_the_next_leader() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a").with_fault(Op::Update, 0, Fault::Refuse(StoreErrorKind::Ambiguous));
    let a = elector(lock.clone(), Journal::default().callbacks());
    let handle = a.handle();
    let running = tokio::spawn(async move { a.run(pending()).await });
    until_leading(&handle).await;
    handle.transfer_to("b").unwrap();
    running.await.unwrap().unwrap();

    assert_eq!(lock.ops(), [Op::Get, Op::Create, Op::Update, Op::Get, Op::Update]);
    assert_eq!(stored(&store).await.record.preferred_holder.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn the_builders_own_release_setting_does_not_matter() {
    for release_on_cancel in [false, true] {
        let store = MemoryStore::new();
        let config = builder(TestLock::new(&store, "a"), Journal::default().callbacks())
            .release_on_cancel(release_on_cancel)
            .build()
            .unwrap();
        let a = campaign(DefaultLeaderElector::new(config));
        until_leading(&a).await;
        a.transfer_to("b").unwrap();
        sleep(Duration::from_millis(10)).await;
        assert!(stored(&store).await.record.is_released());
    }
}

#[tokio::test(start_paused = true)]
async fn who_hands_over_and_is_cancelled_at_once_hands_over() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
    let handle = elector.handle();
    let (cancel, running) = spawn_run(elector);
    until_leading(&handle).await;
    handle.transfer_to("b").unwrap();
    cancel.cancel();
    assert_eq!(running.await.unwrap().reason(), Some(&TermEndReason::Transferred { to: "b".to_owned() }));
    let left = stored(&store).await.record;
    assert!(left.is_released());
    assert_eq!(left.preferred_holder.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn what_others_keep_in_the_record_survives_a_request() {
    let store = MemoryStore::new();
    let a = campaign(elector(TestLock::new(&store, "a"), Journal::default().callbacks()));
    until_leading(&a).await;
    let leaders = stored(&store).await;
    let text = String::from_utf8(leaders.record.to_json()).unwrap().replacen('{', r#"{"note":"kept","#, 1);
    let annotated = LeaderElectionRecord::from_json(text.as_bytes(), LEASE).unwrap();
    operator(&store).update(&annotated, &leaders.version).await.unwrap();
    sleep(RETRY * 3).await;
    assert_eq!(a.fencing_token(), Some(1.into()), "it is the leader's own write, with a note");
    let renewed = stored(&store).await.record;
    assert_ne!(renewed.write_id, annotated.write_id);
    assert_eq!(renewed.unknown, annotated.unknown);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_crosses_the_transfer_does_not_lose_the_name() {
    let store = MemoryStore::new();
    // The write is committed without an answer, while the leader is asked to hand over.
    let lock = TestLock::new(&store, "a").with_fault(Op::Update, 0, Fault::ApplyThenHang);
    let elector = elector(lock.clone(), Journal::default().callbacks());
    let handle = elector.handle();
    let running = tokio::spawn(async move { elector.run(pending()).await });
    until("the renewal is sent", || lock.ops().len() == 3).await;
    handle.transfer_to("b").unwrap();
    running.await.unwrap().unwrap();

    let left = stored(&store).await.record;
    assert!(left.is_released());
    assert_eq!(left.preferred_holder.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_transfer_between_a_renewal_and_its_effect_is_carried_out() {
    let store = Faulty::new(|_, _, _| None);
    let a = campaign(elector(ObjectLock::new(store.clone(), "lock", "a"), Journal::default().callbacks()));
    until_leading(&a).await;
    // As from another thread: the driver looks for commands before it looks for the answer, and not again.
    let leader = a.clone();
    store.fail(move |call, _, _| {
        if call == Call::Put {
            drop(leader.transfer_to("b"));
        }
        None
    });
    let is_end = |change: &Change| matches!(change, Change::StoppedLeading { .. });
    until("its term ends", || a.transitions().iter().any(|transition| is_end(&transition.change))).await;
    let end =
        Change::StoppedLeading { fencing_token: 1.into(), reason: TermEndReason::Transferred { to: "b".to_owned() } };
    assert!(a.transitions().iter().any(|transition| transition.change == end), "{:?}", a.transitions());
}

#[tokio::test(start_paused = true)]
async fn who_could_not_release_lets_the_named_candidate_go_first_all_the_same() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let a = campaign(elector(lock.clone(), Journal::default().callbacks()));
    until_leading(&a).await;
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
    let start = Instant::now();
    a.transfer_to("b").unwrap();
    sleep(LEASE).await;
    lock.set_outage(None);
    until_leading(&a).await;
    assert!(start.elapsed() >= LEASE * 2, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_request_outlives_a_while_in_which_the_object_cannot_be_read() {
    let store = MemoryStore::new();
    // The first update meets the request. The second is the release, which meets something that is no record.
    let lock = TestLock::new(&store, "a")
        .with_fault(Op::Update, 1, Fault::Refuse(StoreErrorKind::Conflict))
        .with_fault(Op::Get, 2, Fault::Refuse(StoreErrorKind::Unreadable));
    let a = campaign(elector(lock, Journal::default().callbacks()));
    until_leading(&a).await;
    let start = Instant::now();
    ask(&store, "b").await.unwrap();
    until("it hands over", || !a.is_leader()).await;
    until_leading(&a).await;
    assert!(start.elapsed() >= LEASE + DEADLINE, "{:?}", start.elapsed());
}
