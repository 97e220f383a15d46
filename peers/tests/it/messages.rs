//! Followers that get messages from a true leader.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leaderelection::Timings;
use leaderelection_sequenced::{MemoryCreateOnlyStore, SequencedStore};
use metrics_util::debugging::DebuggingRecorder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::support::{Counters, DELAY, LEASE, LONG_LEASE, Node, RETRY, Store, eventually, plain, serving, until};

#[tokio::test]
async fn followers_with_messages_leave_the_store_alone() {
    leave_the_store_alone(Store::default()).await;
}

#[tokio::test]
async fn followers_of_a_sequenced_lock_get_messages() {
    leave_the_store_alone(Store::of(Arc::new(SequencedStore::new(MemoryCreateOnlyStore::new())))).await;
}

async fn leave_the_store_alone(store: Store) {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let a = Node::start(&store, "a");
    a.leads().await;
    let followers = [Node::start(&store, "b"), Node::start(&store, "c")];
    for follower in &followers {
        let name = follower.handle.identity().to_owned();
        // The first messages are not confirmed by a read yet.
        counters.reach("heard", &[&name], 4).await;
        eventually(async || {
            until("the reads are put off", || {
                follower.handle.observed().is_some_and(|lease| lease.checked_for > RETRY * 3)
            })
            .await;
            let (reads, before) = (follower.store.reads(), follower.attached.status());
            counters.reach("heard", &[&name], before.messages + 20).await;
            let (reads, peer) = (follower.store.reads() - reads, follower.attached.status());
            assert_eq!(counters.get("fallbacks", &[&name]), peer.fallbacks);
            if reads > 1 || peer.fallbacks > before.fallbacks {
                return Err(format!("{reads} reads during 20 renewals: {peer:?}"));
            }
            assert!(peer.connected && peer.messages > 20 && peer.last_refusal.is_none(), "{peer:?}");
            Ok(())
        })
        .await;
        let status = follower.handle.status();
        assert_eq!(status.leader.as_deref(), Some("a"), "{status:?}");
    }
    assert!(a.handle.is_leader());
}

#[tokio::test]
async fn a_graceful_stop_hands_over_at_once() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let mut leader = Node::start(&store, "n0");
    leader.leads().await;
    for round in 1..=5 {
        let name = format!("n{round}");
        let next = Node::start(&store, &name);
        counters.reach("heard", &[&name], 4).await;
        until("the reads are put off", || next.handle.observed().is_some_and(|lease| lease.checked_for > RETRY * 3))
            .await;
        let reads = next.store.reads();
        let start = Instant::now();
        let stopped = tokio::spawn(leader.stop());
        next.leads().await;
        // Far less than the lease, and without a poll before.
        assert!(start.elapsed() < LONG_LEASE / 2, "{:?}", start.elapsed());
        assert!(next.store.reads() - reads <= 2, "{} reads", next.store.reads() - reads);
        stopped.await.unwrap();
        leader = next;
    }
}

#[tokio::test]
async fn a_leader_that_dies_is_replaced_when_its_lease_expires() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let b = Node::listening(&store, "b", plain().build().unwrap());
    counters.reach("heard", &["b"], 4).await;
    a.shorten_lease().await;
    let before_the_last_write = Instant::now();
    store.renewed().await;
    a.kill();
    counters.reach("fallbacks", &["b"], 1).await;
    b.leads().await;
    let took = before_the_last_write.elapsed();
    assert!(took >= LEASE && took < LEASE + DELAY, "{took:?}");
}

#[tokio::test]
async fn a_follower_without_the_store_neither_leads_nor_gives_up() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    // The leader may not lose a term that the follower cannot read about.
    let lease = LEASE * 3;
    let a = Node::start_for(&store, "a", lease);
    a.leads().await;
    let b = Node::listening(&store, "b", plain().build().unwrap());
    counters.reach("heard", &["b"], 4).await;
    b.store.cut_off(true);
    let received = counters.get("heard", &["b"]);
    let start = Instant::now();
    while start.elapsed() < lease + RETRY * 10 {
        assert!(!b.handle.is_leader());
        counters.reach("heard", &["b"], counters.get("heard", &["b"]) + 1).await;
    }
    assert!(counters.get("heard", &["b"]) > received + 10);
    b.store.cut_off(false);
    let released = Instant::now();
    a.stop().await;
    b.leads().await;
    assert!(released.elapsed() < lease * 3);
}

#[tokio::test]
async fn messages_come_again_when_a_server_comes_back() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let peers = serving();
    let at = peers.listens_at().unwrap();
    let url = format!("http://{at}/health/leadership");
    let a = Node::start_with(&store, "a", plain().build().unwrap(), Some(&url), LONG_LEASE);
    a.leads().await;
    let b = Node::listening(&store, "b", plain().build().unwrap());
    // The lock is not attached there.
    counters.reach("refused", &["b", "unknown_lock"], 3).await;
    drop(peers);
    counters.reach("refused", &["b", "unreachable"], 1).await;
    assert_eq!(b.handle.leader().as_deref(), Some("a"), "the follower goes on by the store");
    let reads = b.store.reads();
    until("it polls", || b.store.reads() > reads + 2).await;
}

#[tokio::test]
async fn messages_of_a_slower_leader_come_without_a_pause() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let b = Node::listening(&store, "b", plain().build().unwrap());
    counters.reach("heard", &["b"], 3).await;
    // Each pause of the leader is five times the follower's own retry period from now on.
    a.handle.reconfigure(Timings::new(LONG_LEASE, LONG_LEASE / 2, RETRY * 5).unwrap()).unwrap();
    while store.record().await.leader_retry_period() != Some(RETRY * 5) {
        tokio::time::sleep(RETRY / 10).await;
    }
    // The first such pause may be too long for what the follower knows by then.
    counters.reach("heard", &["b"], counters.get("heard", &["b"]) + 2).await;
    eventually(async || {
        let before = b.attached.status();
        counters.reach("heard", &["b"], before.messages + 3).await;
        let after = b.attached.status();
        let is_steady =
            (after.fallbacks, after.refused, &after.last_refusal) == (before.fallbacks, before.refused, &None);
        is_steady.then_some(()).ok_or(after)
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_ends_its_streams_is_called_less_and_less_often() {
    let store = Store::default();
    let peers = serving();
    let leader = peers.listens_at().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/health/leadership", listener.local_addr().unwrap());
    let calls = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((follower, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(cut_after_three_words(follower, leader));
        }
    });
    let a = Node::start_with(&store, "a", peers, Some(&url), LONG_LEASE);
    a.leads().await;
    let _b = Node::listening(&store, "b", plain().build().unwrap());
    until("it calls again", || calls.load(Ordering::SeqCst) == 2).await;
    for _ in 0..40 {
        store.renewed().await;
    }
    // Two at once, then after 0.1 s, 1 s and 2 s. Each stream lasts for two renewals, so that 40 renewals have room for 20.
    let calls = calls.load(Ordering::SeqCst);
    assert!(calls < 10, "{calls} calls during 40 renewals");
}

/// Passes a question on, and three messages of its answer.
async fn cut_after_three_words(mut follower: TcpStream, leader: SocketAddr) -> std::io::Result<()> {
    let mut leader = TcpStream::connect(leader).await?;
    let (mut question, mut answer) = (Vec::new(), Vec::new());
    while !question.ends_with(b"\r\n\r\n") {
        follower.read_buf(&mut question).await?;
    }
    leader.write_all(&question).await?;
    while answer.windows(5).filter(|part| part == b"data:").count() < 3 {
        let passed = answer.len();
        leader.read_buf(&mut answer).await?;
        follower.write_all(&answer[passed..]).await?;
    }
    Ok(())
}
