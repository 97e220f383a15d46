//! Stores that refuse what they have to accept, or go back in time: no session can help it, and each says so.

use std::time::Duration;

use leaderelection::handle::Operation;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, Precondition};
use leaderelection::{Elector, LeaderCallbacks, LeaderHandle, StoreErrorKind};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::single::{run, session};
use super::{LEASE, RETRY, until};
use crate::support::{Call, Fault, Faulty, logged};

/// A member that campaigns for the lock `a` until the end of the test, and its handle.
fn campaign(store: &Faulty) -> LeaderHandle {
    let (session, cancel) = (session(store, "a"), CancellationToken::new());
    drop(run(&session, &cancel));
    let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
    let (handle, _task) = session.elector("a", callbacks).unwrap().spawn(cancel.cancelled_owned());
    handle
}

/// Refuses the writes below this folder, although their condition holds.
fn refuse(store: &Faulty, folder: &'static str) {
    store.fail(move |call, key, _| {
        (call == Call::Put && key.contains(folder)).then_some(Fault::Refuse(StoreErrorKind::Conflict))
    });
}

async fn is_told(handle: &mut LeaderHandle, operation: Operation) {
    let error = timeout(LEASE * 2, handle.next_error()).await.unwrap().unwrap();
    assert_eq!((error.kind, error.operation), (StoreErrorKind::Fatal, operation), "{}", error.message);
    assert!(error.message.contains("the store rejected the condition of 3 writes in a row"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_creation_is_refused_in_vain_is_told() {
    let store = Faulty::default();
    refuse(&store, "/sessions/");
    is_told(&mut campaign(&store), Operation::Create).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_renewals_are_refused_in_vain_is_told_before_it_ends() {
    let store = Faulty::default();
    let mut handle = campaign(&store);
    until(|| handle.is_leader()).await;
    refuse(&store, "/sessions/");
    is_told(&mut handle, Operation::Update).await;
    assert!(handle.is_leader(), "until the deadline of the session");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_cannot_be_taken_is_told() {
    let store = Faulty::default();
    refuse(&store, "/locks/");
    is_told(&mut campaign(&store), Operation::Create).await;
}

#[test]
fn a_session_logs_it_as_well() {
    let errors = logged(Level::ERROR, async || {
        let store = Faulty::default();
        refuse(&store, "/locks/");
        is_told(&mut campaign(&store), Operation::Create).await;
    });
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].contains("rejected the condition of 3 writes in a row"), "{errors:#?}");
}

/// The log of a member whose store shows the object at the first key of `folder` as it was before `changes`.
fn errors_after_going_back(folder: &str, changes: impl AsyncFn(&LeaderHandle)) -> Vec<String> {
    logged(Level::ERROR, async || {
        let store = Faulty::default();
        let handle = campaign(&store);
        until(|| handle.is_leader()).await;
        let key = store.inner.list(folder).await.unwrap().remove(0).key;
        let backup = store.inner.get(&key).await.unwrap().unwrap();
        changes(&handle).await;
        let now = store.inner.get(&key).await.unwrap().unwrap();
        assert_ne!(now.body, backup.body);
        store.inner.put(&key, backup.body, &Precondition::Matches(now.version)).await.unwrap();
        // A member scans all locks every 30 s.
        sleep(Duration::from_secs(40)).await;
    })
}

#[test]
fn a_session_that_goes_back_in_time_is_told() {
    let errors = errors_after_going_back("fleet/sessions/", async |_| sleep(RETRY * 3).await);
    assert!(errors.iter().any(|error| error.contains("the store went back in time")), "{errors:#?}");
}

#[test]
fn a_lock_that_goes_back_in_time_is_told() {
    let errors = errors_after_going_back("fleet/locks/", async |handle| {
        assert!(handle.step_down());
        // Nobody else is there, so the member takes the lock again when it has stood back for a lease.
        sleep(LEASE * 2).await;
        until(|| handle.is_leader()).await;
    });
    assert!(errors.iter().any(|error| error.contains("the store went back in time")), "{errors:#?}");
}
