//! The published fence on real servers: two leaders with the tokens 1 and 2, in every order of their requests.
//!
//! The effects of lost answers are the same on all stores, and the core's tests cover every way to lose one.

use std::sync::Arc;

use leaderelection_backends::file::FileStore;
use leaderelection_conformance::{Duel, check_fence};

use crate::cloud::Cloud;

/// The setting for a server that is slow, far away, or accepts only one write per second.
const SHORT: Duel = Duel { writes: 1, loses_an_answer: false };

/// Checks that the two leaders lose no write in any of this number of orders.
async fn on(cloud: Arc<Cloud>, duel: Duel, orders: usize) {
    assert_eq!(check_fence(cloud.store().await, &cloud.key(), duel).await, orders);
    cloud.clear().await;
}

#[tokio::test]
async fn on_s3() {
    let cloud = Cloud::s3().await;
    let (duel, orders) = if cloud.is_real() { (SHORT, 18) } else { (Duel::default(), 235) };
    on(cloud, duel, orders).await;
}

#[tokio::test]
async fn on_azure() {
    on(Cloud::azure().await, SHORT, 18).await;
}

#[tokio::test]
async fn on_gcs() {
    on(Cloud::gcs().await, SHORT, 18).await;
}

#[tokio::test]
async fn in_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(check_fence(FileStore::new(directory.path()), "key", Duel::default()).await, 235);
}
