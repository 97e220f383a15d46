//! One request on the wire for each call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, Precondition, Version};
use leaderelection_integration_tests::proxy::{Delivery, Fault, Proxy, Reply};

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
enum Call<'a> {
    Get(&'a str),
    Put(&'a str, Precondition),
    Delete(&'a str, Version),
    List(&'a str),
}

async fn calls(cloud: Arc<Cloud>, fault: Fault) {
    let [key, doomed, new] = [cloud.key(), cloud.key(), cloud.key()];
    let direct = cloud.store().await;
    let version = direct.put(&key, record("first"), &Precondition::Absent).await.expect("written");
    let last = direct.put(&doomed, record("first"), &Precondition::Absent).await.expect("written");
    let stale = Version::new("1");
    let overwrites = [version, stale].map(|expected| Call::Put(&key, Precondition::Matches(expected)));
    let mut calls = vec![Call::Get(&key), Call::Put(&new, Precondition::Absent)];
    calls.extend(overwrites);
    // Google's deletions and listings use gRPC, and the fake counts them: see `gcs::attempts`.
    if cloud.is_all_http() {
        calls.extend([Call::List(&key), Call::Delete(&doomed, last)]);
    }
    let proxy = cloud.proxy().await;
    let store = cloud.store_by(&proxy).await;
    // Whoever writes over a version has read it.
    store.get(&key).await.expect("read");
    if fault.reply == Reply::Silence {
        attempt(&proxy, &*store, fault, &calls).await;
    } else {
        // In turn, by one connection: one for each would be a hundred handshakes at once, which two processors do not end
        // within the stores' time limit.
        for call in calls {
            attempt(&proxy, &*store, fault, &[call]).await;
        }
    }
}

/// A record, because not every store takes another body.
fn record(holder: &str) -> Bytes {
    LeaderElectionRecord::new(holder, Duration::from_secs(1)).to_json().into()
}

/// Makes these calls at the same time.
async fn attempt(proxy: &Proxy, store: &dyn ConditionalStore, fault: Fault, calls: &[Call<'_>]) {
    let before = proxy.traffic().len();
    proxy.set_outage(Some(fault));
    let calling = join_all(calls.iter().map(async |call| match call {
        Call::Get(key) => store.get(key).await.map(drop),
        Call::Put(key, precondition) => store.put(key, record("second"), precondition).await.map(drop),
        Call::Delete(key, expected) => store.delete(key, Some(expected)).await,
        Call::List(prefix) => store.list(prefix).await.map(drop),
    }));
    let waiting = async {
        proxy.wait_for("the requests", |traffic| traffic.len() >= before + calls.len()).await;
        // Under some faults, the calls never return.
        tokio::time::sleep(LONG_ENOUGH).await;
    };
    tokio::select! {
        _ = calling => {}
        () = waiting => {}
    }
    let requests = proxy.traffic().split_off(before);
    assert_eq!(requests.len(), calls.len(), "{calls:?}: {requests:#?}");
}
