//! Networks that lie on both sides of the real server: a write that is committed is never told as refused.

use std::time::Duration;

use leaderelection_integration_tests::proxy::sign::unsigned;
use leaderelection_integration_tests::proxy::{Delivery, Fault, Proxy, Reply, Request};
use leaderelection_integration_tests::servers::racy_s3::RacyS3;
use reqwest::Method;
use serde_json::Value;

use super::{LEASES, lease, lease_api};
use crate::fake_s3::with_keys;
use crate::serve::sidecar::Sidecar;
use crate::support::CLIENT;

async fn send(url: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let answer = CLIENT.request(method, format!("{url}{path}")).json(body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lie_of_a_network_makes_a_committed_write_a_refused_one() {
    let s3 = RacyS3::start(Duration::ZERO);
    let store = Proxy::start(&s3.url(), unsigned()).await;
    let folder = format!("s3://bucket/leases?endpoint={}", store.url());
    let server = Sidecar::spawn(&mut with_keys(lease_api(&folder, "127.0.0.1:0"))).await;
    let other = Sidecar::spawn(&mut with_keys(lease_api(&folder, "127.0.0.1:0"))).await;
    let balancer = Proxy::start(server.url().trim_end_matches('/'), unsigned()).await;
    let is_put = |request: &Request| request.method == Method::PUT;
    let is_write = |request: &Request| [Method::PUT, Method::POST, Method::PATCH].contains(&request.method);
    let statuses = [412, 409, 404, 429, 500, 503].map(|status| Fault::new(Delivery::Once, Reply::Status(status)));
    let twice = Fault::new(Delivery::Twice, Reply::Second);
    let silent = Fault::new(Delivery::Once, Reply::Cut);
    for (number, fault) in statuses.into_iter().chain([twice, silent]).enumerate() {
        let mut created = lease("a");
        created["metadata"]["name"] = format!("web-{number}").into();
        created["spec"]["acquireTime"] = "2026-02-02T10:15:30.000000Z".into();
        let web = format!("{LEASES}/web-{number}");
        store.spoil(0, is_put, fault);
        let (status, held) = send(server.url(), Method::POST, LEASES, &created).await;
        assert_eq!(status, 201, "{fault:?}: {held}");
        let mut renewed = held.clone();
        renewed["spec"]["renewTime"] = "2026-02-02T10:16:00.000000Z".into();
        store.spoil(0, is_put, fault);
        let (status, committed) = send(server.url(), Method::PUT, &web, &renewed).await;
        assert_eq!((status, &committed["spec"]), (200, &renewed["spec"]), "{fault:?}: {committed}");

        // The balancer got no answer, and asks another server, or this one.
        for url in [other.url(), server.url()] {
            assert_eq!(send(url, Method::PUT, &web, &renewed).await, (200, committed.clone()), "{url}");
        }
        balancer.spoil(0, is_write, twice);
        renewed = committed.clone();
        renewed["spec"]["renewTime"] = "2026-02-02T10:17:00.000000Z".into();
        let (status, committed) = send(&balancer.url(), Method::PUT, &web, &renewed).await;
        assert_eq!((status, &committed["spec"]), (200, &renewed["spec"]), "twice through the balancer: {committed}");
        store.forget_faults();
    }
}
