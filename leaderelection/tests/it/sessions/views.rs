//! The views that a process has of the locks of its sessions.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::{Elector, LeaderCallbacks, Session, SessionElector, StoreErrorKind};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::single::{run, session};
use super::{BOUND, LEASE, RETRY, until};
use crate::support::{Call, DEADLINE, Fault, Faulty};

/// A session, its run, and its only elector, which campaigns.
struct Member {
    session: Session,
    elector: Arc<SessionElector>,
    running: JoinHandle<()>,
    cancel: CancellationToken,
}

fn member(store: &Faulty, identity: &str) -> Member {
    let (session, cancel) = (session(store, identity), CancellationToken::new());
    let running = run(&session, &cancel);
    let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
    let elector = Arc::new(session.elector("x", callbacks).unwrap());
    let candidate = Arc::clone(&elector);
    tokio::spawn(async move { candidate.campaign(pending()).await.unwrap() });
    Member { session, elector, running, cancel }
}

#[tokio::test(start_paused = true)]
async fn a_leader_sees_its_lease() {
    let store = Faulty::default();
    let member = member(&store, "a");
    let mut handle = member.elector.handle();
    timeout(BOUND, handle.elected()).await.unwrap().unwrap();
    for _ in 0..20 {
        sleep(RETRY * 3).await;
        let status = handle.status();
        assert_eq!((status.leader.as_deref(), status.holder.as_deref()), (Some("a"), Some("a")));
        assert!(status.is_leader() && status.remaining > DEADLINE - RETRY * 2);
        let lease = status.observed.unwrap();
        assert_eq!((lease.fencing_token, lease.lease_duration), (1.into(), LEASE));
        assert!(lease.acquire_time.is_some());
        assert!(lease.checked_for <= RETRY && lease.unchanged_for <= RETRY && !lease.has_expired(), "{lease:?}");
    }
    handle.step_down();
    until(|| handle.holder().is_none()).await;
    assert_eq!(handle.observed().unwrap().fencing_token, 1);
    assert_eq!(handle.leader(), None);
}

#[tokio::test(start_paused = true)]
async fn a_follower_names_the_leader_only_while_the_leader_is_known_to_renew() {
    let store = Faulty::default();
    let leader = member(&store, "a");
    until(|| leader.elector.handle().is_leader()).await;
    let follower = member(&store, "b");
    let handle = follower.elector.handle();
    until(|| handle.leader().as_deref() == Some("a")).await;
    for _ in 0..20 {
        sleep(RETRY * 3).await;
        assert_eq!(handle.leader().as_deref(), Some("a"));
        let lease = handle.observed().unwrap();
        assert!(lease.lease_duration == LEASE && lease.checked_for <= RETRY * 3, "{lease:?}");
    }
    // The follower cannot know whether the leader renews, and does not name it forever.
    store.begin_outage(StoreErrorKind::Ambiguous);
    sleep(LEASE + RETRY * 3).await;
    assert_eq!((handle.leader(), handle.holder().as_deref()), (None, Some("a")));
    assert!(handle.observed().unwrap().has_expired());
    store.recover();
    until(|| handle.leader().is_some()).await;
    // A follower whose session does not run learns nothing.
    let other = if handle.is_leader() { leader } else { follower };
    let handle = other.elector.handle();
    until(|| handle.leader().is_some()).await;
    other.cancel.cancel();
    timeout(BOUND, other.running).await.unwrap().unwrap();
    sleep(LEASE + RETRY * 3).await;
    assert_eq!(handle.leader(), None);
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_session_are_told_by_the_handles_of_its_locks() {
    let store = Faulty::default();
    store.fail(|_, key, _| key.contains("/sessions/").then_some(Fault::Refuse(StoreErrorKind::Fatal)));
    let member = member(&store, "a");
    let mut handle = member.elector.handle();
    let error = timeout(BOUND, handle.next_error()).await.unwrap().unwrap();
    assert_eq!((error.kind, error.message.as_str()), (StoreErrorKind::Fatal, "injected for fleet/sessions/"));
    store.recover();
    timeout(BOUND, handle.elected()).await.unwrap().unwrap();
    // The newest error counts, whether it is one of the lock or of the session.
    store.fail(|call, key, _| {
        (call == Call::Get && key.contains("/locks/")).then_some(Fault::Refuse(StoreErrorKind::Rejected))
    });
    let newest = async { while handle.next_error().await.unwrap().kind != StoreErrorKind::Rejected {} };
    timeout(BOUND, newest).await.unwrap();
    assert_eq!(handle.last_error().unwrap().kind, StoreErrorKind::Rejected);
    assert!(handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn two_sessions_of_one_identity_are_an_error_for_the_second() {
    let store = Faulty::default();
    let first = member(&store, "a");
    until(|| first.elector.handle().is_leader()).await;
    drop(store.take_calls());
    let second = member(&store, "a");
    let error = timeout(BOUND, second.elector.handle().next_error()).await.unwrap().unwrap();
    assert!(error.message.contains("an identity of its own"), "{}", error.message);
    sleep(LEASE * 4).await;
    let session = store.take_writes();
    assert!(session.iter().all(|key| *key == session[0]), "only the first session is written: {session:?}");
    assert!(first.elector.handle().is_leader() && !second.elector.handle().is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_not_polled_or_cannot_stop_its_work_is_unhealthy() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let elector = session.elector("x", LeaderCallbacks::new()).unwrap();
    let (check, handle) = (elector.health_check(RETRY), elector.handle());
    let mut running = Box::pin(session.run(pending()));
    let mut leading = Box::pin(elector.run(pending()));
    let both = async {
        tokio::select! {
            _ = &mut running => {}
            _ = &mut leading => {}
        }
    };
    assert!(timeout(LEASE * 2, both).await.is_err());
    assert!(handle.is_leader() && check.check().is_ok() && session.check_health(RETRY).is_ok());
    // Nobody polls the session.
    sleep(LEASE).await;
    assert!(!handle.is_leader() && check.check().is_ok());
    sleep(RETRY * 3).await;
    assert!(check.check().is_err());
    let error = session.check_health(RETRY).unwrap_err();
    assert!(error.to_string().contains("memory:fleet/x"), "{error}");
    drop((leading, running));
    sleep(Duration::from_secs(1)).await;
    assert!(check.check().is_ok() && session.check_health(RETRY).is_ok(), "the term is over");
}

#[tokio::test(start_paused = true)]
async fn members_that_follow_each_other_tell_of_every_change() {
    let store = Faulty::default();
    let (first, second) = (member(&store, "a"), member(&store, "b"));
    until(|| first.elector.handle().is_leader() || second.elector.handle().is_leader()).await;
    let (leader, follower) = if first.elector.handle().is_leader() { (first, second) } else { (second, first) };
    let mut changes = follower.elector.handle();
    until(|| changes.leader().is_some()).await;
    while timeout(RETRY, changes.changed()).await.is_ok() {}
    leader.elector.handle().transfer_to(changes.identity()).unwrap();
    assert!(!leader.elector.handle().is_leader());
    let leadership = timeout(RETRY * 5, changes.elected()).await.unwrap().unwrap();
    assert!(leadership.is_valid() && changes.status().is_leader());
    drop(leader.session);
}
