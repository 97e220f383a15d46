//! Terms of the locks of a session.

use leaderelection::clock::TokioClock;
use leaderelection::sessions::{LeadAllError, LockNameError};
use leaderelection::{ElectionError, Elector, LeaderCallbacks, MemoryStore, Session, StoreErrorKind};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::support::{Faulty, Journal, LEASE, RETRY, logged};

fn session(store: &MemoryStore, identity: &str) -> Session {
    Session::builder(store.clone(), "fleet", identity).clock(TokioClock::new()).build().unwrap()
}

fn run(session: &Session) -> (CancellationToken, JoinHandle<()>) {
    let (session, cancel) = (session.clone(), CancellationToken::new());
    let token = cancel.clone();
    (cancel, tokio::spawn(async move { session.run(token.cancelled_owned()).await.unwrap() }))
}

#[tokio::test(start_paused = true)]
async fn a_term_of_a_session_ends_when_it_is_dropped_and_frees_its_lock_alone() {
    let (store, journal, never) = (MemoryStore::new(), Journal::default(), CancellationToken::new());
    let (ours, theirs) = (session(&store, "a"), session(&store, "b"));
    let (_, _) = (run(&ours), run(&theirs));
    let (one, two) = (ours.elector("1", journal.stops()).unwrap(), ours.elector("2", LeaderCallbacks::new()).unwrap());
    let first = one.next_term(never.clone().cancelled_owned()).await.unwrap().expect("nobody cancels");
    let second = two.next_term(never.clone().cancelled_owned()).await.unwrap().expect("nobody cancels");
    let other = theirs.elector("1", LeaderCallbacks::new()).unwrap();
    assert!(timeout(LEASE * 4, other.next_term(never.clone().cancelled_owned())).await.is_err(), "the lock is led");
    assert!(first.is_valid() && one.handle().is_leader());
    let view = first.clone();
    drop(first);
    assert!(!view.is_valid() && !one.handle().is_leader(), "leadership is over when the drop returns");
    let taken = timeout(LEASE * 4, other.next_term(never.clone().cancelled_owned()))
        .await
        .expect("the lock was released")
        .unwrap();
    assert_eq!(taken.expect("nobody cancels").fencing_token(), u64::from(view.fencing_token()) + 1);
    assert!(second.is_valid(), "the other lock is led on");
    assert_eq!(journal.entries(), ["stop"]);
    second.release().await;
}

#[tokio::test(start_paused = true)]
async fn a_term_that_is_over_before_its_caller_asks_for_it_is_handed_to_nobody() {
    let (store, never) = (Faulty::default(), CancellationToken::new());
    let session = Session::builder(store.clone(), "fleet", "a").clock(TokioClock::new()).build().unwrap();
    let (_, _) = (run(&session), ());
    let elector = session.elector("1", LeaderCallbacks::new()).unwrap();
    // A candidacy that begins before its session runs would wait for that.
    tokio::task::yield_now().await;
    let mut next = Box::pin(elector.next_term(never.clone().cancelled_owned()));
    assert!(futures_util::poll!(&mut next).is_pending());
    while !elector.handle().is_leader() {
        sleep(RETRY).await;
    }
    store.begin_outage(StoreErrorKind::Ambiguous);
    sleep(LEASE).await;
    store.recover();
    let term = timeout(LEASE * 4, next).await.expect("competes again").unwrap().expect("nobody cancels");
    assert!(term.is_valid() && term.fencing_token() > 1.into());
    // The next session begins without this work, and leads no lock beside it.
    store.begin_outage(StoreErrorKind::Ambiguous);
    sleep(LEASE * 2).await;
    store.recover();
    let held = elector.next_term(never.clone().cancelled_owned());
    assert!(timeout(LEASE * 4, held).await.is_err(), "one work at a time");
    drop(term);
    let next =
        timeout(LEASE * 4, elector.next_term(never.clone().cancelled_owned())).await.expect("competes again").unwrap();
    assert!(next.is_some_and(|term| term.is_valid()));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_waits_for_the_terms_that_are_held() {
    let (store, never) = (MemoryStore::new(), CancellationToken::new());
    let session = session(&store, "a");
    let (cancel, mut running) = run(&session);
    let elector = session.elector("1", LeaderCallbacks::new()).unwrap();
    let term = elector.next_term(never.clone().cancelled_owned()).await.unwrap().expect("nobody cancels");
    cancel.cancel();
    term.lost().await;
    assert!(timeout(RETRY, &mut running).await.is_err(), "the work goes on");
    term.release().await;
    timeout(RETRY, running).await.expect("nothing is left to wait for").unwrap();
}

#[tokio::test(start_paused = true)]
async fn all_locks_are_led_by_one_call_and_free_after_it() {
    let store = MemoryStore::new();
    let (all, journal, cancel) = (session(&store, "a"), Journal::default(), CancellationToken::new());
    let leading = tokio::spawn({
        let (all, journal, cancel) = (all.clone(), journal.clone(), cancel.clone());
        async move { all.lead_all(["x", "y", "z"], |_| journal.callbacks(), cancel.cancelled_owned()).await }
    });
    let begun = || journal.entries().iter().filter(|entry| entry.starts_with("start")).count();
    while begun() < 3 {
        sleep(RETRY).await;
    }
    let taken = all.lead_all(["w", "x"], |_| LeaderCallbacks::new(), cancel.clone().cancelled_owned()).await;
    assert_eq!(taken, Err(LeadAllError::LockName(LockNameError::Taken { name: "x".to_owned() })));
    let other = all.lead_all(["w"], |_| LeaderCallbacks::new(), std::future::pending());
    let refused = timeout(RETRY, other).await.expect("a second run of the session is refused at once");
    assert_eq!(refused, Err(LeadAllError::Election(ElectionError::AlreadyRunning)));
    assert!(all.elector("w", LeaderCallbacks::new()).is_ok(), "nobody leads it");
    cancel.cancel();
    assert_eq!(timeout(RETRY, leading).await.expect("ends").unwrap(), Ok(()));
    assert_eq!(journal.entries().iter().filter(|entry| *entry == "stop").count(), 3);
    assert!(all.elector("x", LeaderCallbacks::new()).is_ok(), "the names are free");
}

#[test]
fn an_elector_whose_session_nobody_runs_says_so_once() {
    let warnings = logged(Level::WARN, async || {
        let session = session(&MemoryStore::new(), "a");
        let electors: Vec<_> =
            (0..3).map(|n| session.elector(n.to_string(), LeaderCallbacks::new()).unwrap()).collect();
        let never = CancellationToken::new();
        let waits = futures_util::future::join_all(
            electors.iter().map(|elector| elector.next_term(never.clone().cancelled_owned())),
        );
        assert!(timeout(LEASE * 3, waits).await.is_err());
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("nobody polls Session::run"), "{warnings:?}");
}
