//! One request on the wire for each call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use leaderelection::{LeaderElectionRecord, Precondition, Version};
use leaderelection_integration_tests::proxy::{Delivery, Fault, Reply};

use super::lies::LIES;
use super::run_all;
use crate::cloud::Cloud;

/// The time within which a client with retries would repeat an unanswered request.
const LONG_ENOUGH: Duration = Duration::from_secs(3);

pub(super) async fn the_sdk_makes_exactly_one_attempt(cloud: Arc<Cloud>) {
    let more = [
        ("answered 408", Fault::new(Delivery::Never, Reply::Status(408))),
        ("answered 502", Fault::new(Delivery::Never, Reply::Status(502))),
        ("answered 504", Fault::new(Delivery::Once, Reply::Status(504))),
    ];
    let faults = LIES.map(|lie| (lie.name, lie.fault)).into_iter().chain(more);
    run_all(faults.map(|(name, fault)| (name, calls(Arc::clone(&cloud), fault)))).await;
}

#[derive(Clone, Debug)]
enum Call {
    Get,
    Put(Precondition),
    Delete(Version),
    List,
}

async fn calls(cloud: Arc<Cloud>, fault: Fault) {
    let [key, doomed, new] = [cloud.key(), cloud.key(), cloud.key()];
    let direct = cloud.store().await;
    let version = direct.put(&key, record("first"), &Precondition::Absent).await.expect("written");
    let last = direct.put(&doomed, record("first"), &Precondition::Absent).await.expect("written");
    let stale = Version::new("1");
    tokio::join!(
        attempt(&cloud, fault, &key, Call::Get),
        attempt(&cloud, fault, &key, Call::Put(Precondition::Matches(version))),
        attempt(&cloud, fault, &key, Call::Put(Precondition::Matches(stale))),
        attempt(&cloud, fault, &new, Call::Put(Precondition::Absent)),
    );
    // Google's deletions and listings use gRPC, and the fake counts them: see `gcs::attempts`.
    if cloud.is_all_http() {
        tokio::join!(attempt(&cloud, fault, &key, Call::List), attempt(&cloud, fault, &doomed, Call::Delete(last)),);
    }
}

/// A record, because not every store takes another body.
fn record(holder: &str) -> Bytes {
    LeaderElectionRecord::new(holder, Duration::from_secs(1)).to_json().into()
}

async fn attempt(cloud: &Cloud, fault: Fault, key: &str, call: Call) {
    let proxy = cloud.proxy().await;
    let store = cloud.store_by(&proxy).await;
    // Whoever writes over a version has read it.
    store.get(key).await.expect("read");
    let before = proxy.traffic().len();
    proxy.set_outage(Some(fault));
    let calling = async {
        match &call {
            Call::Get => store.get(key).await.map(drop),
            Call::Put(precondition) => store.put(key, record("second"), precondition).await.map(drop),
            Call::Delete(expected) => store.delete(key, expected).await,
            Call::List => store.list(key).await.map(drop),
        }
    };
    let waiting = async {
        proxy.wait_for("the request", |traffic| traffic.len() > before).await;
        // Under some faults, the call never returns.
        tokio::time::sleep(LONG_ENOUGH).await;
    };
    tokio::select! {
        _ = calling => {}
        () = waiting => {}
    }
    let requests = proxy.traffic().split_off(before);
    assert_eq!(requests.len(), 1, "{call:?}: {requests:#?}");
}
