//! Something that is no peer at the address in the record: refused by name, counted, and no delay of a takeover.

use std::time::Duration;

use leaderelection_peers::{Peers, SharedKey};
use metrics_util::debugging::DebuggingRecorder;
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::fake::{Answer, Fake};
use crate::support::{Counters, DELAY, KEY, Node, Store, eventually, plain, plant, serving, url};

const LEASE: Duration = Duration::from_secs(4);

/// A follower of a dead leader with this address refuses the address for this reason, and takes over as if there were no
/// address.
pub(crate) async fn refuses(address: &str, peers: Peers, reason: &str) {
    eventually(async || refuses_in_time(address, peers.clone(), reason).await).await;
}

/// Returns the reason if the machine stood still until the lease had expired.
async fn refuses_in_time<'a>(address: &str, peers: Peers, reason: &'a str) -> Result<(), &'a str> {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    plant(&store, address, LEASE).await;
    let start = Instant::now();
    let b = Node::start_with(&store, "b", peers, None, LEASE);
    counters.reach("refused", &["b", reason], 1).await;
    if b.handle.is_leader() {
        b.kill();
        return Err(reason);
    }
    let status = b.attached.status();
    assert_eq!(status.last_refusal.map(|refusal| refusal.name()), Some(reason));
    assert!(!status.connected && status.refused >= 1 && status.messages == 0);
    assert_eq!(counters.get("heard", &["b"]), 0, "{reason}");
    b.leads().await;
    let took = start.elapsed();
    assert!(took >= LEASE && took < LEASE + DELAY, "{took:?} with {reason}");
    Ok(())
}

/// The same for several addresses at a time, each on a thread of its own: counters are a thread's.
fn all_are_refused<'a>(cases: impl IntoIterator<Item = (&'a str, Peers, &'a str)>) {
    std::thread::scope(|threads| {
        for (address, peers, reason) in cases {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            threads.spawn(move || runtime.block_on(refuses(address, peers, reason)));
        }
    });
}

fn follower() -> Peers {
    plain().build().unwrap()
}

/// The head of a stream.
const STREAM: &str = "content-type: text/event-stream\r\n";

#[tokio::test]
async fn a_frozen_leader() {
    let fake = Fake::start(Answer::Nothing).await;
    refuses(&fake.url(), follower(), "timeout").await;
    assert!(fake.got().starts_with(&format!("GET /health/leadership?lock={}&nonce=", KEY.replace('/', "%2F"))));
}

#[tokio::test]
async fn a_stream_that_is_silent() {
    let fake = Fake::saying("200 OK", STREAM, ": welcome\n\n").await;
    refuses(&fake.url(), follower(), "silent").await;
    fake.got();
}

#[tokio::test]
async fn a_leader_that_was_killed_in_the_middle_of_its_stream() {
    let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{STREAM}\r\n");
    let fake = Fake::start(Answer::Cut(format!("{head}b\r\n: welcome\n\n\r\n").into_bytes())).await;
    refuses(&fake.url(), follower(), "closed").await;
}

#[tokio::test]
async fn a_stream_that_babbles_without_saying_anything() {
    let head = format!("HTTP/1.1 200 OK\r\n{STREAM}\r\n").into_bytes();
    let fake = Fake::start(Answer::Endless(head, b": x\n\n".to_vec())).await;
    refuses(&fake.url(), follower(), "silent").await;
    fake.got();
}

#[tokio::test]
async fn a_captive_portal() {
    let html = "<html>Please log in</html>";
    let head = format!("content-type: text/html\r\ncontent-length: {}\r\n", html.len());
    let fake = Fake::saying("200 OK", &head, html).await;
    refuses(&fake.url(), follower(), "not_a_peer").await;
    fake.got();
}

#[tokio::test]
async fn a_stream_of_another_kind() {
    let fake = Fake::saying("200 OK", STREAM, "data: {\"weather\":\"fine\"}\n\n").await;
    refuses(&fake.url(), follower(), "not_a_peer").await;
    fake.got();
}

#[tokio::test]
async fn a_body_without_end() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n{STREAM}\r\ndata: ").into_bytes();
    let fake = Fake::start(Answer::Endless(head, vec![b'x'; 64 * 1024])).await;
    refuses(&fake.url(), follower(), "too_large").await;
    fake.got();
}

#[tokio::test]
async fn a_redirect() {
    let target = Fake::start(Answer::Nothing).await;
    let location = format!("location: {}\r\ncontent-length: 0\r\n", target.url());
    let fake = Fake::saying("307 Temporary Redirect", &location, "").await;
    refuses(&fake.url(), follower(), "redirect").await;
    fake.got();
    assert_eq!(target.got(), "", "nobody went there");
}

#[tokio::test]
async fn an_error_of_another_service() {
    let fake = Fake::saying("401 Unauthorized", "www-authenticate: Basic\r\ncontent-length: 0\r\n", "").await;
    refuses(&fake.url(), follower(), "status").await;
    fake.got();
}

#[tokio::test]
async fn an_address_that_nobody_listens_at() {
    // A socket that does not listen keeps its port from all others.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    refuses(&format!("http://{}/", socket.local_addr().unwrap()), follower(), "unreachable").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_outside_the_allow_list() {
    let fake = Fake::start(Answer::Nothing).await;
    let allowed = ["10.0.0.0/8", "0.0.0.0/0", "localhost"];
    let peers = || {
        let peers = Peers::builder().key(crate::support::key()).plain_http(true);
        allowed.iter().fold(peers, |peers, allowed| peers.allow(allowed.parse().unwrap())).build().unwrap()
    };
    let by_name = format!("http://localhost:{}/", fake.address.port());
    all_are_refused([
        (fake.url().as_str(), peers(), "special_address"),
        (&by_name, peers(), "special_address"),
        ("http://192.0.2.1:80/", follower(), "not_allowed"),
        ("http://169.254.169.254/latest/meta-data/", follower(), "special_address"),
    ]);
    assert_eq!(fake.got(), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_that_is_none() {
    let fake = Fake::start(Answer::Nothing).await;
    let with = |secret| fake.url().replace("http://", &format!("http://{secret}@"));
    let (with_user, with_password) = (with("user"), with(":password"));
    let unknown = format!("http://{}.invalid/", "x".repeat(64));
    let cases = [
        ("nonsense", "bad_address"),
        ("ftp://127.0.0.1/", "bad_address"),
        (with_user.as_str(), "bad_address"),
        (with_password.as_str(), "bad_address"),
        ("https://127.0.0.1/", "no_authority"),
        // No host name may contain so long a label, so that no name server is asked.
        (&unknown, "unresolved"),
    ];
    all_are_refused(cases.map(|(address, reason)| (address, follower(), reason)));
    assert_eq!(fake.got(), "");
}

#[tokio::test]
async fn plain_http_unless_it_is_allowed() {
    let fake = Fake::start(Answer::Nothing).await;
    let peers = Peers::builder().key(crate::support::key()).allow("127.0.0.0/8".parse().unwrap()).build().unwrap();
    refuses(&fake.url(), peers, "plain_http").await;
    assert_eq!(fake.got(), "");
}

#[tokio::test]
async fn a_peer_with_another_key() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let other = SharedKey::new("x".repeat(32)).unwrap();
    let b = Node::listening(&store, "b", plain().key(other).build().unwrap());
    counters.reach("refused", &["b", "wrong_key"], 2).await;
    assert_eq!((counters.get("heard", &["b"]), b.handle.leader().as_deref()), (0, Some("a")));
}

#[tokio::test]
async fn a_peer_that_does_not_lead() {
    let idle = serving();
    let waiting = Store::default();
    // It follows a leader of another store, under the same name.
    plant(&waiting, "http://192.0.2.1/", Duration::from_secs(3600)).await;
    let _idle = Node::start_with(&waiting, "idle", idle.clone(), None, LEASE);
    refuses(&url(&idle), follower(), "not_leading").await;
}
