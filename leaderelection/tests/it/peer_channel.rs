//! The line to the peers: what a leader tells of its writes, and what a follower makes of its messages.

use std::time::Duration;

use futures_util::FutureExt;
use leaderelection::peers::{LeaderTerm, PeerChannel, PeerMessage};
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, MemoryStore, StoreErrorKind, Timings};
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use crate::support::{Fault, Journal, LEASE, Op, RETRY, TestLock, builder, elector, plant, record, spawn_run, stored};

fn releasing(store: &MemoryStore) -> DefaultLeaderElector {
    let config = builder(TestLock::new(store, "a"), Journal::default().callbacks()).advertise("https://a");
    DefaultLeaderElector::new(config.release_on_cancel(true).build().unwrap())
}

fn last(led: &Receiver<Option<LeaderTerm>>) -> Option<LeaderTerm> {
    led.borrow().clone()
}

/// The messages of the leader of a term about its last write.
fn message(term: &LeaderTerm) -> PeerMessage {
    PeerMessage::Committed {
        holder: term.last.record.holder_identity.clone(),
        fencing_token: term.leadership.fencing_token(),
        write_id: term.last.record.write_id.clone().unwrap(),
        number: term.last.number,
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_reports_every_write_and_then_the_release() {
    let store = MemoryStore::new();
    let leader = releasing(&store);
    let line = leader.peer_channel();
    assert_eq!(line.lock_name(), "memory:lock");
    let mut led = line.led();
    let (stop, running) = spawn_run(leader);
    for number in 1..=4 {
        led.changed().await.unwrap();
        let (term, stored) = (last(&led).unwrap(), stored(&store).await);
        assert_eq!(term.last.number, number);
        assert_eq!(term.last.version, stored.version);
        assert_eq!(term.last.record.write_id, stored.record.write_id);
        assert_eq!((term.last.record.leader_address(), term.released), (Some("https://a"), None));
        assert!(term.leadership.is_valid());
    }
    stop.cancel();
    running.await.unwrap();
    let (term, stored) = (last(&led).unwrap(), stored(&store).await);
    assert!(!term.leadership.is_valid());
    let released = term.released.unwrap();
    assert_eq!((released.version, released.number), (stored.version, 5));
    assert!(released.record.is_released() && released.record.write_id == stored.record.write_id);
    // The elector is gone, and its line with it.
    led.mark_unchanged();
    assert!(led.changed().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_of_a_term_whose_lease_was_not_released() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let leader = elector(lock.clone(), LeaderCallbacks::new());
    let led = leader.peer_channel().led();
    let campaign = tokio::spawn(async move { leader.campaign(std::future::pending()).await });
    sleep(RETRY * 3).await;
    let before = last(&led).unwrap();
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
    sleep(LEASE).await;
    assert!(last(&led).is_none() && !before.leadership.is_valid());
    lock.set_outage(None);
    let mut changes = led.clone();
    let after = changes.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert!(after.leadership.fencing_token() > before.leadership.fencing_token());
    assert_eq!(after.last.number, 1, "the writes of each term are counted by themselves");
    // A dropped elector tells nothing either.
    campaign.abort();
    sleep(RETRY).await;
    assert!(last(&led).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_follower_shows_whom_it_follows_and_where() {
    let store = MemoryStore::new();
    let leader = releasing(&store);
    let follower = elector(TestLock::new(&store, "b"), Journal::default().callbacks());
    let line = follower.peer_channel();
    let mut followed = line.followed();
    let (stop, _running) = spawn_run(leader);
    sleep(RETRY).await;
    let _following = spawn_run(follower);
    followed.changed().await.unwrap();
    let term = followed.borrow_and_update().clone().unwrap();
    assert_eq!((term.holder.as_str(), term.fencing_token, term.address.as_deref()), ("a", 1.into(), Some("https://a")));
    sleep(LEASE).await;
    assert!(!followed.has_changed().unwrap(), "a renewal changes nothing");
    stop.cancel();
    followed.changed().await.unwrap();
    assert_eq!(*followed.borrow_and_update(), None);
}

/// A follower of a leader that the store shows, with the store's reads counted.
async fn peer_feed(
    store: &MemoryStore,
) -> (Receiver<Option<LeaderTerm>>, PeerChannel, TestLock, leaderelection::LeaderHandle) {
    let (leader, lock) = (releasing(store), TestLock::new(store, "b"));
    let follower = elector(lock.clone(), LeaderCallbacks::new());
    let (led, line, handle) = (leader.peer_channel().led(), follower.peer_channel(), follower.handle());
    drop(spawn_run(leader));
    sleep(RETRY * 2).await;
    drop(spawn_run(follower));
    (led, line, lock, handle)
}

/// Carries the leader's messages to the follower for so long.
async fn carry(led: &mut Receiver<Option<LeaderTerm>>, line: &PeerChannel, time: Duration) {
    let end = tokio::time::Instant::now() + time;
    while tokio::time::timeout_at(end, led.changed()).await.is_ok() {
        if let Some(term) = led.borrow_and_update().as_ref() {
            line.deliver(message(term));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_with_messages_reads_seldom_and_shows_a_live_lease() {
    let store = MemoryStore::new();
    let (mut led, line, lock, handle) = peer_feed(&store).await;
    carry(&mut led, &line, RETRY * 5).await;
    lock.take_ops();
    let saved_before = line.saved_reads();
    for _ in 0..60 {
        carry(&mut led, &line, RETRY).await;
        let status = handle.status();
        let lease = status.observed.unwrap();
        assert!(!lease.has_expired() && lease.unchanged_for <= RETRY * 2, "{lease:?}");
        assert_eq!((status.leader.as_deref(), status.leader_address.as_deref()), (Some("a"), Some("https://a")));
    }
    let reads = lock.take_ops();
    assert!(reads.iter().all(|op| *op == Op::Get) && (4..=6).contains(&reads.len()), "{reads:?} in two minutes");
    let saved = line.saved_reads() - saved_before;
    // Without messages, the follower polls again.
    sleep(Duration::from_secs(120)).await;
    let polls = lock.take_ops().len();
    assert!(polls > 25);
    let all = saved as usize + reads.len();
    assert!(all.abs_diff(polls) <= 8, "{saved} saved, {} reads; without messages {polls}", reads.len());
    let saved = line.saved_reads();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(line.saved_reads(), saved, "a follower that polls saves nothing");
}

#[tokio::test(start_paused = true)]
async fn a_lease_kept_alive_by_messages_expires_once_contradicted() {
    let store = MemoryStore::new();
    plant(&store, &record("a", LEASE, 7)).await;
    let lock = TestLock::new(&store, "b");
    let follower = elector(lock.clone(), LeaderCallbacks::new());
    let (line, handle) = (follower.peer_channel(), follower.handle());
    let _running = spawn_run(follower);
    sleep(RETRY / 2).await;
    let mut number = 1;
    let mut longest = Duration::ZERO;
    while !handle.is_leader() {
        number += 1;
        line.deliver(PeerMessage::Committed {
            holder: "a".to_owned(),
            fencing_token: 7.into(),
            write_id: number.to_string(),
            number,
        });
        sleep(RETRY / 2).await;
        longest += RETRY / 2;
        let leader = handle.leader();
        assert!(longest <= LEASE + RETRY * 3 || leader.as_deref() != Some("a"), "{leader:?} after {longest:?}");
    }
    assert!(longest <= LEASE + RETRY * 5, "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn the_word_of_an_end_is_no_renewal() {
    let store = MemoryStore::new();
    plant(&store, &record("a", LEASE, 7)).await;
    let lock = TestLock::new(&store, "b");
    let follower = elector(lock.clone(), LeaderCallbacks::new());
    let (line, handle) = (follower.peer_channel(), follower.handle());
    let _running = spawn_run(follower);
    sleep(LEASE / 2).await;
    lock.take_ops();
    line.deliver(PeerMessage::Ended { holder: "a".to_owned(), fencing_token: 7.into() });
    sleep(Duration::from_millis(1)).await;
    assert_eq!(lock.take_ops(), [Op::Get], "the follower reads at once");
    assert!(handle.observed().unwrap().unchanged_for >= LEASE / 2);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_opened_late_shows_the_term_that_goes_on() {
    let store = MemoryStore::new();
    let leader = releasing(&store);
    let cancel = tokio_util::sync::CancellationToken::new();
    let run = leader.run(cancel.clone().cancelled_owned());
    tokio::pin!(run);
    tokio::select! {
        _ = &mut run => unreachable!("leads until it is cancelled"),
        () = sleep(RETRY * 3) => {}
    }
    let mut led = leader.peer_channel().led();
    assert!(led.changed().now_or_never().is_none());
    tokio::select! {
        _ = &mut run => unreachable!("leads until it is cancelled"),
        changed = led.changed() => changed.unwrap(),
    }
    assert_eq!(last(&led).map(|term| term.last.number), Some(1));
    assert!(leader.peer_channel().led().borrow().is_some(), "every end shows the same");
}

#[tokio::test(start_paused = true)]
async fn new_timings_reach_the_peer_channel_and_the_record() {
    let store = MemoryStore::new();
    let leader = releasing(&store);
    let (line, handle) = (leader.peer_channel(), leader.handle());
    let mut led = line.led();
    let _running = spawn_run(leader);
    led.changed().await.unwrap();
    assert_eq!(last(&led).unwrap().last.record.leader_retry_period(), Some(RETRY));
    let timings = line.timings();
    let longer = Timings::new(timings.lease_duration() * 2, timings.renew_deadline() * 2, RETRY * 2).unwrap();
    handle.reconfigure(longer).unwrap();
    assert_eq!(line.timings(), longer);
    sleep(RETRY * 5 / 2).await;
    assert_eq!(last(&led).unwrap().last.record.leader_retry_period(), Some(RETRY * 2));
}
