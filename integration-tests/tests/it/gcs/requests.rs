//! The requests on the wire.

use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore as _, MAX_BODY_BYTES, Precondition, Version};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer};

use super::{config, object, store, written};
use crate::every_store::CloudStore as _;

#[tokio::test]
async fn a_create_writes_only_where_there_is_nothing() {
    let (server, store) = GcsStore::scripted([written("1770000000000001")]).await;
    let version = store.put("a key", Bytes::from_static(b"{}"), &Precondition::Absent).await.expect("written");
    assert_eq!(version.as_str(), "1770000000000001");
    let request = server.requests().remove(0);
    assert_eq!(request.method, "POST");
    assert!(request.target.starts_with("/upload/storage/v1/b/bucket/o?"), "{}", request.target);
    for parameter in ["uploadType=multipart", "name=a+key", "ifGenerationMatch=0"] {
        assert!(request.target.contains(parameter), "{parameter}: {}", request.target);
    }
    let body = String::from_utf8_lossy(&request.body);
    assert!(body.contains(r#""cacheControl":"no-store""#), "{body}");
    assert!(body.contains(r#""contentType":"application/json""#), "{body}");
    assert!(body.contains("\r\n\r\n{}\r\n"), "{body}");
}

#[tokio::test]
async fn a_generation_goes_back_as_it_came() {
    let (server, store) = GcsStore::scripted([object("1770000000000001", "{}"), written("1770000000000002")]).await;
    let read = store.get("a key/ä").await.expect("read").expect("an object");
    assert_eq!((read.version.as_str(), &read.body[..]), ("1770000000000001", &b"{}"[..]));
    let precondition = Precondition::Matches(read.version);
    store.put("a key/ä", Bytes::from_static(b"{}"), &precondition).await.expect("written");
    let requests = server.requests();
    assert_eq!(requests[0].target, "/storage/v1/b/bucket/o/a%20key%2F%C3%A4?alt=media");
    assert!(requests[1].target.contains("ifGenerationMatch=1770000000000001"), "{}", requests[1].target);
}

#[tokio::test]
async fn the_largest_body_is_one_request() {
    let script = [written("1").into(), object("1", vec![b' '; MAX_BODY_BYTES]).into()];
    let server = ScriptedServer::start(script).await;
    let store = store(config(&server.url()).with_resumable_upload_threshold(0_usize)).await;
    store.put("key", vec![b' '; MAX_BODY_BYTES].into(), &Precondition::Absent).await.expect("written");
    assert_eq!(store.get("key").await.expect("read").expect("an object").body.len(), MAX_BODY_BYTES);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_version_of_another_store_does_no_harm() {
    // A precondition of 0 would create an object.
    let (server, store) = GcsStore::scripted([Answer::new(200)]).await;
    for version in ["0", "-1", "\"etag\"", "", "99999999999999999999"] {
        let precondition = Precondition::Matches(Version::new(version));
        let error = store.put("key", Bytes::from_static(b"{}"), &precondition).await.expect_err("no generation");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{version:?}: {error}");
        let error = store.delete("key", Some(&Version::new(version))).await.expect_err("no generation");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{version:?}: {error}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn nothing_prints_the_client() {
    let store = store(config("http://127.0.0.1:9")).await;
    assert_eq!(format!("{store:?}"), r#"GcsStore { bucket: "bucket", request_timeout: 10s, .. }"#);
}
