//! A tenant that asks for as much as it can, and its neighbour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reqwest::Method;
use serde_json::{Value, json};

use super::{LEASES, lease, lease_api, send};
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;
use crate::support::Place;

/// Each copy doubles the levels of a value, and a value is dropped by recursion.
fn doubled_levels() -> Value {
    let mut operations = vec![json!({"op": "add", "path": "/spec/a", "value": {"a": {}}})];
    let (mut place, mut below) = ("/spec/a/a".to_owned(), "/a".to_owned());
    for _ in 0..12 {
        operations.push(json!({"op": "copy", "from": "/spec/a", "path": format!("{place}/a")}));
        (place, below) = (format!("{place}/a{below}"), format!("{below}/a{below}"));
    }
    operations.into()
}

/// A long text is copied into the same place again and again.
fn copied_again() -> Value {
    let text = json!({"op": "add", "path": "/metadata/labels", "value": {"a": "x".repeat(20_000)}});
    let again = json!({"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/b"});
    [vec![text], vec![again; 400]].concat().into()
}

#[tokio::test]
async fn a_neighbour_renews_beside_patches_that_would_end_or_stop_the_server() {
    let place = Place::new();
    let tokens = place.path("tokens");
    let (theirs, ours) = ("the-token-of-the-hostile-one", "the-token-of-the-neighbour");
    std::fs::write(&tokens, format!("{theirs} theirs\n{ours} default\n")).unwrap();
    let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
    let server = Sidecar::spawn(command.arg("--token-file").arg(&tokens)).await;
    let (_, mut held) = send(&server, Method::POST, LEASES, ours, &lease("a")).await;
    let leases = LEASES.replace("default", "theirs");
    assert_eq!(send(&server, Method::POST, &leases, theirs, &lease("b")).await.0, 201);

    let (refused, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let clients: Vec<_> = (0..8)
        .map(|number| {
            let patch = if number % 2 == 0 { doubled_levels() } else { copied_again() }.to_string();
            let url = format!("{}{leases}/web", server.url());
            let (refused, is_over) = (Arc::clone(&refused), Arc::clone(&is_over));
            tokio::spawn(async move {
                let client = reqwest::Client::new();
                while !is_over.load(Ordering::Relaxed) {
                    let request =
                        client.patch(&url).bearer_auth(theirs).header("content-type", "application/json-patch+json");
                    assert_eq!(request.body(patch.clone()).send().await.unwrap().status(), 422);
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut second = 0;
    eventually("each of the eight is refused, and the neighbour renews", async || {
        held["spec"]["renewTime"] = format!("2026-02-02T10:{:02}:{:02}.000000Z", second / 60, second % 60).into();
        second += 1;
        let (status, renewed) = send(&server, Method::PUT, &format!("{LEASES}/web"), ours, &held).await;
        assert_eq!(status, 200, "{renewed}");
        held = renewed;
        (second >= 10 && refused.load(Ordering::Relaxed) >= 40).then_some(())
    })
    .await;
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
}
