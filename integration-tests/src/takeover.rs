//! The time from one leader to the next, and the requests meanwhile: processes that are stopped and killed, on a real S3
//! server with a network of its own for each process, or in a directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::Timings;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection_arena::process::Process;
use leaderelection_arena::report::Report;
use rustix::process::Signal;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::proxy::sign::{Signer, unsigned};
use crate::proxy::{Exchange, Kind, Proxy};
use crate::servers::express::{self, Express};
use crate::servers::seaweedfs::{BUCKET, SeaweedFs};
use crate::servers::unique_name;

/// The number of processes that compete for a lock.
const PROCESSES: usize = 3;

/// A time limit far above the duration of any step.
const PATIENCE: Duration = Duration::from_secs(180);

/// The time in which a follower that has seen a new leader opens a stream to that leader.
const CONNECTION: Duration = Duration::from_millis(200);

/// The renewals after which a follower gets messages as it will for the rest of the term.
const RENEWALS: u32 = 3;

/// The place of locks.
#[allow(missing_debug_implementations, reason = "a signer is a function")]
pub enum Site {
    /// A bucket behind a URL.
    Bucket {
        /// The URL of the server.
        url: String,
        /// The name of the bucket.
        bucket: &'static str,
        /// A signer for a proxy in front of the server.
        signer: Signer,
        /// The variables with the credentials.
        environment: Vec<(&'static str, String)>,
    },
    /// A local directory, without a network. Times count from the signal.
    Directory(PathBuf),
}

impl Site {
    /// A bucket of SeaweedFS.
    #[must_use]
    pub fn seaweedfs(server: &SeaweedFs) -> Self {
        let environment = server.environment().map(|(name, value)| (name, value.to_owned())).into();
        Self::Bucket { url: server.url(), bucket: BUCKET, signer: server.signer(), environment }
    }

    /// A directory bucket.
    #[must_use]
    pub fn express(gateway: &Express) -> Self {
        let environment = gateway.environment().map(|(name, value)| (name, value.to_owned())).into();
        Self::Bucket { url: gateway.url(), bucket: express::BUCKET, signer: unsigned(), environment }
    }
}

/// Processes that compete for one lock.
#[derive(Debug)]
pub struct Fleet {
    program: PathBuf,
    url: Vec<String>,
    environment: Vec<(&'static str, String)>,
    timings: Timings,
    /// The key by which followers get messages from the leader, if they do.
    peer_key: Option<String>,
    proxies: Vec<Proxy>,
    processes: Vec<Process>,
    /// The first words of each term's work: the process, the fencing token and the moment.
    begun: Arc<watch::Sender<Vec<Begun>>>,
}

/// The first line of a term's work.
#[derive(Clone, Copy, Debug)]
struct Begun {
    slot: usize,
    token: u64,
    at: LocalInstant,
}

impl Fleet {
    /// Starts the processes, which run `program` (the program `contender`). With `peers`, followers get messages from the
    /// leader.
    ///
    /// # Panics
    ///
    /// If a process cannot be started.
    pub async fn start(program: PathBuf, timings: Timings, site: &Site, peers: bool) -> Self {
        let (mut proxies, key) = (Vec::new(), unique_name());
        let (url, environment) = match site {
            Site::Bucket { url, bucket, signer, environment } => {
                for _ in 0..PROCESSES {
                    proxies.push(Proxy::start(url, Arc::clone(signer)).await);
                }
                let by = |proxy: &Proxy| format!("s3://{bucket}/{key}?endpoint={}", proxy.url());
                (proxies.iter().map(by).collect(), environment.clone())
            }
            Site::Directory(path) => (vec![format!("file://{}/{key}", path.display()); PROCESSES], Vec::new()),
        };
        let mut fleet = Self {
            program,
            url,
            environment,
            timings,
            peer_key: peers.then(|| format!("{key}-{}", unique_name())),
            proxies,
            processes: Vec::new(),
            begun: Arc::default(),
        };
        for slot in 0..PROCESSES {
            let process = fleet.spawn(slot);
            fleet.processes.push(process);
        }
        fleet
    }

    fn spawn(&self, slot: usize) -> Process {
        let mut command = Command::new(&self.program);
        command.args([&self.url[slot], &format!("node-{slot}")]);
        command.arg(serde_json::to_string(&self.timings).expect("timings as JSON"));
        command.args(self.peer_key.iter().flat_map(|key| ["--peer-key", key]));
        command.envs(self.environment.iter().map(|(name, value)| (name, value))).env("RUST_LOG", "error");
        let begun = Arc::clone(&self.begun);
        let on_report = move |report| {
            let Some(Report::Inside { token, at, .. }) = report else { return };
            begun.send_if_modified(|begun| {
                let is_new = begun.last().is_none_or(|last| last.token < token);
                if is_new {
                    begun.push(Begun { slot, token, at });
                }
                is_new
            });
        };
        Process::start(command, on_report).expect("a process")
    }

    /// Stops the leader gracefully. Returns the time from the signal to the first work of the next leader.
    ///
    /// # Panics
    ///
    /// If a process does not do its part within minutes.
    pub async fn hand_over(&mut self) -> Duration {
        let leader = self.stable().await;
        let at = SystemClock.now();
        self.processes[leader.slot].signal(Signal::TERM).expect("a signal");
        let next = self.next_after(leader).await;
        self.replace(leader.slot).await;
        next.at.saturating_since(at)
    }

    /// Kills the leader. Returns the time from its last renewal to the first work of the next leader.
    ///
    /// # Panics
    ///
    /// If a process does not do its part within minutes.
    pub async fn crash(&mut self) -> Duration {
        let leader = self.stable().await;
        let killed = SystemClock.now();
        self.processes[leader.slot].signal(Signal::KILL).expect("a signal");
        let next = self.next_after(leader).await;
        let last =
            self.proxies.get(leader.slot).and_then(|proxy| proxy.inspect_traffic(last_renewal)).unwrap_or(killed);
        self.replace(leader.slot).await;
        next.at.saturating_since(last)
    }

    /// Counts the requests of a leader and of all followers while nothing happens. Without a network, nothing is counted.
    ///
    /// # Panics
    ///
    /// If no process leads, or if the leader changes.
    pub async fn count(&mut self, time: Duration) -> Requests {
        let leader = self.stable().await;
        let before: Vec<_> = self.proxies.iter().map(|proxy| proxy.inspect_traffic(of_the_lock)).collect();
        tokio::time::sleep(time).await;
        let mut requests = Requests::default();
        for (slot, (proxy, before)) in self.proxies.iter().zip(before).enumerate() {
            let count = proxy.inspect_traffic(of_the_lock) - before;
            if slot == leader.slot {
                requests.leader = count;
            } else {
                requests.followers.push(count);
            }
        }
        assert_eq!(self.leader().expect("a leader").token, leader.token, "the leader changed");
        requests
    }

    fn leader(&self) -> Option<Begun> {
        self.begun.borrow().last().copied()
    }

    /// Waits until a process leads, the others have seen that and, with peers, had the time to get messages about some
    /// renewals and to read the lock after the first of them.
    async fn stable(&self) -> Begun {
        let mut begun = self.begun.subscribe();
        let leads = timeout(PATIENCE, begun.wait_for(|begun| !begun.is_empty())).await.expect("a leader in time");
        let leader = *leads.expect("the fleet exists").last().expect("a leader");
        let mut seen = leader.at;
        for (_, proxy) in self.proxies.iter().enumerate().filter(|(slot, _)| *slot != leader.slot) {
            seen = seen.max(first_after(proxy, leader.at, Kind::Read).await);
        }
        let mut renewed = seen + CONNECTION;
        match self.proxies.get(leader.slot) {
            None => tokio::time::sleep(self.timings.lease_duration()).await,
            Some(proxy) => {
                for _ in 0..RENEWALS {
                    renewed = first_after(proxy, renewed, Kind::Renewal).await;
                }
            }
        }
        leader
    }

    async fn next_after(&self, leader: Begun) -> Begun {
        let mut begun = self.begun.subscribe();
        let is_next = |begun: &Vec<Begun>| begun.last().is_some_and(|last| last.token > leader.token);
        let next = timeout(PATIENCE, begun.wait_for(is_next)).await.expect("a next leader in time");
        *next.expect("the fleet exists").last().expect("a leader")
    }

    /// Starts a process in the place of one that ends.
    async fn replace(&mut self, slot: usize) {
        timeout(PATIENCE, self.processes[slot].wait()).await.expect("an end in time").expect("the end of a child");
        self.processes[slot] = self.spawn(slot);
    }
}

/// Waits for a request of this kind after a moment, and returns its moment.
pub(crate) async fn first_after(proxy: &Proxy, moment: LocalInstant, kind: Kind) -> LocalInstant {
    let is_first = |exchange: &Exchange| exchange.kind == kind && exchange.arrived > moment && exchange.committed();
    let what = format!("a request of the kind {kind:?}");
    proxy
        .wait_for_some(&what, |traffic| traffic.iter().find(|exchange| is_first(exchange)).map(|first| first.arrived))
        .await
}

/// Requests, by their sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// The number of requests of the leader.
    pub leader: usize,
    /// The number of requests of each follower.
    pub followers: Vec<usize>,
}

/// The requests for the record. The work of a leader has a log of its own.
fn of_the_lock(traffic: &[Exchange]) -> usize {
    traffic.iter().filter(|exchange| exchange.kind != Kind::Other && !exchange.request.target.contains("-log")).count()
}

fn last_renewal(traffic: &[Exchange]) -> Option<LocalInstant> {
    let mut committed = traffic.iter().rev().filter(|exchange| exchange.committed());
    committed.find(|exchange| keeps_a_lease(exchange.kind)).map(|exchange| exchange.arrived)
}

fn keeps_a_lease(kind: Kind) -> bool {
    matches!(kind, Kind::Create | Kind::Takeover | Kind::Renewal)
}

/// Prints times, less the time that has to pass.
pub fn print(what: &str, mut times: Vec<Duration>, less: Duration) {
    times.sort();
    let Some(last) = times.len().checked_sub(1) else { return };
    let millis = |time: Duration| (time.as_secs_f64() - less.as_secs_f64()) * 1000.0;
    let (median, late) = (times[last / 2], times[last * 99 / 100]);
    let [median, late, worst] = [median, late, times[last]].map(millis);
    println!("{what}: {} times, median {median:.0} ms, 99 of 100 {late:.0} ms, worst {worst:.0} ms", times.len());
}
