//! TLS on both sides: who is refused, and why.

use std::time::Duration;

use leaderelection_peers::{Peers, PeersBuilder};
use metrics_util::debugging::DebuggingRecorder;

use crate::certificates::{Authority, Files};
use crate::refused::refuses;
use crate::support::{Counters, LONG_LEASE, Node, Store, key};

fn listening(peers: PeersBuilder) -> (Peers, String) {
    let peers = peers.listen("127.0.0.1:0".parse().unwrap()).build().unwrap();
    let url = format!("https://{}/health/leadership", peers.listens_at().unwrap());
    (peers, url)
}

/// A follower gets messages from a leader over TLS.
async fn gets_messages(leader: PeersBuilder, follower: PeersBuilder) {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let store = Store::default();
    let (peers, url) = listening(leader);
    let a = Node::start_with(&store, "a", peers, Some(&url), LONG_LEASE);
    a.leads().await;
    let b = Node::listening(&store, "b", follower.build().unwrap());
    counters.reach("heard", &["b"], 3).await;
    assert_eq!(b.handle.leader_address(), Some(url));
}

#[tokio::test]
async fn peers_of_one_authority_get_messages_from_each_other() {
    let files = Files::new();
    let authority = Authority::new(&files, "ours");
    gets_messages(authority.mutual("a", "127.0.0.1"), authority.mutual("b", "127.0.0.1")).await;
    let named = authority.mutual("c", "leader.internal");
    gets_messages(named, authority.mutual("d", "x.internal").peer_name("leader.internal")).await;
    gets_messages(authority.mutual("e", "127.0.0.1").key(key()), authority.mutual("f", "127.0.0.1").key(key())).await;
}

/// One side has certificates of an authority that the other does not know, until its files are replaced while it runs.
async fn gets_messages_after_a_renewal(of_the_leader: bool) {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let files = Files::new();
    let (old, new) = (Authority::new(&files, "old"), Authority::new(&files, "new"));
    let late = |name: &str| old.mutual(name, "127.0.0.1").reload_interval(Duration::from_millis(20));
    let good = |name: &str| new.mutual(name, "127.0.0.1");
    let (leader, follower) = if of_the_leader { (late("a"), good("b")) } else { (good("a"), late("b")) };
    let store = Store::default();
    let (peers, url) = listening(leader);
    let a = Node::start_with(&store, "a", peers, Some(&url), LONG_LEASE);
    a.leads().await;
    let _b = Node::listening(&store, "b", follower.build().unwrap());
    counters.reach("refused", &["b", "unknown_issuer"], 1).await;
    assert_eq!(counters.get("heard", &["b"]), 0);
    new.replace(&old);
    new.sign(if of_the_leader { "a" } else { "b" }, "127.0.0.1", false);
    counters.reach("heard", &["b"], 1).await;
}

/// The certificates of a leader and of its follower, which only calls, are in the metrics, and so is a renewed one.
#[tokio::test]
async fn the_end_of_a_certificate_is_a_metric_of_each_lock() {
    let recorder = DebuggingRecorder::new();
    let counters = Counters::of(&recorder);
    let files = Files::new();
    let authority = Authority::new(&files, "ours");
    let store = Store::default();
    let peers = authority.mutual("a", "127.0.0.1").reload_interval(Duration::from_millis(20)).build().unwrap();
    let _a = Node::listening(&store, "a", peers);
    counters.until_expiry(&["a", "peers"], 67_090_118_400.0).await;
    authority.sign("a", "127.0.0.1", true);
    counters.until_expiry(&["a", "peers"], 1_609_459_200.0).await;
}

#[tokio::test]
async fn a_leader_shows_its_renewed_certificate_without_a_restart() {
    gets_messages_after_a_renewal(true).await;
}

#[tokio::test]
async fn a_follower_uses_its_renewed_certificates_without_a_restart() {
    gets_messages_after_a_renewal(false).await;
}

#[tokio::test]
async fn a_certificate_for_another_name() {
    let files = Files::new();
    let authority = Authority::new(&files, "ours");
    let (_peers, url) = listening(authority.mutual("a", "other.internal"));
    refuses(&url, authority.mutual("b", "127.0.0.1").build().unwrap(), "wrong_name").await;
}

#[tokio::test]
async fn a_certificate_for_another_name_than_the_expected_one() {
    let files = Files::new();
    let authority = Authority::new(&files, "ours");
    let (_peers, url) = listening(authority.mutual("c", "127.0.0.1"));
    let follower = authority.mutual("d", "127.0.0.1").peer_name("leader.internal");
    refuses(&url, follower.build().unwrap(), "wrong_name").await;
}

#[tokio::test]
async fn a_certificate_that_has_expired() {
    let files = Files::new();
    let authority = Authority::new(&files, "ours");
    let (certificate, key) = authority.sign("a", "127.0.0.1", true);
    let (_peers, url) = listening(Peers::builder().ca(&authority.path).certificate(certificate, key));
    refuses(&url, authority.mutual("b", "127.0.0.1").build().unwrap(), "expired").await;
}

#[tokio::test]
async fn a_certificate_of_another_authority() {
    let files = Files::new();
    let (ours, theirs) = (Authority::new(&files, "ours"), Authority::new(&files, "theirs"));
    let (_peers, url) = listening(theirs.mutual("a", "127.0.0.1"));
    refuses(&url, ours.mutual("b", "127.0.0.1").build().unwrap(), "unknown_issuer").await;
}

#[tokio::test]
async fn a_missing_certificate_of_the_follower() {
    let files = Files::new();
    let ours = Authority::new(&files, "ours");
    let (_peers, url) = listening(ours.mutual("a", "127.0.0.1"));
    let without = Peers::builder().key(key()).ca(&ours.path).allow("127.0.0.0/8".parse().unwrap());
    refuses(&url, without.build().unwrap(), "client_certificate").await;
}

#[tokio::test]
async fn a_wrong_certificate_of_the_follower() {
    let files = Files::new();
    let (ours, theirs) = (Authority::new(&files, "ours"), Authority::new(&files, "theirs"));
    let (_peers, url) = listening(ours.mutual("a", "127.0.0.1"));
    let (certificate, of_theirs) = theirs.sign("b", "127.0.0.1", false);
    let wrong = Peers::builder().ca(&ours.path).certificate(certificate, of_theirs);
    refuses(&url, wrong.allow("127.0.0.0/8".parse().unwrap()).build().unwrap(), "client_certificate").await;
}

#[tokio::test]
async fn something_else_than_tls() {
    let files = Files::new();
    let authority = Authority::new(&files, "ours");
    let fake = crate::fake::Fake::start(crate::fake::Answer::Nothing).await;
    let url = fake.url().replace("http://", "https://");
    refuses(&url, authority.mutual("b", "127.0.0.1").build().unwrap(), "timeout").await;
    fake.got();
}
