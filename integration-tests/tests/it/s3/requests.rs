//! The requests on the wire.

use aws_sdk_s3::config::interceptors::BeforeTransmitInterceptorContextMut;
use aws_sdk_s3::config::{ConfigBag, Intercept, RequestChecksumCalculation, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, Precondition, Version};
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer};

use super::{config, object, store};
use crate::calls::CALLS;
use crate::every_store::CloudStore as _;

#[tokio::test]
async fn a_create_writes_only_where_there_is_nothing() {
    let (server, store) = S3Store::scripted([object("\"new\"", "")]).await;
    let version = store.put("a key", Bytes::from_static(b"{}"), &Precondition::Absent).await.expect("written");
    assert_eq!(version.as_str(), "\"new\"");
    let request = server.requests().remove(0);
    assert_eq!((request.method.as_str(), request.body.as_slice()), ("PUT", &b"{}"[..]));
    assert!(request.target.starts_with("/bucket/a%20key?"), "{}", request.target);
    assert_eq!(request.header("if-none-match"), Some("*"));
    assert_eq!(request.header("if-match"), None);
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("cache-control"), Some("no-store"));
}

/// A bucket whose objects are kept for a time by default refuses a body without either.
#[tokio::test]
async fn each_body_has_one_digest() {
    for (calculation, has_md5) in
        [(RequestChecksumCalculation::WhenRequired, true), (RequestChecksumCalculation::WhenSupported, false)]
    {
        let server = ScriptedServer::start([object("\"new\"", "").into()]).await;
        let store = store(config(&server.url()).request_checksum_calculation(calculation));
        store.put("key", Bytes::from_static(b"{}"), &Precondition::Absent).await.expect("written");
        let request = server.requests().remove(0);
        assert_eq!(request.header("content-md5"), has_md5.then_some("mZFLkyvTelC5g8XnyQrpOw=="));
        let has_checksum =
            request.header("x-amz-checksum-crc32").is_some() || request.header("x-amz-trailer").is_some();
        assert_eq!(has_checksum, !has_md5);
    }
}

#[tokio::test]
async fn an_etag_goes_back_as_it_came() {
    for etag in ["\"quoted\"", "W/\"weak\"", "bare", "\"multipart-3\""] {
        let (server, store) = S3Store::scripted([object(etag, "{}"), object("\"new\"", ""), Answer::new(204)]).await;
        let read = store.get("key").await.expect("read").expect("an object");
        assert_eq!(read.version.as_str(), etag);
        let precondition = Precondition::Matches(read.version.clone());
        store.put("key", Bytes::from_static(b"{}"), &precondition).await.expect("written");
        store.delete("key", Some(&read.version)).await.expect("deleted");
        for request in &server.requests()[1..] {
            assert_eq!(request.header("if-match"), Some(etag), "{}", request.method);
            assert_eq!(request.header("if-none-match"), None, "{}", request.method);
        }
    }
}

#[tokio::test]
async fn an_etag_goes_back_without_its_quotes_if_it_is_to() {
    for (etag, sent) in [("\"quoted\"", "quoted"), ("bare", "bare"), ("W/\"weak\"", "W/\"weak\""), ("\"", "\"")] {
        let (server, store) = S3Store::scripted([object(etag, "{}"), object("\"new\"", ""), Answer::new(204)]).await;
        let store = store.with_bare_etags(true);
        let read = store.get("key").await.expect("read").expect("an object");
        assert_eq!(read.version.as_str(), etag, "the version is the store's");
        store
            .put("key", Bytes::from_static(b"{}"), &Precondition::Matches(read.version.clone()))
            .await
            .expect("written");
        store.delete("key", Some(&read.version)).await.expect("deleted");
        for request in &server.requests()[1..] {
            assert_eq!(request.header("if-match"), Some(sent), "{}", request.method);
        }
    }
}

#[tokio::test]
async fn an_object_is_discarded_in_one_request_without_a_condition() {
    let missing = Answer::new(404).body("<Error><Code>NoSuchKey</Code></Error>");
    let (server, store) = S3Store::scripted([Answer::new(204), missing]).await;
    store.discard("key").await.expect("deleted");
    store.discard("key").await.expect("it is not there");
    assert_eq!(server.requests().len(), 2);
    for request in server.requests() {
        assert_eq!((request.method.as_str(), request.header("if-match")), ("DELETE", None));
    }
}

#[tokio::test]
async fn credentials_and_interceptors_of_the_client_are_kept() {
    for call in CALLS {
        let server = ScriptedServer::start([Answer::new(500).into()]).await;
        call.on(&store(config(&server.url()).interceptor(Marking))).await.expect_err("answered 500");
        let request = server.requests().remove(0);
        assert_eq!(request.header("x-marked"), Some("yes"), "{call:?}");
        let authorization = request.header("authorization").expect("a signature");
        assert!(authorization.contains("Credential=test-key-id/"), "{call:?}: {authorization}");
        assert!(authorization.contains("/eu-central-1/s3/"), "{call:?}: {authorization}");
    }
}

#[tokio::test]
async fn nothing_prints_the_credentials() {
    let store = store(config("http://127.0.0.1:9"));
    assert_eq!(format!("{store:?}"), r#"S3Store { bucket: "bucket", request_timeout: 10s, .. }"#);
}

#[tokio::test]
async fn a_version_of_another_store_does_no_harm() {
    // No header can carry this version, so no request is sent.
    let (server, store) = S3Store::scripted([Answer::new(200)]).await;
    let error = store.delete("key", Some(&Version::new("line\nbreak"))).await.expect_err("no such header");
    assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error}");
    assert!(server.requests().is_empty());
}

#[derive(Debug)]
struct Marking;

impl Intercept for Marking {
    fn name(&self) -> &'static str {
        "Marking"
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        context.request_mut().headers_mut().insert("x-marked", "yes");
        Ok(())
    }
}
