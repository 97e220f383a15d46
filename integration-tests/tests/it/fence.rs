//! The published fence on real servers: two leaders with the tokens 1 and 2, in every order of their requests.
//!
//! The effects of lost answers are the same on all stores, and the core's tests cover every way to lose one.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::routing::put;
use axum::{Extension, Router};
use leaderelection::FencingToken;
use leaderelection::fence::{FENCING_TOKEN, FenceLayer};
use leaderelection_backends::file::FileStore;
use leaderelection_conformance::{Duel, check_fence};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

use crate::cloud::Cloud;

/// Checks that the two leaders lose no write in any order. A test run has one write of each leader, and `.ci/deep` two.
async fn on(cloud: Arc<Cloud>) {
    let writes = std::env::var("LEADERELECTION_TEST_WRITES").map_or(1, |writes| writes.parse().expect("a number"));
    let orders = if writes == 1 { 18 } else { 235 };
    let duel = Duel { writes, loses_an_answer: false };
    assert_eq!(check_fence(cloud.store().await, &cloud.key(), duel).await, orders);
    cloud.clear().await;
}

#[tokio::test]
async fn on_s3() {
    on(Cloud::s3().await).await;
}

#[tokio::test]
async fn on_azure() {
    on(Cloud::azure().await).await;
}

#[tokio::test]
async fn on_gcs() {
    on(Cloud::gcs().await).await;
}

#[tokio::test]
async fn in_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(check_fence(FileStore::new(directory.path()), "key", Duel::default()).await, 235);
}

/// A server of axum behind the layer, and two leaders of which the older one is in the middle of its request.
#[tokio::test]
async fn before_a_server_of_axum() {
    let (begun, mut begins) = mpsc::unbounded_channel();
    let go = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&go);
    let handler = async move |Extension(token): Extension<FencingToken>| {
        begun.send(u64::from(token)).expect("the test listens");
        permits.acquire().await.expect("it is never closed").forget();
    };
    let routes = Router::new().route("/", put(handler)).layer(FenceLayer::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    let client = reqwest::Client::new();
    let send = |token: u64| tokio::spawn(client.put(&url).header(FENCING_TOKEN, token).send());

    let old = send(5);
    assert_eq!(begins.recv().await, Some(5));
    let new = send(6);
    go.add_permits(1);
    assert_eq!(old.await.expect("a task").expect("an answer").status(), 200);
    assert_eq!(begins.recv().await, Some(6));
    // This one comes while the newer leader's is in the handler.
    let refused = send(5).await.expect("a task").expect("an answer");
    assert_eq!((refused.status().as_u16(), &refused.headers()[FENCING_TOKEN]), (412, &HeaderValue::from(6)));
    go.add_permits(1);
    assert_eq!(new.await.expect("a task").expect("an answer").status(), 200);

    // A client that goes away takes its request out of the handler.
    let gone = send(6);
    assert_eq!(begins.recv().await, Some(6));
    gone.abort();
    let next = send(7);
    assert_eq!(begins.recv().await, Some(7));
    go.add_permits(1);
    assert_eq!(next.await.expect("a task").expect("an answer").status(), 200);
    server.abort();
}
