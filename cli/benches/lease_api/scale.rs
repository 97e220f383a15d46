//! What many Leases and many clients cost, on stores that answer at once, in 30 ms and in 300 ms, or in one of these times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::Client;
use serde_json::Value;
use tokio::time::sleep;

use super::slow_s3::SlowS3;
use super::{Server, is_bench};

/// The Leases are in two namespaces, each of which may have 500 watches.
const NAMESPACES: [&str; 2] = ["left", "right"];

/// The pause between two renewals of a client.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

fn leases(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

fn namespace_of(number: usize) -> &'static str {
    NAMESPACES[number % NAMESPACES.len()]
}

/// A client with connections of its own.
fn client() -> Client {
    // Nobody needs certificates here, and a thousand clients would read them a thousand times.
    Client::builder().no_proxy().tls_certs_only([]).timeout(Duration::from_secs(30)).build().unwrap()
}

fn print(server: &Server, what: &str, mut times: Vec<Duration>, lost: usize) {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    let (count, mib) = (times.len(), server.memory() / 1024);
    println!("  {what}: {count} answers, {lost} lost, median {:.0} ms, p99 {:.0} ms; then {mib} MiB", at(50), at(99));
}

async fn timed(client: &Client, url: &str) -> (Duration, Value) {
    let began = Instant::now();
    let answer = client.get(url).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{url}");
    let body = answer.bytes().await.unwrap();
    let took = began.elapsed();
    (took, serde_json::from_slice(&body).unwrap())
}

pub(crate) async fn measure() {
    let (count, clients, rounds) = if is_bench() { (10_000, 1000, 20) } else { (200, 20, 2) };
    let chosen = std::env::args().find_map(|argument| argument.parse::<u64>().ok());
    for millis in [0, 30, 300].into_iter().filter(|millis| chosen.is_none_or(|chosen| chosen == *millis)) {
        println!("a store that answers in {millis} ms, {count} Leases:");
        let (store, folder) = SlowS3::start().await;
        let server = Server::start(&folder);
        let held = fill(&server, count).await;
        println!("  every Lease was written twice: {} MiB", server.memory() / 1024);
        store.set_delay(Duration::from_millis(millis));

        let all = format!("{}/apis/coordination.k8s.io/v1/leases", server.url);
        let mut times = Vec::new();
        for _ in 0..rounds {
            let (took, listed) = timed(&server.client, &all).await;
            assert_eq!(listed["items"].as_array().unwrap().len(), count);
            times.push(took);
        }
        print(&server, "LIST", times, 0);
        let (mut first, mut further, mut next) = (Vec::new(), Vec::new(), String::new());
        while first.len() + further.len() < rounds * count.div_ceil(500) {
            let is_first = next.is_empty();
            let (took, listed) = timed(&server.client, &format!("{all}?limit=500&continue={next}")).await;
            if is_first {
                first.push(took)
            } else {
                further.push(took)
            }
            next = listed["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        }
        print(&server, "first page of 500", first, 0);
        if !further.is_empty() {
            print(&server, "further pages of 500", further, 0);
        }
        // A server that has just started reads each Lease once, and its clients try again meanwhile.
        let (fresh, began) = (Server::start(&folder), Instant::now());
        let all_of_fresh = all.replace(&server.url, &fresh.url);
        while fresh.client.get(&all_of_fresh).send().await.is_ok_and(|answer| answer.status() != 200) {}
        println!("  a new server has listed all after {:?}; then {} MiB", began.elapsed(), fresh.memory() / 1024);
        drop(fresh);
        watch(&server, clients).await;
        elect(&server, held, clients).await;
    }
}

/// Creates so many Leases, and renews each once.
async fn fill(server: &Server, count: usize) -> Vec<Value> {
    let write = |number: usize| async move {
        let target = format!("{}{}", server.url, leases(namespace_of(number)));
        let created = server.client.post(&target).json(&Server::lease(number)).send().await.unwrap();
        assert_eq!(created.status(), 201);
        let lease: Value = created.json().await.unwrap();
        renew(&server.client, server, lease, 1).await.unwrap()
    };
    stream::iter(0..count).map(write).buffered(32).collect().await
}

async fn renew(client: &Client, server: &Server, mut lease: Value, number: usize) -> Option<Value> {
    lease["spec"]["renewTime"] = format!("2026-02-02T10:{:02}:{:02}.000000Z", number / 60 % 60, number % 60).into();
    let text = |field: &str| lease["metadata"][field].as_str().unwrap().to_owned();
    let target = format!("{}{}/{}", server.url, leases(&text("namespace")), text("name"));
    let answer = client.put(target).json(&lease).send().await.ok()?;
    if answer.status() == 200 { answer.json().await.ok() } else { None }
}

/// Begins so many watches at once, each of one Lease, and measures the time until its first event.
async fn watch(server: &Server, count: usize) {
    let clients: Vec<_> = (0..count).map(|_| client()).collect();
    let began = Instant::now();
    let begin = |(number, client): (usize, Client)| async move {
        let name = format!("fieldSelector=metadata.name%3Dshard-{number}");
        let target = format!("{}{}?watch=1&{name}", server.url, leases(namespace_of(number)));
        let answer = client.get(target).send().await.ok().filter(|answer| answer.status() == 200);
        let mut events = answer?.bytes_stream();
        let first = events.next().await.and_then(Result::ok);
        first.map(|_| (began.elapsed(), events))
    };
    let begun: Vec<_> =
        stream::iter(clients.into_iter().enumerate()).map(begin).buffer_unordered(count).collect().await;
    let (times, _open): (Vec<_>, Vec<_>) = begun.into_iter().flatten().unzip();
    let lost = count - times.len();
    print(server, "watches, begun at once", times, lost);
}

/// Lets so many clients renew a Lease each, for ten seconds.
async fn elect(server: &Server, held: Vec<Value>, count: usize) {
    let clients: Vec<_> = held.into_iter().take(count).map(|lease| (client(), lease)).collect();
    let (lost, until) = (Arc::new(AtomicUsize::new(0)), Instant::now() + Duration::from_secs(10));
    let elect = |(number, (client, mut lease)): (usize, (Client, Value))| {
        let lost = Arc::clone(&lost);
        async move {
            let mut times = Vec::new();
            sleep(RETRY_PERIOD * u32::try_from(number).unwrap() / u32::try_from(count).unwrap()).await;
            while Instant::now() < until {
                let began = Instant::now();
                match renew(&client, server, lease.clone(), times.len() + 2).await {
                    Some(renewed) => lease = renewed,
                    None => drop(lost.fetch_add(1, Ordering::Relaxed)),
                }
                times.push(began.elapsed());
                sleep(RETRY_PERIOD.saturating_sub(began.elapsed())).await;
            }
            times
        }
    };
    let clients = stream::iter(clients.into_iter().enumerate()).map(elect).buffer_unordered(count);
    let times = clients.collect::<Vec<_>>().await.concat();
    print(server, "renewals of clients", times, lost.load(Ordering::Relaxed));
}
