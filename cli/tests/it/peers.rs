//! `--advertise` and `--peer-…`: followers that get messages from their leader.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::process::Signal;

use crate::support::{LONG, Place, Running, end, leaderelect, run};

/// An address of the loopback network for one server, with a port that the system chooses. Nobody else takes the port while
/// the server is gone.
pub(crate) fn own_address() -> String {
    static NUMBER: AtomicU8 = AtomicU8::new(100);
    let [low, high, ..] = std::process::id().to_le_bytes();
    format!("127.{high}.{low}.{}:0", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A candidate's options, but for those of its certificates.
pub(crate) struct Peer {
    address: String,
    key: PathBuf,
}

impl Peer {
    /// The loopback network has an address for each candidate of each test process, so that none has to look for a port.
    pub(crate) fn new(place: &Place, number: u8) -> Self {
        let [low, high, ..] = std::process::id().to_le_bytes();
        let key = place.path("peers.key");
        fs::write(&key, "0123456789abcdef0123456789abcdef\n").unwrap();
        Self { address: format!("127.{high}.{low}.{number}:8443"), key }
    }

    fn options(&self) -> Vec<String> {
        let key = self.key.to_str().unwrap();
        let mut options = [&LONG[..], &["--campaign", "--peer-allow", "127.0.0.0/8", "--peer-plain-http"]].concat();
        let url = format!("http://{}/health/leadership", self.address);
        options.extend(["--peer-key-file", key, "--peer-listen", &self.address, "--advertise", &url]);
        options.into_iter().map(str::to_owned).collect()
    }

    fn start(&self, lock: &str, identity: &str) -> Running {
        Running::of(self.command(lock, identity))
    }

    pub(crate) fn command(&self, lock: &str, identity: &str) -> Command {
        let options = self.options();
        let mut options: Vec<_> = options.iter().map(String::as_str).collect();
        options.extend(["--identity", identity]);
        leaderelect([&["-v"], &run(lock, &options, &["sh", "-c", "echo begun; exec sleep 1000"])[..]].concat())
    }
}

#[test]
fn a_follower_gets_messages_and_the_end_of_the_term() {
    let place = Place::new();
    let (first, second) = (Peer::new(&place, 1), Peer::new(&place, 2));
    let lock = place.lock("a");
    let mut leader = first.start(&lock, "first");
    leader.wait_for("begun");
    let mut follower = second.start(&lock, "second");
    let note = follower.wait_for_note("connected to the leader; reading the store less often");
    assert!(note.contains(&first.address), "{note}");
    let status = end(&["status", &lock]);
    assert!(status.stdout.contains(&format!("http://{}/health/leadership", first.address)), "{status:?}");
    leader.signal(Signal::TERM);
    follower.wait_for("begun");
    assert_eq!(place.record("a").leader_transitions, 2);
    leader.wait();
    follower.signal(Signal::TERM);
    follower.wait();
}

#[test]
fn a_wrong_key_is_named_and_the_follower_reads_the_store() {
    let place = Place::new();
    let (first, mut second) = (Peer::new(&place, 3), Peer::new(&place, 4));
    second.key = place.path("other.key");
    fs::write(&second.key, "another key, which is as long as 32 bytes").unwrap();
    let lock = place.lock("a");
    let mut leader = first.start(&lock, "first");
    leader.wait_for("begun");
    let mut follower = second.start(&lock, "second");
    // The first refusal may be that the leader was silent for too long.
    let mut refused = || follower.wait_for_note("no messages from the leader; reading the store");
    while !refused().contains("give all candidates the same key") {}
    leader.signal(Signal::TERM);
    follower.wait_for("begun");
    leader.wait();
    follower.signal(Signal::TERM);
    let ended = follower.end();
    assert!(!ended.stderr.contains("another key"), "{ended:?}");
}

#[test]
fn a_wrong_option_is_named() {
    let place = Place::new();
    let lock = place.lock("a");
    let short = place.path("short.key");
    fs::write(&short, "secret").unwrap();
    let (short, none) = (short.to_str().unwrap(), place.path("none"));
    for (options, problem) in [
        (&["--advertise", "ftp://10.0.0.1"][..], "--advertise"),
        (&["--peer-allow", "10.0.0.0/33"], "10.0.0.0/33"),
        (&["--peer-listen", "127.0.0.1:0"], "--peer-key-file is missing"),
        (&["--peer-key-file", short], "has 6 bytes"),
        (&["--peer-key-file", none.to_str().unwrap()], "cannot be read"),
        (&["--peer-cert", "cert.pem"], "--peer-cert-key"),
        (&["--peer-plain-http"], "is missing"),
        (&["--slots", "2", "--advertise", "https://10.0.0.1"], "--slots cannot be used with --advertise"),
    ] {
        let ended = end(&run(&lock, &[&LONG[..], options].concat(), &["true"]));
        assert_eq!(ended.code, Some(64), "{options:?}: {ended:?}");
        assert!(ended.stderr.contains(problem) && !ended.stderr.contains("secret"), "{options:?}: {ended:?}");
    }
}
