//! The adapters for `opendal`, on that crate's own services.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::causes::with_causes;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, ListedObject, Precondition, Version};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectLock, ObjectStoreBasedLock as _,
    StoreErrorKind,
};
use leaderelection_backends::opendal::{OpendalAdapter, OpendalObjects};
use leaderelection_conformance::{ProbeConfig, Verdict, check_store, probe};
use leaderelection_integration_tests::adapted::{Place, opendal};
use leaderelection_integration_tests::servers::oss::Oss;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer};
use leaderelection_sequenced::{CreateOnlyStore as _, SequencedStore};
use opendal::Operator;
use opendal::services::Fs;
use tokio_util::sync::CancellationToken;

use super::{EFFORT, scripted};

fn on(place: &Place, retries: bool) -> OpendalAdapter {
    OpendalAdapter::new(opendal(place, retries)).expect("it can replace")
}

fn on_oss(server: &Oss) -> Operator {
    opendal(&Place::Oss { endpoint: server.url(), keep: 1 }, false)
}

#[tokio::test]
async fn an_answer_is_judged_by_its_kind() {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal};
    // Without a code in its body, OpenDAL gives a 409 no kind of its own.
    let verdicts = [(409, Ambiguous), (412, Conflict), (429, Ambiguous), (500, Ambiguous), (403, Fatal)];
    for (status, kind) in verdicts {
        for condition in [Precondition::Absent, Precondition::Matches(Version::new("\"etag\""))] {
            let server = ScriptedServer::start([Answer::new(status).into()]).await;
            let error = on(&scripted(&server), false).put("key", "{}".into(), &condition).await.expect_err("an error");
            assert_eq!(error.kind(), kind, "{status}, {condition:?}: {error:?}");
        }
    }
    let busy = Answer::new(409).body("<Error><Code>ConditionalRequestConflict</Code></Error>");
    let server = ScriptedServer::start([busy.into()]).await;
    let condition = Precondition::Matches(Version::new("\"etag\""));
    let error = on(&scripted(&server), false).put("key", "{}".into(), &condition).await.expect_err("an error");
    assert_eq!(error.kind(), Conflict, "{}", with_causes(&error));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sequenced_store_needs_conditional_creations_only() {
    let server = Oss::start().await;
    let operator = on_oss(&server);
    let error = OpendalAdapter::new(operator.clone()).expect_err("it cannot replace");
    assert!(error.to_string().contains("can create an object conditionally, but not replace one"), "{error}");
    let store = SequencedStore::new(OpendalObjects::new(operator).expect("it can create"));
    check_store(store.clone(), "conformance", EFFORT).await;
    let report = probe(store.clone(), &ProbeConfig::default()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    assert_eq!(ListedObject::keys(store.list("").await.expect("a listing")), Vec::<String>::new());
}

#[tokio::test]
async fn a_leader_renews_and_is_replaced_where_only_creations_have_a_condition() {
    let server = Oss::start().await;
    let store = Arc::new(SequencedStore::new(OpendalObjects::new(on_oss(&server)).expect("it can create")));
    for (token, identity) in ["first", "second"].into_iter().enumerate() {
        let lock = ObjectLock::new(Arc::clone(&store), "locks/scheduler", identity);
        let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
        let config = LeaderElectionConfig::builder(lock.clone(), callbacks)
            .lease_duration(Duration::from_secs(60))
            .renew_deadline(Duration::from_secs(40))
            .retry_period(Duration::from_millis(50))
            .release_on_cancel(true)
            .build()
            .expect("timings that fit");
        let (elector, cancel) = (DefaultLeaderElector::new(config), CancellationToken::new());
        let mut handle = elector.handle();
        let running = tokio::spawn({
            let cancel = cancel.clone();
            async move { elector.run(cancel.cancelled_owned()).await }
        });
        let patience = Duration::from_secs(60);
        let leading = tokio::time::timeout(patience, handle.elected()).await.expect("in time").expect("elected");
        assert_eq!(leading.fencing_token(), token as u64 + 1);
        let first = lock.get().await.expect("read").expect("a record").version;
        let renewed = async {
            loop {
                match lock.get().await {
                    Ok(Some(found)) if found.version != first => return,
                    Ok(_) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        };
        tokio::time::timeout(patience, renewed).await.expect("a renewal in time");
        cancel.cancel();
        running.await.expect("no panic").expect("the store is fit");
        assert_eq!(lock.get().await.expect("read").expect("a record").record.holder_identity, "");
    }
}

#[tokio::test]
async fn the_server_ignores_no_condition_silently() {
    let server = Oss::start().await;
    let operator = on_oss(&server);
    let error = operator.write("key", "without a condition").await.expect_err("not implemented");
    assert!(error.to_string().contains("NotImplemented"), "{error}");
    let objects = OpendalObjects::new(operator).expect("it can create");
    objects.create("key", "{}\n".into()).await.expect("created");
    let error = objects.create("key", "{}\n".into()).await.expect_err("there is one");
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error:?}");
}

/// As a bucket of OSS that has, or once had, versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_probe_finds_a_bucket_with_versions() {
    let server = Oss::with_versions().await;
    let objects = OpendalObjects::new(on_oss(&server)).expect("it claims to create");
    let report = probe(SequencedStore::new(objects), &ProbeConfig::default()).await;
    assert_eq!(report.verdict(), Verdict::Unfit, "{report}");
}

/// A listing of OpenDAL leaves out a file that is removed while the listing reads it.
#[test]
fn a_directory_is_refused() {
    let service = Fs::default().root(env!("CARGO_TARGET_TMPDIR"));
    let error = OpendalObjects::new(Operator::new(service).expect("a directory")).expect_err("it promises too little");
    assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error:?}");
    assert!(
        error.to_string().contains("the service fs of opendal") && error.to_string().contains("FileStore"),
        "{error}"
    );
}
