//! Members of a fleet that get messages from each other's sessions over sockets.

use std::time::Duration;

use leaderelection::{Elector, LeaderCallbacks, LeaderHandle, Session, SessionElector};
use leaderelection_peers::{AttachedSession, Peers};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{DEADLINE, DELAY, LEASE, LONG_LEASE, RETRY, Store, eventually, plain, serving, until, url};

const LOCKS: usize = 20;

/// The timings of a session.
#[derive(Clone, Copy)]
struct Pace {
    lease: Duration,
    retry: Duration,
}

const STEADY: Pace = Pace { lease: LONG_LEASE, retry: RETRY };
/// A member that has to read is much slower than one that gets messages, even on a busy machine.
const SLOW: Pace = Pace { lease: LONG_LEASE, retry: Duration::from_secs(1) };
/// The session of a member that is killed.
const MORTAL: Pace = Pace { lease: LEASE, retry: RETRY };

/// A process that competes for some locks.
struct Member {
    store: Store,
    session: Session,
    handles: Vec<LeaderHandle>,
    attached: AttachedSession,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    peers: Peers,
}

impl Member {
    /// Starts a process that answers others at this address, if it has one.
    fn start(store: &Store, identity: &str, peers: Peers, address: Option<String>, pace: Pace) -> Self {
        let store = store.another_way();
        let mut session = Session::builder(store.clone(), "fleet", identity)
            .lease_duration(pace.lease)
            .renew_deadline(pace.lease - (LEASE - DEADLINE))
            .retry_period(pace.retry)
            // The default makes a fleet wait 30 s.
            .scan_interval(LEASE * 2);
        if let Some(address) = address {
            session = session.advertise(address);
        }
        let session = session.build().unwrap();
        let attached = peers.attach_session(&session).unwrap();
        let stop = CancellationToken::new();
        let callbacks = || LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
        let electors = (0..LOCKS).map(|lock| session.elector(lock.to_string(), callbacks()).unwrap());
        let electors: Vec<SessionElector> = electors.collect();
        let handles = electors.iter().map(Elector::handle).collect();
        let campaign = |elector: SessionElector| {
            let token = stop.clone();
            tokio::spawn(async move { elector.campaign(token.cancelled_owned()).await.unwrap() })
        };
        let mut tasks: Vec<_> = electors.into_iter().map(campaign).collect();
        let (running, token) = (session.clone(), stop.clone());
        tasks.push(tokio::spawn(async move { running.run(token.cancelled_owned()).await.unwrap() }));
        Self { store, session, handles, attached, stop, tasks, peers }
    }

    fn serving(store: &Store, identity: &str, pace: Pace) -> Self {
        let peers = serving();
        let address = url(&peers);
        Self::start(store, identity, peers, Some(address), pace)
    }

    fn leads(&self) -> usize {
        self.handles.iter().filter(|handle| handle.is_leader()).count()
    }

    async fn stop(self) {
        self.stop.cancel();
        for task in self.tasks {
            task.await.unwrap();
        }
        self.peers.finish(Duration::from_secs(1)).await;
    }

    async fn kill(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        // The sockets of a process that died are closed by its system.
        drop(self.attached);
        self.peers.finish(Duration::ZERO).await;
    }
}

/// Three members that send each other messages, of which the first leads all locks.
async fn fleet(store: &Store, paces: [Pace; 3]) -> [Member; 3] {
    let first = Member::serving(store, "a", paces[0]);
    until("the first leads", || first.leads() == LOCKS).await;
    let members = [first, Member::serving(store, "b", paces[1]), Member::serving(store, "c", paces[2])];
    for member in &members {
        until("it gets messages from the others", || {
            let status = member.attached.status();
            status.connected && status.messages > 8
        })
        .await;
    }
    members
}

/// Waits until the member has read next to nothing during six renewals of each of the others.
async fn rests(member: &Member) {
    eventually(async || {
        let (before, received) = (member.store.reads(), member.attached.status().messages);
        until("the others have renewed", || member.attached.status().messages >= received + 12).await;
        let (reads, status) = (member.store.reads() - before, member.attached.status());
        (reads <= 1).then_some(()).ok_or(format!("{reads} reads during 6 renewals of each: {status:?}"))
    })
    .await;
    // The status shows the messages, too.
    until("its leader is shown", || member.handles[0].leader().as_deref() == Some("a")).await;
}

/// Asserts that messages report the locks that are given up. Without messages, a member sees most of it with the next renewal,
/// one retry period later. A machine that stands still makes a few slow all the same.
fn assert_are_quick(mut took: Vec<Duration>) {
    took.sort();
    assert!(took[took.len() / 2] < SLOW.retry / 2, "{took:?}");
}

#[tokio::test]
async fn idle_members_leave_the_store_alone() {
    let store = Store::default();
    let members = fleet(&store, [SLOW; 3]).await;
    let [first, second, third] = &members;
    tokio::join!(rests(first), rests(second), rests(third));
    assert_eq!(first.leads(), LOCKS);
}

#[tokio::test]
async fn a_lock_that_is_given_up_is_led_again_at_once() {
    let store = Store::default();
    let members = fleet(&store, [SLOW; 3]).await;
    let mut took = Vec::new();
    for lock in 0..LOCKS {
        let began = Instant::now();
        members[0].handles[lock].step_down();
        until("another leads it", || members[1..].iter().any(|member| member.handles[lock].is_leader())).await;
        took.push(began.elapsed());
    }
    assert_are_quick(took);
}

#[tokio::test]
async fn a_slot_that_is_given_up_is_held_again_at_once() {
    let store = Store::default();
    let members = fleet(&store, [SLOW; 3]).await;
    let names: Vec<_> = (0..8).map(|number| format!("worker-{number}")).collect();
    let hold = |member: &Member, name: &str| {
        let (slots, token) = (member.session.slots(name, 1).unwrap(), member.stop.clone());
        let handle = slots.handle(0).unwrap();
        tokio::spawn(async move {
            slots.run_while_leading(token.cancelled_owned(), |slot| async move { slot.leadership().lost().await }).await
        });
        handle
    };
    let held: Vec<_> = names.iter().map(|name| hold(&members[0], name)).collect();
    until("the first holds them", || held.iter().all(LeaderHandle::is_leader)).await;
    let waiting: Vec<_> = names.iter().map(|name| [1, 2].map(|other| hold(&members[other], name))).collect();
    let mut took = Vec::new();
    for (first, others) in held.iter().zip(&waiting) {
        let name = first.leader();
        until("the others know the holder", || others.iter().all(|other| other.leader() == name)).await;
        let began = Instant::now();
        first.step_down();
        until("another holds it", || others.iter().any(LeaderHandle::is_leader)).await;
        took.push(began.elapsed());
    }
    assert_are_quick(took);
}

#[tokio::test]
async fn the_end_of_a_member_is_reported_and_its_death_is_noticed() {
    let store = Store::default();
    let [first, second, third] = fleet(&store, [STEADY, MORTAL, STEADY]).await;
    let began = Instant::now();
    let stopped = tokio::spawn(first.stop());
    until("the others lead", || second.leads() + third.leads() == LOCKS).await;
    assert!(began.elapsed() < LONG_LEASE / 2, "{:?}", began.elapsed());
    stopped.await.unwrap();
    let began = Instant::now();
    second.kill().await;
    until("the last leads", || third.leads() == LOCKS).await;
    let took = began.elapsed();
    assert!(took < LEASE + DELAY, "{took:?}");
}

#[tokio::test]
async fn a_member_that_sends_no_messages_is_read() {
    let store = Store::default();
    let first = Member::start(&store, "a", plain().build().unwrap(), None, MORTAL);
    until("the first leads", || first.leads() == LOCKS).await;
    let second = Member::serving(&store, "b", STEADY);
    until("it reads", || second.handles[0].leader().is_some()).await;
    let reads = second.store.reads();
    until("it reads the session", || second.store.reads() >= reads + 5).await;
    assert!(!second.attached.status().connected);
    first.kill().await;
    until("the second leads", || second.leads() == LOCKS).await;
}

#[tokio::test]
async fn a_session_that_is_not_attached_any_more_is_told_to_nobody() {
    let store = Store::default();
    let first = Member::serving(&store, "a", STEADY);
    until("the first leads", || first.leads() == LOCKS).await;
    let second = Member::serving(&store, "b", STEADY);
    until("the second gets its messages", || second.attached.status().connected).await;
    drop(first.attached);
    let third = Member::serving(&store, "c", STEADY);
    until("the third asks in vain", || third.attached.status().refused > 0).await;
}
