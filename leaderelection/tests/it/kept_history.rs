//! The history of a lock: who led when, and why each term ended.

use std::future::pending;
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::history::{self, EndedTerm, Retention};
use leaderelection::implement::{ConditionalStore as _, MAX_BODY_BYTES, Precondition};
use leaderelection::lock::JobId;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder, Majority,
    MemoryLock, MemoryStore, ObjectLock, Session, StoreErrorKind, TermEndReason,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::support::{Call, Fault, Faulty, Journal, LEASE, builder, spawn_run};

const KEEP: u16 = 10;

fn candidate(store: &Faulty, identity: &str) -> LeaderElectionConfigBuilder {
    let lock = ObjectLock::new(store.clone(), "lock", identity);
    builder(lock, Journal::default().callbacks()).release_on_cancel(true).keep_history(Retention::terms(KEEP))
}

fn elector(store: &Faulty, identity: &str) -> DefaultLeaderElector {
    DefaultLeaderElector::new(candidate(store, identity).build().unwrap())
}

async fn terms(store: &MemoryStore, lock: &str) -> Vec<EndedTerm> {
    let found = store.get(&history::key_of(lock)).await.unwrap();
    found.map(|found| history::parse(&found.body).unwrap()).unwrap_or_default()
}

fn in_words(terms: &[EndedTerm]) -> Vec<String> {
    terms.iter().map(|term| format!("{} {} {}", term.holder, term.fencing_token, term.why)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_ended_term_costs_one_read_and_one_write() {
    let store = Faulty::default();
    for identity in ["a", "b"] {
        let (cancel, run) = spawn_run(elector(&store, identity));
        sleep(LEASE).await;
        cancel.cancel();
        run.await.unwrap();
    }
    let terms = terms(&store.inner, "lock").await;
    assert_eq!(in_words(&terms), ["a 1 the candidate was told to stop", "b 2 the candidate was told to stop"]);
    assert!(terms.iter().all(|term| term.from.is_some() && term.from <= term.to), "{terms:?}");
    let calls = store.take_calls();
    let of_history: Vec<Call> =
        calls.into_iter().filter(|(_, key)| key == "lock.history").map(|(call, _)| call).collect();
    assert_eq!(of_history, [Call::Get, Call::Put, Call::Get, Call::Put]);
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_writes_the_term_of_one_that_has_crashed() {
    let store = Faulty::default();
    let (_cancel, run) = spawn_run(elector(&store, "a"));
    sleep(LEASE).await;
    run.abort();
    let (_cancel, _run) = spawn_run(elector(&store, "b"));
    sleep(LEASE * 2).await;
    let terms = terms(&store.inner, "lock").await;
    assert_eq!(in_words(&terms), ["a 1 the lease expired, and was taken over by \"b\""]);
    assert!(terms[0].from.is_some() && terms[0].from < terms[0].to, "{terms:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_cut_off_tells_why_when_the_store_is_back() {
    let store = Faulty::default();
    let (_cancel, _run) = spawn_run(elector(&store, "a"));
    sleep(LEASE).await;
    store.begin_outage(StoreErrorKind::Ambiguous);
    sleep(LEASE).await;
    store.recover();
    sleep(LEASE * 2).await;
    let terms = terms(&store.inner, "lock").await;
    assert_eq!(in_words(&terms), ["a 1 the lease could not be renewed before the renew deadline"]);
}

#[tokio::test(start_paused = true)]
async fn a_history_that_cannot_be_written_hurts_no_term() {
    for fault in [Fault::Hang, Fault::Refuse(StoreErrorKind::Fatal), Fault::Refuse(StoreErrorKind::Rejected)] {
        let store = Faulty::new(move |_, key, _| (key == "lock.history").then_some(fault));
        let elector = elector(&store, "a");
        let handle = elector.handle();
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let campaign = tokio::spawn(async move { elector.campaign(token.cancelled_owned()).await });
        for _ in 0..5 {
            let mut elected = handle.clone();
            elected.elected().await.unwrap();
            handle.step_down();
            sleep(LEASE + LEASE / 3).await;
            assert!(handle.is_leader(), "{fault:?}: the next term begins after the cool-down");
        }
        assert!(handle.last_error().is_none(), "{:?}", handle.last_error());
        let cancelled = Instant::now();
        cancel.cancel();
        campaign.await.unwrap().unwrap();
        assert!(
            cancelled.elapsed() <= Duration::from_secs(11),
            "{fault:?} delays the end by {:?}",
            cancelled.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_no_history_is_left_alone() {
    let store = Faulty::default();
    store.inner.put("lock.history", "somebody's photo".into(), &Precondition::Absent).await.unwrap();
    let (cancel, run) = spawn_run(elector(&store, "a"));
    sleep(LEASE).await;
    cancel.cancel();
    run.await.unwrap();
    assert_eq!(store.inner.get("lock.history").await.unwrap().unwrap().body, "somebody's photo");
}

#[tokio::test(start_paused = true)]
async fn a_job_leaves_its_name_and_its_result() {
    let store = Faulty::default();
    let job: JobId = "monday".parse().unwrap();
    let work = |leadership: leaderelection::Leadership| async move {
        leadership.report_result("3 rows");
        Ok::<_, ()>(())
    };
    elector(&store, "a").run_once(pending(), &job, work).await.unwrap();
    let fails = |_| async { Err::<(), _>("no") };
    elector(&store, "b").run_once(pending(), &"tuesday".parse().unwrap(), fails).await.unwrap();
    let terms = terms(&store.inner, "lock").await;
    let told: Vec<_> =
        terms.iter().map(|term| (term.job.as_deref(), term.result.as_deref(), term.why.name())).collect();
    assert_eq!(
        told,
        [
            (Some("monday"), Some("3 rows"), TermEndReason::WorkFinished.name()),
            (Some("tuesday"), None, TermEndReason::WorkFailed.name())
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_long_is_cut_and_erases_no_terms() {
    let store = Faulty::default();
    for (job, length) in [("monday", 5), ("tuesday", MAX_BODY_BYTES * 2)] {
        let work = move |leadership: leaderelection::Leadership| async move {
            leadership.report_result("é".repeat(length));
            Ok::<_, ()>(())
        };
        elector(&store, "a").run_once(pending(), &job.parse().unwrap(), work).await.unwrap();
    }
    let lengths = terms(&store.inner, "lock").await.into_iter().map(|term| term.result.unwrap().chars().count());
    assert_eq!(lengths.collect::<Vec<_>>(), [5, 1024]);
}

#[tokio::test(start_paused = true)]
async fn a_term_in_the_hand_of_its_caller_is_kept_too() {
    let store = Faulty::default();
    let lock = ObjectLock::new(store.clone(), "lock", "a");
    let config = builder(lock, ()).release_on_cancel(true).keep_history(Retention::terms(KEEP));
    DefaultLeaderElector::new(config.build().unwrap()).try_lead().await.unwrap().release().await;
    assert_eq!(in_words(&terms(&store.inner, "lock").await), ["a 1 stepped down"]);
}

#[tokio::test(start_paused = true)]
async fn the_locks_of_a_session_have_histories_of_their_own() {
    let store = Faulty::default();
    let join = |identity: &str| {
        let session = Session::builder(store.clone(), "fleet", identity)
            .clock(TokioClock::new())
            .keep_history(Retention::terms(KEEP))
            .build()
            .unwrap();
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let work = |_: &str| Journal::default().callbacks();
        (cancel, tokio::spawn(async move { session.lead_all(["x", "y"], work, token.cancelled_owned()).await }))
    };
    let (_, first) = join("a");
    sleep(LEASE).await;
    first.abort();
    let (cancel, second) = join("b");
    sleep(LEASE * 4).await;
    cancel.cancel();
    second.await.unwrap().unwrap();
    for lock in ["fleet/locks/x", "fleet/locks/y"] {
        let kept = in_words(&terms(&store.inner, lock).await);
        assert_eq!(
            kept,
            ["a 1 the lease expired, and was taken over by \"b\"", "b 2 the candidate was told to stop"],
            "{lock}"
        );
    }
    // The listings of the locks show the histories, and no member reads one for that.
    let calls = store.take_calls().into_iter().filter(|(_, key)| key.ends_with(history::SUFFIX));
    let (reads, writes): (Vec<_>, Vec<_>) = calls.map(|(call, _)| call).partition(|call| *call == Call::Get);
    assert_eq!((reads.len(), writes), (4, vec![Call::Put; 4]));
}

#[tokio::test(start_paused = true)]
async fn each_part_of_a_lock_has_the_history() {
    let store = MemoryStore::new();
    let parts = ["a", "b", "c"].map(|key| MemoryLock::new(store.clone(), key, "node-1"));
    let config = builder(Majority::of(parts).unwrap(), Journal::default().callbacks()).release_on_cancel(true);
    let config = config.keep_history(Retention::terms(KEEP)).build().unwrap();
    let (cancel, run) = spawn_run(DefaultLeaderElector::new(config));
    sleep(LEASE * 2).await;
    cancel.cancel();
    run.await.unwrap();
    for part in ["a", "b", "c"] {
        assert_eq!(in_words(&terms(&store, part).await), ["node-1 1 the candidate was told to stop"], "{part}");
    }
}

#[test]
fn a_history_has_a_limit() {
    for terms in [0, 201] {
        let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
        let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).keep_history(Retention::terms(terms));
        let error = config.build().unwrap_err().to_string();
        assert_eq!(error, format!("keep_history ({terms} terms) must be from 1 to 200 terms"));
    }
}
