//! Strangers on every port of a candidate, who connect and say nothing, or ask without end: no renewal is late.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{PATIENCE, Place, Running, leaderelect, run, with_files};

/// The number of strangers on each port.
const STRANGERS: usize = 2_000;

/// The renewals that are waited for beside the strangers.
const RENEWALS: usize = 3;

/// The retry period of the default timings.
const RETRY: Duration = Duration::from_secs(2);

/// A crowd is a load for the machine, too, and not only for its candidate.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A candidate that leads, and the addresses of all its ports.
struct Candidate {
    _alone: MutexGuard<'static, ()>,
    place: Place,
    ports: Vec<String>,
    _running: Running,
}

impl Candidate {
    /// Starts a candidate that may open so many files. The loopback network has an address for each candidate of each test
    /// process, so that none has to look for a port.
    fn start(subcommand: &str, number: u8, files: u32) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::new();
        let [low, high, ..] = std::process::id().to_le_bytes();
        let address = |port: &str| format!("127.{high}.{low}.{number}:{port}");
        let (peers, page, open) = (address("8445"), address("4040"), address("4041"));
        let key = place.path("peers.key");
        std::fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
        let (lock, url) = (place.lock("a"), format!("http://{peers}/health/leadership"));
        let common = ["--identity", "alpha", "--advertise", &url, "--peer-listen", &peers];
        let common = [&common[..], &["--peer-plain-http", "--peer-key-file", key.to_str().unwrap()]].concat();
        let (arguments, ports) = match subcommand {
            "run" => (
                run(&lock, &[&common[..], &["--metrics-listen", &open]].concat(), &["sleep", "1000"]),
                vec![peers.clone(), open.clone()],
            ),
            _ => (
                [&["serve", "--lock", &lock, "--listen", &page, "--probe-listen", &open], &common[..]].concat(),
                vec![peers.clone(), page.clone(), open.clone()],
            ),
        };
        let running = Running::of(with_files(leaderelect(arguments), files));
        let candidate = Self { _alone: alone, place, ports, _running: running };
        let deadline = Instant::now() + PATIENCE;
        while !candidate.place.has("locks/a") {
            assert!(Instant::now() < deadline, "nobody leads");
            thread::sleep(Duration::from_millis(20));
        }
        candidate
    }

    /// Looks at the lock while `disturb` goes on, and until it was renewed a few times after that. It takes seconds until a
    /// crowd has come, so whoever looked later would miss renewals.
    fn renews_in_time_beside(&self, disturb: impl FnOnce() + Send) {
        let before = self.place.record("a");
        let mut renewals = vec![before.renew_time.unwrap()];
        // The longest time for which this machine stood still for everybody, strangers or not.
        let mut stall = Duration::ZERO;
        thread::scope(|scope| {
            let disturbing = scope.spawn(disturb);
            let (mut last, mut later) = (Instant::now(), 0);
            while later < RENEWALS {
                let looked = Instant::now();
                // A renewal waits for the disk, too.
                std::fs::File::create(self.place.path("probe")).and_then(|probe| probe.sync_all()).unwrap();
                let record = self.place.record("a");
                assert_eq!(
                    (&record.holder_identity, record.leader_transitions),
                    (&before.holder_identity, before.leader_transitions)
                );
                if renewals.last() != record.renew_time.as_ref() {
                    renewals.extend(record.renew_time);
                    later += usize::from(disturbing.is_finished());
                    last = Instant::now();
                }
                assert!(last.elapsed() < PATIENCE, "no renewals: {renewals:?}");
                thread::sleep(Duration::from_millis(10));
                stall = stall.max(looked.elapsed());
            }
        });
        let mut gaps: Vec<_> = renewals.windows(2).map(|pair| (pair[1] - pair[0]).to_std().unwrap()).collect();
        gaps.sort_unstable();
        // The longest may be a stall of the candidate alone. The strangers delay every one.
        let gap = gaps[gaps.len() / 2];
        println!("most pauses between two renewals were {gap:?} at most, and the machine's own was {stall:?}");
        assert!(gap <= RETRY * 2 + stall, "renewals are late by more than a retry period: {renewals:?}");
    }
}

/// Strangers who connect to every port at once, and stay.
fn crowd(ports: &[String]) -> Vec<TcpStream> {
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap();
    let ports: Vec<_> = ports.iter().map(|port| port.parse().unwrap()).collect();
    // Those whom the candidate has no room for do not matter.
    let come = |_: usize| {
        ports.iter().filter_map(|port| TcpStream::connect_timeout(port, PATIENCE / 600).ok()).collect::<Vec<_>>()
    };
    (0..STRANGERS).flat_map(come).collect()
}

#[test]
fn idle_strangers_on_every_port_of_serve_delay_no_renewal() {
    for (number, files) in [(1, 256), (2, 1024)] {
        let candidate = Candidate::start("serve", number, files);
        let mut strangers = Vec::new();
        candidate.renews_in_time_beside(|| strangers = crowd(&candidate.ports));
        assert!(strangers.len() > STRANGERS);
    }
}

#[test]
fn idle_strangers_on_every_port_of_run_delay_no_renewal() {
    for (number, files) in [(3, 256), (4, 1024)] {
        let candidate = Candidate::start("run", number, files);
        let mut strangers = Vec::new();
        candidate.renews_in_time_beside(|| strangers = crowd(&candidate.ports));
        assert!(strangers.len() > STRANGERS);
    }
}

/// Asks over one connection, without a pause between two requests.
fn flood(port: &str, path: &str, is_over: &AtomicBool) {
    let Ok(mut stream) = TcpStream::connect(port) else { return };
    let mut reader = stream.try_clone().unwrap();
    let requests = format!("GET {path} HTTP/1.1\r\nhost: {port}\r\n\r\n").repeat(500);
    thread::scope(|scope| {
        scope.spawn(move || while stream.write_all(requests.as_bytes()).is_ok() {});
        let mut answers = vec![0; 1 << 16];
        while !is_over.load(Ordering::Relaxed) && reader.read(&mut answers).is_ok_and(|read| read > 0) {}
        let _ = reader.shutdown(std::net::Shutdown::Both);
    });
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_flood_of_requests_delays_no_renewal() {
    let candidate = Candidate::start("serve", 5, 1024);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // The scope waits for the strangers, also if the test fails.
        let _over = Over(&is_over);
        for (port, path) in [(0, "/health/leadership"), (1, "/metrics"), (2, "/metrics")] {
            for _ in 0..16 {
                let (port, is_over) = (&candidate.ports[port], &is_over);
                scope.spawn(move || flood(port, path, is_over));
            }
        }
        candidate.renews_in_time_beside(|| {});
    });
}
