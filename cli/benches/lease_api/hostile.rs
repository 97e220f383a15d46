//! The price that others pay for a tenant who asks for as much as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let mut mine = server.create(1).await;
    for client in 0..CLIENTS {
        let lease = json!({"metadata": {"name": format!("web-{client}")}, "spec": {"holderIdentity": "a"}});
        send(server.client.post(format!("{}{THEIRS}", server.url)).json(&lease)).await;
    }
    for (what, ask) in kinds() {
        let (is_over, ask) = (Arc::new(AtomicBool::new(false)), Arc::new(ask));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (server, is_over, ask) = (Arc::clone(&server), Arc::clone(&is_over), Arc::clone(&ask));
                tokio::spawn(async move {
                    let (mut count, mut status) = (0, 0);
                    while !is_over.load(Ordering::Relaxed) {
                        status = send(ask(&server.client, &server.url, client)).await.status().as_u16();
                        count += 1;
                    }
                    (count, status)
                })
            })
            .collect();
        let (began, mut number, mut times) = (Instant::now(), 0, Vec::new());
        while began.elapsed() < TIME {
            let (lease, took) = server.renew(mine[0].take(), number).await;
            mine[0] = lease;
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
    }
    memory().await;
}

async fn send(request: RequestBuilder) -> Response {
    request.send().await.unwrap()
}

fn kinds() -> Vec<(&'static str, Make)> {
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
    let create = |number: usize| {
        let metadata = json!({"name": format!("large-{number}"), "annotations": {"note": "x".repeat(32_000)}});
        let lease = json!({"metadata": metadata, "spec": {"holderIdentity": "a"}});
        send(client.post(&url).json(&lease))
    };
    println!("memory of a server without Leases: {} KiB", server.memory());
    let created: Vec<Response> = stream::iter(0..600).map(create).buffered(16).collect().await;
    assert!(created.iter().all(|answer| answer.status() == 201));
    println!("memory with 600 Leases of 32 kB: {} KiB", server.memory());
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
