//! An operator's view of sessions and of the locks that they hold.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use leaderelection::admin::{AdminError, Target};
use leaderelection::clock::TokioClock;
use leaderelection::handle::observe;
use leaderelection::implement::{ConditionalStore as _, Precondition};
use leaderelection::{
    Elector, LeaderCallbacks, LeaderElectionRecord, MemoryStore, RunOutcome, Session, SessionElector, StoreErrorKind,
    TermEndReason,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

const LEASE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);
const SCAN_INTERVAL: Duration = Duration::from_secs(30);
/// Longer than anything that has to happen takes.
const BOUND: Duration = Duration::from_secs(600);

/// More locks than are read one by one, so that they are listed.
const MANY: usize = 20;

/// A process that leads locks through a session.
struct Process {
    electors: Vec<Arc<SessionElector>>,
    shutdown: CancellationToken,
    session: JoinHandle<()>,
}

impl Process {
    /// Starts a process that competes for each of the locks.
    fn start(store: &MemoryStore, identity: &str, locks: usize) -> Self {
        let session = Session::builder(store.clone(), "fleet", identity).clock(TokioClock::new()).build().unwrap();
        let shutdown = CancellationToken::new();
        let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
        let electors =
            (0..locks).map(|lock| Arc::new(session.elector(lock.to_string(), callbacks.clone()).unwrap())).collect();
        let token = shutdown.clone();
        let session = tokio::spawn(async move { session.run(token.cancelled_owned()).await.unwrap() });
        Self { electors, shutdown, session }
    }

    /// Competes for one term of every lock.
    fn compete(&self) -> Vec<JoinHandle<RunOutcome>> {
        let run = |elector: &Arc<SessionElector>| {
            let (elector, token) = (Arc::clone(elector), self.shutdown.clone());
            tokio::spawn(async move { elector.run(token.cancelled_owned()).await.unwrap() })
        };
        self.electors.iter().map(run).collect()
    }

    async fn elected(&self, lock: usize) {
        timeout(BOUND, self.electors[lock].handle().elected()).await.unwrap().unwrap();
    }

    async fn leads(&self) {
        for lock in 0..self.electors.len() {
            self.elected(lock).await;
        }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        timeout(BOUND, self.session).await.unwrap().unwrap();
    }
}

async fn outcome(run: JoinHandle<RunOutcome>) -> RunOutcome {
    timeout(BOUND, run).await.unwrap().unwrap()
}

fn lock(store: &MemoryStore, name: usize) -> Target {
    Target::lock_of_sessions(store.clone(), "fleet/", &name.to_string())
}

async fn record(target: &Target) -> LeaderElectionRecord {
    target.get().await.unwrap().expect("an object").record
}

#[tokio::test(start_paused = true)]
async fn the_session_of_a_lock_is_followed_to_its_end() {
    let store = MemoryStore::new();
    let target = lock(&store, 0);
    let observed = target.read().await.unwrap();
    assert!(observed.found.is_none() && observed.session.is_none() && observed.holder().is_none());
    let process = Process::start(&store, "a", 1);
    let _terms = process.compete();
    process.leads().await;

    let observed = target.read().await.unwrap();
    let session = observed.session.as_ref().unwrap();
    let held = &session.found.as_ref().unwrap().record;
    assert_eq!((observed.holder(), held.holder_identity.as_str(), held.lease_duration), (Some("a"), "a", LEASE));
    assert_eq!(observed.found.as_ref().unwrap().record.session.as_ref(), Some(&session.id));
    assert!(held.renew_time.is_some() && !session.has_ended());
    assert_eq!(session.target.session_id(held), Some(session.id.as_str()));
    assert_eq!(target.session_id(&observed.found.unwrap().record), None, "a lock is no session");

    let (session, id) = (session.target.clone(), session.id.clone());
    process.stop().await;
    let observed = target.read().await.unwrap();
    assert!(
        observed.holder().is_none() && observed.session.as_ref().is_some_and(|session| session.has_ended()),
        "{observed:?}"
    );
    assert_eq!(session.session_id(&record(&session).await), Some(id.as_str()), "an ended session is a session");
    let version = session.get().await.unwrap().unwrap().version;
    store.delete(session.key(), Some(&version)).await.unwrap();
    let observed = target.read().await.unwrap();
    assert!(observed.holder().is_none() && observed.session.is_some_and(|session| session.found.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_slash_in_the_name_of_a_lock_does_not_hide_its_session() {
    let store = MemoryStore::new();
    let session = Session::builder(store.clone(), "locks/fleet", "a").clock(TokioClock::new()).build().unwrap();
    let elector = session.elector("locks/x", LeaderCallbacks::new()).unwrap();
    let shutdown = CancellationToken::new();
    let (token, stop) = (shutdown.clone(), shutdown.clone());
    let work = elector.run_while_leading(token.cancelled_owned(), move |_| async move {
        let observed = Target::new(store, "locks/fleet/locks/locks/x").read().await;
        stop.cancel();
        observed
    });
    let (ended, observed) = tokio::join!(session.run(shutdown.cancelled_owned()), work);
    ended.unwrap();
    let session = observed.unwrap().unwrap().session.unwrap();
    assert!(!session.has_ended() && session.target.key().starts_with("locks/fleet/sessions/"), "{session:?}");
}

#[tokio::test(start_paused = true)]
async fn a_follower_knows_from_the_session_whether_the_leader_is_alive() {
    let store = MemoryStore::new();
    let process = Process::start(&store, "a", 1);
    let _terms = process.compete();
    process.leads().await;
    let mut follower = observe(lock(&store, 0), Duration::from_secs(4)).on_clock(TokioClock::new());
    let first = follower.next().await.unwrap();
    assert!(!first.lease().was_seen_to_change && !first.lease().has_expired());
    assert!(first.record.expires_at().is_none(), "the lock has no lease of its own");
    let second = follower.next().await.unwrap();
    assert!(second.lease().was_seen_to_change && !second.record.was_seen_to_change, "the session was renewed");

    process.session.abort();
    let killed_at = Instant::now();
    let expired = loop {
        let followed = follower.next().await.unwrap();
        if followed.lease().has_expired() {
            break followed;
        }
    };
    let took = killed_at.elapsed();
    assert!(took >= LEASE - RETRY && took <= LEASE + Duration::from_secs(4), "{took:?}");
    assert_eq!(expired.target.holder(), Some("a"), "it has expired, and nobody has ended it");
}

#[tokio::test(start_paused = true)]
async fn an_owner_notices_a_released_lock_within_one_scan_interval() {
    for locks in [2, MANY] {
        let store = MemoryStore::new();
        let process = Process::start(&store, "a", locks);
        let mut terms = process.compete();
        process.leads().await;
        let target = lock(&store, 1);
        let seen = record(&target).await;
        let intervention = target.force_release(&seen).await.unwrap();
        assert_eq!((intervention.after.session.as_ref(), intervention.after.leader_transitions), (None, 1));
        let released_at = Instant::now();
        let reason = outcome(terms.remove(1)).await.reason().cloned();
        assert_eq!(reason, Some(TermEndReason::Emptied), "of {locks} locks");
        assert!(released_at.elapsed() <= SCAN_INTERVAL, "{:?} with {locks} locks", released_at.elapsed());
        assert!(process.electors[0].handle().is_leader(), "the other locks stay");

        let again = process.electors[1].run(process.shutdown.clone().cancelled_owned());
        let ((), again) = tokio::join!(
            async {
                process.elected(1).await;
                process.shutdown.cancel();
            },
            again
        );
        assert_eq!(again.unwrap().fencing_token(), Some(2.into()), "the token goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_hands_over_within_one_scan_interval() {
    for locks in [2, MANY] {
        let store = MemoryStore::new();
        let (first, second) = (Process::start(&store, "a", locks), Process::start(&store, "b", locks));
        let mut terms = first.compete();
        first.leads().await;
        let _others = second.compete();
        let target = lock(&store, 1);
        let seen = record(&target).await;
        let asked_at = Instant::now();
        let intervention = target.request_transfer(&seen, "b").await.unwrap();
        assert_eq!((&intervention.after.session, intervention.after.holder_identity.as_str()), (&seen.session, "a"));
        let reason = outcome(terms.remove(1)).await.reason().cloned();
        assert_eq!(reason, Some(TermEndReason::Transferred { to: "b".to_owned() }), "of {locks} locks");
        assert!(asked_at.elapsed() <= SCAN_INTERVAL, "{:?} with {locks} locks", asked_at.elapsed());
        let handed_over_at = Instant::now();
        second.elected(1).await;
        // A renewal tells of the release, a poll sees the renewal, and the rank waits.
        assert!(handed_over_at.elapsed() <= RETRY * 5, "{:?}", handed_over_at.elapsed());
        assert_eq!(record(&target).await.preferred_holder, None);
        first.stop().await;
        second.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_ended_loses_all_its_locks_at_its_next_renewal() {
    let store = MemoryStore::new();
    let first = Process::start(&store, "a", MANY);
    let terms = first.compete();
    first.leads().await;
    let second = Process::start(&store, "b", MANY);
    let _others = second.compete();
    let session = lock(&store, 0).read().await.unwrap().session.unwrap();
    let held = session.target.locks_of_session().await.unwrap();
    assert_eq!(held.len(), MANY);
    assert!(held.iter().any(|lock| lock.key() == "fleet/locks/7"), "{held:?}");

    let seen = session.found.unwrap().record;
    let ended_at = Instant::now();
    let intervention = session.target.force_release(&seen).await.unwrap();
    assert!(intervention.after.is_released());
    for outcome in join_all(terms.into_iter().map(outcome)).await {
        assert_eq!(outcome.reason(), Some(&TermEndReason::Emptied));
    }
    assert!(ended_at.elapsed() <= RETRY, "{:?}", ended_at.elapsed());
    second.leads().await;
    assert!(ended_at.elapsed() <= RETRY * 5, "{:?}", ended_at.elapsed());
    let after = session.target.locks_of_session().await.unwrap();
    assert!(after.is_empty(), "{after:?}");
    first.stop().await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_hits_only_the_term_that_was_seen() {
    let store = MemoryStore::new();
    let (first, second) = (Process::start(&store, "a", 1), Process::start(&store, "b", 1));
    let _terms = first.compete();
    first.leads().await;
    let target = lock(&store, 0);
    let seen = record(&target).await;
    let _others = second.compete();
    first.stop().await;
    second.leads().await;
    let before = record(&target).await;
    for error in
        [target.force_release(&seen).await.unwrap_err(), target.request_transfer(&seen, "c").await.unwrap_err()]
    {
        assert!(matches!(error, AdminError::MovedOn { .. }), "{error}");
    }
    assert_eq!(record(&target).await, before);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_cannot_be_handed_over() {
    let store = MemoryStore::new();
    let process = Process::start(&store, "a", 1);
    let _terms = process.compete();
    process.leads().await;
    let session = lock(&store, 0).read().await.unwrap().session.unwrap().target;
    let seen = record(&session).await;
    let error = session.request_transfer(&seen, "b").await.unwrap_err();
    assert!(error.to_string().contains("transfer the locks that it holds"), "{error}");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_lock_has_no_session() {
    let store = MemoryStore::new();
    let plain = LeaderElectionRecord::new("a", LEASE);
    for key in ["fleet/locks/0", "fleet/sessions/0"] {
        store.put(key, plain.to_json().into(), &Precondition::Absent).await.unwrap();
        let target = Target::new(store.clone(), key);
        let observed = target.read().await.unwrap();
        assert!(observed.holder() == Some("a") && observed.session.is_none());
        assert_eq!(target.session_id(&plain), None);
    }
    store.put("fleet/locks/photo", "not a record".into(), &Precondition::Absent).await.unwrap();
    let session = Target::new(store.clone(), "fleet/sessions/0");
    assert!(session.locks_of_session().await.unwrap().is_empty());
    let error = Target::new(store, "fleet/locks/photo").read().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
}
