//! Peers that say something false, or that have gone.

use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use leaderelection::implement::{ConditionalStore, Precondition};
use metrics_util::debugging::DebuggingRecorder;
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::fake::{Answer, Fake};
use crate::support::{Counters, DELAY, KEY, LEASE, Node, RETRY, SECRET, Store, plain, plant, serving, url};

/// The longest delay of a takeover, and some more for a busy machine. No message can be confirmed here, so that reads are put
/// off by two retry periods at most, and not by the background interval of 30 s.
const BOUND: Duration = LEASE.saturating_add(DELAY);

#[tokio::test]
async fn a_leader_that_is_cut_off_from_its_store_holds_no_takeover_back() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let b = Node::listening(&store, "b", plain().build().unwrap());
    counters.reach("heard", &["b"], 4).await;
    a.shorten_lease().await;
    a.store.cut_off(true);
    let cut_off = Instant::now();
    b.leads().await;
    let took = cut_off.elapsed();
    assert!(took < BOUND, "{took:?}");
    assert!(!a.handle.is_leader());
    let answer = ask(&url(&a.peers), "").await;
    assert!(answer.starts_with("HTTP/1.1 409"), "its endpoint is alive: {answer}");
}

/// A leader of a copy of the store renews there, and tells of every renewal. The true store shows none of them.
#[tokio::test]
async fn words_that_the_store_does_not_confirm_hold_no_takeover_back() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let elsewhere = Store::default();
    let a = Node::start(&elsewhere, "a");
    a.leads().await;
    let store = Store::default();
    let mut record = elsewhere.record().await;
    record.lease_duration = LEASE * 2;
    store.put(KEY, record.to_json().into(), &Precondition::Absent).await.unwrap();
    let start = Instant::now();
    let b = Node::listening(&store, "b", plain().build().unwrap());
    counters.reach("heard", &["b"], 3).await;
    b.leads().await;
    let took = start.elapsed();
    assert!(took >= LEASE * 2 && took < BOUND, "{took:?}");
    assert!(a.handle.is_leader(), "it leads its own store");
    assert!(counters.get("heard", &["b"]) > 3);
}

/// The store has confirmed the leader's messages, and then the leader's writes go to a copy of the store. This is the
/// longest delay that messages can cause: a background interval until the read that starts the lease of the last write,
/// and the longer of another interval and the lease.
#[tokio::test]
async fn unconfirmed_messages_delay_a_takeover_to_the_bound_of_rule_16() {
    let interval = LEASE * 2;
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let a = Node::start_for(&store, "a", interval);
    a.leads().await;
    let peers = plain().build().unwrap();
    let b = Node::start_changed(&store, "b", peers, None, LEASE, |config| config.background_interval(interval));
    // Five messages without a read: the store has confirmed them, so that reads are put off by the whole interval.
    let (mut reads, mut saved) = (b.store.reads(), 0);
    while saved < 5 {
        counters.reach("heard", &["b"], counters.get("heard", &["b"]) + 1).await;
        saved = if reads == b.store.reads() { saved + 1 } else { 0 };
        reads = b.store.reads();
    }
    a.store.lead_elsewhere().await;
    let last_write = Instant::now();
    let before = counters.get("heard", &["b"]);
    b.leads().await;
    let took = last_write.elapsed();
    // A third interval would be a longer delay than a busy machine's.
    assert!(took < interval * 3, "{took:?}");
    assert!(a.handle.is_leader() && counters.get("heard", &["b"]) > before + 5, "it leads the copy, and says so");
}

#[tokio::test]
async fn a_stream_that_was_recorded_is_refused() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    // Another follower's stream, as somebody on the way sees it.
    let recorded = listen(&url(&a.peers), "0123456789abcdef", 3).await;
    assert!(recorded.windows(4).any(|bytes| bytes == b"\"mac"));
    let fake = Fake::start(Answer::Bytes(recorded)).await;
    let mut record = store.record().await;
    record.lease_duration = LEASE;
    let body = String::from_utf8(record.to_json()).unwrap().replace(&url(&a.peers), &fake.url());
    a.kill();
    let found = store.get(KEY).await.unwrap().unwrap();
    store.put(KEY, body.into(), &Precondition::Matches(found.version)).await.unwrap();
    let start = Instant::now();
    let b = Node::listening(&store, "b", plain().build().unwrap());
    counters.reach("refused", &["b", "replayed"], 1).await;
    b.leads().await;
    assert_eq!(counters.get("heard", &["b"]), 0);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    fake.got();
}

#[tokio::test]
async fn an_old_address_that_another_lock_or_another_term_uses_now_says_nothing() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let elsewhere = Store::default();
    let successor = Node::start(&elsewhere, "successor");
    successor.leads().await;
    let store = Store::default();
    plant(&store, &url(&successor.peers), LEASE).await;
    let b = Node::listening(&store, "b", plain().build().unwrap());
    counters.reach("refused", &["b", "other_term"], 1).await;
    b.leads().await;

    let other = serving();
    let store = Store::default();
    plant(&store, &url(&other), LEASE).await;
    let c = Node::listening(&store, "c", plain().build().unwrap());
    counters.reach("refused", &["c", "unknown_lock"], 1).await;
    c.leads().await;
    assert_eq!(counters.get("heard", &["b"]) + counters.get("heard", &["c"]), 0);
}

#[tokio::test]
async fn a_reader_that_reads_nothing_delays_nobody() {
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let mut slow = TcpStream::connect(a.peers.listens_at().unwrap()).await.unwrap();
    slow.write_all(request("", "text/event-stream").as_bytes()).await.unwrap();
    let start = Instant::now();
    for _ in 0..15 {
        store.renewed().await;
    }
    assert!(a.handle.is_leader() && start.elapsed() < RETRY * 15 + DELAY, "{:?}", start.elapsed());
    // What was told is there to be read, up to the newest.
    let mut first = [0; 12];
    slow.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
}

/// A question of a candidate who knows the key.
pub(crate) fn request(query: &str, accept: &str) -> String {
    let code = code(query);
    format!(
        "GET /health/leadership{query} HTTP/1.1\r\nhost: peer\r\naccept: {accept}\r\nleaderelection-code: {code}\r\n\r\n"
    )
}

/// The code of a question, as documented.
fn code(query: &str) -> String {
    let value = |name: &str| {
        let mut pairs = query.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(found, _)| *found == name).map_or("", |(_, value)| value);
        value.replace("%2F", "/").replace("%20", " ")
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    for field in ["leaderelection-peers/1", "question", &value("lock"), &value("nonce")] {
        mac.update(&(field.len() as u64).to_be_bytes());
        mac.update(field.as_bytes());
    }
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The answer to one question, up to its end or a pause.
pub(crate) async fn ask(url: &str, query: &str) -> String {
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = request(query, "*/*").replace("host:", "connection: close\r\nhost:");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The bytes of a stream with so many events.
pub(crate) async fn listen(url: &str, nonce: &str, events: usize) -> Vec<u8> {
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = request(&format!("?nonce={nonce}"), "text/event-stream");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    while Bytes::copy_from_slice(&bytes).windows(5).filter(|part| part == b"data:").count() < events {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "{}", String::from_utf8_lossy(&bytes));
    }
    bytes
}
