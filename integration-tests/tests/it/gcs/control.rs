//! Deletions and listings over gRPC to the fake, and the meaning of each gRPC code.

use google_cloud_storage::client::StorageControl;
use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, ListedObject, Precondition};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::servers::fake_gcs::{FakeGcs, Fault, Options};
use leaderelection_integration_tests::servers::scripted::Answer;

use super::CONTROL_CALLS;
use crate::calls::Call::{Delete, List};
use crate::calls::{CALLS, assert_error, assert_fails};
use crate::every_store::CloudStore as _;

#[tokio::test]
async fn each_code_has_its_meaning() {
    for (code, message, calls, kind, advice) in [
        (9, "conditions not met", &[Delete][..], Conflict, "changed, created or deleted meanwhile"),
        (10, "aborted", &[Delete], Conflict, "another writer"),
        (10, "aborted", &[List], Rejected, "another request"),
        (5, "No such object", &[Delete], Conflict, "deleted meanwhile"),
        (5, "The specified bucket does not exist.", CONTROL_CALLS, Fatal, "no such bucket; create it"),
        (7, "denied", &[Delete], Fatal, "allow storage.objects.delete"),
        (7, "denied", &[List], Fatal, "allow storage.objects.list"),
        (16, "who are you", &[Delete], Fatal, "allow storage.objects.delete"),
        (8, "slow down", CONTROL_CALLS, Rejected, "throttled"),
        (3, "nonsense", CONTROL_CALLS, Fatal, "refused the request"),
        (12, "unknown", CONTROL_CALLS, Fatal, "refused the request"),
        (14, "unavailable", CONTROL_CALLS, Ambiguous, "failed"),
        (13, "internal", CONTROL_CALLS, Ambiguous, "failed"),
        (4, "too late", CONTROL_CALLS, Ambiguous, "failed"),
        (2, "unknown", CONTROL_CALLS, Ambiguous, "failed"),
    ] {
        for call in calls {
            let server = FakeGcs::start(Options::default()).await;
            server.fail_next([Fault::Grpc(code, message)]);
            let store = GcsStore::on(&server.url()).await;
            let error = call.on(&store).await.expect_err("an error");
            assert_error(&error, &store, kind, advice, format!("{call:?}, {code} {message}"));
            assert_eq!(server.requests().len(), 1, "{call:?}, {code} {message}");
        }
    }
}

#[tokio::test]
async fn a_lost_answer_is_ambiguous_and_the_deletion_done() {
    let server = FakeGcs::start(Options::default()).await;
    let store = GcsStore::on(&server.url()).await;
    let version = store.put("key", "{}".into(), &Precondition::Absent).await.expect("written");
    server.fail_next([Fault::LoseAnswer]);
    let error = store.delete("key", Some(&version)).await.expect_err("no answer");
    assert_eq!(error.kind(), Ambiguous, "{error:?}");
    assert_eq!(server.object("key"), None);
}

#[tokio::test]
async fn an_object_is_discarded_without_a_condition() {
    let server = FakeGcs::start(Options::default()).await;
    let store = GcsStore::on(&server.url()).await;
    store.put("key", "{}".into(), &Precondition::Absent).await.expect("written");
    store.discard("key").await.expect("deleted");
    assert_eq!(server.object("key"), None);
    store.discard("key").await.expect("it is not there");
}

#[tokio::test]
async fn each_page_of_a_listing_is_one_request() {
    let server = FakeGcs::start(Options { page_size: Some(2), ..Options::default() }).await;
    let store = GcsStore::on(&server.url()).await;
    let names = ["list/a", "list/b", "list/b/c", "list/d", "list/e"];
    for name in names.iter().chain(&["lis", "listing", "zoo"]) {
        store.put(name, "{}".into(), &Precondition::Absent).await.expect("written");
    }
    let before = server.requests().len();
    assert_eq!(ListedObject::keys(store.list("list/").await.expect("listed")), names);
    assert_eq!(server.requests().len() - before, 3);
    assert_eq!(ListedObject::keys(store.list("nothing").await.expect("listed")), Vec::<String>::new());
}

#[tokio::test]
async fn an_unknown_bucket_is_fatal() {
    let server = FakeGcs::start(Options::default()).await;
    let control = server.control();
    let store = GcsStore::new(server.client().await, "unknown").with_control(move || control().build());
    assert_fails(&store, CALLS, Fatal, "no such bucket; create it").await;
}

#[tokio::test]
async fn a_control_client_that_cannot_be_made_is_fatal_and_tried_again() {
    let (server, store) = GcsStore::scripted([Answer::new(200)]).await;
    let store = store.with_control(|| async { Err::<StorageControl, _>(std::io::Error::other("no such file")) });
    for _ in 0..2 {
        assert_fails(&store, CONTROL_CALLS, Fatal, "check the credentials").await;
    }
    assert!(server.requests().is_empty());
}
