//! The price that others pay for a tenant who asks for as much as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{LEASES, Server};

/// The Leases of another tenant than the one that renews.
const THEIRS: &str = "/apis/coordination.k8s.io/v1/namespaces/theirs/leases";

const CLIENTS: usize = 8;

/// For how long each kind of requests is sent.
const TIME: Duration = Duration::from_secs(5);

/// The maker of requests of one kind, each for the Lease of one client.
type Make = Box<dyn Fn(&Client, &str, usize) -> RequestBuilder + Send + Sync>;

pub(crate) async fn measure() {
    let server = Arc::new(Server::start("memory:leases"));
    let mut mine = server.create(1).await.remove(0);
    for client in 0..CLIENTS {
        let lease = json!({"metadata": {"name": format!("web-{client}")}, "spec": {"holderIdentity": "a"}});
        send(server.client.post(format!("{}{THEIRS}", server.url)).json(&lease)).await;
    }
    for (what, ask) in patches() {
        mine = beside(&server, mine, what, ask).await;
    }
    create_large(&server).await;
    for (what, ask) in selectors() {
        mine = beside(&server, mine, what, ask).await;
    }
    // From now on, because the first events of all would be gigabytes.
    let listed: Value = send(server.client.get(format!("{}{THEIRS}?limit=1", server.url))).await.json().await.unwrap();
    let version = listed["metadata"]["resourceVersion"].as_str().unwrap();
    let watches: Vec<_> = join_all((0..WATCHES).map(|_| watch(&server, version))).await;
    let watches: Vec<_> = watches.into_iter().map(|watch| tokio::spawn(read(watch))).collect();
    let renew: Make = Box::new(|client, url, _| {
        let count = RENEWED.fetch_add(1, Ordering::Relaxed);
        let (place, renewed) = (count % LARGE, json!({"metadata": {"annotations": {"count": count.to_string()}}}));
        let request = client.patch(format!("{url}{THEIRS}/large-{place}"));
        request.header("content-type", "application/merge-patch+json").body(renewed.to_string())
    });
    let what = format!("renewals of large Leases that {WATCHES} watches with long selectors see");
    beside(&server, mine, &what, renew).await;
    watches.iter().for_each(tokio::task::JoinHandle::abort);
    println!("  the watches have seen {} bytes", SEEN.load(Ordering::Relaxed));
    memory().await;
}

/// Renews a Lease while all clients of the other tenant send requests of one kind, and prints how long a renewal takes.
async fn beside(server: &Arc<Server>, mut mine: Value, what: &str, ask: Make) -> Value {
    let (is_over, ask) = (Arc::new(AtomicBool::new(false)), Arc::new(ask));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (server, is_over, ask) = (Arc::clone(server), Arc::clone(&is_over), Arc::clone(&ask));
            tokio::spawn(async move {
                let (mut count, mut status) = (0, 0);
                while !is_over.load(Ordering::Relaxed) {
                    let mut answer = send(ask(&server.client, &server.url, client)).await;
                    status = answer.status().as_u16();
                    // Of a watch, whose answer has no end, the first events.
                    let is_watch = answer.url().query().is_some_and(|query| query.contains("watch=1"));
                    while answer.chunk().await.unwrap().is_some() && !is_watch {}
                    count += 1;
                }
                (count, status)
            })
        })
        .collect();
    let (began, mut number, mut times) = (Instant::now(), 0, Vec::new());
    while began.elapsed() < TIME {
        let (lease, took) = server.renew(mine.take(), number).await;
        mine = lease;
        times.push(took);
        number += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let answers: Vec<(u32, u16)> = join_all(clients).await.into_iter().map(Result::unwrap).collect();
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let count: u32 = answers.iter().map(|(count, _)| count).sum();
    println!(
        "{what}: {count} requests, the last answered {}; a renewal takes {median:?}, at worst {worst:?}",
        answers[0].1
    );
    mine
}

/// The number of large Leases that have been renewed.
static RENEWED: AtomicUsize = AtomicUsize::new(0);

/// The number of large Leases, whose labels a selector reads.
const LARGE: usize = 600;

/// The most watches of a tenant.
const WATCHES: usize = 500;

/// A selector with as many requirements as there may be, of which every Lease fulfils all.
fn long_selector() -> String {
    (0..100).map(|number| format!("!label-{number}")).collect::<Vec<_>>().join(",")
}

async fn create_large(server: &Server) {
    let (url, client) = (format!("{}{THEIRS}", server.url), &server.client);
    let create = |number: usize| {
        let metadata = json!({"name": format!("large-{number}"), "annotations": {"note": "x".repeat(30_000)}});
        send(client.post(&url).json(&json!({"metadata": metadata, "spec": {"holderIdentity": "a"}})))
    };
    let created: Vec<Response> = stream::iter(0..LARGE).map(create).buffered(16).collect().await;
    assert!(created.iter().all(|answer| answer.status() == 201));
}

/// Begins a watch of the Leases of the other tenant.
async fn watch(server: &Server, version: &str) -> Response {
    // Nobody needs certificates here.
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let query = format!("watch=1&resourceVersion={version}&labelSelector={}", long_selector());
    let answer = send(client.get(format!("{}{THEIRS}?{query}", server.url))).await;
    assert_eq!(answer.status(), 200);
    answer
}

/// The bytes of events that watches have read.
static SEEN: AtomicUsize = AtomicUsize::new(0);

async fn read(mut watch: Response) {
    while let Ok(Some(events)) = watch.chunk().await {
        SEEN.fetch_add(events.len(), Ordering::Relaxed);
    }
}

fn selectors() -> Vec<(&'static str, Make)> {
    let get = |query: String| -> Make { Box::new(move |client, url, _| client.get(format!("{url}{THEIRS}?{query}"))) };
    vec![
        ("listings of large Leases", get(String::new())),
        ("listings with long selectors", get(format!("limit=1&labelSelector={}", long_selector()))),
        ("watches with long selectors", get(format!("watch=1&labelSelector={}", long_selector()))),
    ]
}

async fn send(request: RequestBuilder) -> Response {
    request.send().await.unwrap()
}

fn patches() -> Vec<(&'static str, Make)> {
    let patched = |content: &'static str, patch: Value| -> Make {
        let patch = patch.to_string();
        assert!(patch.len() <= 64 * 1024, "{}", patch.len());
        Box::new(move |client, url, number| {
            let request = client.patch(format!("{url}{THEIRS}/web-{number}")).header("content-type", content);
            request.body(patch.clone())
        })
    };
    let json = "application/json-patch+json";
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let copy = || json!({"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/b"});
    let copies = |length, count| {
        let text = add("/metadata/labels", json!({"a": "x".repeat(length)}));
        Value::Array([vec![text], vec![copy(); count]].concat())
    };
    let mut shifts = vec![add("/spec/a", Value::Array(vec![json!(0); 12_000]))];
    shifts.extend(vec![add("/spec/a/0", json!(0)); 840]);
    let notes: serde_json::Map<_, _> = (0..2_500).map(|number| (format!("n{number}"), json!("x"))).collect();
    vec![
        ("patches that copy a text of 20 kB 400 times", patched(json, copies(20_000, 400))),
        ("patches that copy as much as they may", patched(json, copies(60, 600))),
        ("patches that shift an array", patched(json, Value::Array(shifts))),
        (
            "patches with 1,000 tests",
            patched(
                json,
                Value::Array(vec![json!({"op": "test", "path": "/spec/holderIdentity", "value": "a"}); 1_000]),
            ),
        ),
        (
            "merges of 2,500 annotations",
            patched("application/merge-patch+json", json!({"metadata": {"annotations": notes}})),
        ),
        (
            "strategic patches with 4,000 owners",
            patched(
                "application/strategic-merge-patch+json",
                json!({"metadata": {"ownerReferences": (0..4_000).map(|uid| json!({"uid": uid})).collect::<Vec<_>>()}}),
            ),
        ),
    ]
}

/// Prints the memory that listings and watches of a tenant with large Leases take.
async fn memory() {
    let server = Server::start("memory:leases");
    let (url, client) = (format!("{}{THEIRS}", server.url), &server.client);
    println!("memory of a server without Leases: {} KiB", server.memory());
    create_large(&server).await;
    println!("memory with {LARGE} Leases of 30 kB: {} KiB", server.memory());
    let mut most = 0;
    let listings = join_all((0..CLIENTS).map(async |_| send(client.get(&url)).await.bytes().await.unwrap().len()));
    tokio::pin!(listings);
    let began = Instant::now();
    let sizes = loop {
        tokio::select! {
            sizes = &mut listings => break sizes,
            () = tokio::time::sleep(Duration::from_millis(2)) => most = most.max(server.memory()),
        }
    };
    println!("memory in {CLIENTS} listings of {} bytes, in {:?}: {most} KiB", sizes[0], began.elapsed());

    let server = Server::start("memory:leases");
    let (url, before) = (format!("{}{LEASES}", server.url), server.memory());
    for selector in ["a,".repeat(7_000), "a,".repeat(100)] {
        // Each watch is a connection.
        let client = Client::builder().pool_max_idle_per_host(0).build().unwrap();
        let watches =
            join_all((0..300).map(|_| send(client.get(format!("{url}?watch=1&labelSelector={selector}"))))).await;
        let (length, status) = (selector.len(), watches[0].status().as_u16());
        println!(
            "300 watches with selectors of {length} bytes, answered {status}: {} KiB more",
            server.memory() - before
        );
    }
}
