//! The end of the sidecar.

use reqwest::{Client, StatusCode};
use rustix::process::Signal;

use super::sidecar::{Sidecar, lock_in, serve, serve_at};
use crate::peers::own_address;

#[tokio::test]
async fn a_signal_releases_the_lease() {
    for signal in [Signal::TERM, Signal::INT] {
        let directory = tempfile::tempdir().unwrap();
        let lock = lock_in(directory.path());
        let mut command = serve_at(&own_address(), &lock, "alpha");
        let mut alpha = Sidecar::spawn(command.args(["--drain", "0s"])).await;
        alpha.answers("/leading", StatusCode::OK).await;
        let beta = Sidecar::start(&lock, "beta").await;
        beta.sees("alpha").await;

        alpha.signal(signal);
        assert_eq!(alpha.ended().await.code(), Some(0), "{}", alpha.said());
        let leader = beta.sees("beta").await;
        assert_eq!((&leader["fencingToken"], &leader["leading"]), (&2.into(), &true.into()));
        let (_, page) = beta.ask("/").await;
        assert!(page.contains("started leading with fencing token 2: the lease was free"), "not by expiry: {page}");
        assert!(Client::new().get(alpha.url()).send().await.is_err(), "nobody serves there any more");
    }
}

#[tokio::test]
async fn a_follower_ends_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let alpha = Sidecar::start(&lock, "alpha").await;
    alpha.sees("alpha").await;
    let mut command = serve(&lock, "beta");
    let mut beta = Sidecar::spawn(command.args(["--drain", "1day"])).await;
    beta.sees("alpha").await;
    beta.signal(Signal::TERM);
    assert_eq!(beta.ended().await.code(), Some(0), "{}", beta.said());
    assert_eq!(alpha.leader().await["fencingToken"], 1, "alpha leads on");
}

#[tokio::test]
async fn a_leader_drains_until_it_is_told_again() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let mut command = serve(&lock, "alpha");
    let mut alpha = Sidecar::spawn(command.args(["--drain", "1day"])).await;
    alpha.answers("/leading", StatusCode::OK).await;
    let beta = Sidecar::start(&lock, "beta").await;

    alpha.signal(Signal::TERM);
    assert_eq!(alpha.answers("/leading", StatusCode::SERVICE_UNAVAILABLE).await, "shutting down\n");
    assert_eq!(alpha.ask("/readyz").await, (StatusCode::SERVICE_UNAVAILABLE, "not ready: shutting down\n".to_owned()));
    assert_eq!(alpha.ask("/healthz").await.0, StatusCode::OK);
    assert_eq!(alpha.leader().await["leading"], true, "it leads until the balancers have noticed");
    let (_, page) = alpha.ask("/").await;
    assert!(page.contains("and it is about to stop"), "{page}");
    beta.sees("alpha").await;

    alpha.signal(Signal::TERM);
    assert_eq!(alpha.ended().await.code(), Some(0), "{}", alpha.said());
    beta.sees("beta").await;
}

#[tokio::test]
async fn without_a_choice_a_leader_drains_for_one_lease() {
    let directory = tempfile::tempdir().unwrap();
    let mut alpha = Sidecar::spawn(serve(&lock_in(directory.path()), "alpha").args(["--lease-duration", "8s"])).await;
    alpha.answers("/leading", StatusCode::OK).await;
    let told = std::time::Instant::now();
    alpha.signal(Signal::TERM);
    assert_eq!(alpha.answers("/leading", StatusCode::SERVICE_UNAVAILABLE).await, "shutting down\n");
    assert_eq!(alpha.leader().await["leading"], true);
    assert_eq!(alpha.ended().await.code(), Some(0), "{}", alpha.said());
    assert!(told.elapsed() >= std::time::Duration::from_secs(8));
}

#[tokio::test]
async fn a_drain_ends_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    let mut alpha = Sidecar::spawn(command.args(["--drain", "300ms"])).await;
    alpha.answers("/leading", StatusCode::OK).await;
    alpha.signal(Signal::TERM);
    assert_eq!(alpha.ended().await.code(), Some(0), "{}", alpha.said());
    assert!(
        alpha.said().contains("keeping the lease for 300ms, so that clients of /leading can finish"),
        "{}",
        alpha.said()
    );
}
