//! Everything composes: what docs/library.md says of a lock, of a session, of slots and of a sequenced store.
//!
//! The cells of its table link to the tests here, and to others.

mod sequenced;
mod slots;

use std::future::pending;
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::fence::FencedObject;
use leaderelection::implement::ConditionalStore;
use leaderelection::lock::{JobId, JobOutcome};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderHandle, MemoryStore, ObjectLock, Session, Timings,
};
use leaderelection_sequenced::{MemoryCreateOnlyStore, SequencedStore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::support::builder;

const ADDRESSES: [&str; 2] = ["https://10.0.1.1:8443/health/leadership", "https://10.0.1.1/api"];
/// Longer than anything that has to happen takes.
const BOUND: Duration = Duration::from_secs(600);

/// Waits until a handle shows what it should.
async fn shows(handle: &mut LeaderHandle, what: impl Fn(&LeaderHandle) -> bool) {
    let shown = async {
        while !what(handle) {
            handle.changed().await.unwrap();
        }
    };
    timeout(BOUND, shown).await.expect("it is shown");
}

fn is_led_by(identity: &str) -> impl Fn(&LeaderHandle) -> bool {
    move |handle| handle.leader().as_deref() == Some(identity)
}

fn assert_addresses(follower: &LeaderHandle) {
    let addresses = (follower.leader_address(), follower.client_address());
    assert_eq!((addresses.0.as_deref(), addresses.1.as_deref()), (Some(ADDRESSES[0]), Some(ADDRESSES[1])));
}

/// Lets the leader write behind a fence, hands over, and lets the next leader write. Then the first one is refused.
async fn hand_over_behind_a_fence<S: ConditionalStore>(store: S, from: &LeaderHandle, to: &mut LeaderHandle) {
    let guarded = FencedObject::<S, String>::new(store, "guarded").with_clock(TokioClock::new());
    let earlier = from.fencing_token().expect("a leader");
    guarded.write(earlier, &"first".to_owned()).await.unwrap();
    from.transfer_to(to.identity()).unwrap();
    shows(to, LeaderHandle::is_leader).await;
    let token = to.fencing_token().expect("a leader");
    assert_eq!(token, u64::from(earlier) + 1);
    assert_eq!(guarded.claim(token).await.unwrap().as_deref(), Some("first"));
    let refused = guarded.write(earlier, &"late".to_owned()).await.unwrap_err();
    assert_eq!(refused.stale().map(|stale| stale.highest), Some(token));
}

/// The features of a lock, on one store. Each call of `store` is the way of another process.
async fn lock_has_everything<S: ConditionalStore>(store: impl Fn() -> S) {
    let elector = |identity: &str| {
        let lock = ObjectLock::new(store(), "locks/x", identity);
        let config = builder(lock, ()).advertise(ADDRESSES[0]).advertise_to_clients(ADDRESSES[1]);
        DefaultLeaderElector::new(config.rank(u8::from(identity == "b")).build().unwrap())
    };
    let (a, b, c) = (elector("a"), elector("b"), elector("c"));
    let (of_a, mut of_b) = (a.handle(), b.handle());
    let stop = CancellationToken::new();
    let running = [a, b].map(|elector| elector.spawn(stop.clone().cancelled_owned()).1);
    shows(&mut of_b, is_led_by("a")).await;
    assert_addresses(&of_b);
    let seconds = Duration::from_secs;
    of_a.reconfigure(Timings::new(seconds(30), seconds(20), seconds(4)).unwrap()).unwrap();
    hand_over_behind_a_fence(store(), &of_a, &mut of_b).await;
    assert!(of_a.transitions().len() >= 3);
    stop.cancel();
    for task in running {
        timeout(BOUND, task).await.unwrap().unwrap().unwrap();
    }
    let job = "today".parse::<JobId>().unwrap();
    for _ in 0..2 {
        let done = c.run_once(pending(), &job, |_| async { Ok::<_, ()>(()) });
        timeout(BOUND, done).await.unwrap().unwrap();
    }
    timeout(BOUND, c.try_lead()).await.unwrap().unwrap().release().await;
}

/// The features of a session's lock and of slots, on one store.
async fn session_has_everything<S: ConditionalStore>(store: impl Fn() -> S) {
    let stop = CancellationToken::new();
    let session = |identity: &str| {
        let session = Session::builder(store(), "fleet", identity).clock(TokioClock::new());
        let session = session.advertise(ADDRESSES[0]).advertise_to_clients(ADDRESSES[1]).build().unwrap();
        let (runs, token) = (session.clone(), stop.clone());
        (session, tokio::spawn(async move { runs.run(token.cancelled_owned()).await.unwrap() }))
    };
    let ((a, first), (b, second)) = (session("a"), session("b"));
    let callbacks = || LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
    let (of_a, campaign) = a.elector("x", callbacks()).unwrap().spawn(stop.clone().cancelled_owned());
    let mut leads = of_a.clone();
    shows(&mut leads, LeaderHandle::is_leader).await;
    let (mut of_b, other) = b.elector("x", callbacks()).unwrap().spawn(stop.clone().cancelled_owned());
    shows(&mut of_b, is_led_by("a")).await;
    assert_addresses(&of_b);
    for refused in [of_a.reconfigure(Timings::default()), of_a.advertise_to_clients(None)] {
        assert!(refused.unwrap_err().to_string().contains("session"));
    }
    hand_over_behind_a_fence(store(), &of_a, &mut of_b).await;
    assert!(of_a.transitions().len() >= 3);
    let (single, job) = (a.elector("y", LeaderCallbacks::new()).unwrap(), "today".parse::<JobId>().unwrap());
    for expected in [JobOutcome::Done(()), JobOutcome::AlreadyDone] {
        let done = single.run_once(pending(), &job, |_| async { Ok::<_, ()>(()) });
        assert_eq!(timeout(BOUND, done).await.unwrap().unwrap(), expected);
    }
    timeout(BOUND, single.try_lead()).await.unwrap().unwrap().release().await;
    let slots = a.slots("worker", 2).unwrap();
    let slot = slots.run_while_leading(stop.clone().cancelled_owned(), |slot| async move { slot.number() });
    assert_eq!(timeout(BOUND, slot).await.unwrap().unwrap(), 0);
    stop.cancel();
    for task in [first, second] {
        timeout(BOUND, task).await.unwrap().unwrap();
    }
    for task in [campaign, other] {
        timeout(BOUND, task).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_has_everything_on_each_kind_of_store() {
    let (memory, objects) = (MemoryStore::new(), MemoryCreateOnlyStore::new());
    lock_has_everything(|| memory.clone()).await;
    lock_has_everything(|| SequencedStore::new(objects.clone())).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_of_a_session_has_everything_on_each_kind_of_store() {
    let (memory, objects) = (MemoryStore::new(), MemoryCreateOnlyStore::new());
    session_has_everything(|| memory.clone()).await;
    session_has_everything(|| SequencedStore::new(objects.clone())).await;
}
