//! The adapter for `object_store`, on that crate's own clients.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::causes::with_causes;
use leaderelection::implement::{ConditionalStore as _, Precondition, Version};
use leaderelection_backends::object_store::ObjectStoreAdapter;
use leaderelection_integration_tests::adapted::{Place, object_store};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;

use super::scripted;

fn on(place: &Place, retries: bool) -> ObjectStoreAdapter {
    ObjectStoreAdapter::new(object_store(place, retries))
}

#[tokio::test]
async fn a_409_is_a_conflict_and_a_500_is_ambiguous_for_every_write() {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal};
    for (status, kind) in [(409, Conflict), (412, Conflict), (500, Ambiguous), (503, Ambiguous), (403, Fatal)] {
        for condition in [Precondition::Absent, Precondition::Matches(Version::new("\"etag\""))] {
            let server = ScriptedServer::start([Answer::new(status).into()]).await;
            let error = on(&scripted(&server), false).put("key", "{}".into(), &condition).await.expect_err("an error");
            assert_eq!(error.kind(), kind, "{status}, {condition:?}: {error:?}");
            assert!(with_causes(&error).to_string().contains(&status.to_string()), "{error:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let server = ScriptedServer::start([Step::Hang]).await;
    let store = on(&scripted(&server), true).with_request_timeout(Duration::from_millis(100));
    let error = store.get("key").await.expect_err("no answer");
    assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn stores_without_conditions_are_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let local = LocalFileSystem::new_with_prefix(directory.path()).expect("a directory");
    let server = ScriptedServer::start([]).await;
    let http = HttpBuilder::new().with_url(server.url().replace("http:", "https:")).build().expect("a URL");
    for store in [ObjectStoreAdapter::new(Arc::new(local)), ObjectStoreAdapter::new(Arc::new(http))] {
        for condition in [Precondition::Absent, Precondition::Matches(Version::new("\"etag\""))] {
            let error = store.put("key", "{}".into(), &condition).await.expect_err("no conditions");
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error:?}");
            assert!(error.to_string().contains("use one that can, such as S3, Azure"), "{error}");
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    assert_eq!(server.requests().len(), 0);
}
