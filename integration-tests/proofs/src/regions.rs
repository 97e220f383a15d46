//! The price of a lock in several buckets beside a lock in one: requests, dollars, and the time from one leader to the next, in
//! simulated time.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use leaderelection::clock::TokioClock;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, Majority, MemoryStore,
    ObjectLock, ObjectStoreBasedLock, Timings,
};
use leaderelection_backends::prices::Prices;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::costs::{dollars, grouped};
use crate::counted::{Client, Pace, Requests, Throttle};

/// The number of processes that compete for the lock.
const PROCESSES: usize = 3;

const HOUR: Duration = Duration::from_secs(3600);

/// The time in which everybody sees the leader.
const WARM_UP: Duration = Duration::from_secs(30);

/// A step by which each event comes at another moment of the others' polls.
const STEP: Duration = Duration::from_millis(137);

/// The longest wait for a leader.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts the requests of a lock in one bucket and in several, stops and kills its leaders in simulated time, and prints a table
/// in Markdown.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The numbers of buckets
    #[arg(long, default_values_t = [1, 3])]
    parts: Vec<usize>,
    /// The milliseconds of a read or a write
    #[arg(long, default_value_t = 30)]
    request: u64,
    /// The number of leaders that are stopped, and of those that are killed
    #[arg(long, default_value_t = 100)]
    times: u32,
}

impl Arguments {
    /// Measures, and prints the table.
    ///
    /// # Panics
    ///
    /// If nobody leads for minutes.
    pub fn carry_out(self) {
        let Self { parts, request, times } = self;
        let rows = parts.into_iter().map(|parts| Row::measure(parts, Duration::from_millis(request), times));
        print!("{}", table(&rows.collect::<Vec<_>>()));
    }
}

/// The price of a lock of so many parts.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of parts.
    pub parts: usize,
    /// The requests of an hour in which nothing happens.
    pub requests: Requests,
    /// The times from the stop of a leader to the work of the next.
    pub handovers: Vec<Duration>,
    /// The times from the last renewal of a leader that is killed to the work of the next, less the lease.
    pub takeovers: Vec<Duration>,
}

impl Row {
    /// Measures a lock of so many parts, whose stores take this time for a request.
    ///
    /// # Panics
    ///
    /// If nobody leads for minutes, or if a leader changes while nothing happens.
    #[must_use]
    pub fn measure(parts: usize, request: Duration, times: u32) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let pace = Pace { request, page: request, throttle: Throttle::Never };
            let mut fleet = Fleet::start((0..parts).map(|_| Client::new(Arc::new(MemoryStore::new()), pace)).collect());
            let requests = fleet.count().await;
            let (mut handovers, mut takeovers) = (Vec::new(), Vec::new());
            for number in 0..times {
                handovers.push(fleet.hand_over(STEP * number).await);
                takeovers.push(fleet.crash(STEP * number).await);
            }
            handovers.sort_unstable();
            takeovers.sort_unstable();
            Self { parts, requests, handovers, takeovers }
        })
    }
}

/// Returns the rows as a table in Markdown.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut table =
        "| buckets | writes an hour | reads | S3, GCS | Azure | SIGTERM to the next leader's work: median | worst \
                     | from the end of the lease after SIGKILL: median | worst |\n|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for Row { parts, requests, handovers, takeovers } in rows {
        let seconds = |time: Option<&Duration>| format!("{:.2} s", time.copied().unwrap_or_default().as_secs_f64());
        let cells = [
            parts.to_string(),
            grouped(requests.writes),
            grouped(requests.reads),
            dollars(requests, &Prices::S3),
            dollars(requests, &Prices::AZURE),
            seconds(handovers.get(handovers.len() / 2)),
            seconds(handovers.last()),
            seconds(takeovers.get(takeovers.len() / 2)),
            seconds(takeovers.last()),
        ];
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

/// The processes, as tasks.
struct Fleet {
    buckets: Vec<Client>,
    processes: Vec<Process>,
    begun: Arc<Mutex<Vec<Begun>>>,
    seed: u64,
}

struct Process {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The first moment of a term.
#[derive(Clone, Debug)]
struct Begun {
    slot: usize,
    at: Instant,
    leadership: Leadership,
}

impl Fleet {
    fn start(buckets: Vec<Client>) -> Self {
        let mut fleet = Self { buckets, processes: Vec::new(), begun: Arc::default(), seed: 0 };
        for slot in 0..PROCESSES {
            let process = fleet.spawn(slot);
            fleet.processes.push(process);
        }
        fleet
    }

    fn spawn(&mut self, slot: usize) -> Process {
        self.seed += 1;
        let identity = format!("node-{slot}-{}", self.seed);
        let locks: Vec<_> =
            self.buckets.iter().map(|bucket| ObjectLock::new(bucket.clone(), "lock", &identity)).collect();
        let lock: Arc<dyn ObjectStoreBasedLock> = match &locks[..] {
            [only] => Arc::new(only.clone()),
            _ => Arc::new(Majority::of(locks).expect("one identity")),
        };
        let begun = Arc::clone(&self.begun);
        let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| {
            let term = Begun { slot, at: Instant::now(), leadership: leadership.clone() };
            begun.lock().expect("no panic").push(term);
            async move { leadership.lost().await }
        });
        let config = LeaderElectionConfig::builder(lock, callbacks);
        let config = config.clock(TokioClock::new()).seed(self.seed).release_on_cancel(true);
        let elector = DefaultLeaderElector::new(config.build().expect("settings"));
        let stop = CancellationToken::new();
        let token = stop.clone();
        let task =
            tokio::spawn(async move { elector.campaign(token.cancelled_owned()).await.expect("no store check") });
        Process { stop, task }
    }

    fn terms(&self) -> usize {
        self.begun.lock().expect("no panic").len()
    }

    fn leader(&self) -> Begun {
        self.begun.lock().expect("no panic").last().expect("a leader").clone()
    }

    async fn next_after(&self, terms: usize) -> Begun {
        let next = async {
            while self.terms() == terms {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, next).await.expect("a leader");
        self.leader()
    }

    /// Counts the requests of an hour.
    async fn count(&self) -> Requests {
        self.next_after(0).await;
        sleep(WARM_UP).await;
        let requests = || self.buckets.iter().map(Client::requests).sum::<Requests>();
        let (before, terms) = (requests(), self.terms());
        sleep(HOUR).await;
        assert_eq!(self.terms(), terms, "another leader although nothing happened");
        requests().since(before, 1)
    }

    /// Stops the leader gracefully. Returns the time from the stop to the work of the next.
    async fn hand_over(&mut self, later: Duration) -> Duration {
        self.replace(later, |process| process.stop.cancel()).await.0
    }

    /// Kills the leader. Returns the time from its last renewal to the work of the next, less the lease.
    async fn crash(&mut self, later: Duration) -> Duration {
        let (passed, left) = self.replace(later, |process| process.task.abort()).await;
        let timings = Timings::default();
        (passed + timings.renew_deadline() - left).saturating_sub(timings.lease_duration())
    }

    /// Ends the leader's process, and starts another when there is a next leader. Returns the time from the end to the work of that
    /// leader, and what was left of the window then.
    async fn replace(&mut self, later: Duration, end: fn(&Process)) -> (Duration, Duration) {
        sleep(WARM_UP + later).await;
        let (leader, terms, ended) = (self.leader(), self.terms(), Instant::now());
        let left = leader.leadership.remaining();
        end(&self.processes[leader.slot]);
        let next = self.next_after(terms).await;
        self.processes[leader.slot] = self.spawn(leader.slot);
        (next.at - ended, left)
    }
}
