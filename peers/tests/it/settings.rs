//! Settings that cannot work are refused by name.

use leaderelection_peers::{Peers, PeersBuilder, SharedKey};

use crate::support::{key, plain};

fn refusal(builder: PeersBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

#[tokio::test]
async fn wrong_settings_are_told_by_name() {
    let address = "127.0.0.1:0".parse().unwrap();
    assert!(refusal(Peers::builder()).starts_with("key is missing"));
    assert!(refusal(Peers::builder().ca("/nowhere")).starts_with("key is missing"));
    assert!(refusal(Peers::builder().certificate("/a", "/b")).starts_with("ca is missing"));
    assert!(refusal(Peers::builder().plain_http(true)).starts_with("key is missing"));
    assert!(refusal(Peers::builder().key(key()).listen(address)).starts_with("certificate is missing"));
    assert!(refusal(Peers::builder().key(key()).ca("/nowhere")).starts_with("ca in /nowhere"));
    for path in ["", "health", "/{x}", "/a b", "/a?b"] {
        assert!(refusal(plain().path(path)).starts_with(&format!("path ({path:?})")));
    }
    let taken = plain().listen(address).build().unwrap();
    let again = refusal(plain().listen(taken.listens_at().unwrap()));
    assert!(again.starts_with(&format!("listen ({}) failed", taken.listens_at().unwrap())), "{again}");
    let error = SharedKey::read("/nowhere/key").unwrap_err();
    assert!(error.field() == "key" && error.to_string().contains("/nowhere/key"), "{error}");
}

#[tokio::test]
async fn no_view_shows_the_key() {
    let peers = plain().build().unwrap();
    assert!(!format!("{peers:?} {:?}", plain()).contains("battery"));
}
