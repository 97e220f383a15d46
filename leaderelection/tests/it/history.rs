//! The history for troubleshooting: the last changes and their reasons, the age of the news, the last error.

use std::future::pending;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::handle::{BeginReason, Change, Operation, REMEMBERED_TRANSITIONS};
use leaderelection::{Elector, LeaderCallbacks, LeaderHandle, MemoryStore, StoreErrorKind, TermEndReason};
use tokio::time::sleep;
use tracing::Level;

use crate::support::{Fault, Journal, LEASE, RETRY, TestLock, elector, logged, plant, record, spawn_run, stored};

const MOMENT: Duration = Duration::from_millis(1);

fn changes(handle: &LeaderHandle) -> Vec<Change> {
    handle.transitions().into_iter().map(|transition| transition.change).collect()
}

fn named(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_handle_remembers_why_terms_began_and_ended() {
    let store = MemoryStore::new();
    plant(&store, &record("before", LEASE, 6)).await;
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let (_cancel, running) = spawn_run(elector);
    sleep(LEASE + RETRY).await;
    plant(&store, &record("usurper", LEASE, 8)).await;
    running.await.unwrap();

    assert_eq!(
        changes(&handle),
        [
            Change::LeaderChanged { from: None, to: named("before") },
            Change::StartedLeading {
                fencing_token: 7.into(),
                reason: BeginReason::Expired { of: "before".to_owned() }
            },
            Change::LeaderChanged { from: named("before"), to: named("a") },
            Change::StoppedLeading {
                fencing_token: 7.into(),
                reason: TermEndReason::TakenOver { by: "usurper".to_owned() }
            },
            Change::LeaderChanged { from: named("a"), to: named("usurper") },
        ]
    );
    let times: Vec<_> = handle.transitions().into_iter().map(|transition| transition.at).collect();
    assert!(times.is_sorted(), "{times:?}");
    let seconds = |at: DateTime<Utc>| (at - DateTime::UNIX_EPOCH).as_seconds_f64();
    assert!(seconds(times[1]) >= LEASE.as_secs_f64(), "{times:?}");
    assert_eq!(
        handle.transitions()[3].change.to_string(),
        "stopped leading with fencing token 7: the lease was taken over by \"usurper\""
    );
}

#[tokio::test(start_paused = true)]
async fn only_the_last_changes_are_kept() {
    let store = MemoryStore::new();
    plant(&store, &record("leader-0", LEASE, 0)).await;
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let (_cancel, _running) = spawn_run(elector);
    for n in 1..=REMEMBERED_TRANSITIONS as u64 * 2 {
        plant(&store, &record(&format!("leader-{n}"), LEASE, n)).await;
        sleep(RETRY * 3).await;
    }
    let changes = changes(&handle);
    assert_eq!(changes.len(), REMEMBERED_TRANSITIONS);
    assert_eq!(changes.last(), Some(&Change::LeaderChanged { from: named("leader-31"), to: named("leader-32") }));
}

#[tokio::test(start_paused = true)]
async fn the_handle_tells_how_old_the_news_is() {
    let store = MemoryStore::new();
    plant(&store, &record("other", LEASE, 3)).await;
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let handle = elector.handle();
    assert_eq!(handle.observed(), None, "nothing was read yet");
    assert_eq!(handle.identity(), "a");
    let (_cancel, _running) = spawn_run(elector);
    sleep(RETRY * 4).await;
    let observed = handle.observed().unwrap();
    assert_eq!((observed.fencing_token, observed.lease_duration), (3.into(), LEASE));
    assert!(observed.unchanged_for >= RETRY * 4 - MOMENT, "{observed:?}");
    assert!(observed.checked_for <= RETRY * 3, "{observed:?}");
    assert_eq!(handle.last_error(), None);

    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
    let error = handle.clone().next_error().await.unwrap();
    assert_eq!((error.kind, error.operation), (StoreErrorKind::Rejected, Operation::Get));
    assert!(error.age < MOMENT, "{error:?}");
    sleep(RETRY * 4).await;
    let cut_off = handle.observed().unwrap();
    assert!(cut_off.checked_for >= RETRY * 4 - MOMENT, "{cut_off:?}");
    let error = handle.last_error().unwrap();
    assert_eq!(error.message, "cannot use lock memory:lock: injected");
    assert!(error.at > DateTime::UNIX_EPOCH + RETRY * 4);

    lock.set_outage(None);
    plant(&store, &record("other", LEASE, 4)).await;
    sleep(RETRY * 3).await;
    assert_eq!(handle.observed().unwrap().fencing_token, 4);
    assert!(handle.observed().unwrap().unchanged_for < RETRY * 3);
    assert!(handle.last_error().is_some(), "the last error stays, with its time");
}

#[tokio::test(start_paused = true)]
async fn a_leader_sees_its_own_writes() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let (_cancel, _running) = spawn_run(elector);
    sleep(RETRY * 5 / 2).await;
    let (observed, stored) = (handle.observed().unwrap(), stored(&store).await.record);
    assert_eq!((observed.fencing_token, observed.renew_time), (1.into(), stored.renew_time));
    assert!(observed.unchanged_for < RETRY && observed.checked_for == observed.unchanged_for, "{observed:?}");
}

#[test]
fn the_story_of_a_term_can_be_read_from_info_level_alone() {
    let events = logged(Level::INFO, async || {
        let store = MemoryStore::new();
        plant(&store, &record("before", LEASE, 6)).await;
        let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
        let handle = elector.handle();
        let campaign = tokio::spawn(async move { elector.campaign(pending()).await });
        sleep(LEASE + RETRY).await;
        handle.transfer_to("b").unwrap();
        sleep(MOMENT).await;
        campaign.abort();
    });
    assert_eq!(
        events,
        [
            "message=leader changed leader=\"before\"",
            "message=started leading fencing_token=7 reason=the lease of \"before\" expired",
            "message=leader changed leader=\"a\"",
            "message=stopped leading fencing_token=7 reason=the lease is handed over to \"b\"",
            "message=released the lease",
            "message=nobody leads",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_term_that_was_not_renewed_names_the_error() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let mut handle = elector.handle();
    let (_cancel, running) = spawn_run(elector);
    handle.elected().await.unwrap();
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Fatal)));
    running.await.unwrap();
    let ends = handle.transitions().into_iter().filter(|transition| transition.loss.is_some());
    let ends: Vec<_> = ends.map(|transition| (transition.change, transition.loss.unwrap())).collect();
    let [(Change::StoppedLeading { reason: TermEndReason::RenewDeadline, .. }, loss)] = &ends[..] else {
        panic!("{ends:?}")
    };
    let error = loss.error.as_ref().unwrap();
    assert_eq!((error.kind, error.operation), (StoreErrorKind::Fatal, Operation::Update));
    assert!(loss.noticed_after < MOMENT, "{loss:?}");
}

#[tokio::test(start_paused = true)]
async fn the_term_of_a_leader_that_stood_still_ends_at_its_deadline() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let run = elector.run(pending());
    tokio::pin!(run);
    while !handle.is_leader() {
        let _ = futures_util::poll!(&mut run);
        tokio::task::yield_now().await;
    }
    let left = handle.leadership().unwrap().remaining();
    // The elector is polled no more, as if the process had been stopped.
    tokio::time::advance(left + LEASE * 2).await;
    run.await.unwrap();
    let transitions = handle.transitions();
    let at = |wanted: fn(&Change) -> bool| transitions.iter().find(|transition| wanted(&transition.change)).unwrap();
    let began = at(|change| matches!(change, Change::StartedLeading { .. })).at;
    let ended = at(|change| matches!(change, Change::StoppedLeading { .. }));
    let lasted = (ended.at - began).to_std().unwrap();
    assert!(lasted.abs_diff(left) < MOMENT * 2, "{lasted:?} of {left:?}");
    let loss = ended.loss.as_ref().unwrap();
    assert!(loss.noticed_after.abs_diff(LEASE * 2) < MOMENT * 2 && loss.error.is_none(), "{loss:?}");
}
