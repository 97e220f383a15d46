//! Prints what `leaderelect lease-api` costs: the time of a renewal, its requests to the store, and the memory of 10,000 Leases
//! that somebody watches; with `hostile`, what a tenant costs the others who asks for as much as it can; and with `scale`, what
//! 10,000 Leases and 1,000 clients cost. LEADERELECTION_TEST_PROGRAM names another `leaderelect`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should say so and end")]

mod hostile;
mod scale;
mod slow_s3;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// The renewals in a second.
const RATE: u32 = 200;

/// A running server.
struct Server {
    process: Child,
    url: String,
    client: Client,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(store: &str) -> Self {
        let program = std::env::var_os("LEADERELECTION_TEST_PROGRAM");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_leaderelect").into()));
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
        command.args(["lease-api", "--store", store, "--listen", "127.0.0.1:0"]);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.strip_prefix("leaderelect: serving ")?.to_owned())).unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, url: url.trim_end_matches('/').to_owned(), client: Client::new() }
    }

    fn lease(number: usize) -> Value {
        json!({
            "metadata": {"name": format!("shard-{number}")},
            "spec": {"holderIdentity": "worker-1_0198c0de", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                     "acquireTime": "2026-02-02T10:15:30.000000Z", "renewTime": "2026-02-02T10:15:30.000000Z"},
        })
    }

    /// Creates so many Leases, and returns them.
    async fn create(&self, count: usize) -> Vec<Value> {
        let create = |number| async move {
            let answer =
                self.client.post(format!("{}{LEASES}", self.url)).json(&Self::lease(number)).send().await.unwrap();
            assert_eq!(answer.status(), 201);
            answer.json().await.unwrap()
        };
        stream::iter(0..count).map(create).buffered(16).collect().await
    }

    /// Renews a Lease, and returns it with the time that it took.
    async fn renew(&self, mut lease: Value, number: u32) -> (Value, Duration) {
        lease["spec"]["renewTime"] = format!("2026-02-02T10:{:02}:{:02}.000000Z", number / 60 % 60, number % 60).into();
        let target = format!("{}{LEASES}/{}", self.url, lease["metadata"]["name"].as_str().unwrap());
        let began = Instant::now();
        let answer = self.client.put(target).json(&lease).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = answer.bytes().await.unwrap();
        let took = began.elapsed();
        (serde_json::from_slice(&body).unwrap(), took)
    }

    /// Renews all Leases in turn, `RATE` times a second, and returns how long each renewal took, the shortest first.
    async fn renew_for(self: &Arc<Self>, leases: &mut [Value], time: Duration) -> Vec<Duration> {
        let mut ticks = interval(Duration::from_secs(1) / RATE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (began, mut number, mut running) = (Instant::now(), 0, Vec::new());
        while began.elapsed() < time {
            ticks.tick().await;
            let place = number as usize % leases.len();
            let (server, lease) = (Arc::clone(self), leases[place].take());
            number += 1;
            running.push((place, tokio::spawn(async move { server.renew(lease, number).await })));
            // Nobody renews a Lease whose last renewal is not answered.
            if running.len() == leases.len().min(RATE as usize) {
                for (place, renewal) in running.drain(..) {
                    let (lease, took) = renewal.await.unwrap();
                    leases[place] = lease;
                    TIMES.lock().unwrap().push(took);
                }
            }
        }
        for (place, renewal) in running {
            let (lease, took) = renewal.await.unwrap();
            leases[place] = lease;
            TIMES.lock().unwrap().push(took);
        }
        let mut times = std::mem::take(&mut *TIMES.lock().unwrap());
        times.sort();
        times
    }

    /// The resident memory in KiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
        size.unwrap_or_default()
    }
}

static TIMES: std::sync::Mutex<Vec<Duration>> = std::sync::Mutex::new(Vec::new());

fn print(what: &str, times: &[Duration]) {
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!("{what}: {} renewals, median {:.3} ms, 99th percentile {:.3} ms", times.len(), at(50), at(99));
}

/// Returns `true` if this is no test of the benchmark.
fn is_bench() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

#[tokio::main]
async fn main() {
    if std::env::args().any(|argument| argument == "hostile") {
        return hostile::measure().await;
    }
    if std::env::args().any(|argument| argument == "scale") {
        return scale::measure().await;
    }
    let (count, seconds) = if is_bench() { (10_000, 20) } else { (500, 2) };
    let server = Arc::new(Server::start("memory:leases"));
    let mut leases = server.create(RATE as usize).await;
    print("a store in memory", &server.renew_for(&mut leases, Duration::from_secs(seconds)).await);

    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::start(&format!("file://{}/leases", folder.path().display())));
    println!("memory of a server without Leases: {} KiB", server.memory());
    let mut leases = server.create(count).await;
    println!("memory with {count} Leases in a local directory: {} KiB", server.memory());
    let watch = server.client.get(format!("{}{LEASES}?watch=1", server.url)).send().await.unwrap();
    let mut events = watch.bytes_stream();
    let watching = tokio::spawn(async move {
        let (mut seen, mut first) = (0, None);
        let began = Instant::now();
        while let Some(Ok(part)) = events.next().await {
            seen += part.iter().filter(|byte| **byte == b'\n').count();
            if seen >= count {
                first.get_or_insert_with(|| println!("a watch has shown all after {:?}", began.elapsed()));
            }
            if seen >= count + RATE as usize {
                return;
            }
        }
    });
    print("that directory, watched", &server.renew_for(&mut leases, Duration::from_secs(seconds)).await);
    watching.await.unwrap();
    println!("memory while somebody watches them: {} KiB", server.memory());
}
