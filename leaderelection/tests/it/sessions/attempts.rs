//! One attempt to lead a lock of a session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leaderelection::{Elector, LeaderCallbacks, Session, SessionElector, StoreErrorKind, TryLeadError};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::single::{record, run, session};
use super::{BOUND, LEASE, RETRY, until};
use crate::support::{Call, Fault, Faulty};

/// A session that runs until this value is dropped, as the process `identity`.
struct Process {
    session: Session,
    running: JoinHandle<()>,
    _stop: tokio_util::sync::DropGuard,
}

impl Process {
    fn start(store: &Faulty, identity: &str) -> Self {
        let (session, stop) = (session(store, identity), CancellationToken::new());
        Self { running: run(&session, &stop), session, _stop: stop.drop_guard() }
    }

    fn elector(&self, lock: &str) -> SessionElector {
        self.session.elector(lock, LeaderCallbacks::new()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_lock_is_led_at_once_whoever_is_first_in_order() {
    let store = Faulty::default();
    let (a, b) = (Process::start(&store, "a"), Process::start(&store, "b"));
    // The sessions are open, and know each other.
    for process in [&a, &b] {
        let term = process.elector("warm-up").try_lead().await.unwrap();
        sleep(LEASE).await;
        term.release().await;
    }
    for lock in 0..8 {
        let lock = format!("lock-{lock}");
        for (token, process) in (1..).zip([&a, &b, &a]) {
            let (elector, began) = (process.elector(&lock), Instant::now());
            let _ = store.take_calls();
            let term = elector.try_lead().await.unwrap();
            assert_eq!((term.fencing_token(), began.elapsed()), (token.into(), Duration::ZERO), "{lock}");
            let calls = store.take_calls().into_iter().filter(|(_, key)| key.ends_with(&lock));
            assert_eq!(calls.map(|(call, _)| call).collect::<Vec<_>>(), [Call::Get, Call::Put]);
            term.release().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_names_the_leader_and_waits_for_nothing() {
    let store = Faulty::default();
    let (a, b) = (Process::start(&store, "a"), Process::start(&store, "b"));
    let (first, second) = (a.elector("lock"), b.elector("lock"));
    let term = first.try_lead().await.unwrap();
    sleep(LEASE * 3).await;
    let began = Instant::now();
    assert_eq!(second.try_lead().await.unwrap_err(), TryLeadError::Led { leader: "a".to_owned() });
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(term.is_valid());
    // The process is gone, so its session has to be ended by others, which takes a lease.
    a.running.abort();
    let mut attempts = 0;
    let term = loop {
        match timeout(RETRY, second.try_lead()).await.expect("an attempt does not wait") {
            Ok(term) => break term,
            Err(TryLeadError::Led { leader }) => assert_eq!(leader, "a"),
            Err(error) => assert_eq!(error, TryLeadError::NotWon),
        }
        attempts += 1;
        assert!(attempts < 30);
        sleep(RETRY).await;
    };
    assert_eq!(term.fencing_token(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_tells_what_the_store_said() {
    let store = Faulty::default();
    let a = Process::start(&store, "a");
    let elector = a.elector("lock");
    elector.try_lead().await.unwrap().release().await;
    store.fail(|call, key, _| {
        (call == Call::Get && key.contains("/locks/")).then_some(Fault::Refuse(StoreErrorKind::Fatal))
    });
    let Err(TryLeadError::Failed(error)) = elector.try_lead().await else { panic!("the store refused the read") };
    assert_eq!(error.kind, StoreErrorKind::Fatal);
    store.recover();
    assert_eq!(elector.try_lead().await.unwrap().fencing_token(), 2, "the next attempt tells of no earlier failure");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_if_the_session_cannot_be_opened() {
    let store = Faulty::default();
    store.begin_outage(StoreErrorKind::Rejected);
    let a = Process::start(&store, "a");
    let attempt = timeout(LEASE, a.elector("lock").try_lead()).await.expect("an attempt does not wait");
    let Err(TryLeadError::Failed(error)) = attempt else { panic!("the store refuses everything") };
    assert_eq!(error.kind, StoreErrorKind::Rejected);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_write_is_not_answered_learns_its_outcome() {
    for kind in [StoreErrorKind::Ambiguous, StoreErrorKind::Conflict] {
        let is_first = AtomicBool::new(true);
        let store = Faulty::new(move |call, key, _| {
            let fails = call == Call::Put && key.contains("/locks/") && is_first.swap(false, Ordering::Relaxed);
            fails.then_some(Fault::ApplyThen(kind))
        });
        let a = Process::start(&store, "a");
        let _term = timeout(BOUND, a.elector("lock").try_lead()).await.unwrap();
        let found = record(&store, "fleet/locks/lock").await.unwrap();
        assert_eq!(found.holder_identity, "a", "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_lets_others_go_first_and_says_so() {
    let store = Faulty::default();
    let (a, b) = (Process::start(&store, "a"), Process::start(&store, "b"));
    let (first, second) = (a.elector("lock"), b.elector("lock"));
    let term = first.try_lead().await.unwrap();
    sleep(LEASE).await;
    first.handle().transfer_to("c").unwrap();
    drop(term);
    until(|| first.handle().holder().is_none()).await;
    let attempt = timeout(RETRY, second.try_lead()).await.expect("an attempt does not wait");
    assert_eq!(attempt.unwrap_err(), TryLeadError::NotWon);
}
