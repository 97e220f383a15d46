//! The peers of a sidecar, on its page and in its metrics.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::process::eventually;
use super::sidecar::{Sidecar, lock_in, serve};

/// A sidecar with peers. The loopback network has an address for each candidate of each test process.
async fn start(directory: &Path, number: u8, identity: &str) -> Sidecar {
    let [low, high, ..] = std::process::id().to_le_bytes();
    let address = format!("127.{high}.{low}.{number}:8444");
    let key = directory.join(format!("{identity}.key"));
    let secret = if identity == "stranger" {
        "another key, which is as long as 32 bytes"
    } else {
        "0123456789abcdef0123456789abcdef"
    };
    fs::write(&key, secret).unwrap();
    let url = format!("http://{address}/health/leadership");
    let mut command = serve(&lock_in(directory), identity);
    command.args(["--drain", "0s", "--peer-allow", "127.0.0.0/8", "--peer-plain-http", "--peer-key-file"]).arg(key);
    Sidecar::spawn(command.args(["--peer-listen", &address, "--advertise", &url])).await
}

/// The number in a row of the page.
fn row(page: &str, name: &str) -> u64 {
    let (_, rest) =
        page.split_once(&format!("<th scope=\"row\">{name}</th><td>")).unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split_once('<').unwrap().0.parse().unwrap_or_else(|_| panic!("{name}: {rest}"))
}

#[tokio::test]
async fn the_page_and_the_metrics_tell_of_words_refusals_and_saved_reads() {
    let directory = tempfile::tempdir().unwrap();
    let leader = start(directory.path(), 1, "leader").await;
    leader.sees("leader").await;
    let (_, page) = leader.ask("/").await;
    assert!(page.contains("no: this candidate leads"), "{page}");

    let follower = start(directory.path(), 2, "follower").await;
    let page = eventually("the follower gets messages", async || {
        let (_, page) = follower.ask("/").await;
        (page.contains("yes, so the store is read seldom") && row(&page, "Messages received") > 2).then_some(page)
    })
    .await;
    let fallbacks = row(&page, "Times back to the store");

    let stranger = start(directory.path(), 3, "stranger").await;
    let page = eventually("the stranger is refused", async || {
        let (_, page) = stranger.ask("/").await;
        (row(&page, "Attempts that failed") > 0 && page.contains("give all candidates the same key")).then_some(page)
    })
    .await;
    assert_eq!((row(&page, "Messages received"), row(&page, "Reads saved")), (0, 0), "{page}");

    let saved = "leader_election_peer_reads_saved_total{";
    let (_, metrics) = follower.ask("/metrics").await;
    assert!(metrics.contains(saved) && metrics.contains("leader_election_peer_heard_total{"), "{metrics}");

    // A busy machine may have been silent for two retry periods before. A leader that is frozen is silent for longer.
    leader.signal(Signal::STOP);
    eventually("the follower goes back to the store", async || {
        let (_, page) = follower.ask("/").await;
        (row(&page, "Times back to the store") > fallbacks).then_some(())
    })
    .await;
    let (_, metrics) = follower.ask("/metrics").await;
    assert!(metrics.contains("leader_election_peer_fallbacks_total{"), "{metrics}");
}
