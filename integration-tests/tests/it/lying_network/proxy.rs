//! The proxy itself, simulating a faulty store.

use std::sync::Arc;

use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection_integration_tests::history::{History, Recorded, verdict};
use leaderelection_integration_tests::proxy::Conditions;
use tempfile::NamedTempFile;
use tokio::task::JoinSet;

use crate::cloud::Cloud;

/// Returns the number of simultaneous creates that succeed.
async fn winners(store: &Arc<dyn ConditionalStore>, key: String, racers: usize) -> usize {
    let mut writes = JoinSet::new();
    for racer in 0..racers {
        let (store, key) = (Arc::clone(store), key.clone());
        writes.spawn(async move { store.put(&key, format!("{racer}").into(), &Precondition::Absent).await });
    }
    writes.join_all().await.iter().filter(|written| written.is_ok()).count()
}

pub(super) async fn a_server_that_ignores_conditions_lets_everybody_win(cloud: Arc<Cloud>) {
    let proxy = cloud.proxy().await;
    let store = cloud.store_by(&proxy).await;
    assert_eq!(winners(&store, cloud.key(), 4).await, 1);
    proxy.set_conditions(Conditions::Ignored);
    let (key, history) = (cloud.key(), NamedTempFile::new().expect("a file"));
    let noted = Recorded::new(Arc::clone(&store), &key, History::of(0, history.path()).expect("a file"));
    let noted: Arc<dyn ConditionalStore> = noted;
    assert_eq!(winners(&noted, key, 4).await, 4);
    if let Some(verdict) = verdict(history.path(), true) {
        verdict.expect_err("no order of the creations explains that all have succeeded");
    }
    let key = cloud.key();
    let first = store.put(&key, "1".into(), &Precondition::Absent).await.expect("written");
    store.put(&key, "2".into(), &Precondition::Matches(first.clone())).await.expect("written");
    store.put(&key, "3".into(), &Precondition::Matches(first)).await.expect("written over another version");
    assert_eq!(store.get(&key).await.expect("read").expect("an object").body, "3");
}

pub(super) async fn a_server_without_conditions_under_races_looks_honest_alone(cloud: Arc<Cloud>) {
    let proxy = cloud.proxy().await;
    let store = cloud.store_by(&proxy).await;
    proxy.set_conditions(Conditions::IgnoredUnderConcurrency);
    let key = cloud.key();
    store.put(&key, "1".into(), &Precondition::Absent).await.expect("written");
    let again = store.put(&key, "2".into(), &Precondition::Absent).await.expect_err("there is one");
    assert_eq!(again.kind(), StoreErrorKind::Conflict);
    let mut most = 0;
    for _ in 0..20 {
        most = most.max(winners(&store, cloud.key(), 8).await);
        if most > 1 {
            return;
        }
    }
    panic!("nobody wins wrongly");
}
