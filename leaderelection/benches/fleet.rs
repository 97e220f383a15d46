//! Ten thousand leaders, ten thousand followers, and one session with ten thousand locks in one process, in real time:
//! the share of one core that each fleet takes, and the memory that it makes the process hold.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should say so and end")]

use std::future::pending;
use std::time::{Duration, Instant};

use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderHandle, MemoryLock, MemoryStore,
    Session,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The size of a fleet, and its timings.
#[derive(Clone, Copy)]
struct Scale {
    electors: u32,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    /// The number of retry periods that are measured.
    periods: u32,
}

const FULL: Scale = Scale {
    electors: 10_000,
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
    periods: 10,
};

/// The scale under `cargo test`, which only checks that the benchmark runs.
const SHORT: Scale = Scale { electors: 100, retry_period: Duration::from_millis(200), periods: 2, ..FULL };

const LEADERS: &str = "leaders";
const FOLLOWERS: &str = "followers";
const SESSION: &str = "session";

/// Running electors.
#[derive(Default)]
struct Fleet {
    electors: JoinSet<()>,
    handles: Vec<LeaderHandle>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    let scale = if has("--bench") && !has("--test") { FULL } else { SHORT };
    match [LEADERS, FOLLOWERS, SESSION].into_iter().find(|fleet| has(fleet)) {
        Some(LEADERS) => {
            let start =
                async |store: &MemoryStore| start_electors(store, scale, |index| format!("locks/{index}")).await;
            measure(LEADERS, scale, start);
        }
        Some(FOLLOWERS) => {
            let start = async |store: &MemoryStore| start_electors(store, scale, |_| "locks/shared".to_owned()).await;
            measure(FOLLOWERS, scale, start);
        }
        Some(_) => {
            // Long enough for scans of all locks, which are half a minute apart.
            let scale = Scale { periods: scale.periods * 3, ..scale };
            measure(SESSION, scale, async |store: &MemoryStore| start_session(store, scale).await);
        }
        None => {
            let Scale { electors, lease_duration, renew_deadline, retry_period, periods } = scale;
            println!(
                "{electors} electors at {lease_duration:?}/{renew_deadline:?}/{retry_period:?}, \
                 measured for {:?}",
                retry_period * periods
            );
            println!("{:<10} {:>10} {:>16} {:>16}", "", "writes/s", "CPU of one core", "resident, each");
            // A process of its own for each: memory that one has freed would serve the other.
            for fleet in [LEADERS, FOLLOWERS, SESSION] {
                let mut command = std::process::Command::new(std::env::current_exe().unwrap());
                assert!(command.args(&arguments).arg(fleet).status().unwrap().success(), "{fleet} failed");
            }
        }
    }
}

/// Runs a fleet on a runtime of its own and prints what it took.
fn measure(name: &str, scale: Scale, start: impl AsyncFnOnce(&MemoryStore) -> Fleet) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let store = MemoryStore::new();
    runtime.block_on(async {
        let resident_before = resident_kib();
        let Fleet { electors: _running, handles } = start(&store).await;
        sleep(scale.retry_period * 2).await;

        let leading = count_leaders(&handles);
        let writes_before = writes(&store).await;
        let (wall, cpu) = (Instant::now(), process_cpu());
        sleep(scale.retry_period * scale.periods).await;
        let (wall, cpu) = (wall.elapsed().as_secs_f64(), (process_cpu() - cpu).as_secs_f64());
        // One of them is the probe's.
        let writes = writes(&store).await - writes_before - 1;
        assert_eq!(count_leaders(&handles), leading, "leadership came or went");

        let electors = f64::from(scale.electors);
        let resident = resident_before
            .zip(resident_kib())
            .map_or("unknown".to_owned(), |(before, now)| format!("{:.1} KiB", (now - before) / electors));
        let (rate, share) = (f64::from(writes) / wall, 100.0 * cpu / wall);
        println!("{name:<10} {rate:>10.1} {share:>15.2}% {resident:>16}");
    });
}

async fn start_electors(store: &MemoryStore, scale: Scale, key: impl Fn(u32) -> String) -> Fleet {
    let mut fleet = Fleet::default();
    // The electors start one after the other, because a fleet does not renew in step.
    let start = Instant::now();
    for index in 0..scale.electors {
        let due = scale.retry_period * index / scale.electors;
        sleep(due.saturating_sub(start.elapsed())).await;
        let elector = elector(store, key(index), index, scale);
        fleet.handles.push(elector.handle());
        fleet.electors.spawn(async move { elector.campaign(pending()).await.unwrap() });
    }
    fleet
}

/// Starts one session, and returns when it leads all locks.
async fn start_session(store: &MemoryStore, scale: Scale) -> Fleet {
    let mut fleet = Fleet::default();
    let session = Session::builder(store.clone(), "fleet", "node-1")
        .lease_duration(scale.lease_duration)
        .renew_deadline(scale.renew_deadline)
        .retry_period(scale.retry_period)
        .build()
        .unwrap();
    for index in 0..scale.electors {
        let elector = session.elector(index.to_string(), callbacks()).unwrap();
        fleet.handles.push(elector.handle());
        fleet.electors.spawn(async move { elector.campaign(pending()).await.unwrap() });
    }
    fleet.electors.spawn(async move { session.run(pending()).await.unwrap() });
    for handle in &mut fleet.handles {
        handle.elected().await.unwrap();
    }
    fleet
}

fn elector(store: &MemoryStore, key: String, index: u32, scale: Scale) -> DefaultLeaderElector {
    let lock = MemoryLock::new(store.clone(), key, format!("node-{index}"));
    let config = LeaderElectionConfig::builder(lock, callbacks())
        .lease_duration(scale.lease_duration)
        .renew_deadline(scale.renew_deadline)
        .retry_period(scale.retry_period)
        .build()
        .unwrap();
    DefaultLeaderElector::new(config)
}

fn callbacks() -> LeaderCallbacks {
    LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await })
}

fn count_leaders(handles: &[LeaderHandle]) -> usize {
    handles.iter().filter(|handle| handle.is_leader()).count()
}

/// The number of writes that the store has seen, including the one that this function makes. The store
/// numbers its writes, and a write's number is its version.
async fn writes(store: &MemoryStore) -> u32 {
    let probe = store.get("probe").await.unwrap();
    let precondition = probe.map_or(Precondition::Absent, |probe| Precondition::Matches(probe.version));
    store.put("probe", "probe".into(), &precondition).await.unwrap().as_str().parse().unwrap()
}

#[cfg(unix)]
fn process_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[cfg(not(unix))]
fn process_cpu() -> Duration {
    panic!("this benchmark reads the process's CPU time, and knows how on Unix only")
}

/// The memory that the process holds, where the system tells.
fn resident_kib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
