//! The counts and the log of a server.

use std::collections::BTreeMap;

use leaderelection::StoreErrorKind::Fatal;
use leaderelection_test_support::logs::logged;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tracing::Level;

use crate::api::{Api, LEASES, MERGE, WEB, lease};

#[tokio::test]
async fn requests_are_counted_and_measured_by_their_verbs() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (api, lease) = (Api::new(), lease("a").to_string());
    for (method, path, content, body) in [
        ("POST", LEASES, "", &*lease),
        ("GET", WEB, "", ""),
        ("PUT", WEB, "", "{}"),
        ("PATCH", WEB, MERGE, "{}"),
        ("DELETE", WEB, "", ""),
        ("OPTIONS", WEB, "", ""),
    ] {
        drop(api.send(method, path, content, body.to_owned()).await);
    }
    let (mut counted, mut measured) = (BTreeMap::new(), BTreeMap::new());
    for (key, _, _, value) in recorder.snapshotter().snapshot().into_vec() {
        let (_, key) = key.into_parts();
        let labels: Vec<_> = key.labels().map(|label| label.value().to_owned()).collect();
        let _ = match value {
            DebugValue::Counter(count) => counted.insert(labels.join(" "), count),
            DebugValue::Histogram(times) => measured.insert(labels.join(" "), times.len() as u64),
            DebugValue::Gauge(_) => None,
        };
    }
    let expected = ["create 201", "delete 200", "get 200", "other 405", "patch 200", "update 400"];
    assert!(counted.keys().eq(expected.iter()) && counted.values().all(|count| *count == 1), "{counted:?}");
    let expected = expected.map(|counted| &counted[..counted.len() - " 200".len()]);
    assert!(measured.keys().eq(expected.iter()) && measured.values().all(|times| *times == 1), "{measured:?}");
}

#[test]
fn a_failure_of_the_server_is_a_warning_and_a_mistake_of_a_client_is_none() {
    let warnings = logged(Level::WARN, async || {
        let api = Api::new();
        api.get().await.is(404);
        api.store.begin_outage(Fatal);
        api.get().await.is(500);
    });
    assert!(matches!(&warnings[..], [warning] if warning.contains("injected")), "{warnings:?}");
}
